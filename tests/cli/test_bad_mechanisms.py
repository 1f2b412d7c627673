"""A mechanism or an audit that cannot be audited is an ERROR that says which, why and what to do; the others finish."""

import pytest

GOOD = """
@audit()
def good():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""
BAD = r"""
def declare(name, mechanism, claim=PureDP, epsilon=1.0, pairs=BITS, expect="holds", **rest):
    def factory():
        claimed = claim(epsilon, **rest) if claim is ApproxDP else claim(epsilon)
        return Audit(mechanism, claimed, pairs, calls=200)
    factory.__name__ = name
    globals()[name] = audit(expect=expect)(factory)

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

def leaves(data, size, *, rng):
    sys.exit(0)

def undecodable(data, size, *, rng):
    raise OSError("no such file: caf\udce9")  # as Python passes on a name that is not UTF-8

FAR = [Pair(np.ones(3, np.int8), np.zeros(3, np.int8))]

for mechanism in (raises, unreadable, one_too_many, one_number, no_rng, leaves, undecodable):
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
declare("fickle_type", lambda data, size, *, rng: np.zeros(size, np.int8 if data else float), expect="violation")
declare("fickle_shape", lambda data, size, *, rng: np.zeros((size, 2 + data)), expect="violation")

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
def factory_exits():
    sys.exit(0)

@audit()
def unknown_evidence():
    return Audit(coin, PureDP(1.0), BITS, evidence=["exakt"])

@audit()
def no_law():
    return Audit(coin, PureDP(1.0), BITS, evidence=["exact"])

@audit()
def figure_of_objects():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"], figure=lambda rng: {"x": object()})

@audit()
def figure_of_an_array():
    points = lambda rng: {"scatter": {"points": np.zeros((2, 2))}}
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"], figure=points)

@audit()
def no_default(epsilon):
    pass

@audit(expect="failure")
def unknown_expectation():
    pass
"""
MESSAGES = """
of_raises | raises raised ValueError on every tested input: cannot count to 7
of_unreadable | cannot read an output of type object | return numbers, text, None
of_one_too_many | one_too_many: returned shape (3,) | first dimension size=2
of_one_number | one_number: returned shape () | first dimension size=2
of_an_input_that_is_changed | <lambda>: changes its input[0] in place | work on a copy
of_randomness_from_elsewhere | <lambda>: gave different outputs | draws from elsewhere | auditdp.unseeded
the_same_twice | both inputs of a pair are [2, 3] | give two different inputs
of_no_rng | no_rng: takes data, size | needs an argument 'rng'
of_leaves | SystemExit
of_undecodable | raised OSError on every tested input: no such file: caf
of_a_number | expected a mechanism | f(data, rng), got 3
of_shared_noise | SharedNoise: all 64 outputs of one call are equal | draw fresh noise
epsilon_nan | expected finite epsilon >= 0, got epsilon=nan
delta_nan | expected delta in [0, 1], got delta=nan
no_pairs | needs pairs= | an adjacency, or pairs (data, neighbour)
no_neighbours | at least one pair of neighbouring inputs
not_adjacent | the lists differ in 3 bits, expected exactly 1 | [1,1,1] | [0,0,0]
not_adjacent_by_relation | not neighbours under the given relation: 0
control_raises | raises raised ValueError on every tested input: cannot count to 7
too_few_calls | 20 calls | give at least 30 to every input | calls=30
several_numbers | returned outputs of shape (2,), expected one number per call
estimate_not_a_number | not_a_number: returned NaN on input 0 | estimates nothing
returns_nothing | returned NoneType, expected an Audit
factory_raises | ZeroDivisionError: division by zero | audit_bad.py, line
factory_exits | SystemExit
unknown_evidence | unknown evidence 'exakt' | did you mean 'exact'?
no_law | coin states no law | add 'game'
figure_of_objects | audit_bad.py
no_default | line | 'epsilon' | default
unknown_expectation | line | 'violation' | 'failure'
"""
SAID = dict(row.partition(" | ")[::2] for row in MESSAGES.strip().splitlines())
UNIMPORTABLE = {
    "x = 1\ndef broken(:\n": "line 2 | SyntaxError",
    "import no_such_module\n": "line 1 | No module named 'no_such_module'",
    "from auditdp import audit\nx = 1 / 0\n": "line 2 | ZeroDivisionError",
    "raise SystemExit(0)\n": "SystemExit",
}


@pytest.fixture(scope="module")
def bad_run(shared_project):
    shared_project.audits(GOOD, "audits/audit_a.py")
    shared_project.audits(BAD, "audits/audit_bad.py")
    shared_project.audits(GOOD, "audits/audit_z.py")
    for k, text in enumerate(UNIMPORTABLE):
        shared_project.write(f"audits/audit_broken_{k}.py", text)
    return shared_project.run()


@pytest.mark.dear
def test_each_bad_audit_is_an_error_that_says_which_and_what_to_do(bad_run):
    for name, words in SAID.items():
        found = bad_run.audit(name)
        path = f"audits/audit_bad.py::{name}"
        assert (found["verdict"], found["evidence"], found["calls"]) == ("ERROR", [], 0)
        assert found["counterexample"] is found["epsilon_lower"] is None
        assert found["summary"].startswith(f"{path}: ")
        assert found["reproduce"].startswith(f"auditdp run {path} --seed 1 ")
        assert all(each in found["summary"] for each in words.split(" | ")), found


@pytest.mark.dear
def test_the_audits_beside_them_finish(bad_run):
    verdicts = {result["id"]: result["verdict"] for result in bad_run.record["results"]}
    assert [verdicts[f"audits/audit_{k}.py::good"] for k in "az"] == ["CERTIFIED"] * 2
    for name in ("fickle_type", "fickle_shape"):
        assert verdicts[f"audits/audit_bad.py::{name}"] == "VIOLATED"
    array = verdicts["audits/audit_bad.py::figure_of_an_array"]
    assert array in ("CERTIFIED", "ERROR")
    assert len(verdicts) == len(SAID) + len(UNIMPORTABLE) + 5
    assert (bad_run.record["status"], bad_run.code) == ("complete", 3)


@pytest.mark.dear
def test_a_file_that_does_not_import_costs_only_its_own_audits(bad_run):
    results = {result["id"]: result for result in bad_run.record["results"]}
    for k, words in enumerate(UNIMPORTABLE.values()):
        found = results[f"audits/audit_broken_{k}.py"]
        assert found["verdict"] == "ERROR"
        for each in (f"audits/audit_broken_{k}.py", *words.split(" | ")):
            assert each in found["summary"]
