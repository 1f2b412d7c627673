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
from hypothesis import assume, given
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
from tests.statistical.stated_laws import loss

EPSILONS = [1e-6, 0.01, 0.3, 0.61, math.log(2), 0.7, 1.0, math.log(5.53)]
EPSILONS += [2.0, math.log(3), 5.0, 12.0]
NUMBERS = [-1.0, -0.7, -1 / 3, -1e-9, 0.0, 0.1, 0.5, 0.9999, 1.0]
FINITE = [Duchi, ThreeOutput]
BOUNDED = [*FINITE, Piecewise, PMSub, Hybrid]
KINDS = [*BOUNDED, LaplaceFeature]
RECORD = np.array([0.3, -1.0, 0.0])
of_bounded = pytest.mark.parametrize("kind", BOUNDED)
of_kinds = pytest.mark.parametrize("kind", KINDS)


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


@pytest.mark.parametrize("epsilon", EPSILONS)
@of_kinds
def test_the_exact_budget_is_the_claimed_one(kind, epsilon):
    """Less by at most what one place of a probability, or an ulp of a scale, is worth."""
    lower, upper = exact_epsilon(kind(epsilon))
    assert upper <= epsilon
    assert epsilon - lower <= min(1e-9, 2**-51 * (1 + math.exp(epsilon)))


@of_bounded
@pytest.mark.parametrize("epsilon", [40.0, 1000.0])
def test_a_huge_budget_is_capped_by_the_grid(kind, epsilon):
    _, upper = exact_epsilon(kind(epsilon))
    assert 30 < upper <= epsilon
    assert abs(float(moment(kind(epsilon).distribution(0.5), 1)) - 0.5) <= 1e-15


@pytest.mark.parametrize("epsilon", EPSILONS)
@of_bounded
def test_mean_variance_and_range_are_those_of_the_exact_law(kind, epsilon):
    mechanism = kind(epsilon)
    for x in NUMBERS:
        law = mechanism.distribution(x)
        ends = [
            *atoms_of(law),
            *(float(end) for step in steps_of(law) for end in step[:2]),
        ]
        assert mechanism.output_range(np.array([x])) == (min(ends), max(ends))
        mean = moment(law, 1)
        assert abs(mean - Fraction(x)) <= 4 * math.ulp(max(ends))
        if epsilon > 1e-6:
            exact = float(moment(law, 2) - mean**2)
            assert mechanism.variance(x) == pytest.approx(exact, rel=1e-10, abs=1e-13)
    if epsilon > 1e-6:
        worst = np.max(mechanism.variance(np.linspace(-1, 1, 201)))
        # The worst number of three outputs lies between those of the grid.
        digits = 1e-4 if kind is ThreeOutput else 1e-10
        assert mechanism.largest_variance == pytest.approx(worst, rel=digits)
        assert mechanism.largest_variance >= worst * (1 - 1e-10)
    singly = [mechanism.variance(x) for x in NUMBERS]
    np.testing.assert_array_equal(mechanism.variance(np.array(NUMBERS)), singly)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("x", NUMBERS)
def test_duchi_as_printed(epsilon, x):
    e = math.exp(epsilon)
    size = (e + 1) / (e - 1)
    positive = 0.5 + x * (e - 1) / (2 * (e + 1))
    law = Duchi(epsilon).distribution(x)
    np.testing.assert_allclose(law.outcomes, [-size, size], rtol=1e-13)
    np.testing.assert_allclose(law.floats, [1 - positive, positive], rtol=1e-14)


@pytest.mark.parametrize(("kind", "root"), [(Piecewise, 2), (PMSub, 3)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("x", NUMBERS)
def test_piecewise_as_printed(kind, root, epsilon, x):
    e = math.exp(epsilon)
    t = math.exp(epsilon / root)
    unit = (e + t) / (t * (e - 1))
    size = unit * (t + 1)
    left, right = (unit * (x * t + side) for side in (-1, 1))
    inside = [left, right]
    if abs(x) == 1:
        inside.remove(right if x > 0 else left)
    law = kind(epsilon).distribution(x)
    found = [float(end) for end in law.ends]
    expected = sorted([-size, size, *inside])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14 * size)
    middle = (Fraction(left + share * (right - left)) for share in (0.4, 0.6))
    likeliest = float(law.density_between(*middle)) * (right - left)
    assert likeliest == pytest.approx(e / (e + t), rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.0, 1.7, 2.5])
@pytest.mark.parametrize("x", NUMBERS)
def test_three_outputs_as_printed(epsilon, x):
    e = math.exp(epsilon)
    a = zero_probability(epsilon)
    b = a * (e - 1) / e
    g = (a + 1) * (e - 1) / (2 * (e + 1))
    side = (1 - a) / 2
    law = ThreeOutput(epsilon).distribution(x)
    found = dict(zip(np.sign(law.outcomes), law.floats, strict=True))
    sign = -1.0 if x < 0 else 1.0
    assert found.get(0.0, 0.0) == pytest.approx(a - b * abs(x), abs=1e-15)
    assert found[-sign] == pytest.approx(side - (g - b) * abs(x), rel=1e-13)
    assert found[sign] == pytest.approx(side + g * abs(x), rel=1e-13)
    size = e * (e + 1) / ((e - 1) * (e - a))
    assert max(law.outcomes) == pytest.approx(size, rel=1e-13)


def zero_probability(epsilon):
    with precision():
        return float(probability_of_zero(epsilon).mid())


def worst_variance(a, e):
    size = e * (e + 1) / ((e - 1) * (e - a))
    b = a * (e - 1) / e
    at = np.minimum(size**2 * b / 2, 1)
    return size**2 * (1 - a + b * at) - at**2


@pytest.mark.parametrize(
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
    assert ThreeOutput(epsilon).largest_variance == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.61, 0.62, 1.0, 4.0])
def test_hybrid_is_a_mixture(epsilon):
    """Of Piecewise and Duchi; Duchi alone for a small budget."""
    hybrid = Hybrid(epsilon)
    share = Fraction(hybrid.share)
    expected = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0
    assert float(share) == pytest.approx(expected, rel=1e-14)
    law = hybrid.distribution(0.3)
    duchi = Duchi(epsilon).distribution(0.3)
    piecewise = Piecewise(epsilon).distribution(0.3)
    assert law.probabilities == [(1 - share) * p for p in duchi.probabilities]
    assert list(law.densities) == [share * d for d in piecewise.densities if share]
    if share:
        variances = hybrid.variance(np.linspace(-1, 1, 11))
        np.testing.assert_allclose(variances, variances[0], rtol=1e-12)


def levels(law):
    """Probabilities of atoms and densities of steps, by the keys of an envelope."""
    steps = [("step", density) for *_, density in steps_of(law)]
    return [*atoms_of(law).items(), *steps]


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@of_bounded
def test_every_law_lies_within_the_envelope(kind, epsilon):
    """And both are attained, at the inputs that the envelope names."""
    mechanism = kind(epsilon)
    envelope = mechanism.envelope()
    pieces = []
    for x in np.linspace(-1, 1, 41):
        pieces += levels(mechanism.distribution(x))
    keys = ["step" if isinstance(o, str) else o for o in envelope.outputs]
    assert {name for name, _ in pieces} == set(keys)
    parts = zip(keys, envelope.least, envelope.most, envelope.inputs, strict=True)
    for key, least, most, inputs in parts:
        found = [p for name, p in pieces if name == key]
        assert (min(found), max(found)) == (least, most)
        for value, x in zip((most, least), inputs, strict=True):
            assert (key, value) in levels(mechanism.distribution(x))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_laplace_noise_stays_strictly_below_its_budget(epsilon):
    scale = LaplaceFeature(epsilon).scale
    assert Fraction(2) / Fraction(scale) < Fraction(epsilon)
    assert scale == pytest.approx(2 / epsilon, rel=5e-16)
    outputs = np.array([-3.0, 0.2, 7.0])
    expected = -np.abs(outputs - 0.5) / scale - math.log(2 * scale)
    np.testing.assert_allclose(LaplaceFeature(epsilon).log_prob(outputs, 0.5), expected)
    assert LaplaceFeature(epsilon).largest_variance == pytest.approx(8 / epsilon**2)
    assert LaplaceFeature(epsilon).output_range(np.zeros(1)) is None


@pytest.mark.parametrize("dimension", [1, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-5), (1.0, 1e-2), (6.0, 1e-9)])
def test_gaussian_noise_spends_its_delta(epsilon, delta, dimension):
    mechanism = GaussianFeatures(epsilon, delta, dimension)
    first, second = (mechanism.distribution(np.full(dimension, x)) for x in (1.0, -1.0))
    with precision():
        spent = gaussian_delta(first.mu_against(second), arb(epsilon))
        assert bool(spent <= arb(delta))
        assert bool(spent >= arb(delta) * (1 - arb(1e-6)))
    variance = mechanism.variance(np.zeros(dimension))
    assert variance == pytest.approx(mechanism.sigma**2)


# The same code on torch.


def test_a_tensor_outside_the_domain_is_refused():
    torch = pytest.importorskip("torch")
    values = torch.tensor([0.0, -2.0])
    with pytest.raises(MechanismError, match=r"of \[-1, 1\], got -2.0"):
        Duchi(1.0).perturb(values, rng=torch.Generator())


class SameDraws:
    """One backend, with the uniform numbers of another one."""

    def __init__(self, backend, other):
        self.backend = backend
        self.other = other

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def uniform(self, *shape):
        return self.backend.array(self.other.uniform(*shape))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@of_bounded
def test_both_libraries_compute_the_same_doubles(kind, epsilon):
    """Given the same uniform numbers: the law of one is the law of the other."""
    torch = pytest.importorskip("torch")
    values = rng().uniform(-1, 1, 500)
    expected = kind(epsilon).draw(values, backend_of(rng()))
    same = SameDraws(backend_of(torch.Generator()), backend_of(rng()))
    found = kind(epsilon).draw(torch.tensor(values), same)
    np.testing.assert_array_equal(found.numpy(), expected)


# Records.


@pytest.mark.parametrize(
    ("epsilon", "k"), [(0.4, 1), (2.4, 1), (2.5, 1), (5.0, 2), (40.0, 5)]
)
def test_the_number_of_sampled_features_is_as_printed(epsilon, k):
    vector = sampled_features(ThreeOutput, epsilon, 5)
    assert (vector.chosen, vector.factor) == (k, 5 / k)
    assert epsilon - 1e-9 <= exact_epsilon(vector)[1] <= epsilon


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize(("dimension", "sampled"), [(1, 1), (2, 1), (3, 2), (3, 3)])
def test_enumerated_budget_of_records(kind, dimension, sampled):
    """Every pair of records on a grid: the largest loss is that of the envelope."""
    vector = NumericVector(kind, 1.2, dimension, sampled)
    laws = [vector.law(x) for x in product((-1.0, 0.0, 1.0), repeat=dimension)]
    largest = max(pair_loss(p, q).upper for p, q in combinations(laws, 2))
    assert largest == pytest.approx(exact_epsilon(vector)[1], abs=1e-12)
    assert 1.2 - 1e-9 <= largest <= 1.2


@pytest.mark.parametrize("sampled", [1, 3])
def test_the_whole_budget_for_each_feature_is_spent_k_times(sampled):
    vector = NumericVector(Duchi, 0.8, 3, sampled, split=False)
    enumerated = loss(vector, [1.0] * 3, [-1.0] * 3).upper
    for found in (exact_epsilon(vector)[1], enumerated):
        assert found == pytest.approx(0.8 * sampled, abs=1e-12)


@pytest.mark.parametrize("rescaled", [True, False])
@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize(("dimension", "sampled"), [(1, 1), (3, 1), (3, 2), (3, 3)])
def test_laws_densities_means_and_variances_agree(kind, dimension, sampled, rescaled):
    vector = NumericVector(kind, 2.0, dimension, sampled, rescaled=rescaled)
    x = RECORD[:dimension]
    law = vector.law(x)
    logs = vector.log_prob(law.outcomes, x)
    np.testing.assert_allclose(logs, law.log_prob(law.outcomes), atol=1e-12)
    share = 1 if rescaled else sampled / dimension
    mean = law.floats @ law.outcomes
    np.testing.assert_allclose(mean, share * x, atol=1e-13)
    variance = law.floats @ law.outcomes**2 - mean**2
    np.testing.assert_allclose(vector.variance(x), variance, rtol=1e-12)
    ends = law.outcomes[:, 0].min(), law.outcomes[:, 0].max()
    assert Feature(vector, 0).output_range(x) == pytest.approx(ends, rel=1e-15)


@pytest.mark.parametrize("kind", [Piecewise, Hybrid, LaplaceFeature])
def test_log_densities_of_sampled_records(kind):
    """One over the number of samples, times the densities of the sampled features."""
    vector = NumericVector(kind, 2.0, 4, 2)
    x = np.array([*RECORD, 0.9])
    outputs = vector(x, 200, rng=rng())
    plain = outputs / vector.factor
    for atom in getattr(vector.one, "atoms", ()):
        plain[np.isclose(plain, atom, rtol=1e-14)] = atom
    expected = np.full(200, -math.log(6))
    for row, mask in enumerate(outputs != 0):
        assert mask.sum() == 2
        for y, at in zip(plain[row, mask], x[mask], strict=True):
            expected[row] += vector.one.log_prob(np.array([y]), at)[0]
    np.testing.assert_allclose(vector.log_prob(outputs, x), expected, rtol=1e-12)


@pytest.mark.parametrize("dimension", [3, 7, 10])
def test_atoms_survive_the_scaling(dimension):
    """A product and a quotient of doubles need not give the double back, so the law compares products."""
    x = np.full(dimension, 0.4)
    for epsilon in np.linspace(0.5, 6, 12).tolist():
        vector = NumericVector(Duchi, epsilon, dimension, sampled=3)
        assert np.isfinite(vector.log_prob(vector(x, 20, rng=rng()), x)).all()


def test_one_feature_of_a_record():
    vector = NumericVector(Duchi, 2.0, 3)
    one = Feature(vector, 1)(RECORD, 9, rng=rng())
    np.testing.assert_array_equal(one, vector(RECORD, 9, rng=rng())[:, 1])
    laplace = every_feature(LaplaceFeature, 2.0, 2)
    assert Feature(laplace).output_range(np.zeros(2)) is None


# What holds for every number, record and budget.

budgets = st.floats(1e-6, 30.0)
numbers = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0]))
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(KINDS)


@given(st.sampled_from(BOUNDED), budgets, numbers, seeds)
def test_the_opposite_number_has_the_opposite_law(kind, epsilon, x, seed):
    mechanism = kind(epsilon)
    law, mirrored = mechanism.distribution(x), mechanism.distribution(-x)
    assume(x != 0 or kind not in FINITE)
    opposite = {-y: p for y, p in atoms_of(mirrored).items()}
    assert atoms_of(law) == opposite
    assert steps_of(law) == [(-b, -a, p) for a, b, p in steps_of(mirrored)[::-1]]
    outputs = mechanism(x, 30, rng=rng(seed))
    assert np.isfinite(mechanism.log_prob(outputs, x)).all()


@given(kinds, st.floats(0.01, 8), st.floats(1.01, 3))
def test_more_budget_means_less_variance(kind, epsilon, factor):
    assert kind(factor * epsilon).largest_variance < kind(epsilon).largest_variance


@given(
    st.sampled_from(FINITE),
    st.floats(0.01, 4),
    st.lists(numbers, min_size=1, max_size=3),
    st.data(),
)
def test_renaming_the_features_renames_the_output(kind, epsilon, record, data):
    d = len(record)
    order = data.draw(st.permutations(range(d)))
    vector = NumericVector(kind, epsilon, d, data.draw(st.integers(1, d)))
    law, renamed = vector.law(record), vector.law(np.array(record)[order])
    laws = (law.outcomes[:, order], law), (renamed.outcomes, renamed)
    first, second = (
        dict(zip(map(tuple, outcomes), each.probabilities, strict=True))
        for outcomes, each in laws
    )
    assert first == second


@given(kinds, st.floats(1e-3, 50), st.integers(1, 40), st.data())
def test_split_budgets_sum_to_at_most_the_whole(kind, epsilon, dimension, data):
    sampled = data.draw(st.integers(1, dimension))
    vector = NumericVector(kind, epsilon, dimension, sampled)
    assert Fraction(vector.one.epsilon) * vector.chosen <= Fraction(epsilon)
    assert vector.envelope().uses == vector.chosen == sampled


@given(
    kinds,
    st.one_of(
        st.floats(1, 1e300, exclude_min=True),
        st.floats(-1e300, -1, exclude_max=True),
        st.just(np.nan),
    ),
)
def test_a_number_outside_the_domain_is_an_error(kind, value):
    """Never clipped in silence.

    The loss of an input outside would be larger than claimed.
    """
    for mechanism, values in (
        (kind(1.0), [value]),
        (NumericVector(kind, 1.0, 2), [[0.0, value]]),
        (GaussianFeatures(1.0, 1e-3, 2), [[value, 0.0]]),
    ):
        with pytest.raises(MechanismError, match=r"\[-1, 1\], got .*; scale and clip"):
            mechanism.perturb(values, rng=rng())
