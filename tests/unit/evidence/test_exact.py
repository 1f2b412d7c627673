"""Exact evidence: known losses, what is certified, and what no law decides."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp import (
    AnyValues,
    ApproxDP,
    Box,
    GaussianDP,
    Neighbours,
    Pair,
    PureDP,
    QueryAnswers,
)
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import (
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    StepLaw,
    precision,
)
from auditdp.testing import GaussianMechanism, LaplaceMechanism, Response
from tests.unit.evidence.toys import (
    BIT,
    CERTIFIED,
    NOT_REFUTED,
    NUMBERS,
    VIOLATED,
    Stated,
    audited,
    bit,
    exact,
)

HALF = Fraction(1, 2)
QUARTER = Fraction(1, 4)
LOG3 = math.log(3)
SURE = [Fraction(1), Fraction(0)]


def kept(data):
    keep = (HALF, Fraction(6, 10), Fraction(9, 10))[data]
    return [keep, 1 - keep]


THREE = AnyValues((0, 1, 2))
ONE_SIDED = (
    [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10), Fraction(0)],
    [Fraction(1, 10), Fraction(2, 10), HALF, Fraction(2, 10)],
)
UNLISTED = FiniteLaw([0, 1], [HALF, HALF]), FiniteLaw([1, 2], [HALF, HALF])
TINY = Fraction(1, 10**30)
REORDERED = (
    FiniteLaw(np.array([0, 1, 2]), [HALF, QUARTER, QUARTER]),
    FiniteLaw(np.array([2.0, 0.0, 1.0]), [QUARTER, HALF, QUARTER]),
)


@pytest.mark.parametrize(
    ("laws", "claim", "adjacency", "verdict", "epsilon"),
    [
        (Response(1.0), PureDP(2.0), BIT, CERTIFIED, 1.0),
        ((SURE, SURE[::-1]), PureDP(50.0), BIT, VIOLATED, math.inf),
        ((SURE, [1 - TINY, TINY]), PureDP(50.0), BIT, VIOLATED, math.inf),
        (UNLISTED, ApproxDP(1.0, 0.5), BIT, CERTIFIED, 0.0),
        (UNLISTED, ApproxDP(1.0, 0.49), BIT, VIOLATED, math.inf),
        (REORDERED, PureDP(1e-9), BIT, CERTIFIED, 0.0),
        (ONE_SIDED, ApproxDP(2.0, 0.2 + 1e-9), BIT, CERTIFIED, math.log(5)),
        (ONE_SIDED, ApproxDP(2.0, 0.2 - 1e-9), BIT, VIOLATED, math.inf),
        (kept, PureDP(1.0), THREE, VIOLATED, math.log(5)),
        (LaplaceMechanism(1.0), PureDP(1.0), NUMBERS, CERTIFIED, 1.0),
        (LaplaceMechanism(1.0), PureDP(1.0 - 1e-9), NUMBERS, VIOLATED, 1.0),
    ],
)
def test_known_losses(laws, claim, adjacency, verdict, epsilon):
    found = exact(laws, claim, adjacency)
    assert found.verdict is verdict
    assert found.epsilon_lower == pytest.approx(epsilon, rel=1e-7, abs=1e-12)
    assert found.epsilon_upper == pytest.approx(epsilon, rel=1e-7, abs=1e-12)
    assert (found.counterexample is None) == (verdict is CERTIFIED)
    assert "∞" in found.statement or math.isfinite(epsilon)
    pairs = len(adjacency.exhaustive())
    assert found.details.pairs_enumerated == pairs
    assert ("the only pair of" in found.statement) == (pairs == 1)


def test_bounds_are_rounded_outwards():
    for p in (Fraction(3, 4), Fraction(2, 3), Fraction(7, 11), Fraction(99, 100)):
        found = exact(bit(p), PureDP(9.0))
        with precision():
            truth = (arb(p.numerator) / (p.denominator - p.numerator)).log()
            assert arb(found.epsilon_lower) <= truth <= arb(found.epsilon_upper)
        assert found.epsilon_upper - found.epsilon_lower < 1e-14


# Tight claims, and rounding.


def float_below(value):
    """The largest double below a ball."""
    low = float(value.mid())
    while not arb(low) < value:
        low = math.nextafter(low, -math.inf)
    return low


with precision():
    BELOW = Fraction(float_below(arb(1).exp() / (1 + arb(1).exp())))
ABOVE = Fraction(math.nextafter(float(BELOW), 1))


@pytest.mark.parametrize(
    ("keep", "epsilon", "verdict"),
    [
        (BELOW, 1.0, CERTIFIED),
        (ABOVE, 1.0, NOT_REFUTED),
        (ABOVE, 1.0 - 1e-9, VIOLATED),
        (BELOW, math.nextafter(1.0, 0) - 1e-15, NOT_REFUTED),
        (Fraction(1 / (1 + math.exp(-1.0 - 1e-9))), 1.0, VIOLATED),
    ],
)
def test_a_tight_claim_needs_an_exact_law_that_was_rounded_to_privacy(
    keep, epsilon, verdict
):
    found = exact(bit(keep), PureDP(epsilon))
    assert found.verdict is verdict
    assert verdict is not VIOLATED or found.epsilon_lower > epsilon


def test_a_laplace_law_under_an_approximate_claim():
    """The truth for one coordinate is δ(ε) = 1 - e^((ε - ε')/2)."""
    true = exact(LaplaceMechanism(1.0), ApproxDP(1.0, 1e-6), NUMBERS)
    assert true.verdict is not VIOLATED

    delta = 1 - math.exp((1.0 - 1.5) / 2)
    louder = LaplaceMechanism(1 / 1.5)
    above = exact(louder, ApproxDP(1.0, delta + 1e-6), NUMBERS)
    below = exact(louder, ApproxDP(1.0, delta - 1e-6), NUMBERS)

    assert above.verdict is not VIOLATED
    assert below.verdict is not CERTIFIED


# Laws that are known up to a ball.

# The third output of the second law has probability 0.001 ± 0.002: perhaps 0.
NEAR_ZERO = (
    [QUARTER, QUARTER, HALF],
    [arb(0.4995, 0.001), arb(0.4995, 0.001), arb(0.001, 0.002)],
)


BLURRED = bit(arb(0.75, 1e-6))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("laws", "claim", "verdict"),
    [
        (NEAR_ZERO, PureDP(20.0), NOT_REFUTED),
        (NEAR_ZERO, ApproxDP(1.0, 0.4985), NOT_REFUTED),
        (BLURRED, PureDP(LOG3 + 1e-4), CERTIFIED),
        (BLURRED, PureDP(LOG3 - 1e-4), VIOLATED),
        (bit(Fraction(3, 4)), GaussianDP(5.0), NOT_REFUTED),
    ],
)
def test_balls_decide_where_all_of_them_agree(laws, claim, verdict, swap):
    assert exact(laws[::-1] if swap else laws, claim).verdict is verdict


def test_an_undecided_pair_leaves_no_upper_bound():
    laws = (
        [HALF, QUARTER, QUARTER],
        [QUARTER, HALF, QUARTER],
        [arb(0.5, 0.01), arb(0.49, 0.01), arb(0.01, 0.02)],
    )
    for order in itertools.permutations((0, 1, 2)):
        found = exact(laws, PureDP(50.0), AnyValues(order))
        assert found.verdict is NOT_REFUTED
        assert found.epsilon_upper in (None, math.inf)
        assert not math.isnan(found.epsilon_lower)


def test_an_impossible_output_refutes_a_gaussian_claim_and_bounds_no_epsilon():
    found = exact((SURE, [Fraction(9, 10), Fraction(1, 10)]), GaussianDP(5.0))
    assert found.verdict is VIOLATED
    assert found.epsilon_lower is found.epsilon_upper is None


# Pairs.


@pytest.mark.parametrize(
    "options", [{"play": [Pair(0, 1)]}, {"adjacency": Neighbours([(0, 1)])}]
)
def test_without_all_pairs_nothing_is_certified(options):
    laws = bit(Fraction(3, 4))
    found = exact(laws, PureDP(5.0), **options)
    assert found.verdict is NOT_REFUTED
    assert found.epsilon_upper is None
    assert found.epsilon_lower == pytest.approx(LOG3)
    assert exact(laws, PureDP(1.0), **options).verdict is VIOLATED


def test_pairs_that_are_not_adjacent_are_refused():
    with pytest.raises(AdjacencyError):
        exact(bit(HALF), PureDP(5.0), play=[Pair(0, 7)])


def test_a_refutation_of_a_control_needs_one_pair():
    called = set()

    def leaky(data):
        called.add(data)
        return bit(Fraction(1, 1 + 2**data))[0]

    domain = AnyValues((1, 2, 3, 4, 5))
    found = exact(leaky, PureDP(0.3), domain, refuting=True)
    assert found.verdict is VIOLATED
    assert found.counterexample is not None
    assert len(called) == 2
    assert found.epsilon_lower <= exact(leaky, PureDP(0.3), domain).epsilon_lower

    true = exact(leaky, PureDP(9.0), domain)
    assert true == exact(leaky, PureDP(9.0), domain, refuting=True)
    assert true.verdict is CERTIFIED


class OnePair:
    """An adjacency of its own, for one pair of any two inputs."""

    name = "own adjacency"

    def __init__(self, data, neighbour):
        self.pair = Pair(data, neighbour)

    def check(self, pair):
        pass

    def pairs(self):
        return [self.pair]

    exhaustive = pairs


class Opaque:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Opaque"


def one_edge(size):
    matrix = np.zeros((size, size), int)
    matrix[size // 2, size // 2 + 1] = 1
    return matrix


@pytest.mark.parametrize(
    ("data", "neighbour", "feature"),
    [
        ((np.zeros((40, 40), int), 1), (one_edge(40), 1), lambda x: x[0].sum()),
        (np.array([1], np.int64), np.array([1, 0], np.int32), len),
        (Opaque(0), Opaque(1), lambda x: x.value),
    ],
    ids=["long", "other type", "same text"],
)
def test_inputs_of_one_short_text_are_distinguished(data, neighbour, feature):
    first = feature(data)

    def law(x):
        return bit(Fraction(99, 100))[0 if feature(x) == first else 1]

    assert exact(law, PureDP(1.0), OnePair(data, neighbour)).verdict is VIOLATED


# Counterexamples, and curves.


def test_the_counterexample_is_the_pair_with_the_largest_loss():
    found = exact(kept, PureDP(1.0), THREE)
    assert found.details.worst_pair == found.counterexample.pair == "2 | 0"
    assert "0.5" in found.counterexample.explanation
    assert "0.1" in found.counterexample.explanation


def test_the_counterexample_is_the_violating_output_with_the_largest_probability():
    """A ratio of 148 at probability 1e-6 is the largest.

    An output of probability .3 has a ratio of 4.
    """
    rare, common = Fraction(1, 10**6), Fraction(3, 10)
    p = [rare, common, 1 - rare - common]
    q = [rare / 148, common / 4, 1 - rare / 148 - common / 4]
    found = exact((p, q), PureDP(1.0))

    assert found.epsilon_lower == pytest.approx(math.log(148))
    assert found.counterexample.output == "1"

    explanation = found.counterexample.explanation
    assert "a factor of 4 = e^1.38629436112; the claim is 1-DP" in explanation
    assert "Over all outputs ε = 4.9972" in explanation


def test_a_step_law_has_a_curve_and_a_counterexample_between_numbers():
    def shift(data):
        return StepLaw([data, data + 2, data + 3], [Fraction(2, 5), Fraction(1, 5)])

    found = exact(shift, ApproxDP(0.1, 0.05))
    assert found.verdict is VIOLATED
    assert "any number in" in found.counterexample.output
    assert found.details.curve


# Laws before post-processing.


class Sign:
    """The sign of x - 1/2 + Lap(1/2) for x in {0, 1}.

    The loss is ln(2e - 1) = 1.490, and that of the noise is 2.
    """

    name = "sign"
    scale = 0.5

    def __call__(self, data, size, *, rng):
        return np.sign(data - 0.5 + rng.laplace(scale=self.scale, size=size))

    def before_processing(self, data):
        return LaplaceLaw(np.array([data]), np.array([self.scale]))


class OldName(Sign):
    before_processing = None
    laplace = Sign.before_processing


class NoisyBit(Sign):
    """The sign of x - 1/2 + N(0, 1).

    The loss is ln(Φ(1/2)/Φ(-1/2)) = .806, and the noise has no pure ε.
    """

    def before_processing(self, data):
        return GaussianLaw(np.array([data]), 1.0)


class Clamped(Sign):
    sensitivity, norm = 1.0, "l1"

    def query(self, data, rng):
        return data

    def before_processing(self, data):
        return LaplaceLaw(np.asarray(data, float), np.ones(len(data)))


class Plain(Sign):
    before_processing = None
    distribution = Sign.before_processing


@pytest.mark.parametrize(
    ("mechanism", "claim", "adjacency", "verdict", "upper"),
    [
        (Sign(), PureDP(1.6), NUMBERS, NOT_REFUTED, 2.0),
        (OldName(), PureDP(1.6), NUMBERS, NOT_REFUTED, 2.0),
        (Sign(), PureDP(2.0), NUMBERS, CERTIFIED, 2.0),
        (NoisyBit(), GaussianDP(1.0), NUMBERS, CERTIFIED, 1.0),
        (NoisyBit(), PureDP(0.9), NUMBERS, NOT_REFUTED, None),
        (NoisyBit(), ApproxDP(0.81, 0.001), NUMBERS, NOT_REFUTED, None),
        (Clamped(), PureDP(1.0), QueryAnswers(1), CERTIFIED, 1.0),
        (Clamped(), PureDP(0.9), QueryAnswers(1), NOT_REFUTED, 1.0),
    ],
)
def test_a_law_before_post_processing_certifies_and_does_not_refute(
    mechanism, claim, adjacency, verdict, upper
):
    found = exact_evidence(mechanism, claim, adjacency)
    assert found.verdict is verdict
    assert found.counterexample is found.epsilon_lower is None
    assert found.details.exact_epsilon is None
    assert upper is None or found.epsilon_upper == pytest.approx(upper, rel=1e-12)
    assert "before post-processing" in found.statement or verdict is CERTIFIED
    assert capabilities(mechanism).law_of_output is None
    assert capabilities(mechanism).law is not None


def test_the_game_plays_on_beside_a_law_before_post_processing():
    louder = Sign()
    louder.scale = 0.05
    assert not has_exact_law(louder, NUMBERS, refuting=True)

    true = audited(Sign(), PureDP(1.6), NUMBERS, budget=3_000)
    assert true.verdict is NOT_REFUTED
    assert true.epsilon_lower <= math.log(2 * math.e - 1)

    controlled = audited(Sign(), PureDP(2.0), NUMBERS, budget=3_000, controls=[louder])
    assert controlled.verdict is CERTIFIED
    assert controlled.surviving_controls == []


def test_a_law_of_the_output_is_a_forecaster_and_refutes():
    assert default_forecasters(Plain())[0].name == "likelihood ratio"
    assert default_forecasters(Sign())[0].name != "likelihood ratio"
    assert exact(Plain(), PureDP(1.6), NUMBERS).verdict is VIOLATED


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "states"),
    [
        (Response(1.0), BIT, True),
        (GaussianMechanism(1.0), BIT, False),
        (Stated(bit(HALF)), Box(-1, 1), True),
    ],
)
def test_which_mechanisms_state_a_law(mechanism, adjacency, states):
    assert has_exact_law(mechanism, adjacency) is states


def test_a_mechanism_without_a_law_is_an_error():
    with pytest.raises(MechanismError, match=r"states no law .* distribution\(data\)"):
        exact_evidence(lambda data, rng: 0, PureDP(1.0), NUMBERS)
