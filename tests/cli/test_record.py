"""What ``--format json`` and ``--report json=PATH`` write, and what is printed."""

import json

import pytest

AUDITS = """
class Exact:
    '''A mechanism like any that a user writes: a class without a name or a repr of its own.'''

    def __call__(self, data, size, *, rng):
        return np.full(size, data)

@audit(source="A paper, Theorem 1")
def infinite(epsilon=1.0, limit=math.inf):
    '''No epsilon is large enough.'''
    return Audit(Response(limit), PureDP(epsilon), BITS, calls=300)

@audit(expect="violation")
def approximate():
    return Audit(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01, source="Elsewhere"), BITS, calls=2_000)

@audit()
def gaussian():
    return Audit(GaussianMechanism(1.0), GaussianDP(1.0), [(0.0, 1.0)], controls=[GaussianMechanism(0.1)], calls=300)

@audit()
def toothless():
    return Audit(coin, PureDP(1.0), BITS, controls=[coin, Exact()], calls=300)

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1.0), inputs={"0": [0.0], "5": [5.0]}, calls=2_000)

@audit()
def broken():
    return Audit(coin, PureDP(-1.0), BITS)

@audit()
def skipped():
    raise Skip("no GPU here")

def printing(how):
    def mechanism(data, size, *, rng):
        how()
        return rng.integers(0, 2, size)

    return mechanism

PRINTS = {"print": lambda: print("hello"), "write": lambda: os.write(1, b"hello"), "echo": lambda: os.system("echo hello")}

def declare(name, mechanism, how=lambda: None):
    def factory():
        how()
        return Audit(mechanism, PureDP(1.0), BITS, calls=300)

    factory.__name__ = name
    globals()[name] = audit()(factory)

for name, how in PRINTS.items():
    how()
    declare(f"mechanism_that_calls_{name}", printing(how))
    declare(f"factory_that_calls_{name}", coin, how)
"""
DECLARED = ["infinite", "approximate", "gaussian", "toothless", "promise", "broken"]
CALLS = ("print", "write", "echo")


@pytest.fixture(scope="module")
def recorded(shared_project):
    shared_project.audits(AUDITS)
    shared_project.write("audits/audit_worse.py", "import no_such_module")
    return shared_project.run("--report json=out/run.json --report html=out/run.html")


def test_the_ledger_shares_the_whole_alpha_between_the_audits(recorded):
    ledger = recorded.record["alpha_ledger"]
    assert sum(entry["alpha"] for entry in ledger) == pytest.approx(0.05)
    names = [entry["audit"].partition("::")[2] for entry in ledger]
    assert names[:7] == [*DECLARED, "skipped"]
    assert len(names) == 7 + 2 * len(CALLS)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (
            "infinite",
            {
                "kind": "PureDP",
                "epsilon": 1,
                "delta": 0,
                "source": "A paper, Theorem 1",
            },
        ),
        ("approximate", {"kind": "ApproxDP", "delta": 0.01, "source": "Elsewhere"}),
        ("gaussian", {"kind": "GaussianDP", "mu": 1.0, "epsilon": None}),
        ("promise", {"kind": "Unbiased"}),
    ],
)
def test_claims_are_spelt_out(recorded, name, fields):
    claim = recorded.audit(name)["claim"]
    assert claim | fields == claim


def test_a_violation_comes_with_its_counterexample_and_command(recorded):
    found = recorded.audit("infinite")
    assert (found["verdict"], recorded.code) == ("VIOLATED", 1)
    assert found["counterexample"]["pair"] == "1 | 0"
    assert found["counterexample"]["confirmed"] is True
    assert "2 values" in found["claim"]["adjacency"]
    assert found["calls"] >= 10
    exact, game = found["evidence"]
    # The verdict rests on the law, which bets nothing.
    assert (exact["verdict"], found["log_e_value"]) == ("VIOLATED", None)
    assert game["log_e_value"] > 0
    assert found["description"] == "No epsilon is large enough."
    command = "auditdp run audits/audit_it.py::infinite --seed 1 "
    assert found["reproduce"].startswith(command)


def test_an_infinite_number_is_the_string_inf(recorded):
    found = recorded.audit("infinite")
    for part in (found, found["evidence"][0]):
        assert (part["epsilon_lower"], part["epsilon_upper"]) == ("inf", "inf")
    assert found["parameters"] == {"epsilon": 1.0, "limit": "inf"}


def test_controls_are_listed_with_what_became_of_them(recorded):
    refuted, survived = recorded.audit("gaussian"), recorded.audit("toothless")
    assert [c["verdict"] for c in refuted["controls"]] == ["VIOLATED"]
    assert [c["verdict"] for c in survived["controls"]] == ["NOT_REFUTED", "VIOLATED"]
    coin, exact = (control["name"] for control in survived["controls"])
    assert coin == "coin"
    # An address in memory is another one in every process.
    assert "Exact" in exact
    assert "0x" not in exact
    assert survived["verdict"] == "INCONCLUSIVE"
    assert "did not refute the broken coin" in survived["summary"]


def test_what_could_not_run_says_why(recorded):
    assert recorded.audit("skipped")["summary"] == "no GPU here"
    assert recorded.audit("promise")["verdict"] == "EQUIVALENT"
    assert recorded.audit("broken")["verdict"] == "ERROR"
    (worse,) = [r for r in recorded.record["results"] if "worse" in r["id"]]
    assert "no_such_module" in worse["summary"]


def test_the_report_files_hold_what_standard_output_held(recorded, shared_project):
    out = shared_project.root / "out"
    assert json.loads((out / "run.json").read_text()) == recorded.record
    page = (out / "run.html").read_text().lstrip().lower()
    assert page.startswith("<!doctype html>")


def test_what_an_audit_prints_is_kept_with_its_result(recorded):
    for name in CALLS:
        for place in ("factory", "mechanism"):
            result = recorded.audit(f"{place}_that_calls_{name}")
            assert result["verdict"] == "NOT_REFUTED"
            assert "hello" in result["printed"]
    assert recorded.err.count("hello") >= len(CALLS)


@pytest.mark.dear
def test_the_terminal_names_the_seed_before_and_the_verdicts_after(project):
    project.audits(
        "@audit()\ndef fine():\n    return Audit(Response(0.5), PureDP(1.0), BITS, calls=300)\n"
    )
    outcome = project("run --budget quick")
    lines = outcome.out.splitlines()
    seed = lines[0].removeprefix("root seed ")
    assert lines[1].startswith("CERTIFIED")
    assert "does not mean that the mechanisms are private" in outcome.text
    assert project("report -f json").record["root_seed"] == int(seed)
