"""Laws in floats, by everyday formulas: rounding refutes nothing and certifies nothing.

Each formula is evaluated in floats, as a mechanism would state it, and in balls, which
gives the true ε.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    Box,
    Edges,
    GaussianDP,
    Pair,
    PureDP,
    RenyiDP,
    Verdict,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.errors import ClaimError
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import (
    Envelope,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    StepLaw,
    ball,
    precision,
)
from auditdp.record.budget import Budget

BIT = AnyValues((0, 1))
VIOLATED = Verdict.VIOLATED
OPEN = Verdict.NOT_REFUTED
PROVED = Verdict.CERTIFIED
PURE = PureDP(1.0)


class Stated:
    name = "stated"

    def __init__(self, laws):
        self.laws = laws

    def distribution(self, data):
        return self.laws[data]


def listed(*probabilities):
    return FiniteLaw(np.arange(len(probabilities)), probabilities)


def evidence(laws, claim=PURE):
    return exact_evidence(Stated(laws), claim, BIT)


# -- formulas
# ----------------------------------------------------------------------------


def exactly(x):
    return ball(Fraction(x))


def exp(x):
    return x.exp() if isinstance(x, arb) else math.exp(x)


def geometric(number, true, epsilon, most):
    """Return two-sided geometric noise on a count from 0 to ``most``, clamped."""
    a = exp(-number(epsilon))
    inner = [(1 - a) / (1 + a) * a ** abs(k - true) for k in range(1, most)]
    return [a**true / (1 + a), *inner, a ** (most - true) / (1 + a)]


@pytest.fixture(scope="module")
def formula():
    """Return the laws in floats, and the true ones."""
    with precision():
        truth = [listed(*geometric(exactly, k, 1.0, 1_000)) for k in (500, 501)]
    return [listed(*geometric(float, k, 1.0, 1_000)) for k in (500, 501)], truth


@pytest.mark.dear
def test_a_true_claim_is_not_violated_and_a_false_one_not_certified(formula):
    laws, truth = formula
    loss = pair_loss(*truth)
    found = pair_loss(*laws)
    for factor in (1.0, 1 + 1e-12, 1 + 1e-6, 1.5):
        assert evidence(laws, PureDP(loss.upper * factor)).verdict is not VIOLATED
    for factor in (1 - 1e-12, 1 - 1e-6, 0.9):
        assert evidence(laws, PureDP(loss.lower * factor)).verdict is not PROVED
    # Outputs of a mass above 1e-5 lose this much for certain.
    pairs = np.transpose([law.floats for law in truth])
    heavy = pairs[pairs.min(axis=1) > 1e-5]
    certain = np.abs(np.log(heavy[:, 0] / heavy[:, 1])).max()
    assert evidence(laws, PureDP(certain * 0.99)).verdict is VIOLATED
    assert found.lower <= loss.lower
    assert found.upper >= loss.upper


# -- laws, claims and verdicts
# -----------------------------------------------------------


def ratio(factor, mass):
    return listed(1 - mass, mass), listed(1 - mass * factor, mass * factor)


def coins(*more):
    return listed(0.75, 0.25, *more), listed(0.25, 0.75, *more)


def mixture(weight, other):
    """Return a coin with an output of some weight, and of another weight."""
    rest = 1 - weight
    return [listed(0.75 * rest, 0.25 * rest, each) for each in (weight, other)]


def window(true):
    """Return geometric noise, listed as far as 40 from the true count."""
    outputs = true + np.arange(-40, 41)
    a = math.exp(-1.0)
    return FiniteLaw(
        outputs, [(1 - a) / (1 + a) * a ** abs(int(k) - true) for k in outputs]
    )


def thin_step(width):
    return StepLaw([0, width, 1], [0.0, 1 / (1 - width)]), StepLaw([0, 1], [1.0])


def located(law, first, second, scale=0.1):
    scales = np.array([scale]) if law is LaplaceLaw else scale
    return [law(np.array([at]), scales) for at in (first, second)]


TINY = Fraction(1, 10**300)
EXACT = listed(1 - TINY, TINY)
KEEP = np.float32(1 / (1 + math.exp(-1.0)))
SINGLE = listed(KEEP, 1 - KEEP), listed(1 - KEEP, KEEP)
WINDOWS = [window(true) for true in (0, 1)]
# The sum with .1 more is .1 + 5.8e-12 more, in doubles.
SUM = 98_765.4
LAPLACE, GAUSSIAN = (located(law, SUM, SUM + 0.1) for law in (LaplaceLaw, GaussianLaw))
FAR = 2.0**40
DELTA = GaussianDP(1.0).delta_at(1.0)


@pytest.mark.parametrize(
    ("laws", "claim", "verdict"),
    [
        (ratio(math.exp(1.1), 1e-13), PURE, OPEN),
        ((listed(0.999, 0.001), listed(1.0, 0.0)), ApproxDP(1.0, 1e-4), VIOLATED),
        ((EXACT, listed(1 - 2 * TINY, 2 * TINY)), PureDP(0.7), PROVED),
        # Neither law may be known to give an output of 0.0; an int is exact.
        (coins(0.0), PureDP(1.1), OPEN),
        (coins(0), PureDP(1.1), PROVED),
        (mixture(1e-14, 0.0), PureDP(0.5), OPEN),
        (WINDOWS, PURE, OPEN),
        (WINDOWS, PureDP(0.99), VIOLATED),
        # Single precision loses a relative 2.8e-8 in ε.
        (SINGLE, PureDP(1.0 - 1e-7), OPEN),
        # A step of width w may be off by 1e-12/w in its density.
        (thin_step(2.0**-30), PURE, VIOLATED),
        (thin_step(2.0**-42), PURE, OPEN),
        # Under both laws the second step may be anything up to 1e-6.
        ([StepLaw([0, 1, 2], [arb(1, 1e-6), arb(0, 1e-6)])] * 2, PURE, OPEN),
        (LAPLACE, PURE, OPEN),
        (LAPLACE, PureDP(1.0 - 1e-6), VIOLATED),
        (located(LaplaceLaw, FAR, FAR + 1), PureDP(10.0), PROVED),
        (GAUSSIAN, GaussianDP(1.0), OPEN),
        (GAUSSIAN, GaussianDP(1.0 - 1e-6), VIOLATED),
        (GAUSSIAN, ApproxDP(1.0, DELTA), OPEN),
        (located(GaussianLaw, FAR, FAR + 1), GaussianDP(10.0), PROVED),
        # Parameters that differ by rounding alone have no infinite loss.
        (located(GaussianLaw, 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1), PURE, OPEN),
        ((listed(0.5, 0.5, 1e-300), listed(0.5, 0.5, 0.0)), GaussianDP(1.0), OPEN),
        ((EXACT, listed(1, 0)), GaussianDP(1.0), VIOLATED),
    ],
)
def test_a_law_of_floats_decides_as_far_as_its_numbers_go(laws, claim, verdict):
    assert evidence(laws, claim).verdict is verdict


def test_bounds_are_those_of_the_largest_float_error():
    found = evidence([listed(0.999, 0.001), listed(1.0, 0.0)])
    limit = math.log(1e-3 / 1e-12)
    assert limit - 0.1 < found.epsilon_lower < limit
    assert "a factor of 999999996 at least" in found.counterexample.explanation
    assert pair_loss(EXACT, listed(1, 0)).lower == math.inf
    found = evidence(coins(0.0), PureDP(1.1))
    assert "too near 0 to bound a ratio (Fractions or balls would)" in found.statement
    assert found.epsilon_upper == math.inf
    assert evidence(LAPLACE).epsilon_lower < 1.0
    loss = pair_loss(*located(GaussianLaw, 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1))
    assert loss.lower == 0.0
    assert loss.upper == math.inf


def test_a_difference_may_be_below_zero():
    law = listed(0.75, 0.25, -1e-17)
    assert law.floats.tolist() == [0.75, 0.25, 0.0]
    logs = law.log_prob(np.array([2, 3]))
    assert logs == pytest.approx(np.log([1e-12, 1e-9]), rel=1e-2)


@pytest.mark.parametrize(
    ("least", "most", "claim", "verdict", "epsilon"),
    [
        # A difference of distribution functions leaves 1e-17 of nothing.
        (0.0, 1e-14, 1.0, OPEN, 21),
        (1e-17, 0.5, 1.0, VIOLATED, 28),
        (0.0, 1e-3, 1.0, VIOLATED, 21),
        (1e-7, 1e6, 50.0, OPEN, 28),
        (0.25, 0.75, 1.1, PROVED, 1.1),
    ],
)
def test_an_envelope_of_floats_is_treated_alike(least, most, claim, verdict, epsilon):
    class Enveloped:
        name = "enveloped"

        def envelope(self):
            high = np.ones(1)
            low = -np.ones(1)
            inputs = [(high, low), (low, high)]
            return Envelope(["low", "high"], [least] * 2, [most] * 2, inputs)

    found = exact_evidence(Enveloped(), PureDP(claim), Box(-1, 1))
    assert found.verdict is verdict
    assert (found.epsilon_lower or 0.0) < epsilon
    if verdict is PROVED:
        assert any("floats of its law are right to" in one for one in found.assumptions)


def test_floats_of_either_law_are_named():
    exact = listed(Fraction(1, 2), Fraction(1, 2))
    floats = listed(0.6, 0.4)
    for laws, number in (
        ([exact, floats], 1),
        ([floats, exact], 1),
        ([exact, exact], 0),
    ):
        assumed = evidence(laws).assumptions
        assert sum("floats of its law are right to" in one for one in assumed) == number


def test_a_claim_of_a_curve_is_not_compared_at_one_point():
    # One output in 10^20 of one input alone has infinite divergences.
    with pytest.raises(ClaimError, match="one point"):
        evidence([EXACT, listed(Fraction(1))], RenyiDP(2.0, 5.0))


@pytest.mark.parametrize(("zero", "is_refuted"), [(0, True), (0.0, False)])
def test_counting_refutes_an_exact_zero_alone(zero, is_refuted):
    class Rare:
        name = "rare"

        def __call__(self, data, size, *, rng):
            found = (rng.random(size) < 0.5).astype(np.int8)
            if size > 1_000:
                found[0] = 2
            return found

        def distribution(self, data):
            return listed(0.5, 0.5, zero)

    settings = Settings(alpha=1e-6, budget=Budget(20_000), root_seed=0, key="rare")
    result = run_audit(Audit(Rare(), PURE, BIT), settings)
    statement = next(e.statement for e in result.evidence if e.kind == "counting")
    assert ("The code does not draw from its stated law" in statement) is is_refuted


def test_a_forecaster_is_certain_of_an_exact_zero_alone():
    def log_odds(first, second, outputs):
        bound = LikelihoodRatio().bind(Stated([first, second]), Pair(0, 1))
        return bound.log_odds(np.arange(outputs))

    for other in (listed(0.5, 0.5, 0.0), listed(0.5, 0.5)):
        odds = log_odds(listed(0.5, 0.5, 1e-17), other, 4)
        assert np.isfinite(odds).all()
        assert odds[:2] == pytest.approx(0, abs=1e-6)
    half = Fraction(1, 2)
    odds = log_odds(listed(half, half, 0), listed(0, half, half), 3)
    assert odds.tolist() == [math.inf, 0.0, -math.inf]


def test_a_law_that_depends_on_the_order_of_nodes_by_rounding_alone_is_certified():
    class Degrees:
        name = "degrees"

        def distribution(self, data):
            ends = [0.1 * k + 0.7 for k in np.asarray(data).sum(axis=0)]
            # A sum over nodes in their order is off by some 1e-16.
            p = 0.4 + sum(ends) / 100
            error = abs(sum(ends) - math.fsum(ends))
            return listed(p, 1 - p - error - 1e-8, 1e-8 + error)

    found = exact_evidence(Degrees(), PURE, Edges(4, unlabelled=True))
    assert found.verdict is PROVED
