"""A certificate is never wrong and a violation is never false.

The laws are random: exact, or wrapped in wide balls.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import delta_curve, pair_loss
from auditdp.mechanism.laws import FiniteLaw
from tests.unit.evidence.toys import CERTIFIED, VIOLATED, exact, finite

SIZE = 4
LARGEST_EXPONENT = 700.0

levels = st.floats(0.05, 6.0)
weights = st.lists(st.integers(0, 30), min_size=SIZE, max_size=SIZE).filter(any)


def normed(weights):
    return [Fraction(weight) / sum(weights) for weight in weights]


laws = st.builds(normed, weights)


def log(x):
    """The logarithm of a fraction, which may be no double."""
    return math.log(x.numerator) - math.log(x.denominator)


def exact_epsilon(p, q):
    """The largest |ln P/Q| of two exact laws."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    if not all(a and b for a, b in pairs):
        return math.inf
    return max(abs(log(a) - log(b)) for a, b in pairs)


def exact_delta(p, q, epsilon):
    """The hockey-stick divergence of the worse order."""
    e = Fraction(math.exp(epsilon))
    first = sum(max(a - e * b, 0) for a, b in zip(p, q, strict=True))
    second = sum(max(b - e * a, 0) for a, b in zip(p, q, strict=True))
    return float(max(first, second))


@given(laws, laws, levels)
def test_losses_are_the_largest_log_ratio_and_the_hockey_stick(p, q, epsilon):
    loss = pair_loss(finite(*p), finite(*q), epsilon=epsilon)
    delta, truth = exact_delta(p, q, epsilon), exact_epsilon(p, q)
    assert float(loss.delta.mid()) == pytest.approx(delta, abs=1e-12)
    assert (loss.lower, loss.upper) == pytest.approx((truth, truth), abs=1e-12)


@given(laws, laws, st.floats(1e-9, 0.999))
def test_the_epsilon_needed_for_a_delta_is_where_the_hockey_stick_falls_to_it(
    p, q, delta
):
    lower, upper = pair_loss(finite(*p), finite(*q), delta=delta).needed
    if upper == math.inf:
        assert lower == math.inf
        assert exact_delta(p, q, LARGEST_EXPONENT) > delta
        return
    assert upper - lower <= 1e-9 * (1 + upper)
    assert exact_delta(p, q, upper) <= delta + 1e-12
    assert lower == 0 or exact_delta(p, q, lower) >= delta - 1e-12


@given(laws, laws, st.lists(st.floats(0.0, 8.0), min_size=1, max_size=8))
def test_the_sorted_curve_is_the_hockey_stick_at_every_point(p, q, epsilons):
    curve = delta_curve(finite(*p), finite(*q), np.array(epsilons))
    found, deltas = zip(*curve, strict=True)
    assert list(found) == epsilons

    expected = [exact_delta(p, q, epsilon) for epsilon in epsilons]
    assert deltas == pytest.approx(expected, abs=1e-9)


@given(laws, laws, levels, st.just(0.0) | st.floats(0.0, 0.9))
def test_a_claim_is_decided_wherever_it_is_not_tight(p, q, level, delta):
    truth = exact_delta(p, q, level) if delta else exact_epsilon(p, q)
    bound = delta or level
    assume(abs(truth - bound) > 1e-9)
    verdict = CERTIFIED if truth < bound else VIOLATED

    assert exact((p, q), ApproxDP(level, delta)).verdict is verdict
    assert delta or exact((p, q), PureDP(level)).verdict is verdict


@st.composite
def wrapped(draw):
    """An exact law, and balls that contain its probabilities off their centres.

    The centres sum to one as well.
    """
    law, centre = draw(laws), draw(laws)
    share = Fraction(draw(st.sampled_from([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0])))
    balls = []
    for p, c in zip(law, centre, strict=True):
        middle = float((1 - share) * p + share * c)
        radius = abs(middle - float(p)) * (1 + 1e-9) + 1e-15
        balls.append(arb(middle, radius))
    return law, balls


@given(wrapped(), wrapped(), levels, st.sampled_from([0.0, 0.01, 0.2]))
def test_what_is_stated_about_balls_is_true_of_every_law_inside(
    one, other, level, delta
):
    (p, p_balls), (q, q_balls) = one, other
    loss, epsilon = pair_loss(finite(*p_balls), finite(*q_balls)), exact_epsilon(p, q)
    assert loss.lower - 1e-12 <= epsilon <= loss.upper + 1e-12

    truth, bound = epsilon, level
    if delta:
        truth, bound = exact_delta(p, q, level), delta
    verdict = exact((p_balls, q_balls), ApproxDP(level, delta)).verdict

    assert verdict is not CERTIFIED or truth <= bound + 1e-12
    assert verdict is not VIOLATED or truth > bound - 1e-9


# Floats by everyday formulas.


def floats(law):
    return list(map(float, law))


def softmax(law):
    scores = [log(p) + 1e5 if p else -math.inf for p in law]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def differences(law):
    """Of the distribution function, which cancel."""
    return np.diff([float(sum(law[:k])) for k in range(len(law) + 1)]).tolist()


def rest(law):
    """The last is what the others leave, to which 0.1 is added and taken away again."""
    listed = floats(law[:-1])
    return [*[p + 0.1 - 0.1 for p in listed], 1 - sum(listed)]


def mixed(law):
    return [p if k % 2 else float(p) for k, p in enumerate(law)]


def single(law):
    return list(np.array(law, dtype=np.float32))


@st.composite
def skewed(draw):
    """A law with masses down to 1e-330, which is no double."""
    powers = st.sampled_from([0, 0, 0, 1, 3, 9, 11, 13, 17, 300, 330])
    weight = st.builds(
        lambda n, power: Fraction(n, 10**power), st.integers(0, 30), powers
    )
    return normed(draw(st.lists(weight, min_size=SIZE, max_size=SIZE).filter(any)))


NEAR_1 = [1.0, 1 + 1e-13, 1 - 1e-13, 1 + 1e-9, 1 - 1e-9, 1.001, 0.999, 0.5]


@given(
    skewed(),
    skewed(),
    st.sampled_from([floats, softmax, differences, rest, mixed, single]),
    st.booleans(),
    st.booleans(),
    levels,
    st.sampled_from(NEAR_1),
    st.sampled_from([0.0, 1e-12, 1e-6, 0.01]),
)
def test_floats_never_certify_what_is_false_nor_violate_what_is_true(
    p, q, formula, near, dropped, level, factor, delta
):
    """At the true ε, beside it, and anywhere.

    The laws are near to each other or not, zeros are listed or dropped.
    """
    if near:
        both = [a * b for a, b in zip(p, q, strict=True)]
        assume(any(both))
        q = normed(both)
    truth = exact_epsilon(p, q)
    if 0 < truth < math.inf:
        level = truth * factor
    assume(delta == 0 or level < LARGEST_EXPONENT)
    stated = []
    for law in (p, q):
        listed = [(k, x) for k, x in enumerate(formula(law)) if x or not dropped]
        outputs, probabilities = zip(*listed, strict=True)
        try:
            stated.append(FiniteLaw(np.array(outputs), list(probabilities)))
        except MechanismError:  # the floats of single precision are too far off
            return
    verdict = exact(stated, ApproxDP(level, delta)).verdict
    pure = truth <= level * (1 + 1e-12)
    holds = exact_delta(p, q, level) <= delta if delta else pure

    assert verdict is not VIOLATED or not holds
    assert verdict is not CERTIFIED or dropped or holds or pure
