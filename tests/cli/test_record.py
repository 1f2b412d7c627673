"""What ``--format json`` and ``--report json=PATH`` write."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
class Exact:
    '''A mechanism like any that a user writes: a class without a name or a repr of its own.'''

    def __call__(self, data, size, *, rng):
        return np.full(size, data)

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

@audit(source="A paper, Theorem 1")
def infinite(epsilon=1.0):
    '''No epsilon is large enough.'''
    return Audit(Response(math.inf), PureDP(epsilon), AnyValues((0, 1)), calls=300)

@audit(expect="violation")
def approximate():
    return Audit(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01, source="Elsewhere"), AnyValues((0, 1)), calls=2_000)

@audit()
def gaussian():
    return Audit(GaussianMechanism(1.0), GaussianDP(1.0), [(0.0, 1.0)], controls=[GaussianMechanism(0.1)], calls=300)

@audit()
def toothless():
    return Audit(coin, PureDP(1.0), AnyValues((0, 1)), controls=[coin, Exact()], calls=300)

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1.0), inputs={"0": [0.0], "5": [5.0]}, calls=2_000)

@audit()
def broken():
    return Audit(coin, PureDP(-1.0), AnyValues((0, 1)))

@audit()
def skipped():
    raise Skip("no GPU here")
"""


@pytest.fixture(scope="module")
def recorded(shared_project):
    shared_project.audits(AUDITS)
    shared_project.write("audits/audit_worse.py", "import no_such_module")
    return shared_project.run(
        "--report", "json=out/run.json", "--report", "html=out/run.html"
    )


def test_the_ledger_shares_the_whole_alpha_between_the_audits(recorded):
    ledger = recorded.record["alpha_ledger"]
    assert sum(entry["alpha"] for entry in ledger) == pytest.approx(0.05)
    assert [entry["audit"].partition("::")[2] for entry in ledger] == [
        "infinite", "approximate", "gaussian", "toothless", "promise", "broken", "skipped"
    ]  # fmt: skip


def test_claims_are_spelt_out(recorded):
    infinite = recorded.audit("infinite")["claim"]
    assert (infinite["kind"], infinite["epsilon"], infinite["delta"]) == (
        "PureDP",
        1.0,
        0.0,
    )
    assert infinite["source"] == "A paper, Theorem 1"
    assert "2 values" in infinite["adjacency"]
    approximate = recorded.audit("approximate")["claim"]
    assert (approximate["kind"], approximate["delta"], approximate["source"]) == (
        "ApproxDP",
        0.01,
        "Elsewhere",
    )
    gaussian = recorded.audit("gaussian")["claim"]
    assert (gaussian["kind"], gaussian["mu"], gaussian["epsilon"]) == (
        "GaussianDP",
        1.0,
        None,
    )
    assert recorded.audit("promise")["claim"]["kind"] == "Unbiased"


def test_an_infinite_epsilon_is_the_string_inf(recorded):
    found = recorded.audit("infinite")
    assert (found["epsilon_lower"], found["epsilon_upper"]) == ("inf", "inf")
    exact = next(e for e in found["evidence"] if e["kind"] == "exact")
    assert (exact["epsilon_lower"], exact["epsilon_upper"]) == ("inf", "inf")


def test_a_violation_comes_with_its_counterexample_and_command(recorded):
    found = recorded.audit("infinite")
    assert found["verdict"] == "VIOLATED"
    assert found["counterexample"]["pair"] == "1 | 0"
    assert found["counterexample"]["confirmed"] is True
    assert found["calls"] >= 10
    exact, game = found["evidence"]
    assert (exact["verdict"], found["log_e_value"]) == (
        "VIOLATED",
        None,
    )  # the verdict rests on the law, which bets nothing
    assert game["log_e_value"] > 0
    assert found["description"] == "No epsilon is large enough."
    assert found["reproduce"].startswith(
        "auditdp run audits/audit_it.py::infinite --seed 1 "
    )


def test_controls_are_listed_with_what_became_of_them(recorded):
    refuted, survived = recorded.audit("gaussian"), recorded.audit("toothless")
    assert [c["verdict"] for c in refuted["controls"]] == ["VIOLATED"]
    assert [c["verdict"] for c in survived["controls"]] == ["NOT_REFUTED", "VIOLATED"]
    assert survived["controls"][0]["name"] == "coin"
    assert survived["verdict"] == "INCONCLUSIVE"
    assert "did not refute the broken coin" in survived["summary"]


def test_what_could_not_run_says_why(recorded):
    assert recorded.audit("skipped")["summary"] == "no GPU here"
    assert recorded.audit("promise")["verdict"] == "EQUIVALENT"
    assert recorded.audit("broken")["verdict"] == "ERROR"
    assert (
        "no_such_module"
        in next(r for r in recorded.record["results"] if "worse" in r["id"])["summary"]
    )


def test_the_report_file_holds_what_standard_output_held(recorded, shared_project):
    assert (
        json.loads((shared_project.root / "out/run.json").read_text())
        == recorded.record
    )
    assert (
        (shared_project.root / "out/run.html")
        .read_text()
        .lstrip()
        .lower()
        .startswith("<!doctype html>")
    )
    assert recorded.code == 1


def test_a_mechanism_is_named_without_its_address_in_memory(recorded):
    """An address is another one in every process, and the same seed has to give the same record."""
    name = recorded.audit("toothless")["controls"][1]["name"]
    assert "Exact" in name
    assert "0x" not in name


def test_an_infinite_parameter_is_recorded_as_the_string_inf(project):
    project.audits(
        """
        @audit(expect="violation")
        def infinite(limit=math.inf, floor=1.0):
            return Audit(Response(limit), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"])
        """
    )
    parameters = project.run("-P", "floor=-inf").audit("infinite")["parameters"]
    assert parameters == {"limit": "inf", "floor": "-inf"}


NOISY = """
{at_import}
def chatty(data, size, *, rng):
    {in_mechanism}
    return rng.integers(0, 2, size)

@audit()
def noisy():
    {in_factory}
    return Audit(chatty, PureDP(1.0), AnyValues((0, 1)), calls=300)
"""


@pytest.mark.parametrize("place", ["at_import", "in_mechanism", "in_factory"])
@pytest.mark.parametrize(
    "how", ["print('hello')", "os.write(1, b'hello')", "os.system('echo hello')"]
)
def test_what_an_audit_prints_is_kept_with_its_result(project, place, how):
    statements = {"at_import": "", "in_mechanism": "pass", "in_factory": "pass"} | {
        place: how
    }
    project.audits(NOISY.format(**statements))
    outcome = project.run()
    (result,) = outcome.record["results"]
    assert result["verdict"] == "NOT_REFUTED"
    assert "hello" in (outcome.err if place == "at_import" else result["printed"])


def test_the_terminal_names_the_seed_before_and_the_verdicts_after(project):
    project.audits(
        "@audit()\ndef fine():\n    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), calls=300)\n"
    )
    outcome = project("run", "--budget", "quick")
    lines = outcome.out.splitlines()
    seed = lines[0].removeprefix("root seed ")
    assert seed.isdigit()
    assert lines[1].startswith("CERTIFIED")
    assert "does not mean that the mechanisms are private" in " ".join(
        outcome.out.split()
    )
    assert json.loads(project("report", "-f", "json").out)["root_seed"] == int(seed)
