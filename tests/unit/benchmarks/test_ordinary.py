"""The benchmark's sixty mechanisms: what is said of each is true, whatever an audit finds."""

import inspect
import math
import types
import typing
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import laplace

from auditdp import PureDP, assert_private, check
from auditdp.adjacency import as_adjacency
from auditdp.errors import PrivacyViolation
from auditdp.mechanism.protocol import name_of
from benchmarks import ordinary, ordinary_correct, ordinary_noise, ordinary_outputs
from benchmarks.ordinary import BROKEN, CASES, CORRECT, ERROR
from benchmarks.ordinary_case import Case, geometric_noise, one_row_more
from benchmarks.parts import Options

VECTORISED = {
    name
    for name, case in CASES.items()
    if "size" in inspect.signature(case.function).parameters
}
REACH = 30
"""Stand-ins of noise go that many scales far: what is beyond has a probability below e^-30."""
NEGLIGIBLE = 2e-6


# the list


def test_forty_are_broken_and_twenty_are_not():
    assert (len(BROKEN), len(CORRECT), len(CASES)) == (40, 20, 60)
    assert all(case.is_broken and case.fault for case in BROKEN)
    assert all(
        case.level == pytest.approx(case.claim.level, rel=1e-9) and not case.fault
        for case in CORRECT
    )


def test_every_kind_of_fault_is_there():
    faults = " ".join(case.fault for case in BROKEN)
    named = (
        "noise, sensitivity, neighbours, threshold, clipping, sum, seed, overflow, rounding, cache, counter, timestamp, "
        "shape, exception, type, None, keys, ties, debug, text, 2⁵³, low bits"
    )
    for kind in named.split(", "):
        assert kind in faults


def test_every_case_argues_in_a_sentence():
    assert all(
        case.why.endswith(".") and not case.why[0].islower() and len(case.why) >= 30
        for case in CASES.values()
    )
    assert len({case.why for case in CASES.values()}) == 60


def test_only_code_that_remembers_may_be_refused():
    assert {case.name for case in CASES.values() if case.refusal} == {
        "Dashboard",
        "Heartbeat",
    }


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_its_pairs_are_of_its_adjacency(case):
    adjacency = as_adjacency(case.pairs)
    for pair in adjacency.pairs():
        adjacency.check(pair)


def test_names_are_those_of_the_functions():
    assert all(
        name_of(case.mechanism).replace("_", " ") == name
        for name, case in CASES.items()
    )


def test_a_mechanism_was_never_called_before():
    case = CASES["Dashboard"]
    rng = np.random.default_rng(1)
    assert case.mechanism(41, rng=rng) != case.mechanism(41, rng=rng)
    asked = case.mechanism
    assert asked(41, rng=rng) == asked(41, rng=rng)


# what they return


def outcomes(function, data, calls, seed=1):
    """What calls return, where an exception is what they return too."""
    rng = np.random.default_rng(seed)
    if "size" in inspect.signature(function).parameters:
        return list(function(data, calls, rng=rng))
    return [outcome(function, data, rng) for _ in range(calls)]


def outcome(function, data, rng):
    try:
        return function(data, rng=rng)
    except (ValueError, KeyError, TimeoutError) as error:
        return error


def fits(value, hint):
    """Whether a value is of an annotated type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return True
    if origin is types.UnionType:
        return any(fits(value, part) for part in parts)
    if origin in (None, np.ndarray):
        return isinstance(value, origin or hint)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(k, parts[0]) and fits(v, parts[1]) for k, v in value.items()
        )
    if origin is tuple:
        return isinstance(value, tuple) and all(map(fits, value, parts))
    return isinstance(value, origin) and all(fits(item, parts[0]) for item in value)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_it_returns_the_type_that_it_says(case):
    function = (
        case.function
        if inspect.isfunction(case.function)
        else type(case.function).__call__
    )
    hint = typing.get_type_hints(function)["return"]
    pair = as_adjacency(case.pairs).pairs()[0]
    for data in (pair.data, pair.neighbour):
        if case.name in VECTORISED:
            assert fits(case.mechanism(data, 7, rng=np.random.default_rng(1)), hint)
            assert len(case.mechanism(data, 7, rng=np.random.default_rng(1))) == 7
        else:
            found = outcomes(case.mechanism, data, 30)
            assert all(
                isinstance(output, Exception) or fits(output, hint) for output in found
            )


def test_more_than_numbers_is_returned():
    returned = {
        type(output)
        for case in CASES.values()
        for output in outcomes(
            case.mechanism, as_adjacency(case.pairs).pairs()[0].data, 3
        )
    }
    names = {kind.__name__ for kind in returned}
    assert {
        "dict",
        "list",
        "str",
        "Summary",
        "Survey",
        "Decimal",
        "set",
        "tuple",
        "int",
        "float",
        "ndarray",
    } <= names
    assert {"NoneType", "KeyError", "complex128", "uint8"} <= names | {
        type(output).__name__
        for name in ("coded sample", "perhaps asked")
        for output in _both(name, 60)
    }


def _both(name, calls):
    pair = as_adjacency(CASES[name].pairs).pairs()[0]
    return [
        output
        for data in (pair.data, pair.neighbour)
        for output in outcomes(CASES[name].mechanism, data, calls)
    ]


# what is infinite


def lone(*values):
    return np.array(values, float)


ONLY_FROM_ONE = {
    "both counts": (lambda o: round(o["women"] - o["men"], 9) == 1, None, 20),
    "remembered noise": (lambda o: o[0] == o[1], None, 20),
    "Heartbeat": (lambda o: o == 41, None, 1000),
    "repeatable total": (
        lambda o: o == 8 + np.random.default_rng([3, 4, 1]).laplace(),
        None,
        20,
    ),
    "precise reading": (lambda o: float(np.float32(o - 0.1)) == o - 0.1, None, 200),
    "sampled check": (lambda o: o == 41, None, 5_000),
    "sensor values": (lambda o: o == [3.0, 1.0, 2.0], None, 20_000),
    "tidy histogram": (lambda o: o[0] == 0, (lone(0, 1, 1), lone(1, 1, 1)), 20),
    "noisy readings": (lambda o: len(o) == 3, None, 20),
    "noisy table": (lambda o: len(o) == 3, None, 20),
    "sparse histogram": (lambda o: 1 in o[0], None, 20),
    "log count": (lambda o: isinstance(o, ValueError), (lone(0), lone(1)), 20),
    "coded sample": (lambda o: isinstance(o, KeyError), None, 200),
    "working days": (lambda o: isinstance(o, float), ([2, 3, 0], [2, 3, 1]), 20),
    "suppressed count": (lambda o: o is None, (["a"] * 4, ["a"] * 5), 20),
    "mean reading": (math.isnan, ([0.5, math.nan], [0.5, 1.0]), 20),
    "visits": (lambda o: "Rome" in o, None, 20),
    "some cities": (lambda o: "Rome" in o, None, 20),
    "summary": (lambda o: o.people == 3, None, 20),
    "traced count": (lambda o: o["trace"] == {"before noise": 41}, None, 3_000),
    "numbered release": (lambda o: o["release"] % 2**32 == 41, None, 20),
    "mean price": (lambda o: o % 1 != 0, None, 20),
    "star rating": (lambda o: round(7 * float(o.split()[0])) % 7 == 2, None, 20),
    "sentence": (lambda o: o.startswith("3 answers"), None, 20),
    "readings file": (lambda o: o.count("\n") == 3, None, 20),
    "stamped count": (lambda o: o["finished"].endswith("00.027000"), None, 20),
    "spectrum": (lambda o: o[1].imag == 0, (lone(1, 1, 1, 1), lone(1, 0, 1, 1)), 20),
    "polite answer": (lambda o: o == "yes", ("yes", "no"), 20),
}
"""Something that one input of a pair gives and the other never does; None for the pair of the case."""
ARGUED = {"Dashboard", "scaled total", "frequent queries"}
"""Tests of their own."""


def test_whatever_is_infinite_is_shown_to_be():
    assert {case.name for case in BROKEN if math.isinf(case.level)} == set(
        ONLY_FROM_ONE
    ) | ARGUED


@pytest.mark.parametrize("name", ONLY_FROM_ONE)
def test_an_output_comes_from_one_input_only(name):
    event, pair, calls = ONLY_FROM_ONE[name]
    given = as_adjacency(CASES[name].pairs).pairs()[0]
    data, neighbour = pair or (given.data, given.neighbour)
    assert any(event(output) for output in outcomes(CASES[name].mechanism, data, calls))
    assert not any(
        event(output) for output in outcomes(CASES[name].mechanism, neighbour, calls)
    )


def test_a_dashboard_tells_whether_a_count_changed():
    rng = np.random.default_rng(1)
    same, changed = CASES["Dashboard"].mechanism, CASES["Dashboard"].mechanism
    assert same(41, rng=rng) == same(41, rng=rng)
    assert changed(41, rng=rng) != changed(42, rng=rng)


class Recorder:
    """A generator whose noise is none, and which keeps the scales."""

    def __init__(self):
        self.scales = []

    def _noise(self, scale, size=None):
        self.scales.append(scale)
        return 0.0 if size is None else np.zeros(size)

    laplace = normal = lambda self, scale=1.0, size=None: self._noise(scale, size)


def without_noise(function, data):
    """What is computed before the noise, and the scale."""
    recorder = Recorder()
    output = (
        function(data, 1, rng=recorder)[0]
        if name_of(function).replace("_", " ") in VECTORISED
        else function(data, recorder)
    )
    return output, recorder.scales[0]


def test_the_scale_of_a_total_depends_on_the_data():
    """Laplace noise of scales 9 and 2: the density ratio at x grows like exp(|x| (1/2 − 1/9))."""
    pair = as_adjacency(CASES["scaled total"].pairs).pairs()[0]
    assert [
        without_noise(ordinary_noise.scaled_total, x)
        for x in (pair.data, pair.neighbour)
    ] == [(13, 9), (6, 2)]


def test_what_one_person_asked_is_published_more_often_than_delta():
    case = CASES["frequent queries"]
    probability = laplace.sf(math.log(50) - 1)
    assert probability == pytest.approx(0.01 * math.e)
    assert probability > case.claim.delta
    found = sum(
        "b" in output for output in outcomes(case.mechanism, ["a"] * 5 + ["b"], 20_000)
    )
    assert found == pytest.approx(
        20_000 * probability, abs=5 * math.sqrt(20_000 * probability)
    )
    assert not any("b" in output for output in outcomes(case.mechanism, ["a"] * 5, 100))


# what is finite: the law of every outcome, from the code itself, which is run on all that its generator may give


class Chance:
    """A generator that follows a path of choices, then takes the first of each; it keeps the path's probability."""

    def __init__(self, path, reach):
        self.path, self.reach = path, reach
        self.taken, self.probability = [], 1.0

    def pick(self, weights):
        k = self.path[len(self.taken)] if len(self.taken) < len(self.path) else 0
        self.taken.append((k, len(weights)))
        self.probability *= weights[k]
        return k

    def random(self):
        return Uniform(self)

    def integers(self, n):
        return self.pick([1 / n] * n)

    def choice(self, n, p):
        return self.pick(p)

    def geometric(self, p, size=None):
        k = 1 + self.pick([p * (1 - p) ** k for k in range(REACH)])
        return k if size is None else np.array([k])

    def two_sided(self, epsilon):
        """Integers with probability proportional to exp(−ε|z|)."""
        a, most = math.exp(-epsilon), math.ceil(self.reach / epsilon)
        return (
            self.pick([(1 - a) / (1 + a) * a ** abs(z) for z in range(-most, most + 1)])
            - most
        )

    def laplace(self, scale):
        """Multiples of the scale: ratios of probabilities are those of densities, where data differ by whole scales."""
        return scale * self.two_sided(1.0)

    def after(self):
        """The next path, or None."""
        while self.taken and self.taken[-1][0] == self.taken[-1][1] - 1:
            self.taken.pop()
        if not self.taken:
            return None
        path = [k for k, _ in self.taken]
        path[-1] += 1
        return path


class Uniform:
    """A uniform number that is compared once."""

    def __init__(self, chance):
        self.chance = chance

    def __lt__(self, p):
        return self.chance.pick([p, 1 - p]) == 0


@pytest.fixture
def law(monkeypatch):
    """The law of what a function returns, from all that may happen."""
    for module in (ordinary_correct, ordinary_noise, ordinary_outputs):
        monkeypatch.setattr(
            module, "geometric_noise", lambda epsilon, chance: chance.two_sided(epsilon)
        )

    def compute(function, data, reach=REACH):
        found, path = Counter(), []
        while path is not None:
            chance = Chance(path, reach)
            found[repr(outcome(function, data, chance))] += chance.probability
            path = chance.after()
        assert sum(found.values()) == pytest.approx(1, abs=1e-5)
        return found

    return compute


def epsilon(p, q):
    """The smallest ε of two laws, where what is beyond the reach is left out."""
    if any(
        max(p[output], q[output]) > NEGLIGIBLE and not (p[output] and q[output])
        for output in {*p, *q}
    ):
        return math.inf
    return max(
        abs(math.log(p[output] / q[output])) for output in p if p[output] and q[output]
    )


def delta(p, q, at):
    """The largest δ of two laws at an ε, in either order."""
    return max(
        sum(max(b[o] - math.exp(at) * a[o], 0) for o in {*a, *b})
        for a, b in ((p, q), (q, p))
    )


def test_the_law_of_geometric_noise():
    found, path = Counter(), []
    while path is not None:
        chance = Chance(path, REACH)
        found[geometric_noise(1.0, chance)] += chance.probability
        path = chance.after()
    a = math.exp(-1)
    assert all(
        found[z] == pytest.approx((1 - a) / (1 + a) * a ** abs(z), rel=1e-9)
        for z in range(-8, 9)
    )


ENUMERATED = [
    case.name
    for case in CORRECT
    if isinstance(case.claim, PureDP) and case.name not in VECTORISED
]


def test_most_correct_ones_are_enumerated():
    assert len(ENUMERATED) == 15


@pytest.mark.parametrize("name", ENUMERATED)
def test_a_correct_one_has_exactly_the_level_of_its_claim(law, name):
    """Over all pairs of its adjacency, or those that it is given."""
    case = CASES[name]
    adjacency = as_adjacency(case.pairs)
    pairs = adjacency.exhaustive() or adjacency.pairs()
    reach = (
        14 if name == "replaced counts" else REACH
    )  # which draws twice from wide noise
    levels = [
        epsilon(
            law(case.function, pair.data, reach),
            law(case.function, pair.neighbour, reach),
        )
        for pair in pairs
    ]
    assert max(levels) == pytest.approx(case.claim.level, rel=1e-9)


@pytest.mark.parametrize("name", ["published queries", "count within delta"])
def test_a_correct_one_has_exactly_the_delta_of_its_claim(law, name):
    case = CASES[name]
    found = [
        delta(
            law(case.function, pair.data),
            law(case.function, pair.neighbour),
            case.claim.epsilon,
        )
        for pair in as_adjacency(case.pairs).pairs()
    ]
    assert max(found) == pytest.approx(case.claim.delta, rel=1e-3)


def test_publishing_is_private_at_every_count():
    p = [ordinary_correct.published_with(n) for n in range(60)]
    delta = ordinary_correct.DELTA
    for one, more in pairwise(p):
        assert one <= more <= math.e * one + delta + 1e-12
        assert 1 - one <= math.e * (1 - more) + delta + 1e-12
    assert p[-1] == 1


def test_wrapping_after_the_noise_is_private(law):
    wrapped = partial(ordinary_correct.wrapped_count, size=1)
    p, q = (law(wrapped, lone(count)) for count in (255, 256))
    likely = [output for output in p if p[output] > 1e-4]
    assert max(abs(math.log(p[o] / q[o])) for o in likely) == pytest.approx(
        1.0, rel=1e-9
    )


def test_complex_counts_have_noise_on_both_parts():
    rng, again = (np.random.default_rng(1) for _ in range(2))
    found = ordinary_correct.complex_counts(lone(3, 5), 100, rng=rng)
    noise = again.geometric(1 - math.exp(-1), (4, 100))
    assert (found.real == 3 + noise[0] - noise[1]).all()
    assert (found.imag == 5 + noise[2] - noise[3]).all()


def test_a_rounded_answer_is_one_gdp():
    rng, again = (np.random.default_rng(1) for _ in range(2))
    found = ordinary_correct.rounded_answer(lone(3), 100, rng=rng)
    assert (found == np.round(3 + again.standard_normal(100), 2)).all()


@pytest.mark.parametrize(
    ("name", "data", "neighbour", "reach"),
    [
        ("favourite colours", None, None, REACH),
        ("ranking", None, None, REACH),
        ("total", None, None, REACH),
        ("clipped total", None, None, REACH),
        ("total balance", None, None, REACH),
        ("rounded count", lone(5), lone(6), REACH),
        ("stored count", lone(255), lone(256), 300),
    ],
)
def test_a_broken_one_has_the_level_that_is_stated(law, name, data, neighbour, reach):
    pair = as_adjacency(CASES[name].pairs).pairs()[0]
    if data is None:
        data, neighbour = pair.data, pair.neighbour
    function = CASES[name].function
    assert epsilon(
        law(function, data, reach), law(function, neighbour, reach)
    ) == pytest.approx(CASES[name].level, rel=1e-3)


def test_no_count_is_rounded_farther_than_ten():
    pairs = as_adjacency(CASES["rounded count"].pairs).exhaustive()
    moved = [
        abs(round(pair.data[0], -1) - round(pair.neighbour[0], -1)) for pair in pairs
    ]
    assert max(moved) == 10
    assert sum(change == 10 for change in moved) == 10


@pytest.mark.parametrize(("name", "order"), [("degrees", 1), ("four answers", 2)])
def test_answers_change_by_more_than_their_noise_is_for(name, order):
    found = []
    for pair in as_adjacency(CASES[name].pairs).pairs():
        (a, scale), (b, _) = (
            without_noise(CASES[name].function, x) for x in (pair.data, pair.neighbour)
        )
        assert scale == 1
        found.append(np.linalg.norm(a - b, order))
    assert max(found) == CASES[name].level


def test_one_row_more():
    assert one_row_more(["a", "b"], ["b"])
    assert one_row_more([], ["b"])
    assert not one_row_more(["a", "b"], ["c"])
    assert not one_row_more(["a"], ["a"])
    assert not one_row_more(["a", "b", "c"], ["a"])


# the benchmark's part


@pytest.mark.full
def test_some_through_the_assertion_of_a_test():
    for name in ("both counts", "favourite colours", "visits"):
        with pytest.raises(PrivacyViolation, match="is not 1-DP"):
            assert_private(
                CASES[name].mechanism, CASES[name].claim, CASES[name].pairs, calls=4_000
            )
    for name in ("randomised answer", "city counts"):
        result = assert_private(
            CASES[name].mechanism, CASES[name].claim, CASES[name].pairs, calls=2_000
        )
        assert result.verdict == "NOT_REFUTED"


@pytest.mark.full
def test_some_through_check():
    assert (
        check(
            CASES["total"].mechanism, PureDP(1.0), CASES["total"].pairs, calls=4_000
        ).verdict
        == "VIOLATED"
    )
    case = CASES["report text"]
    assert (
        check(case.mechanism, case.claim, case.pairs, calls=2_000).verdict
        == "NOT_REFUTED"
    )


def test_judging_says_what_was_found():
    run = ordinary.judge(CASES["favourite colours"], 1, calls=4_000)
    assert run["verdict"] == "VIOLATED"
    assert 10 < run["refuted_at"] < 4_000
    assert run["calls"] >= run["refuted_at"]
    assert ordinary.is_found(CASES["favourite colours"], run)


def test_an_error_finds_nothing_unless_it_names_why_calls_are_no_runs():
    def broken(data, rng):
        raise OSError("no disk")

    case = Case(
        "broken",
        broken,
        PureDP(1.0),
        [(0, 1)],
        math.inf,
        "It always raises.",
        "exception",
    )
    run = ordinary.judge(case, 1, calls=100)
    assert run["verdict"] == ERROR
    assert "no disk" in run["statement"]
    assert not ordinary.is_found(case, run)
    refused = ordinary.judge(CASES["Dashboard"], 1, calls=1_000)
    assert ordinary.is_found(CASES["Dashboard"], refused)
    assert not ordinary.is_accused(refused)
    assert not ordinary.is_found(CASES["Dashboard"], run)


def run(verdict, statement="", refuted_at=None):
    return {
        "verdict": verdict,
        "statement": statement,
        "calls": 9,
        "refuted_at": refuted_at,
        "cpu_seconds": 1.0,
    }


def made(missed=(), accused=()):
    """Results of a whole run."""
    found = {key: run("VIOLATED", refuted_at=100) for key in ordinary.units(Options(1))}
    for key in found:
        name = key.removeprefix(f"{ordinary.ASSERTED}: ").partition("/")[0]
        if CASES[name] in CORRECT:
            found[key] = run("VIOLATED" if key in accused else "NOT_REFUTED")
        elif name in missed:
            found[key] = run("NOT_REFUTED", "saw nothing")
    return found


def test_units_are_one_audit_of_each_and_twenty_of_each_correct_one_and_an_assertion_of_all():
    assert len(ordinary.units(Options(1))) == 40 + 20 * 20 + 60
    assert len(ordinary.units(Options(1, quick=True))) == 40 + 20 * 2 + 60


def test_bars_are_met_by_thirty_eight_found_and_none_accused():
    few, many = [case.name for case in BROKEN[:2]], [case.name for case in BROKEN[:3]]
    assert [bar.met for bar in ordinary.view(made()).bars] == [True, True, True]
    assert [bar.met for bar in ordinary.view(made(few)).bars] == [True, True, True]
    assert [bar.met for bar in ordinary.view(made(many)).bars] == [False, True, True]
    assert [bar.met for bar in ordinary.view(made(accused=["winner/7"])).bars] == [
        True,
        False,
        True,
    ]
    asserted = ["as an assertion: winner", "as an assertion: survey"]
    assert [bar.met for bar in ordinary.view(made(accused=asserted)).bars] == [
        True,
        True,
        False,
    ]
    part = {
        key: result for key, result in made().items() if key.partition("/")[2] != "19"
    }
    assert [bar.met for bar in ordinary.view(part).bars] == [True, None, True]
    audits = {
        key: result
        for key, result in made().items()
        if not key.startswith("as an assertion")
    }
    assert [bar.met for bar in ordinary.view(audits).bars] == [True, True, None]


def test_what_was_missed_is_said_with_its_reason():
    view = ordinary.view(made(["sentence"]))
    (table,) = [table for table in view.tables if "missed" in table.title]
    assert table.rows == [
        ["sentence", CASES["sentence"].why, "NOT_REFUTED: saw nothing"]
    ]
    assert "missed: sentence" in view.bars[0].found
    assert not any("missed" in table.title for table in ordinary.view(made()).tables)


def test_a_correct_one_that_cannot_be_audited_meets_no_bar():
    results = made()
    results["winner/3"] = run(ERROR, "cannot read it")
    bar = ordinary.view(results).bars[1]
    assert bar.met is False
    assert "not audited, but an error: winner" in bar.found
