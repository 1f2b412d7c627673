"""The laws of the classic mechanisms against closed forms, direct integration and enumeration."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import integrate, stats

from auditdp import GaussianDP, QueryAnswers
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import laplace_loss, pair_loss
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mechanism.laws import precision as precision_of
from mechanisms.classic import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    BatchSums,
    ExponentialMechanism,
    Gaussian,
    GaussianAbove,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
    NumericSVT,
    OneTimeRappor,
    PrefixSum,
    Rappor,
    TruncatedGeometric,
)
from mechanisms.classic.crossing_law import Crossing

ANSWERS = np.array([1.0, -0.5, 2.0])


def epsilon(mechanism, a, b):
    a, b = (np.array(x, float) for x in (a, b))
    if isinstance(capabilities(mechanism).law(a), LaplaceLaw):
        return laplace_loss(*map(capabilities(mechanism).law, (a, b)))
    return pair_loss(mechanism.distribution(a), mechanism.distribution(b))


@pytest.mark.parametrize("gap", [0.0, 0.7, 3.0])
def test_noisy_max_of_two_answers(gap):
    """P(second wins) = e^-d/s (1 + d/2s)/2 for Laplace noise, whose difference has that tail, and e^-d/s/2 for Exp."""
    d = gap / 2  # in units of the scale 2/ε at ε = 1
    laplace = NoisyMax1(1.0).distribution([gap, 0.0]).floats[1]
    exponential = NoisyMax2(1.0).distribution([gap, 0.0]).floats[1]
    assert laplace == pytest.approx(math.exp(-d) * (1 + d / 2) / 2, rel=1e-14)
    assert exponential == pytest.approx(math.exp(-d) / 2, rel=1e-14)


@pytest.mark.parametrize("threshold", [1.0, 2.5])
def test_one_query_against_a_noisy_threshold(threshold):
    """P(Lap(a) + Lap(b) > t) = (a² e^(-t/a) − b² e^(-t/b)) / 2(a² − b²) for t >= 0; here a = 40, b = 20."""
    a, b, t = 40.0, 20.0, threshold - 0.3
    exact = (a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (
        2 * (a * a - b * b)
    )
    expected_text = SVT1(0.1, 1, threshold).distribution([0.3])
    assert expected_text.floats[expected_text.outcomes[:, 0] == 1] == pytest.approx(
        [exact], rel=1e-13
    )


def test_crossing_probability_is_the_integral_it_stands_for():
    below, above, centre, rho, nu = (
        (Fraction(-1, 2), Fraction(1)),
        (Fraction(2),),
        Fraction(1, 3),
        Fraction(2),
        Fraction(3),
    )

    def integrand(tau):
        density = stats.laplace.pdf(tau, float(centre), float(rho))
        falls = np.prod([stats.laplace.cdf(tau, float(q), float(nu)) for q in below])
        return (
            density
            * falls
            * np.prod([stats.laplace.sf(tau, float(q), float(nu)) for q in above])
        )

    direct, error = integrate.quad(
        integrand, -80, 80, points=[-0.5, 1 / 3, 1, 2], limit=400, epsabs=1e-13
    )
    exact = Crossing([*below, *above], centre, rho, nu).probability(below, above)
    assert abs(float(exact.mid()) - direct) < 1e-10 + error
    assert float(exact.rad()) < 1e-60


def test_crossing_probability_where_a_rate_vanishes():
    """With ρ = ν between the centre 0 and the answer 2 the integrand holds a constant.

    P(2 + X < Y) for standard Laplace X and Y is e^-2 (1 + 2/2)/2, the tail of their difference.
    """
    exact = Crossing([Fraction(2)], Fraction(0), Fraction(1), Fraction(1)).probability(
        [Fraction(2)], []
    )
    assert float(exact.mid()) == pytest.approx(math.exp(-2), rel=1e-15)


FINITE = [
    (SVT1(0.5, 1, 0.5), ANSWERS),
    (SVT1(0.5, 2, 0.5), ANSWERS),
    (SVT2(0.5, 2, 0.5), ANSWERS),
    (SVT4(0.5, 5, 0.5), ANSWERS),
    (SVT5(0.5, 0.5), ANSWERS),
    (SVT6(0.5, 0.5), ANSWERS),
    (NoisyMax1(0.5), ANSWERS),
    (NoisyMax2(0.5), ANSWERS),
    (ExponentialMechanism(0.5), ANSWERS),
    (TruncatedGeometric(0.3, 4), np.array([1.0])),
    (OneTimeRappor(2, 6), np.array([3.0])),
    (Rappor(3, 5), np.array([-2.0])),
    (GaussianAbove(Gaussian(1.0, 0.01)), np.array([1.0])),
]


@pytest.mark.parametrize(
    ("mechanism", "data"), FINITE, ids=lambda x: getattr(x, "name", "")
)
def test_finite_laws_sum_to_one_tightly(mechanism, data):
    law = mechanism.distribution(data)
    with precision_of():
        total = sum(law.balls[1:], law.balls[0])
    assert total.contains(1)
    assert float(total.rad()) < 1e-60


def test_sparse_vector_lists_every_output_once():
    """With c = 2 of 4 queries: 1 + 4 without a second positive, and C(1,1) + C(2,1) + C(3,1) that stop."""
    expected_text = SVT1(0.5, 2).distribution(np.arange(4.0)).outcomes
    assert len(expected_text) == 1 + 4 + 6
    assert expected_text.tolist()[-1] == [0, 0, 1, 1]
    assert [1, 1, -1, -1] in expected_text.tolist()
    with pytest.raises(MechanismError, match="2048 outcomes"):
        SVT6(0.5).distribution(np.arange(11.0))


def test_epsilon_of_the_benchmark_rows():
    """Figures of the benchmark's own column "these pairs", to the digits that it prints."""
    ten, five = np.ones(10), np.ones(5)
    half = [2.0] * 5 + [0.0] * 5
    assert epsilon(SVT1(0.1, 1, 0.5), ten, half).upper == pytest.approx(
        0.0885, abs=5e-5
    )
    assert epsilon(SVT4(0.1), ten, half).upper == pytest.approx(0.1725, abs=5e-5)
    assert epsilon(SVT6(0.1), ten, half).upper == pytest.approx(0.420, abs=5e-4)
    assert epsilon(NoisyMax1(0.1), five, [0, 2, 2, 2, 2]).upper == pytest.approx(
        0.0946, abs=5e-5
    )
    assert epsilon(SVT5(0.1), ten, half).lower == math.inf


def test_svt5_reveals_the_order_of_two_answers():
    law = SVT5(1.0).distribution([2.0, 1.0])
    expected_text = dict(
        zip(map(tuple, law.outcomes.tolist()), law.floats, strict=True)
    )
    assert expected_text[0, 1] == 0
    assert expected_text[1, 0] == pytest.approx(
        (1 - math.exp(-0.5)) / 2
    )  # P(0 < Lap(2) <= 1)


def test_epsilon_of_additive_laplace_noise():
    """Σ|difference|/scale, attained: one answer costs ε, k answers kε, an upside-down scale 1/ε."""
    assert epsilon(LaplaceSum(0.25), [1.0], [2.0]).upper == 0.25
    assert epsilon(LaplaceSum(0.25), [1.0, 1.0], [2.0, 2.0]).upper == 0.5
    assert epsilon(LaplaceParallel(0.25, 20), [1.0], [0.0]).upper == 5.0
    assert epsilon(NoisyHistogram1(0.25), [1.0, 1.0], [2.0, 1.0]).upper == 0.25
    assert epsilon(NoisyHistogram2(0.25), [1.0, 1.0], [2.0, 1.0]).upper == 4.0
    assert epsilon(PrefixSum(0.25), [1.0] * 4, [2.0] * 4).upper == 1.0


def test_noise_is_calibrated_to_the_sensitivity_that_is_declared():
    assert LaplaceSum(0.5, 3.0).scale == 6.0
    assert (
        NoisyHistogram2(0.5).sensitivity / NoisyHistogram2(0.5).epsilon
        == NoisyHistogram2(0.5).scale
    )
    parallel = LaplaceParallel(0.5, 4)
    assert (
        parallel.sensitivity
        == np.abs(
            parallel.query(np.array([2.0])) - parallel.query(np.array([1.0]))
        ).sum()
    )


def test_released_maximum_costs_half_epsilon_per_answer():
    """Below all answers every distribution function is an exponential, so that the loss is exactly kε/2."""
    for k in (1, 2, 5):
        mechanism = NoisyMax3(0.4)
        y = np.array([-3.0, 0.9])
        loss = mechanism.log_prob(y, np.ones(k)) - mechanism.log_prob(
            y, np.full(k, 2.0)
        )
        assert loss == pytest.approx(k * 0.4 / 2, rel=1e-12)


def test_released_maximum_with_exponential_noise_shows_the_largest_answer():
    """Below 2 only the first input is possible, with probability (1 − e^(−ε/2))^k."""
    mechanism = NoisyMax4(1.0)
    assert mechanism.log_prob(np.array([1.5]), np.full(3, 2.0)) == -np.inf
    assert mechanism.cdf(np.array([2.0]), np.ones(3)) == pytest.approx(
        (1 - math.exp(-0.5)) ** 3
    )


def test_svt3_costs_every_answer_before_a_low_release():
    """All k − 1 answers below and the last released under all of them: each costs ε/(2c), the release too."""
    mechanism, k = SVT3(0.4), 6
    output = np.array([[0.0] * (k - 1) + [1.0] + [np.nan] * (k - 1) + [-2.0]])
    loss = mechanism.log_prob(output, np.ones(k)) - mechanism.log_prob(
        output, np.full(k, 2.0)
    )
    assert loss == pytest.approx([k * 0.4 / 2], rel=1e-12)


@pytest.mark.parametrize(
    "mechanism", [NoisyMax3(0.5), NoisyMax4(0.5)], ids=lambda m: m.name
)
def test_density_of_a_released_maximum_integrates_to_its_distribution_function(
    mechanism,
):
    def density(y):
        return np.exp(mechanism.log_prob(np.array([y]), ANSWERS))[0]

    for end in (1.2, 4.0, 300.0):
        mass, _ = integrate.quad(
            density, -100, end, points=sorted(x for x in ANSWERS if x < end), limit=500
        )
        assert mass == pytest.approx(
            mechanism.cdf(np.array([end]), ANSWERS)[0], abs=1e-9
        )


@pytest.mark.dear
@pytest.mark.parametrize(
    "mechanism",
    [SVT3(0.8, 1, 0.5), SVT3(0.8, 2, 0.5), NumericSVT(0.8, 2, 0.5)],
    ids=lambda m: m.name,
)
def test_density_of_released_answers_integrates_to_the_law_of_the_flags(mechanism):
    flags = mechanism.flags(ANSWERS)
    for expected_text, probability in zip(flags.outcomes, flags.floats, strict=True):
        at = np.flatnonzero(expected_text == 1)
        if len(at) > 1:
            continue

        def density(v, expected_text=expected_text, at=at):
            numbers = np.full(3, np.nan)
            numbers[at] = v
            return np.exp(
                mechanism.log_prob(np.r_[expected_text, numbers][None], ANSWERS)
            )[0]

        mass = (
            density(0.0)
            if not len(at)
            else integrate.quad(
                density, -150, 150, points=[-0.5, 0.5, 1, 2], limit=500
            )[0]
        )
        assert mass == pytest.approx(probability, abs=1e-8)


def test_laplace_densities_integrate_to_one():
    for mechanism, data, coordinate in (
        (NoisyHistogram1(0.5), np.array([1.0]), 1),
        (PrefixSum(0.5), np.array([1.0, 2.0]), 2),
    ):
        fixed = [0.7] * (coordinate - 1)
        mass, _ = integrate.quad(
            lambda y, m=mechanism, d=data, f=fixed: np.exp(
                m.log_prob(np.array([[*f, y]]), d)
            )[0],
            -90,
            90,
            points=[0.7, 1, 2, 2.7],
            limit=400,
        )
        marginal = stats.laplace.pdf(0.7, 1.0, 2.0) if fixed else 1.0
        assert mass == pytest.approx(marginal, abs=1e-9)


def test_truncated_geometric_is_the_geometric_law():
    """(1−α)/(1+α) α^|z−c| inside and α^|z−c|/(1+α) at the ends, α = 2^k/(2^k + 1) (Ghosh et al. 2009)."""
    mechanism = TruncatedGeometric(0.3, 5)
    alpha = Fraction(2**mechanism.halvings, 2**mechanism.halvings + 1)
    for count in range(6):
        law = mechanism.distribution([count])
        wanted = [
            alpha ** abs(z - count) * (1 if z in (0, 5) else 1 - alpha) / (1 + alpha)
            for z in range(6)
        ]
        assert list(law.probabilities) == wanted


def test_truncated_geometric_spends_what_it_says():
    for mechanism in (
        TruncatedGeometric(0.1),
        TruncatedGeometric(0.1, logarithm="natural"),
    ):
        loss = epsilon(mechanism, [2.0], [3.0])
        assert loss.lower <= mechanism.spent * (1 + 1e-15)
        assert loss.upper >= mechanism.spent * (1 - 1e-15)
    assert TruncatedGeometric(0.1).halvings == 5
    assert TruncatedGeometric(0.1).spent == pytest.approx(math.log(33 / 32))
    assert TruncatedGeometric(0.1, logarithm="natural").spent == pytest.approx(
        math.log(9 / 8)
    )


def test_bloom_filters_are_those_of_dp_sniper():
    """MurmurHash3 of "0" and "1", seeds 0 to 3, modulo 20: six places differ, so that ε = 6 ln(.525/.475) = .6005."""
    mechanism = OneTimeRappor()
    zero, one = (mechanism.bloom(np.array([x])) for x in (0.0, 1.0))
    assert np.flatnonzero(zero).tolist() == [0, 11, 18]
    assert np.flatnonzero(one).tolist() == [3, 10, 13]
    assert mechanism.ones == pytest.approx((0.475, 0.525), abs=2**-52)


def test_rappor_attains_the_theorem_where_filters_share_no_bit():
    """Theorem 2: h ln(q*(1−p*)/(p*(1−q*))) for two filters of h ones each that share none."""
    mechanism = Rappor(1, 4)
    values = [np.array([float(v)]) for v in range(6)]
    a, b = next(
        (a, b)
        for a, b in product(values, values)
        if not (mechanism.bloom(a) & mechanism.bloom(b)).any()
    )
    low, high = mechanism.ones
    assert epsilon(mechanism, a, b).upper == pytest.approx(
        math.log(high * (1 - low) / (low * (1 - high))), rel=1e-12
    )


def test_rappor_log_prob_is_its_distribution():
    mechanism, data = Rappor(2, 7), np.array([5.0])
    law = mechanism.distribution(data)
    assert mechanism.log_prob(law.outcomes, data) == pytest.approx(
        law.log_prob(law.outcomes), abs=1e-12
    )


def test_analytic_gaussian_is_the_smallest_that_holds():
    for eps, delta in ((1.0, 1e-5), (0.1, 0.01), (8.0, 1e-6)):
        sigma = Gaussian(eps, delta).sigma
        assert (
            GaussianDP(1 / sigma).delta_at(eps)
            <= delta
            < GaussianDP(1 / (sigma * (1 - 1e-7))).delta_at(eps)
        )
    assert Gaussian(1.0, 1e-5, "classic").sigma == pytest.approx(4.8448, abs=1e-4)
    assert Gaussian(0.5, 1e-5, "laplace").sigma == 2.0


def test_thresholded_gaussian_shows_the_whole_delta():
    """The best event is a half line, so one bit has the δ(ε) of the noise (Balle & Wang 2018, Theorem 8)."""
    gaussian = Gaussian(10.0, 0.01, "classic")
    bit = GaussianAbove(gaussian)
    loss = pair_loss(
        bit.distribution(np.ones(1)), bit.distribution(np.zeros(1)), epsilon=10.0
    )
    assert float(loss.delta.mid()) == pytest.approx(
        GaussianDP(1 / gaussian.sigma).delta_at(10.0), rel=1e-9
    )
    assert float(loss.delta.mid()) > 0.04


def test_shuffled_law_is_the_mixture_over_all_orders():
    mechanism, records = (
        BatchSums(0.7, 2, "shuffled"),
        np.array([-1.0, -1.0, -1.0, 1.0]),
    )
    outputs = np.random.default_rng(0).normal(-1, 2, (5, 2))
    direct = np.zeros(5)
    for order in permutations(records):
        sums = np.array(order).reshape(2, 2).sum(axis=1)
        direct += stats.norm.pdf(outputs, sums, 0.7).prod(axis=1) / 24
    assert np.exp(mechanism.log_prob(outputs, records)) == pytest.approx(
        direct, rel=1e-12
    )
    with pytest.raises(MechanismError, match="all records but one agree"):
        mechanism.log_prob(outputs, np.array([1.0, 1.0, -1.0, -1.0]))


def test_poisson_law_is_the_mixture_over_all_batches():
    mechanism, records = BatchSums(0.7, 2, "poisson"), np.array([-1.0, -1.0, 0.0, 1.0])
    outputs = np.random.default_rng(0).normal(-1, 2, (5, 2))
    sums = Counter(float(np.dot(drawn, records)) for drawn in product((0, 1), repeat=4))
    batch = sum(
        count / 16 * stats.norm.pdf(outputs, value, 0.7)
        for value, count in sums.items()
    )
    assert np.exp(mechanism.log_prob(outputs, records)) == pytest.approx(
        batch.prod(axis=1), rel=1e-12
    )


@pytest.mark.dear
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_possible_agrees_with_all_float32_outputs(scale):
    """All 2^25 outputs for 0 and for 1, listed; 1,500 outputs for each, and their float neighbours, looked up."""
    mechanism, rng = NaiveLaplace(1 / scale, "float32"), np.random.default_rng(7)
    z = -np.log(np.arange(1, 2**24 + 1, dtype=np.float32) * np.float32(2**-24))
    noise = (np.float32(1) / np.float32(1 / scale)) * z
    for answer in (0.0, 1.0):
        data = np.array([answer])
        outputs = np.concatenate(
            [mechanism(np.array([x]), 1500, rng=rng) for x in (0.0, 1.0)]
        )
        outputs = np.concatenate([outputs, np.nextafter(outputs, np.float32(np.inf))])
        listed = np.zeros(len(outputs), bool)
        for sign in (np.float32(1), np.float32(-1)):
            reached = np.float32(answer) + sign * noise  # monotone in z, which descends
            reached = reached[::-1] if sign > 0 else reached
            at = np.minimum(np.searchsorted(reached, outputs), len(reached) - 1)
            listed |= reached[at] == outputs
        claimed = mechanism.possible(outputs, data)
        assert not (
            listed & ~claimed
        ).any()  # never False for an output that it can produce
        assert (
            claimed & ~listed
        ).mean() < 0.02  # and rarely True for one that it cannot


def test_logarithms_do_not_depend_on_their_place_in_an_array():
    """What ``possible`` assumes of np.log."""
    for kind in (np.float32, np.float64):
        v = np.random.default_rng(1).random(1003, dtype=kind) + kind(1e-3)
        singly = np.array([np.log(v[i : i + 1])[0] for i in range(len(v))])
        assert (np.log(v) == singly).all()
        assert (np.log(v[::-1].copy())[::-1] == singly).all()
        assert (np.log(v[5:]) == singly[5:]).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LaplaceSum(0.0), "epsilon"),
        (lambda: SVT1(1.0, 0), "stop"),
        (lambda: Rappor(f=1.0), "0 <= f < 1"),
        (lambda: Rappor(p=0.6, q=0.5), "p < q"),
        (lambda: Gaussian(1.0, 0.0), "delta"),
        (lambda: Gaussian(1.0, 0.1, "wrong"), "calibration"),
        (lambda: NaiveLaplace(1.0, "float16"), "float32"),
        (lambda: BatchSums(1.0, 4, "fixed"), "sampling"),
        (lambda: TruncatedGeometric(1e-6, 5), "2\\^63"),
        (lambda: TruncatedGeometric(0.1).distribution([6.0]), "count in 0..5"),
        (lambda: OneTimeRappor().bloom(np.array([0.5])), "integer value"),
        (lambda: OneTimeRappor().distribution(np.array([0.0])), "at most 12 bits"),
        (lambda: SVT1(1.0).distribution(np.array([np.nan])), "finite"),
        (lambda: NoisyMax1(1.0).distribution(np.ones((2, 2))), "one-dimensional"),
        (lambda: LaplaceParallel().distribution(np.ones(2)), "expected 1 answers"),
        (
            lambda: BatchSums(1.0, 2, "poisson").log_prob(np.zeros((1, 2)), np.ones(3)),
            "multiple of 2 records",
        ),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(MechanismError, match=message):
        build()


def test_pairs_of_the_adjacency_fit_the_mechanisms():
    rng = np.random.default_rng(0)
    for listed in QueryAnswers(4, "all").pairs():
        for mechanism in (
            SVT1(1.0),
            NoisyMax1(1.0),
            PrefixSum(1.0),
            ExponentialMechanism(1.0),
        ):
            assert len(mechanism(listed.neighbour, 3, rng=rng)) == 3


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_most_outputs_of_naive_laplace_noise_betray_their_input(precision):
    """The share that is impossible for the other answer is some 60 % at ε = .1; here that it is more than half."""
    mechanism = NaiveLaplace(0.1, precision)
    outputs = mechanism(np.array([0.0]), 2000, rng=np.random.default_rng(3))
    assert np.isfinite(mechanism.log_prob(outputs, np.array([0.0]))).all()
    assert (mechanism.log_prob(outputs, np.array([1.0])) == -np.inf).mean() > 0.5
