"""Mechanisms for one number and for records: exact budgets, printed formulas, moments.

The printed formulas are those of Duchi et al. (2018), Wang et al. (2019,
arXiv:1907.00782) and Zhao et al. (2020, arXiv:2004.08856), evaluated here in floating
point, apart from the mechanisms' own code.
"""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.laws.additive import gaussian_delta
from mechanisms.backend import backend_of
from mechanisms.numeric import (
    Duchi,
    Feature,
    GaussianFeatures,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
    every_feature,
    probability_of_zero,
    sampled_features,
)
from tests.statistical.stated_laws import loss, outputs_of, torch_generator

approx = pytest.approx
parametrize = pytest.mark.parametrize
same = np.testing.assert_array_equal

close = np.testing.assert_allclose

EPSILONS = [1e-6, 0.01, 0.3, 0.61, math.log(2), 0.7, 1.0, math.log(5.53)]
EPSILONS += [2.0, math.log(3), 5.0, 12.0]
NUMBERS = [-1.0, -0.7, -1 / 3, -1e-9, 0.0, 0.1, 0.5, 0.9999, 1.0]
FINITE = [Duchi, ThreeOutput]
BOUNDED = [*FINITE, Piecewise, PMSub, Hybrid]
KINDS = [*BOUNDED, LaplaceFeature]
RECORD = np.array([0.3, -1.0, 0.0])
of_bounded = parametrize("kind", BOUNDED)
of_kinds = parametrize("kind", KINDS)


def rng(seed=8):
    return np.random.default_rng(seed)


def exact_epsilon(mechanism):
    """Lower and upper double of the exact ε."""
    losses = envelope_losses(mechanism.envelope())
    return max(loss.lower for loss in losses), max(loss.upper for loss in losses)


def atoms_of(law):
    if isinstance(law, FiniteLaw):
        return dict(zip(law.outcomes.tolist(), law.probabilities, strict=True))
    return {float(y): p for y, p in law.points.items()}


def steps_of(law):
    """(start, end, density) of each step."""
    if isinstance(law, FiniteLaw):
        return []
    ends = pairwise(law.ends)
    return [(*step, p) for step, p in zip(ends, law.densities, strict=True)]


def moment(law, power):
    """An exact moment of a finite law, or of steps and atoms."""
    total = sum(Fraction(y) ** power * p for y, p in atoms_of(law).items())
    for a, b, density in steps_of(law):
        total += density * (b ** (power + 1) - a ** (power + 1)) / (power + 1)
    return total


@parametrize("epsilon", EPSILONS)
@of_kinds
def test_the_exact_budget_is_the_claimed_one(kind, epsilon):
    """Less by at most what one place of a probability, or an ulp of a scale, is worth."""
    lower, upper = exact_epsilon(kind(epsilon))
    assert upper <= epsilon
    assert epsilon - lower <= min(1e-9, 2**-51 * (1 + math.exp(epsilon)))


@of_bounded
@parametrize("epsilon", [40.0, 1000.0])
def test_a_huge_budget_is_capped_by_the_grid(kind, epsilon):
    _, upper = exact_epsilon(kind(epsilon))
    assert 30 < upper <= epsilon
    assert abs(float(moment(kind(epsilon).distribution(0.5), 1)) - 0.5) <= 1e-15


@parametrize("epsilon", EPSILONS)
@of_bounded
def test_mean_variance_and_range_are_those_of_the_exact_law(kind, epsilon):
    mechanism = kind(epsilon)
    variances = mechanism.variance(np.array(NUMBERS))
    for x, variance in zip(NUMBERS, variances, strict=True):
        law = mechanism.distribution(x)
        ends = list(atoms_of(law))
        for start, end, _ in steps_of(law):
            ends += [float(start), float(end)]
        assert mechanism.output_range([x]) == (min(ends), max(ends))
        mean = moment(law, 1)
        assert abs(mean - Fraction(x)) <= 4 * math.ulp(max(ends))
        assert mechanism.variance(x) == variance
        if epsilon > 1e-6:
            exact = float(moment(law, 2) - mean**2)
            assert variance == approx(exact, rel=1e-10, abs=1e-13)


@parametrize("epsilon", EPSILONS[1:])
@of_bounded
def test_the_largest_variance_is_that_of_the_worst_number(kind, epsilon):
    """The worst number of three outputs lies between those of the grid."""
    mechanism = kind(epsilon)
    worst = np.max(mechanism.variance(np.linspace(-1, 1, 201)))
    digits = 1e-4 if kind is ThreeOutput else 1e-10
    assert mechanism.largest_variance == approx(worst, rel=digits)
    assert mechanism.largest_variance >= worst * (1 - 1e-10)


@parametrize("epsilon", [0.05, 0.7, 3.0])
@parametrize("x", NUMBERS)
def test_duchi_as_printed(epsilon, x):
    e = math.exp(epsilon)
    size = (e + 1) / (e - 1)
    positive = (1 + x / size) / 2
    law = Duchi(epsilon).distribution(x)
    close(law.outcomes, [-size, size], rtol=1e-13)
    close(law.floats, [1 - positive, positive], rtol=1e-14)


@parametrize(
    ("kind", "root"),
    [
        (Piecewise, 2),
        (PMSub, 3),
    ],
)
@parametrize("epsilon", [0.05, 1.0, 8.0])
@parametrize("x", NUMBERS)
def test_piecewise_as_printed(kind, root, epsilon, x):
    e = math.exp(epsilon)
    t = math.exp(epsilon / root)
    unit = (e + t) / (t * (e - 1))
    size = unit * (t + 1)
    left = unit * (x * t - 1)
    right = unit * (x * t + 1)
    expected = np.clip([-size, left, right, size], -size, size)
    law = kind(epsilon).distribution(x)
    found = [float(end) for end in law.ends]
    if abs(x) == 1:
        expected = np.unique(expected.round(13))
    close(found, expected, rtol=1e-13, atol=1e-13 * size)
    third = (right - left) / 3
    density = law.density_between(Fraction(left + third), Fraction(right - third))
    assert float(density) * 3 * third == approx(e / (e + t), rel=1e-13)


@parametrize("epsilon", [0.3, 0.7, 1.0, 1.7, 2.5])
@parametrize("x", NUMBERS)
def test_three_outputs_as_printed(epsilon, x):
    e = math.exp(epsilon)
    a = zero_probability(epsilon)
    b = a * (e - 1) / e
    g = (a + 1) * (e - 1) / (2 * (e + 1))
    side = (1 - a) / 2
    far = abs(x)
    law = ThreeOutput(epsilon).distribution(x)
    found = dict(zip(np.sign(law.outcomes), law.floats, strict=True))
    sign = -1.0 if x < 0 else 1.0
    assert found.get(0.0, 0.0) == approx(a - b * far, abs=1e-15)
    assert found[-sign] == approx(side - (g - b) * far, rel=1e-13)
    assert found[sign] == approx(side + g * far, rel=1e-13)
    size = e * (e + 1) / ((e - 1) * (e - a))
    assert max(law.outcomes) == approx(size, rel=1e-13)


def zero_probability(epsilon):
    with precision():
        return float(probability_of_zero(epsilon))


def worst_variance(a, e):
    size = e * (e + 1) / ((e - 1) * (e - a))
    b = a * (e - 1) / e
    at = np.minimum(size**2 * b / 2, 1)
    return size**2 * (1 - a + b * at) - at**2


@parametrize(
    "epsilon", [0.2, 0.69, 0.7, 0.75, 1.1, 1.7, 1.7102, 1.7104, 1.72, 2.0, 6.0]
)
def test_the_printed_probability_of_zero_minimises_the_worst_variance(epsilon):
    """On a grid of 0 <= a <= E/(E+2).

    1.5e-8 is the excess by rounding 5.5311289 to 5.53.
    """
    e = math.exp(epsilon)
    a = zero_probability(epsilon)
    assert 0 <= a <= e / (e + 2)
    grid = np.linspace(0, e / (e + 2), 100_001)
    found = worst_variance(a, e)
    assert found <= worst_variance(grid, e).min() + 1.5e-8
    assert ThreeOutput(epsilon).largest_variance == approx(found, rel=1e-12)


@parametrize("epsilon", [0.1, 0.61, 0.62, 1.0, 4.0])
def test_hybrid_is_a_mixture(epsilon):
    """Of Piecewise and Duchi; Duchi alone for a small budget."""
    hybrid = Hybrid(epsilon)
    share = Fraction(hybrid.share)
    expected = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0
    assert float(share) == approx(expected, rel=1e-14)
    found, duchi, piecewise = (
        kind(epsilon).distribution(0.3) for kind in (Hybrid, Duchi, Piecewise)
    )
    assert found.probabilities == [(1 - share) * p for p in duchi.probabilities]
    if share:
        assert list(found.densities) == [share * d for d in piecewise.densities]
        variances = hybrid.variance(np.linspace(-1, 1, 11))
        close(variances, variances[0], rtol=1e-12)


def levels(law):
    """Probabilities of atoms and densities of steps, by the keys of an envelope."""
    steps = [("step", density) for *_, density in steps_of(law)]
    return [*atoms_of(law).items(), *steps]


@parametrize("epsilon", [0.7, 3.0])
@of_bounded
def test_every_law_lies_within_the_envelope(kind, epsilon):
    """And both are attained, at the inputs that the envelope names."""
    mechanism = kind(epsilon)
    envelope = mechanism.envelope()
    found = {}
    for x in np.linspace(-1, 1, 41):
        for name, p in levels(mechanism.distribution(x)):
            found.setdefault(name, []).append(p)
    keys = ["step" if isinstance(o, str) else o for o in envelope.outputs]
    assert set(found) == set(keys)
    parts = zip(keys, envelope.least, envelope.most, envelope.inputs, strict=True)
    for key, least, most, (at_most, at_least) in parts:
        assert min(found[key]) == least
        assert max(found[key]) == most
        assert (key, most) in levels(mechanism.distribution(at_most))
        assert (key, least) in levels(mechanism.distribution(at_least))


@parametrize("epsilon", [0.5, 1.0, 2.0])
def test_laplace_noise_stays_strictly_below_its_budget(epsilon):
    mechanism = LaplaceFeature(epsilon)
    scale = mechanism.scale
    assert Fraction(2) / Fraction(scale) < Fraction(epsilon)
    assert scale == approx(2 / epsilon, rel=5e-16)
    outputs = np.array([-3.0, 0.2, 7.0])
    expected = -np.abs(outputs - 0.5) / scale - math.log(2 * scale)
    close(mechanism.log_prob(outputs, 0.5), expected)
    assert mechanism.largest_variance == approx(8 / epsilon**2)
    assert mechanism.output_range(np.zeros(1)) is None


@parametrize("dimension", [1, 100])
@parametrize(
    ("epsilon", "delta"),
    [
        (0.3, 1e-5),
        (6.0, 1e-9),
    ],
)
def test_gaussian_noise_spends_its_delta(epsilon, delta, dimension):
    mechanism = GaussianFeatures(epsilon, delta, dimension)
    ones = np.ones(dimension)
    first = mechanism.distribution(ones)
    mu = first.mu_against(mechanism.distribution(-ones))
    with precision():
        share = gaussian_delta(mu, arb(epsilon)) / arb(delta)
        assert bool(share <= 1)
        assert bool(share >= 1 - arb(1e-6))
    assert mechanism.variance(0 * ones) == approx(mechanism.sigma**2)


# The same code on torch.


def test_a_tensor_outside_the_domain_is_refused():
    generator = torch_generator("cpu", 0)
    with pytest.raises(MechanismError, match=r"of \[-1, 1\], got -2.0"):
        Duchi(1.0).perturb([0.0, -2.0], rng=generator)


class Replayed:
    """A backend of torch with the uniform numbers of numpy."""

    def __init__(self):
        self.backend = backend_of(torch_generator("cpu", 0))
        self.drawn = backend_of(rng())

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def uniform(self, *shape):
        return self.backend.array(self.drawn.uniform(*shape))


@parametrize("epsilon", [0.3, 1.0, 3.0])
@of_bounded
def test_both_libraries_compute_the_same_doubles(kind, epsilon):
    """From the same uniform numbers."""
    replayed = Replayed()
    values = rng().uniform(-1, 1, 500)
    expected = kind(epsilon).draw(values, backend_of(rng()))
    found = kind(epsilon).draw(replayed.backend.array(values), replayed)
    same(found.numpy(), expected)


# Records.


@parametrize(
    ("epsilon", "k"),
    [
        (0.4, 1),
        (2.4, 1),
        (2.5, 1),
        (5.0, 2),
        (40.0, 5),
    ],
)
def test_the_number_of_sampled_features_is_as_printed(epsilon, k):
    vector = sampled_features(ThreeOutput, epsilon, 5)
    assert (vector.chosen, vector.factor) == (k, 5 / k)
    assert epsilon - 1e-9 <= exact_epsilon(vector)[1] <= epsilon


@parametrize("kind", FINITE)
@parametrize(
    ("dimension", "sampled"),
    [
        (1, 1),
        (2, 1),
        (3, 2),
        (3, 3),
    ],
)
def test_enumerated_budget_of_records(kind, dimension, sampled):
    """Every pair of records on a grid: the largest loss is that of the envelope."""
    vector = NumericVector(kind, 1.2, dimension, sampled)
    laws = [vector.law(x) for x in product((-1.0, 0.0, 1.0), repeat=dimension)]
    largest = max(pair_loss(p, q).upper for p, q in combinations(laws, 2))
    assert largest == approx(exact_epsilon(vector)[1], abs=1e-12)
    assert 1.2 - 1e-9 <= largest <= 1.2


@parametrize("sampled", [1, 3])
def test_the_whole_budget_for_each_feature_is_spent_k_times(sampled):
    vector = NumericVector(Duchi, 0.8, 3, sampled, split=False)
    enumerated = loss(vector, [1.0] * 3, [-1.0] * 3).upper
    for found in (exact_epsilon(vector)[1], enumerated):
        assert found == approx(0.8 * sampled, abs=1e-12)


@parametrize("rescaled", [True, False])
@parametrize("kind", FINITE)
@parametrize(
    ("dimension", "sampled"),
    [
        (1, 1),
        (3, 1),
        (3, 2),
        (3, 3),
    ],
)
def test_laws_densities_means_and_variances_agree(kind, dimension, sampled, rescaled):
    vector = NumericVector(kind, 2.0, dimension, sampled, rescaled=rescaled)
    x = RECORD[:dimension]
    law = vector.law(x)
    outcomes = law.outcomes
    close(vector.log_prob(outcomes, x), law.log_prob(outcomes), atol=1e-12)
    mean = law.floats @ outcomes
    expected = x if rescaled else sampled / dimension * x
    close(mean, expected, atol=1e-13)
    variance = law.floats @ outcomes**2 - mean**2
    close(vector.variance(x), variance, rtol=1e-12)
    first = outcomes[:, 0]
    ends = Feature(vector, 0).output_range(x)
    assert ends == approx((first.min(), first.max()), rel=1e-15)


@parametrize("kind", [Piecewise, Hybrid, LaplaceFeature])
def test_log_densities_of_sampled_records(kind):
    """One over the number of samples, times the densities of the sampled features."""
    vector = NumericVector(kind, 2.0, 4, 2)
    x = np.array([*RECORD, 0.9])
    outputs = outputs_of(vector, x, 200)
    plain = outputs / vector.factor
    for atom in getattr(vector.one, "atoms", ()):
        plain[np.isclose(plain, atom, rtol=1e-14)] = atom
    sent = outputs != 0
    assert (sent.sum(axis=1) == 2).all()
    expected = np.full(200, -math.log(6))
    for row, feature in np.argwhere(sent):
        (log,) = vector.one.log_prob(plain[row, [feature]], x[feature])
        expected[row] += log
    close(vector.log_prob(outputs, x), expected, rtol=1e-12)


@parametrize("dimension", [3, 7, 10])
def test_atoms_survive_the_scaling(dimension):
    """A product and a quotient of doubles need not give the double back, so the law compares products."""
    x = np.full(dimension, 0.4)
    for epsilon in np.linspace(0.5, 6, 12).tolist():
        vector = NumericVector(Duchi, epsilon, dimension, sampled=3)
        logs = vector.log_prob(outputs_of(vector, x, 20), x)
        assert np.isfinite(logs).all()


def test_one_feature_of_a_record():
    vector = NumericVector(Duchi, 2.0, 3)
    one = outputs_of(Feature(vector, 1), RECORD, 9)
    same(one, outputs_of(vector, RECORD, 9)[:, 1])
    laplace = every_feature(LaplaceFeature, 2.0, 2)
    assert Feature(laplace).output_range(np.zeros(2)) is None


# What holds for every number, record and budget.


@given(st.sampled_from(KINDS), st.floats(1e-3, 50), st.integers(1, 40), st.data())
def test_split_budgets_sum_to_at_most_the_whole(kind, epsilon, dimension, data):
    sampled = data.draw(st.integers(1, dimension))
    vector = NumericVector(kind, epsilon, dimension, sampled)
    assert Fraction(vector.one.epsilon) * vector.chosen <= Fraction(epsilon)
    assert vector.envelope().uses == vector.chosen == sampled


OUTSIDE = st.floats(1, 1e300, exclude_min=True)


@given(
    st.sampled_from(KINDS),
    st.one_of(OUTSIDE, OUTSIDE.map(lambda x: -x), st.just(np.nan)),
)
def test_a_number_outside_the_domain_is_an_error(kind, value):
    """Never clipped in silence: an input outside would lose more than claimed."""
    for mechanism, values in (
        (kind(1.0), [value]),
        (NumericVector(kind, 1.0, 2), [[0.0, value]]),
        (GaussianFeatures(1.0, 1e-3, 2), [[value, 0.0]]),
    ):
        with pytest.raises(MechanismError, match=r"\[-1, 1\], got .*; scale and clip"):
            mechanism.perturb(values, rng=rng())
