"""Laws stated in floats by everyday formulas: what they lose in their tails refutes nothing and certifies nothing.

Each formula is evaluated twice: in floats, as a mechanism would state it, and in balls, which gives the true ε.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, arb_poly
from scipy.signal import fftconvolve
from scipy.special import gammaln
from scipy.stats import binom

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
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.errors import ClaimError, MechanismError
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
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear

BIT = AnyValues((0, 1))


class Stated:
    name = "stated"

    def __init__(self, *laws):
        self.laws = laws

    def distribution(self, data):
        return self.laws[data]


def listed(probabilities):
    return FiniteLaw(np.arange(len(probabilities)), probabilities)


def verdict(laws, claim):
    return exact_evidence(Stated(*laws), claim, BIT).verdict


def exp(x):
    return x.exp() if isinstance(x, arb) else math.exp(x)


def geometric(number, epsilon, most, true):
    """Two-sided geometric noise on a count from 0 to ``most``, clamped."""
    a = exp(-number(epsilon))
    inner = [(1 - a) / (1 + a) * a ** abs(k - true) for k in range(1, most)]
    return [a**true / (1 + a), *inner, a ** (most - true) / (1 + a)]


def softmax(number, scores):
    largest = number(max(scores))
    weights = [exp(number(score) - largest) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]


def exponential(number, rate, utilities):
    """The exponential mechanism; its scores are products that are rounded."""
    return softmax(
        number,
        [Fraction(rate) * u if number is exactly else rate * u for u in utilities],
    )


def rounded_laplace(number, scale, most, true):
    """Laplace noise that is rounded and clamped, by differences of its distribution function."""

    def cdf(x):
        return exp(number(x / scale)) / 2 if x < 0 else 1 - exp(-number(x / scale)) / 2

    ends = [cdf(Fraction(2 * k + 1, 2) - true) for k in range(most)]
    return [b - a for a, b in zip([0, *ends], [*ends, 1], strict=True)]


def discrete_gaussian(number, deviation, most, true):
    return softmax(
        number,
        [Fraction(-((k - true) ** 2), 2 * deviation**2) for k in range(most + 1)],
    )


def ones(number, keep, bits, true):
    """The number of ones among randomised bits, by two binomial laws."""
    if number is exactly:
        with precision():
            p = ball(Fraction(keep))
            return (
                arb_poly([1 - p, p]) ** true * arb_poly([p, 1 - p]) ** (bits - true)
            ).coeffs()
    if true in (0, bits):
        return list(binom.pmf(np.arange(bits + 1), bits, keep if true else 1 - keep))
    one, two = (
        binom.pmf(np.arange(n + 1), n, p)
        for n, p in ((true, keep), (bits - true, 1 - keep))
    )
    return list(np.convolve(one, two))


def ones_by_fft(number, keep, bits, true):
    if number is exactly:
        return ones(number, keep, bits, true)
    one, two = (
        binom.pmf(np.arange(n + 1), n, p)
        for n, p in ((true, keep), (bits - true, 1 - keep))
    )
    return list(fftconvolve(one, two))


def ones_by_logarithms(number, keep, bits, true):
    """All bits are the same."""
    if number is exactly:
        return ones(number, keep, bits, true)
    k, p = np.arange(bits + 1), keep if true else 1 - keep
    logs = (
        gammaln(bits + 1)
        - gammaln(k + 1)
        - gammaln(bits - k + 1)
        + k * math.log(p)
        + (bits - k) * math.log(1 - p)
    )
    return list(np.exp(logs))


def exactly(x):
    return ball(Fraction(x))


def number(x):
    return float(x)


RAMP = list(range(2_000))
FORMULAS = {
    "geometric noise, long": (
        partial(geometric, epsilon=1.0, most=1_000),
        {"true": 500},
        {"true": 501},
    ),
    "geometric noise, steep": (
        partial(geometric, epsilon=8.0, most=100),
        {"true": 3},
        {"true": 4},
    ),
    "2,000 randomised bits": (
        partial(ones, keep=0.75, bits=2_000),
        {"true": 0},
        {"true": 1},
    ),
    "some bits by FFT": (
        partial(ones_by_fft, keep=0.75, bits=400),
        {"true": 200},
        {"true": 201},
    ),
    "bits by logarithms": (
        partial(ones_by_logarithms, keep=0.75, bits=1),
        {"true": 0},
        {"true": 1},
    ),
    "exponential mechanism": (
        partial(exponential, rate=0.5),
        {"utilities": RAMP},
        {"utilities": [1, *RAMP[1:-1], 1_998]},
    ),
    "exponential mechanism, large scores": (
        partial(exponential, rate=0.15),
        {"utilities": [10**6, 10**6 - 1]},
        {"utilities": [10**6 - 1, 10**6]},
    ),
    "rounded Laplace noise": (
        partial(rounded_laplace, scale=Fraction(1), most=90),
        {"true": 10},
        {"true": 11},
    ),
    "discrete Gaussian noise": (
        partial(discrete_gaussian, deviation=3, most=200),
        {"true": 100},
        {"true": 101},
    ),
}


@pytest.fixture(scope="module", params=FORMULAS, ids=str)
def formula(request):
    """(The float laws, the true ε, the largest ε that outputs of mass above 1e-5 attain, the true laws)."""
    function, *inputs = FORMULAS[request.param]
    with precision():
        truth = [listed(function(exactly, **each)) for each in inputs]
    heavy = max(
        abs(math.log(a / b))
        for a, b in zip(*(law.floats for law in truth), strict=True)
        if min(a, b) > 1e-5
    )
    return (
        [listed(function(number, **each)) for each in inputs],
        pair_loss(*truth),
        heavy,
        truth,
    )


def test_a_true_claim_is_not_violated_by_what_floats_lose_and_a_false_one_not_certified(
    formula,
):
    laws, loss, heavy, _ = formula
    for factor in (1.0, 1 + 1e-12, 1 + 1e-6, 1.5):
        assert verdict(laws, PureDP(loss.upper * factor)) is not Verdict.VIOLATED
    for factor in (1 - 1e-12, 1 - 1e-6, 0.9):
        assert verdict(laws, PureDP(loss.lower * factor)) is not Verdict.CERTIFIED
    assert verdict(laws, PureDP(heavy * 0.99)) is Verdict.VIOLATED
    found = pair_loss(*laws)
    assert found.lower <= loss.lower
    assert found.upper >= loss.upper


@pytest.mark.parametrize("delta", [1e-13, 1e-6, 0.01])
def test_the_same_of_claims_with_a_delta(formula, delta):
    laws, _, _, truth = formula
    lower, upper = pair_loss(*truth, delta=delta).needed
    for factor in (1.0, 1 + 1e-6):
        assert (
            verdict(laws, ApproxDP(max(upper, 1e-9) * factor, delta))
            is not Verdict.VIOLATED
        )
    if lower > 0.01:
        assert (
            verdict(laws, ApproxDP(lower * (1 - 1e-6), delta)) is not Verdict.CERTIFIED
        )
        assert (
            delta < 1e-6
            or verdict(laws, ApproxDP(lower * 0.9, delta)) is Verdict.VIOLATED
        )
    epsilon = max(lower * 0.9, 0.01)
    found, true = (pair_loss(*each, epsilon=epsilon).delta for each in (laws, truth))
    assert found.contains(true) or found.overlaps(true)


def test_a_violation_that_weighs_more_than_floats_are_off_is_still_found():
    def ratio(factor, mass):
        return [listed([1 - mass, mass]), listed([1 - mass * factor, mass * factor])]

    assert verdict(ratio(math.exp(1.1), 0.01), PureDP(1.0)) is Verdict.VIOLATED
    assert verdict(ratio(math.exp(1.1), 1e-10), PureDP(1.0)) is Verdict.VIOLATED
    assert verdict(ratio(math.exp(1.1), 1e-13), PureDP(1.0)) is Verdict.NOT_REFUTED
    one, other = listed([0.999, 0.001]), listed([1.0, 0.0])
    assert verdict([one, other], PureDP(1.0)) is Verdict.VIOLATED
    assert verdict([one, listed([1.0])], PureDP(1.0)) is Verdict.VIOLATED
    assert verdict([one, other], ApproxDP(1.0, 1e-4)) is Verdict.VIOLATED
    found = exact_evidence(Stated(one, other), PureDP(1.0), BIT)
    assert math.log(1e-3 / 1e-12) - 0.1 < found.epsilon_lower < math.log(1e-3 / 1e-12)
    assert "a factor of 999999996 at least" in found.counterexample.explanation


def test_exact_numbers_are_judged_exactly():
    tiny = Fraction(1, 10**300)
    one, other = listed([1 - tiny, tiny]), listed([Fraction(1), Fraction(0)])
    assert verdict([one, other], PureDP(1.0)) is Verdict.VIOLATED
    assert pair_loss(one, other).lower == math.inf
    assert (
        verdict([one, listed([1 - 2 * tiny, 2 * tiny])], PureDP(0.7))
        is Verdict.CERTIFIED
    )
    assert (
        verdict([one, listed([1 - 2 * tiny, 2 * tiny])], PureDP(0.69))
        is Verdict.VIOLATED
    )


def test_a_float_of_zero_is_not_the_number_zero_and_a_zero_that_is_one_may_be_stated():
    """Neither law may be known to give an output of 0.0; an int is exact, and so is an output that neither lists."""
    coins = [0.75, 0.25], [0.25, 0.75]
    for zero, message in (
        (0.0, Verdict.NOT_REFUTED),
        (0, Verdict.CERTIFIED),
        (Fraction(0), Verdict.CERTIFIED),
    ):
        assert (
            verdict([listed([*coin, zero]) for coin in coins], PureDP(1.1)) is message
        )
    assert verdict([listed(coin) for coin in coins], PureDP(1.1)) is Verdict.CERTIFIED
    found = exact_evidence(
        Stated(*[listed([*coin, 0.0]) for coin in coins]), PureDP(1.1), BIT
    )
    assert "too near 0 to bound a ratio (Fractions or balls would)" in found.statement
    assert found.epsilon_upper == math.inf


@pytest.mark.parametrize("weight", [1e-320, 1e-200, 1e-14])
def test_a_mixture_of_next_to_nothing_is_left_open(weight):
    """Of (3/4, 1/4) the rest of a law: an output that loses 1, and another that one law alone gives."""
    rest = 1 - weight
    loses = [listed([0.75 * rest, 0.25 * rest, w]) for w in (weight, weight * math.e)]
    alone = [listed([0.75 * rest, 0.25 * rest, w]) for w in (weight, 0.0)]
    dropped = [listed([0.75 * rest, 0.25 * rest, weight]), listed([0.75, 0.25])]
    for laws in (loses, alone, dropped):
        assert verdict(laws, PureDP(0.5)) is Verdict.NOT_REFUTED


def test_windows_around_the_data_and_outputs_that_are_dropped_refute_nothing():
    """Geometric noise that is listed as far as floats go, about each input or where it is above 0."""
    a = math.exp(-1.0)
    windows = []
    for true in (0, 1):
        at = true + np.arange(-40, 41)
        windows.append(
            FiniteLaw(at, [(1 - a) / (1 + a) * a ** abs(int(k) - true) for k in at])
        )
    dropped = []
    for true in (500, 501):
        law = np.array(geometric(float, 1.0, 2_000, true))
        dropped.append(FiniteLaw(np.flatnonzero(law), list(law[law > 0])))
    for laws in (windows, dropped):
        assert verdict(laws, PureDP(1.0)) is Verdict.NOT_REFUTED
        assert verdict(laws, PureDP(0.99)) is Verdict.VIOLATED
        assert verdict(laws, ApproxDP(1.0, 1e-6)) is Verdict.CERTIFIED


def test_what_cancels_may_be_below_zero():
    law = listed([0.75, 0.25, -1e-17])
    assert law.floats.tolist() == [0.75, 0.25, 0.0]
    assert law.log_prob(np.array([2, 3])) == pytest.approx(
        np.log([1e-12, 1e-9]), rel=1e-2
    )
    with pytest.raises(MechanismError, match="minimum -1e-09"):
        listed([0.75, 0.25 + 1e-9, -1e-9])


def test_numbers_of_single_precision_are_known_to_fewer_digits():
    """float32 of e/(1 + e) loses a relative 2.8e-8 in ε, and its complement sums to 1 exactly."""
    keep = np.float32(1 / (1 + math.exp(-1.0)))
    laws = [listed([keep, 1 - keep]), listed([1 - keep, keep])]
    for claim in (PureDP(1.0), PureDP(1.0 - 1e-7)):
        assert verdict(laws, claim) is Verdict.NOT_REFUTED
    assert verdict(laws, PureDP(0.99)) is Verdict.VIOLATED
    assert verdict(laws, PureDP(1.01)) is Verdict.CERTIFIED


def test_step_laws_lose_their_tails_too():
    """A staircase of unit steps, ε = 8; a step of width w may be off by 1e-12/w in its density."""
    steps = [StepLaw(range(102), geometric(float, 8.0, 100, true)) for true in (3, 4)]
    assert verdict(steps, PureDP(8.0)) is Verdict.NOT_REFUTED
    assert verdict(steps, PureDP(7.9)) is Verdict.VIOLATED
    thin = [
        StepLaw([0, 2.0**-30, 1], [0.0, 1 / (1 - 2.0**-30)]),
        StepLaw([0, 1], [1.0]),
    ]
    assert verdict(thin, PureDP(1.0)) is Verdict.VIOLATED
    thinner = [
        StepLaw([0, 2.0**-42, 1], [0.0, 1 / (1 - 2.0**-42)]),
        StepLaw([0, 1], [1.0]),
    ]
    assert verdict(thinner, PureDP(1.0)) is Verdict.NOT_REFUTED


def test_a_step_whose_ball_contains_zero_under_both_laws_is_not_left_out():
    """Both may be anything up to 1e-6, so no pure ε is certain."""
    laws = [StepLaw([0, 1, 2], [arb(1, 1e-6), arb(0, 1e-6)])] * 2
    assert pair_loss(*laws).upper == math.inf
    assert verdict(laws, PureDP(1.0)) is Verdict.NOT_REFUTED


@pytest.mark.parametrize("end", [math.inf, -math.inf, math.nan])
def test_steps_end_and_atoms_lie_at_numbers(end):
    with pytest.raises(MechanismError, match="finite"):
        StepLaw([0, end], [1.0])
    with pytest.raises(MechanismError, match="finite"):
        StepLaw(atoms=[0, end], probabilities=[0.5, 0.5])


HIGH, LOW = np.ones(1), -np.ones(1)


class Enveloped:
    name = "enveloped"

    def __init__(self, least, most):
        self.bounds = least, most

    def envelope(self):
        least, most = self.bounds
        return Envelope(
            ["low", "high"], [least] * 2, [most] * 2, [(HIGH, LOW), (LOW, HIGH)]
        )


def test_an_envelope_of_floats_is_treated_alike_and_says_so():
    """1e-17 is what a difference of distribution functions leaves of nothing; densities have errors of their own size."""
    box = Box(-1, 1)
    assert (
        exact_evidence(Enveloped(0.0, 1e-14), PureDP(1.0), box).verdict
        is Verdict.NOT_REFUTED
    )
    assert (
        exact_evidence(Enveloped(1e-17, 0.5), PureDP(1.0), box).verdict
        is Verdict.VIOLATED
    )
    assert exact_evidence(Enveloped(0.0, 1e-3), PureDP(1.0), box).epsilon_lower < 21
    assert exact_evidence(Enveloped(1e-7, 1e6), PureDP(50.0), box).epsilon_lower < 28
    found = exact_evidence(Enveloped(0.25, 0.75), PureDP(1.1), box)
    assert found.verdict is Verdict.CERTIFIED
    assert any("floats of its law are right to" in each for each in found.assumptions)


def test_floats_of_either_law_are_named():
    laws = [listed([Fraction(1, 2)] * 2), listed([0.6, 0.4])]
    for pair in (laws, laws[::-1]):
        assumed = exact_evidence(Stated(*pair), PureDP(1.0), BIT).assumptions
        assert sum("floats of its law are right to" in each for each in assumed) == 1
    assert not any(
        "floats" in each
        for each in exact_evidence(
            Stated(laws[0], laws[0]), PureDP(1.0), BIT
        ).assumptions
    )


SUM = 98_765.4
"""With .1 more it is .1 + 5.8e-12 more, in doubles."""


def noise(law, *locations, scale=0.1):
    return [
        law(np.array([at]), np.array([scale]) if law is LaplaceLaw else scale)
        for at in locations
    ]


def test_a_location_that_is_rounded_does_not_refute_a_tight_claim():
    """The answer of a sum, and of one to which .1 is added; a difference beyond rounding counts."""
    assert SUM + 0.1 - SUM > 0.1 * (1 + 1e-12)
    for law, claim in ((LaplaceLaw, PureDP), (GaussianLaw, GaussianDP)):
        assert verdict(noise(law, SUM, SUM + 0.1), claim(1.0)) is Verdict.NOT_REFUTED
        assert (
            verdict(noise(law, SUM, SUM + 0.1), claim(1.0 - 1e-6)) is Verdict.VIOLATED
        )
        assert (
            verdict(noise(law, 2.0**40, 2.0**40 + 1), claim(10.0)) is Verdict.CERTIFIED
        )
        assert (
            verdict(noise(law, 2.0**40, 2.0**40 + 1), claim(10.0 - 1e-9))
            is Verdict.VIOLATED
        )
        assert (
            exact_evidence(
                Stated(*noise(law, SUM, SUM + 0.1)), claim(1.0), BIT
            ).epsilon_lower
            < 1.0
        )
    epsilon, delta = (
        1.0,
        float(pair_loss(*noise(GaussianLaw, 0.0, 0.1), epsilon=1.0).delta.upper()),
    )
    assert (
        verdict(noise(GaussianLaw, SUM, SUM + 0.1), ApproxDP(epsilon, delta))
        is Verdict.NOT_REFUTED
    )
    assert (
        verdict(noise(GaussianLaw, SUM, SUM + 0.1), ApproxDP(epsilon - 1e-6, delta))
        is Verdict.VIOLATED
    )


def test_gaussian_noise_whose_parameters_differ_by_rounding_has_no_infinite_loss():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1: no pure claim of an answer that does not depend on the data falls with it."""
    for laws in (
        noise(GaussianLaw, 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1),
        [GaussianLaw(np.zeros(1), s) for s in (0.6, SIX)],
    ):
        found = pair_loss(*laws)
        assert (found.lower, found.upper) == (0.0, math.inf)
        assert verdict(laws, PureDP(1.0)) is Verdict.NOT_REFUTED
    assert verdict(noise(GaussianLaw, 0.1, 0.2), PureDP(1.0)) is Verdict.VIOLATED


SIX = math.nextafter(0.6, 1.0)


def test_a_gaussian_claim_is_not_refuted_by_a_float_of_zero():
    laws = [listed([0.5, 0.5, 1e-300]), listed([0.5, 0.5, 0.0])]
    assert verdict(laws, GaussianDP(1.0)) is Verdict.NOT_REFUTED
    exact = [
        listed([1 - Fraction(1, 10**300), Fraction(1, 10**300)]),
        listed([Fraction(1), Fraction(0)]),
    ]
    assert verdict(exact, GaussianDP(1.0)) is Verdict.VIOLATED


def test_a_claim_of_a_curve_is_not_compared_at_one_point():
    """One output in 10^20 that one input alone gives has an infinite divergence of every order."""
    tiny = Fraction(1, 10**20)
    with pytest.raises(ClaimError, match="one point"):
        verdict([listed([1 - tiny, tiny]), listed([Fraction(1)])], RenyiDP(2.0, 5.0))


def test_counting_does_not_refute_a_law_by_an_output_whose_float_is_zero():
    """The last output came once where the law of floats has lost it."""

    class Rare:
        name = "rare"

        def __init__(self, zero):
            self.zero = zero

        def __call__(self, data, size, *, rng):
            found = (rng.random(size) < 0.5).astype(np.int8)
            found[:1] = 2 if size > 1_000 else found[:1]
            return found

        def distribution(self, data):
            return listed([0.5, 0.5, self.zero])

    settings = Settings(alpha=1e-6, budget=Budget(40_000), root_seed=0, key="rare")
    for zero, message in ((0, True), (0.0, False)):
        result = run_audit(Audit(Rare(zero), PureDP(1.0), BIT), settings)
        statement = next(e.statement for e in result.evidence if e.kind == "counting")
        assert ("The code does not draw from the law" in statement) is message


def test_fractions_that_lack_less_than_a_ball_can_show_are_no_law():
    tiny = Fraction(1, 10**300)
    with pytest.raises(MechanismError, match="exactly"):
        listed([1 - tiny])
    assert listed([1 - tiny, tiny]).left_out.most == 0


def test_a_forecaster_is_not_certain_of_an_output_whose_float_is_zero():
    """The last output has 1e-17 under one law and 0.0 under the other, or is not listed, as a difference leaves it."""
    coin = [0.5, 0.5]
    for other in (listed([*coin, 0.0]), listed(coin)):
        odds = (
            LikelihoodRatio()
            .bind(Stated(listed([*coin, 1e-17]), other), Pair(0, 1))
            .log_odds(np.arange(4))
        )
        assert np.isfinite(odds).all()
        assert odds[:2] == pytest.approx(0, abs=1e-6)
    exact = [
        listed([Fraction(1, 2), Fraction(1, 2), 0]),
        listed([0, Fraction(1, 2), Fraction(1, 2)]),
    ]
    odds = LikelihoodRatio().bind(Stated(*exact), Pair(0, 1)).log_odds(np.arange(3))
    assert odds.tolist() == [math.inf, 0.0, -math.inf]


def test_a_law_of_floats_that_depends_on_the_order_of_nodes_by_rounding_alone_is_certified():
    class Degrees:
        """Its last output has what a sum over nodes in their order is off by, some 1e-16, beside 1e-8."""

        name = "degrees"

        def distribution(self, data):
            ends = [0.1 * k + 0.7 for k in np.asarray(data).sum(axis=0)]
            p, off = 0.4 + sum(ends) / 100, abs(sum(ends) - math.fsum(ends))
            return listed([p, 1 - p - off - 1e-8, 1e-8 + off])

    found = exact_evidence(Degrees(), PureDP(1.0), Edges(4, unlabelled=True))
    assert found.verdict is Verdict.CERTIFIED
