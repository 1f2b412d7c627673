"""A mechanism or an audit that cannot be audited is an ERROR that says which, why and what to do; the others finish."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.dear

GOOD = """
@audit()
def good():
    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"])
"""
BAD = """
BITS = AnyValues((0, 1))

def declare(name, mechanism, claim=PureDP, epsilon=1.0, pairs=BITS, **rest):
    def factory():
        claimed = claim(epsilon, **rest) if claim is ApproxDP else claim(epsilon)
        return Audit(mechanism, claimed, pairs, calls=200)
    factory.__name__ = name
    globals()[name] = audit()(factory)

def raises(data, size, *, rng):
    raise ValueError("cannot count to 7")

def not_a_number(data, size, *, rng):
    return np.where(rng.random(size) < 0.5, math.nan, 1.0)

def unreadable(data, rng):
    return [object()]

def one_too_many(data, size, *, rng):
    return rng.random(size + 1)

def one_number(data, size, *, rng):
    return 0.5

def no_rng(data, size):
    return np.zeros(size)

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

FAR = [Pair(np.ones(3, np.int8), np.zeros(3, np.int8))]

for mechanism in (raises, unreadable, one_too_many, one_number, no_rng):
    declare(f"of_{mechanism.__name__}", mechanism)
declare("of_a_number", 3)
declare("of_an_input_that_is_changed", lambda data, rng: data.sort(), pairs=[([2, 1], [3, 1])])
declare("of_randomness_from_elsewhere", lambda data, size, *, rng: np.random.default_rng().random(size))
declare("the_same_twice", coin, pairs=[(1, 0), ([2, 3], [2, 3])])
declare("of_shared_noise", SharedNoise(1.0))
declare("epsilon_nan", coin, epsilon=math.nan)
declare("delta_nan", coin, ApproxDP, delta=math.nan)
declare("no_pairs", coin, pairs=None)
declare("no_neighbours", coin, pairs=[])

@audit()
def not_adjacent():
    return Audit(coin, PureDP(1.0), NeighbourList(4), play=FAR, calls=200)

@audit()
def not_adjacent_by_relation():
    return Audit(coin, PureDP(1.0), Neighbours([(0, 2)], relation=lambda a, b: abs(a - b) <= 1), calls=200)

@audit()
def control_raises():
    return Audit(coin, PureDP(1.0), BITS, controls=[raises], calls=200)

@audit()
def too_few_calls():
    return Audit(coin, Unbiased(float, margin=1.0), inputs={"zero": [0]}, calls=20)

@audit()
def estimate_not_a_number():
    return Audit(not_a_number, Unbiased(float, margin=1.0), inputs={"0": [0]})

@audit()
def several_numbers():
    return Audit(lambda data, size, *, rng: rng.random((size, 2)), Unbiased(float, margin=1.0), inputs={"0": [0]})

@audit()
def returns_nothing():
    pass

@audit()
def factory_raises():
    return 1 / 0

@audit()
def unknown_evidence():
    return Audit(coin, PureDP(1.0), BITS, evidence=["exakt"])

@audit()
def no_law():
    return Audit(coin, PureDP(1.0), BITS, evidence=["exact"])
"""
SAID = {
    "of_raises": [
        "raises raised ValueError: cannot count to 7",
        "on every input that was tried",
    ],
    "of_unreadable": [
        "cannot read an output of type object",
        "return numbers, text, None",
    ],
    "of_one_too_many": ["one_too_many: returned shape (9,)", "first dimension size=8"],
    "of_one_number": ["one_number: returned shape ()", "first dimension size=8"],
    "of_an_input_that_is_changed": [
        "<lambda>: changes its input[0] in place",
        "work on a copy",
    ],
    "of_randomness_from_elsewhere": [
        "<lambda>: gave different outputs",
        "draws from elsewhere",
        "auditdp.unseeded",
    ],
    "the_same_twice": ["both inputs of a pair are [2, 3]", "give two different inputs"],
    "of_no_rng": ["no_rng: takes data, size", "needs an argument 'rng'"],
    "of_a_number": ["expected a mechanism", "f(data, rng), got 3"],
    "of_shared_noise": [
        "SharedNoise: all 64 outputs of one call are equal",
        "draw fresh noise",
    ],
    "epsilon_nan": ["expected finite epsilon >= 0, got epsilon=nan"],
    "delta_nan": ["expected delta in [0, 1], got delta=nan"],
    "no_pairs": ["needs pairs=", "an adjacency, or pairs (data, neighbour)"],
    "no_neighbours": ["at least one pair of neighbouring inputs"],
    "not_adjacent": [
        "the lists differ in 3 bits, expected exactly 1",
        "[1,1,1] | [0,0,0]",
    ],
    "not_adjacent_by_relation": ["not neighbours under the given relation: 0 | 2"],
    "control_raises": ["raises raised ValueError: cannot count to 7"],
    "too_few_calls": ["20 calls", "give at least 30 to every input", "calls=30"],
    "several_numbers": ["returned outputs of shape (2,), expected one number per call"],
    "estimate_not_a_number": [
        "not_a_number: returned NaN on input 0",
        "estimates nothing",
    ],
    "returns_nothing": ["returned NoneType, expected an Audit"],
    "factory_raises": ["ZeroDivisionError: division by zero", "audit_bad.py, line"],
    "unknown_evidence": ["unknown evidence 'exakt'", "did you mean 'exact'?"],
    "no_law": ["coin states no law", "add 'game'"],
}


@pytest.fixture(scope="module")
def bad_run(shared_project):
    shared_project.audits(GOOD, "audits/audit_a.py")
    shared_project.audits(BAD, "audits/audit_bad.py")
    shared_project.audits(GOOD, "audits/audit_z.py")
    return shared_project.run()


@pytest.mark.parametrize("name", SAID)
def test_it_is_an_error_that_says_which_and_what_to_do(bad_run, name):
    found = bad_run.audit(name)
    assert found["verdict"] == "ERROR"
    assert found["summary"].startswith(f"audits/audit_bad.py::{name}: ")
    for words in SAID[name]:
        assert words in found["summary"]


LEAKS = """
@audit()
def fickle_type():
    return Audit(lambda data, size, *, rng: np.zeros(size, np.int8 if data else float), PureDP(1.0), AnyValues((0, 1)))

@audit()
def fickle_shape():
    return Audit(lambda data, size, *, rng: np.zeros((size, 2 + data)), PureDP(1.0), AnyValues((0, 1)))
"""


def test_a_type_or_a_shape_that_depends_on_the_data_is_a_violation(project):
    project.audits(LEAKS)
    run = project.run()
    assert {result["verdict"] for result in run.record["results"]} == {"VIOLATED"}


def test_an_error_claims_nothing_and_says_how_to_run_it_again(bad_run):
    for name in SAID:
        found = bad_run.audit(name)
        assert found["evidence"] == []
        assert (found["counterexample"], found["epsilon_lower"], found["calls"]) == (
            None,
            None,
            0,
        )
        assert found["reproduce"].startswith(
            f"auditdp run audits/audit_bad.py::{name} --seed 1 "
        )


def test_the_audits_before_and_after_finish(bad_run):
    verdicts = {result["id"]: result["verdict"] for result in bad_run.record["results"]}
    assert (
        verdicts["audits/audit_a.py::good"]
        == verdicts["audits/audit_z.py::good"]
        == "CERTIFIED"
    )
    assert len(verdicts) == len(SAID) + 2
    assert bad_run.record["status"] == "complete"
    assert bad_run.code == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef broken(:\n", ["line 2", "SyntaxError"]),
        ("import no_such_module\n", ["line 1", "No module named 'no_such_module'"]),
        ("from auditdp import audit\nx = 1 / 0\n", ["line 2", "ZeroDivisionError"]),
        ("raise SystemExit(0)\n", ["SystemExit"]),
    ],
    ids=["syntax", "import", "exception", "exit"],
)
def test_a_file_that_does_not_import_costs_only_its_own_audits(project, text, message):
    project.write("audits/audit_broken.py", text)
    project.audits(GOOD, "audits/audit_sound.py")
    outcome = project.run()
    assert outcome.code == 3
    broken, sound = outcome.record["results"]
    assert (broken["id"], broken["verdict"]) == ("audits/audit_broken.py", "ERROR")
    assert "audits/audit_broken.py" in broken["summary"]
    for words in message:
        assert words in broken["summary"]
    assert (sound["id"], sound["verdict"]) == (
        "audits/audit_sound.py::good",
        "CERTIFIED",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@audit()\ndef f(epsilon):\n    pass\n", ["line 2", "'epsilon'", "default"]),
        (
            "@audit(expect='failure')\ndef f():\n    pass\n",
            ["line 2", "'violation'", "'failure'"],
        ),
    ],
    ids=["no default", "unknown expectation"],
)
def test_an_audit_that_is_declared_wrongly_costs_only_itself(project, text, message):
    project.write("audits/audit_broken.py", f"from auditdp import audit\n{text}")
    project.audits(GOOD, "audits/audit_sound.py")
    outcome = project.run()
    assert outcome.code == 3
    broken, sound = outcome.record["results"]
    assert (broken["id"], broken["verdict"]) == ("audits/audit_broken.py::f", "ERROR")
    for words in message:
        assert words in broken["summary"]
    assert (sound["id"], sound["verdict"]) == (
        "audits/audit_sound.py::good",
        "CERTIFIED",
    )


@pytest.mark.parametrize("place", ["factory", "mechanism"])
def test_an_audit_that_exits_the_interpreter_does_not_end_the_run(project, place):
    """Exit code 0 would say that nothing was found."""
    project.audits(
        f"""
        def leaves(data, size, *, rng):
            sys.exit(0)

        @audit()
        def exits():
            if {place == "factory"}:
                sys.exit(0)
            return Audit(leaves, PureDP(1.0), AnyValues((0, 1)), calls=200)
        """
    )
    project.audits(GOOD, "audits/audit_sound.py")
    outcome = project.run()
    assert outcome.code == 3
    assert outcome.audit("exits")["verdict"] == "ERROR"
    assert "SystemExit" in outcome.audit("exits")["summary"]
    assert outcome.audit("good")["verdict"] == "CERTIFIED"


FIGURES = """
def plotted(name, figure):
    def factory():
        return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"], figure=lambda rng: figure)
    factory.__name__ = name
    globals()[name] = audit()(factory)

plotted("array", {"scatter": {"points": np.zeros((2, 2))}})
plotted("numbers", {"scatter": {"points": [[np.int64(1), np.float32(2)]]}})
plotted("something", {"x": object()})
"""


def test_a_figure_that_is_no_plain_data_does_not_end_the_run(project):
    """Python ends with 1 after an uncaught exception, and 1 is what a violation ends with."""
    project.audits(FIGURES)
    project.audits(GOOD, "audits/audit_sound.py")
    outcome = project.run()
    assert outcome.code == 3
    assert all(
        outcome.audit(name)["verdict"] in ("CERTIFIED", "ERROR")
        for name in ("array", "numbers")
    )
    assert outcome.audit("something")["verdict"] == "ERROR"
    assert outcome.audit("good")["verdict"] == "CERTIFIED"


def test_a_message_with_bytes_that_are_no_text_does_not_end_the_run(project):
    """Python passes names that are not UTF-8 on as lone surrogates, which no encoder takes."""
    project.audits(
        r"""
        def raises(data, size, *, rng):
            raise OSError("no such file: caf\udce9")

        @audit()
        def undecodable():
            return Audit(raises, PureDP(1.0), AnyValues((0, 1)), calls=200)
        """
    )
    project.audits(GOOD, "audits/audit_sound.py")
    outcome = project.run()
    assert outcome.code == 3
    assert "OSError: no such file: caf" in outcome.audit("undecodable")["summary"]
    assert outcome.audit("good")["verdict"] == "CERTIFIED"
