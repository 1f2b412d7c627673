"""Mechanisms for one number: exact budgets, printed formulas, means and variances, all from the exact laws.

The printed formulas are those of Duchi et al. (2018), Wang et al. (2019, arXiv:1907.00782) and Zhao et al. (2020,
arXiv:2004.08856), evaluated here in floating point, apart from the mechanisms' own code.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.laws.additive import gaussian_delta
from mechanisms.backend import backend_of
from mechanisms.numeric import (
    Duchi,
    GaussianFeatures,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
    probability_of_zero,
)
from mechanisms.rounding import GRID, keep_probability, places

EPSILONS = [
    1e-6,
    0.01,
    0.3,
    0.61,
    math.log(2),
    0.7,
    1.0,
    math.log(5.53),
    2.0,
    math.log(3),
    5.0,
    12.0,
]
NUMBERS = [-1.0, -0.7, -1 / 3, -1e-9, 0.0, 0.1, 0.5, 0.9999, 1.0]
FINITE = [Duchi, ThreeOutput]
STEPPED = [Piecewise, PMSub, Hybrid]
KINDS = [*FINITE, *STEPPED, LaplaceFeature]


def exact_epsilon(mechanism):
    """Lower and upper double of the exact ε."""
    losses = envelope_losses(mechanism.envelope())
    return max(loss.lower for loss in losses), max(loss.upper for loss in losses)


def moment(law, power):
    """An exact moment of a finite law, or of steps and atoms."""
    if isinstance(law, FiniteLaw):
        return sum(
            Fraction(float(y)) ** power * p
            for y, p in zip(law.outcomes, law.probabilities, strict=True)
        )
    total = sum((y**power * p for y, p in law.points.items()), Fraction(0))
    for (a, b), density in zip(pairwise(law.ends), law.densities, strict=True):
        total += density * (b ** (power + 1) - a ** (power + 1)) / (power + 1)
    return total


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_budget_is_the_claimed_one(kind, epsilon):
    """Never more, and less by at most what one place of a probability (or an ulp of a scale) is worth."""
    lower, upper = exact_epsilon(kind(epsilon))
    assert upper <= epsilon
    assert epsilon - lower <= 1e-9
    assert epsilon - lower <= 2**-51 * (1 + math.exp(epsilon))


@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
@pytest.mark.parametrize("epsilon", [40.0, 90.0, 1000.0])
def test_a_huge_budget_is_capped_by_the_grid(kind, epsilon):
    _, upper = exact_epsilon(kind(epsilon))
    assert 30 < upper <= epsilon
    assert abs(float(moment(kind(epsilon).distribution(0.5), 1)) - 0.5) <= 1e-15


def test_places_are_the_most_that_the_budget_allows():
    assert [places(e) / GRID for e in (0.1, 1.0, 20.0)] == [
        keep_probability(e) for e in (0.1, 1.0, 20.0)
    ]
    for epsilon, odds, total in (
        (1.0, Fraction(1, 3), GRID),
        (0.2, Fraction(7), 1000),
        (3.0, Fraction(1, 2), 10),
    ):
        m = places(epsilon, odds=odds, total=total)
        with precision():
            bound = arb(epsilon).exp() * odds.numerator / odds.denominator
            assert bool(arb(m) / (total - m) <= bound)
            assert m == total - 1 or not bool(arb(m + 1) / (total - m - 1) <= bound)
    assert places(50.0, total=100) == 99


def test_rounding_to_nearest_would_not_be_private():
    """The reason for the grid: with the textbook probability of the interval some ratios of densities exceed e^ε."""

    def excess(epsilon):
        mechanism, t = Piecewise(epsilon), math.exp(epsilon / 2)
        near, half, size = (
            Fraction(t / (t + 1)),
            Fraction(mechanism.half),
            Fraction(mechanism.size),
        )
        with precision():
            ratio = near * (size - half) / ((1 - near) * half)
            return bool(
                arb(ratio.numerator) / arb(ratio.denominator) > arb(epsilon).exp()
            )

    assert sum(map(excess, np.linspace(0.1, 5, 50).tolist())) > 10


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
def test_the_mean_is_the_number(kind, epsilon):
    """Exactly up to a few spacings of doubles at the size of the outputs."""
    mechanism = kind(epsilon)
    size = mechanism.size if hasattr(mechanism, "size") else mechanism.piecewise.size
    for x in NUMBERS:
        assert abs(moment(mechanism.distribution(x), 1) - Fraction(x)) <= 4 * math.ulp(
            size
        ), x


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
def test_the_range_is_that_of_the_exact_law(kind, epsilon):
    mechanism = kind(epsilon)
    for x in NUMBERS:
        law = mechanism.distribution(x)
        ends = (
            law.outcomes.tolist()
            if isinstance(law, FiniteLaw)
            else [*map(float, law.ends), *map(float, law.points)]
        )
        assert mechanism.output_range(np.array([x])) == (min(ends), max(ends))
    assert LaplaceFeature(epsilon).output_range(np.array([0.0])) is None


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
def test_the_variance_is_that_of_the_exact_law(kind, epsilon):
    mechanism = kind(epsilon)
    for x in NUMBERS:
        law = mechanism.distribution(x)
        exact = float(moment(law, 2) - moment(law, 1) ** 2)
        assert mechanism.variance(x) == pytest.approx(exact, rel=1e-10, abs=1e-13)
        assert exact <= mechanism.largest_variance * (1 + 1e-10)
    np.testing.assert_array_equal(
        mechanism.variance(np.array(NUMBERS)), [mechanism.variance(x) for x in NUMBERS]
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.62, 1.0, 1.7, 4.0])
def test_the_printed_worst_variances(epsilon):
    e, t, s = math.exp(epsilon), math.exp(epsilon / 2), math.exp(epsilon / 3)
    duchi, hybrid = (
        ((e + 1) / (e - 1)) ** 2,
        (t + 3) / (3 * t * (t - 1)) + (e + 1) ** 2 / (t * (e - 1) ** 2),
    )
    printed = {
        Duchi: duchi,
        Piecewise: 4 * t / (3 * (t - 1) ** 2),
        PMSub: (s + 1) / (e - 1)
        + (e + s) * ((s + 1) ** 3 + e - 1) / (3 * s**2 * (e - 1) ** 2),
        Hybrid: hybrid if epsilon > 0.61 else duchi,
        LaplaceFeature: 8 / epsilon**2,
    }
    for kind, value in printed.items():
        assert kind(epsilon).largest_variance == pytest.approx(value, rel=1e-11), kind
        assert np.max(kind(epsilon).variance(np.linspace(-1, 1, 201))) == pytest.approx(
            value, rel=1e-11
        )


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("x", NUMBERS)
def test_duchi_as_printed(epsilon, x):
    e, law = math.exp(epsilon), Duchi(epsilon).distribution(x)
    np.testing.assert_allclose(
        law.outcomes, [-(e + 1) / (e - 1), (e + 1) / (e - 1)], rtol=1e-13
    )
    positive = 0.5 + x * (e - 1) / (2 * (e + 1))
    np.testing.assert_allclose(law.floats, [1 - positive, positive], rtol=1e-14)


@pytest.mark.parametrize(("kind", "root"), [(Piecewise, 2), (PMSub, 3)])
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("x", NUMBERS)
def test_piecewise_as_printed(kind, root, epsilon, x):
    e, t = math.exp(epsilon), math.exp(epsilon / root)
    size = (e + t) * (t + 1) / (t * (e - 1))
    left, right = ((e + t) * (x * t + side) / (t * (e - 1)) for side in (-1, 1))
    law = kind(epsilon).distribution(x)
    ends = (
        {-size, size, left, right}
        if abs(x) < 1
        else {-size, size, left if x > 0 else right}
    )
    np.testing.assert_allclose(
        [float(b) for b in law.ends], sorted(ends), rtol=1e-13, atol=1e-14 * size
    )
    inside = law.density_between(
        *(Fraction(left + share * (right - left)) for share in (0.4, 0.6))
    )
    assert float(inside) * (right - left) == pytest.approx(e / (e + t), rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.0, 1.7, 2.5])
@pytest.mark.parametrize("x", NUMBERS)
def test_three_outputs_as_printed(epsilon, x):
    e = math.exp(epsilon)
    with precision():
        a = float(probability_of_zero(epsilon).mid())
    b, g, size = (
        a * (e - 1) / e,
        (a + 1) * (e - 1) / (2 * (e + 1)),
        e * (e + 1) / ((e - 1) * (e - a)),
    )
    against, zero, agree = (
        (1 - a) / 2 - (g - b) * abs(x),
        a - b * abs(x),
        (1 - a) / 2 + g * abs(x),
    )
    law = ThreeOutput(epsilon).distribution(x)
    found = dict(zip(np.sign(law.outcomes), law.floats, strict=True))
    assert found.get(0.0, 0.0) == pytest.approx(zero, abs=1e-15)
    sign = -1.0 if x < 0 else 1.0
    assert [found[-sign], found[sign]] == pytest.approx([against, agree], rel=1e-13)
    assert max(law.outcomes) == pytest.approx(size, rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.62, 1.0, 4.0])
def test_hybrid_is_a_mixture(epsilon):
    hybrid, x = Hybrid(epsilon), 0.3
    assert hybrid.share == pytest.approx(1 - math.exp(-epsilon / 2), rel=1e-14)
    law, duchi = hybrid.distribution(x), Duchi(epsilon).distribution(x)
    assert law.probabilities == [
        (1 - Fraction(hybrid.share)) * p for p in duchi.probabilities
    ]
    assert law.densities == [
        Fraction(hybrid.share) * d for d in Piecewise(epsilon).distribution(x).densities
    ]
    variances = hybrid.variance(np.linspace(-1, 1, 11))
    np.testing.assert_allclose(variances, variances[0], rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.61])
def test_hybrid_with_a_small_budget_is_duchi(epsilon):
    law, duchi = Hybrid(epsilon).distribution(0.3), Duchi(epsilon).distribution(0.3)
    assert law.densities == ()
    assert law.probabilities == duchi.probabilities
    np.testing.assert_array_equal(
        Hybrid(epsilon)(0.3, 50, rng=rng()) > 0,
        Duchi(epsilon)(0.3, 50, rng=skipped(rng(), 100)) > 0,
    )


def rng():
    return np.random.default_rng(8)


def skipped(generator, draws):
    """The stream after the coins and Piecewise's draws of 50 runs."""
    generator.random(draws + 50)
    return generator


def worst_variance(a, e):
    size, b = e * (e + 1) / ((e - 1) * (e - a)), a * (e - 1) / e
    at = np.minimum(size**2 * b / 2, 1)
    return size**2 * (1 - a + b * at) - at**2


@pytest.mark.parametrize(
    "epsilon",
    [0.2, 0.69, 0.7, 0.75, 0.9, 1.1, 1.4, 1.7, 1.7102, 1.7104, 1.72, 2.0, 3.0, 6.0],
)
def test_the_printed_probability_of_zero_minimises_the_worst_variance(epsilon):
    """Against a fine grid of 0 <= a <= E/(E+2); the excess of 1.5e-8 is that of rounding 5.5311289 to 5.53."""
    e = math.exp(epsilon)
    with precision():
        a = float(probability_of_zero(epsilon).mid())
    assert 0 <= a <= e / (e + 2)
    grid = np.linspace(0, e / (e + 2), 100_001)
    assert worst_variance(a, e) <= worst_variance(grid, e).min() + 1.5e-8
    assert worst_variance(a, e) == pytest.approx(
        ThreeOutput(epsilon).largest_variance, rel=1e-12
    )


@pytest.mark.parametrize("e", [1.2, 3.0, 9.0])
@pytest.mark.parametrize("share", [0.5, 1.0, 1.01])
def test_a_larger_probability_of_zero_would_break_the_claim(e, share):
    """With a > E/(E+2) each of C and −C is less likely at 0 than on the far side, so C gains more than E from 0 to 1."""
    a = share * e / (e + 2)
    b, g = a * (e - 1) / e, (a + 1) * (e - 1) / (2 * (e + 1))
    middle, far, near = (1 - a) / 2, (1 - a) / 2 - (g - b), (1 - a) / 2 + g
    ratio = near / min(middle, far)
    assert (ratio <= e * (1 + 1e-12)) == (share <= 1)


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
def test_every_law_lies_between_the_least_and_the_most(kind, epsilon):
    """And both are attained, at the inputs that the envelope names."""
    mechanism = kind(epsilon)
    envelope = mechanism.envelope()
    pieces = [levels(mechanism.distribution(x)) for x in np.linspace(-1, 1, 41)]
    for output, least, most, ends in zip(
        envelope.outputs, envelope.least, envelope.most, envelope.inputs, strict=True
    ):
        key = "step" if isinstance(output, str) else output
        found = [p for piece in pieces for name, p in piece if name == key]
        assert min(found) == least
        assert max(found) == most
        assert most in {
            p for name, p in levels(mechanism.distribution(ends[0])) if name == key
        }
        assert least in {
            p for name, p in levels(mechanism.distribution(ends[1])) if name == key
        }
    assert {name for piece in pieces for name, _ in piece} == {
        "step" if isinstance(o, str) else o for o in envelope.outputs
    }


def levels(law):
    if isinstance(law, FiniteLaw):
        return list(zip(law.outcomes.tolist(), law.probabilities, strict=True))
    return [("step", density) for density in law.densities] + [
        (float(y), p) for y, p in law.points.items()
    ]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_laplace_stays_strictly_below_its_budget(epsilon):
    scale = LaplaceFeature(epsilon).scale
    assert Fraction(2) / Fraction(scale) < Fraction(epsilon)
    assert scale == pytest.approx(2 / epsilon, rel=5e-16)
    outputs = np.array([-3.0, 0.2, 7.0])
    expected = -np.abs(outputs - 0.5) / scale - math.log(2 * scale)
    np.testing.assert_allclose(LaplaceFeature(epsilon).log_prob(outputs, 0.5), expected)


@pytest.mark.parametrize("dimension", [1, 3, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-5), (1.0, 1e-2), (6.0, 1e-9)])
def test_gaussian_noise_spends_its_delta(epsilon, delta, dimension):
    mechanism = GaussianFeatures(epsilon, delta, dimension)
    laws = [mechanism.distribution(np.full(dimension, x)) for x in (1.0, -1.0)]
    with precision():
        spent = gaussian_delta(laws[0].mu_against(laws[1]), arb(epsilon))
        assert bool(spent <= arb(delta))
        assert bool(spent >= arb(delta) * (1 - arb(1e-6)))
    assert mechanism.variance(np.zeros(dimension)) == pytest.approx(mechanism.sigma**2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1.0000001, -2.0, math.nan, math.inf])
def test_numbers_outside_the_domain_are_refused(kind, value):
    with pytest.raises(
        MechanismError,
        match=rf"expected numbers of \[-1, 1\], got {value!r}; scale and clip .* public",
    ):
        kind(1.0).perturb([0.5, value], rng=rng())


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_that_doubles_cannot_carry_are_refused(kind):
    with pytest.raises(
        MechanismError, match=r"epsilon >= 9.3e-10, got 1e-12; .* fewer features"
    ):
        kind(1e-12)
    for wrong in (0.0, -1.0, math.nan, "1"):
        with pytest.raises(MechanismError, match=r"finite number > 0"):
            kind(wrong)


def test_a_record_of_several_numbers_is_refused():
    with pytest.raises(MechanismError, match="expected a record of 1 numbers"):
        Duchi(1.0)(np.zeros(2), 5, rng=rng())
    with pytest.raises(MechanismError, match="expected a record of 3 numbers"):
        GaussianFeatures(1.0, 1e-3, 3)(np.zeros(2), 5, rng=rng())
    with pytest.raises(MechanismError, match=r"shape \(n, 3\), got shape \(3,\)"):
        GaussianFeatures(1.0, 1e-3, 3).perturb(np.zeros(3), rng=rng())


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_have_the_shape_of_the_input(kind):
    assert kind(1.0).perturb(np.zeros((4, 3)), rng=rng()).shape == (4, 3)
    assert kind(1.0)(np.array([0.3]), 7, rng=rng()).shape == (7,)
    assert kind(1.0).name == f"{kind.__name__}(epsilon=1)"


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_stay_tensors_on_their_device(kind, device):
    import torch

    generator = torch.Generator(device).manual_seed(1)
    values = torch.linspace(-1, 1, 12, device=device).reshape(4, 3)
    for mechanism in (
        kind(1.0),
        NumericVector(kind, 1.0, 3, 2),
        GaussianFeatures(1.0, 1e-2, 3),
    ):
        outputs = mechanism.perturb(values, rng=generator)
        assert outputs.shape == (4, 3)
        assert outputs.dtype == torch.float64
        assert outputs.device.type == device
    with pytest.raises(
        MechanismError, match=r"expected numbers of \[-1, 1\], got -2.0"
    ):
        kind(1.0).perturb(2 * values, rng=generator)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("kind", [*FINITE, *STEPPED])
def test_both_libraries_compute_the_same_doubles(kind, epsilon):
    """Given the same uniform numbers: the law of one is the law of the other, to the last bit."""
    torch = pytest.importorskip("torch")
    values = rng().uniform(-1, 1, 500)
    with_numpy = backend_of(rng())
    with_torch = SameDraws(backend_of(torch.Generator()), backend_of(rng()))
    expected = kind(epsilon).draw(values, with_numpy)
    np.testing.assert_array_equal(
        kind(epsilon).draw(torch.tensor(values), with_torch).numpy(), expected
    )


class SameDraws:
    """One backend, with the uniform numbers of another one."""

    def __init__(self, backend, other):
        self.backend, self.other = backend, other

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def uniform(self, *shape):
        return self.backend.array(self.other.uniform(*shape))
