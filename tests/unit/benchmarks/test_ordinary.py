"""The statements about the benchmark's sixty mechanisms are true."""

import inspect
import math
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import laplace

from auditdp import PureDP
from auditdp.adjacency import as_adjacency
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
"""Number of scales that stand-ins of noise reach.

Values beyond have a probability below e^-30.
"""
NEGLIGIBLE = 2e-6


# the list


def test_forty_are_broken_and_twenty_are_not():
    assert (len(BROKEN), len(CORRECT), len(CASES)) == (40, 20, 60)
    assert all(case.is_broken and case.fault for case in BROKEN)
    for case in CORRECT:
        assert case.level == pytest.approx(case.claim.level, rel=1e-9)
        assert not case.fault
    refused = {case.name for case in CASES.values() if case.refusal}
    assert refused == {"Dashboard", "Heartbeat"}  # the only code that remembers


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_its_pairs_are_of_its_adjacency_and_each_input_has_outputs(case):
    adjacency = as_adjacency(case.pairs)
    for pair in adjacency.pairs():
        adjacency.check(pair)
    pair = first_pair(case.name)
    for data in (pair.data, pair.neighbour):
        assert len(outcomes(case.mechanism, data, 7)) == 7


def first_pair(name):
    return as_adjacency(CASES[name].pairs).pairs()[0]


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


# what is infinite


def lone(*values):
    return np.array(values, float)


ONLY_FROM_ONE = {
    "both counts": lambda o: round(o["women"] - o["men"], 9) == 1,
    "remembered noise": lambda o: o[0] == o[1],
    "Heartbeat": lambda o: o == 41,
    "repeatable total": lambda o: o == 8 + np.random.default_rng([3, 4, 1]).laplace(),
    "precise reading": lambda o: float(np.float32(o - 0.1)) == o - 0.1,
    "sampled check": lambda o: o == 41,
    "sensor values": lambda o: o == [3.0, 1.0, 2.0],
    "tidy histogram": lambda o: o[0] == 0,
    "noisy readings": lambda o: len(o) == 3,
    "noisy table": lambda o: len(o) == 3,
    "sparse histogram": lambda o: 1 in o[0],
    "log count": lambda o: isinstance(o, ValueError),
    "coded sample": lambda o: isinstance(o, KeyError),
    "working days": lambda o: isinstance(o, float),
    "suppressed count": lambda o: o is None,
    "mean reading": math.isnan,
    "visits": lambda o: "Rome" in o,
    "some cities": lambda o: "Rome" in o,
    "summary": lambda o: o.people == 3,
    "traced count": lambda o: o["trace"] == {"before noise": 41},
    "numbered release": lambda o: o["release"] % 2**32 == 41,
    "mean price": lambda o: o % 1 != 0,
    "star rating": lambda o: round(7 * float(o.split()[0])) % 7 == 2,
    "sentence": lambda o: o.startswith("3 answers"),
    "readings file": lambda o: o.count("\n") == 3,
    "stamped count": lambda o: o["finished"].endswith("00.027000"),
    "spectrum": lambda o: o[1].imag == 0,
    "polite answer": lambda o: o == "yes",
}
"""Something that one input of a pair gives and the other never does."""
OTHER_PAIRS = {
    "tidy histogram": (lone(0, 1, 1), lone(1, 1, 1)),
    "log count": (lone(0), lone(1)),
    "working days": ([2, 3, 0], [2, 3, 1]),
    "suppressed count": (["a"] * 4, ["a"] * 5),
    "mean reading": ([0.5, math.nan], [0.5, 1.0]),
    "spectrum": (lone(1, 1, 1, 1), lone(1, 0, 1, 1)),
    "polite answer": ("yes", "no"),
}
"""Such a pair, if it is not the first pair of the case."""
CALLS = {
    "Heartbeat": 1000,
    "precise reading": 200,
    "sampled check": 5_000,
    "sensor values": 20_000,
    "coded sample": 200,
    "traced count": 3_000,
}
"""Calls in which the event occurs, if 20 are too few."""
ARGUED = {"Dashboard", "scaled total", "frequent queries"}
"""Tests of their own."""


def test_whatever_is_infinite_is_shown_to_be():
    assert {case.name for case in BROKEN if math.isinf(case.level)} == set(
        ONLY_FROM_ONE
    ) | ARGUED


@pytest.mark.parametrize("name", ONLY_FROM_ONE)
def test_an_output_comes_from_one_input_only(name):
    event = ONLY_FROM_ONE[name]
    given = first_pair(name)
    pair = OTHER_PAIRS.get(name, (given.data, given.neighbour))
    occurs = []
    for data in pair:
        found = outcomes(CASES[name].mechanism, data, CALLS.get(name, 20))
        occurs.append(any(map(event, found)))
    assert occurs == [True, False]


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
    """With Laplace noise of scales 9 and 2 the density ratio has no bound.

    At x it grows like exp(|x| (1/2 − 1/9)).
    """
    pair = first_pair("scaled total")
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


# what is finite: the law of every outcome, from the code itself, which is run on all
# that its generator may give


class Chance:
    """A generator that follows a path of choices, then takes the first of each.

    It computes the probability of the path.
    """

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
        """Return a multiple of the scale.

        If data differ by whole scales, the ratios of probabilities are those of
        densities.
        """
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


def outcomes_of(draw, reach=REACH):
    """The probability of each value of a function of a generator."""
    found, path = Counter(), []
    while path is not None:
        chance = Chance(path, reach)
        found[draw(chance)] += chance.probability
        path = chance.after()
    return found


@pytest.fixture
def law(monkeypatch):
    """The law of what a function returns, from all that may happen."""
    for module in (ordinary_correct, ordinary_noise, ordinary_outputs):
        monkeypatch.setattr(
            module, "geometric_noise", lambda epsilon, chance: chance.two_sided(epsilon)
        )

    def compute(function, data, reach=REACH):
        found = outcomes_of(lambda chance: repr(outcome(function, data, chance)), reach)
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
    found = outcomes_of(lambda chance: geometric_noise(1.0, chance))
    a = math.exp(-1)
    for z in range(-8, 9):
        expected = (1 - a) / (1 + a) * a ** abs(z)
        assert found[z] == pytest.approx(expected, rel=1e-9)


ENUMERATED = [
    case.name
    for case in CORRECT
    if isinstance(case.claim, PureDP) and case.name not in VECTORISED
]


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


@pytest.mark.parametrize(
    ("name", "data", "neighbour", "reach"),
    [
        ("favourite colours", None, None, REACH),
        ("ranking", None, None, REACH),
        ("total", None, None, REACH),
        ("rounded count", lone(5), lone(6), REACH),
        ("stored count", lone(255), lone(256), 300),
    ],
)
def test_a_broken_one_has_the_level_that_is_stated(law, name, data, neighbour, reach):
    pair = first_pair(name)
    if data is None:
        data, neighbour = pair.data, pair.neighbour
    function = CASES[name].function
    assert epsilon(
        law(function, data, reach), law(function, neighbour, reach)
    ) == pytest.approx(CASES[name].level, rel=1e-3)


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
    assert one_row_more([], ["b"])
    assert not one_row_more(["a", "b"], ["c"])
    assert not one_row_more(["a", "b", "c"], ["a"])


# the part of the benchmark


def test_judging_finds_a_violation_and_an_error_finds_nothing():
    case = CASES["favourite colours"]
    found = ordinary.judge(case, 1, calls=4_000)
    assert found["verdict"] == "VIOLATED"
    assert 10 < found["refuted_at"] < 4_000
    assert found["calls"] >= found["refuted_at"]
    assert ordinary.is_found(case, found)

    def broken(data, rng):
        raise OSError("no disk")

    case = Case("broken", broken, PureDP(1.0), [(0, 1)], math.inf, "Why.", "exception")
    error = ordinary.judge(case, 1, calls=100)
    assert (error["verdict"], "no disk" in error["statement"]) == (ERROR, True)
    # An error counts where it names why calls are no runs of one mechanism.
    dashboard = CASES["Dashboard"]
    refused = ordinary.judge(dashboard, 1, calls=1_000)
    assert not ordinary.is_accused(refused)
    counted = [(case, error), (dashboard, error), (dashboard, refused)]
    assert [ordinary.is_found(*each) for each in counted] == [False, False, True]


def run(verdict, statement="", refuted_at=None):
    counts = {"calls": 9, "refuted_at": refuted_at, "cpu_seconds": 1.0}
    return {"verdict": verdict, "statement": statement, **counts}


def made(missed=(), accused=(), left_out=None):
    """Results of a whole run, or of one from which some units are left out."""
    found = {}
    for key in ordinary.units(Options(1)):
        name = key.removeprefix(f"{ordinary.ASSERTED}: ").partition("/")[0]
        if left_out is not None and left_out(key):
            continue
        found[key] = run("VIOLATED", refuted_at=100)
        if CASES[name] in CORRECT:
            found[key] = run("VIOLATED" if key in accused else "NOT_REFUTED")
        elif name in missed:
            found[key] = run("NOT_REFUTED", "saw nothing")
    return found


def test_units_are_audits_of_each_and_an_assertion_of_all():
    assert len(ordinary.units(Options(1))) == 40 + 20 * 20 + 60
    assert len(ordinary.units(Options(1, quick=True))) == 40 + 20 * 2 + 60


NAMES = [case.name for case in BROKEN]
ASSERTED = ["as an assertion: winner", "as an assertion: survey"]
ERRORS = made() | {"winner/3": run(ERROR, "cannot read it")}


@pytest.mark.parametrize(
    ("results", "met"),
    [
        (made(NAMES[:2]), [True, True, True]),
        (made(NAMES[:3]), [False, True, True]),
        (made(accused=["winner/7"]), [True, False, True]),
        (made(accused=ASSERTED), [True, True, False]),
        (made(left_out=lambda key: key.endswith("/19")), [True, None, True]),
        (made(left_out=lambda key: "assertion" in key), [True, True, None]),
        (ERRORS, [True, False, True]),
    ],
)
def test_bars_are_met_by_thirty_eight_found_and_none_accused(results, met):
    view = ordinary.view(results)
    assert [bar.met for bar in view.bars] == met
    if results is ERRORS:
        assert "not audited, but an error: winner" in view.bars[1].found


def test_what_was_missed_is_listed_with_its_reason():
    view = ordinary.view(made(["sentence"]))
    (table,) = [table for table in view.tables if "missed" in table.title]
    reason = "NOT_REFUTED: saw nothing"
    assert table.rows == [["sentence", CASES["sentence"].why, reason]]
    assert "missed: sentence" in view.bars[0].found
    assert not any("missed" in table.title for table in ordinary.view(made()).tables)
