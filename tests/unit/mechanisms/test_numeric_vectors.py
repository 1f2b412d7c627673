"""Records of numbers: exact laws of small ones, budgets, sampling and scaling."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from mechanisms.numeric import (
    Duchi,
    Feature,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
    every_feature,
    sampled_features,
)

KINDS = [Duchi, Piecewise, PMSub, Hybrid, ThreeOutput, LaplaceFeature]


def rng(seed=3):
    return np.random.default_rng(seed)


def exact_epsilon(vector):
    return max(loss.upper for loss in envelope_losses(vector.envelope()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "dimension"), [(1.0, 1), (1.0, 7), (3.0, 3)])
def test_every_feature_spends_the_budget_together(kind, epsilon, dimension):
    vector = every_feature(kind, epsilon, dimension)
    assert Fraction(vector.one.epsilon) * dimension <= Fraction(epsilon)
    assert epsilon - 1e-9 <= exact_epsilon(vector) <= epsilon
    assert vector.factor == 1


@pytest.mark.parametrize(
    ("epsilon", "dimension", "k"),
    [(0.4, 5, 1), (2.4, 5, 1), (2.5, 5, 1), (5.0, 5, 2), (40.0, 5, 5)],
)
def test_the_number_of_sampled_features_is_as_printed(epsilon, dimension, k):
    vector = sampled_features(ThreeOutput, epsilon, dimension)
    assert vector.chosen == k
    assert vector.factor == dimension / k
    assert (
        vector.name
        == f"ThreeOutput(epsilon={epsilon / k:g}) on {k} of {dimension} features"
    )
    assert epsilon - 1e-9 <= exact_epsilon(vector) <= epsilon


@pytest.mark.parametrize("kind", [Duchi, ThreeOutput])
@pytest.mark.parametrize(
    ("dimension", "sampled"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
)
def test_enumerated_budget_of_records(kind, dimension, sampled):
    """Every pair of records on a grid, every outcome: the largest loss is that of the envelope, at opposite corners."""
    vector = NumericVector(kind, 1.2, dimension, sampled)
    laws = [vector.law(x) for x in product((-1.0, 0.0, 1.0), repeat=dimension)]
    largest = max(pair_loss(p, q).upper for p, q in combinations(laws, 2))
    assert largest == pytest.approx(exact_epsilon(vector), abs=1e-12)
    assert 1.2 - 1e-9 <= largest <= 1.2


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_the_whole_budget_for_each_feature_is_spent_k_times(sampled):
    vector = NumericVector(Duchi, 0.8, 3, sampled, split=False)
    assert exact_epsilon(vector) == pytest.approx(0.8 * sampled, abs=1e-12)
    assert pair_loss(
        vector.law([1.0] * 3), vector.law([-1.0] * 3)
    ).upper == pytest.approx(0.8 * sampled, abs=1e-12)


@pytest.mark.parametrize("rescaled", [True, False])
@pytest.mark.parametrize("kind", [Duchi, ThreeOutput])
@pytest.mark.parametrize(("dimension", "sampled"), [(1, 1), (3, 1), (3, 2), (3, 3)])
def test_laws_densities_means_and_variances_agree(kind, dimension, sampled, rescaled):
    vector, x = (
        NumericVector(kind, 2.0, dimension, sampled, rescaled=rescaled),
        np.array([0.3, -1.0, 0.0])[:dimension],
    )
    law = vector.law(x)
    np.testing.assert_allclose(
        vector.log_prob(law.outcomes, x), law.log_prob(law.outcomes), atol=1e-12
    )
    assert ((law.outcomes != 0).sum(axis=1) <= sampled).all()
    share = vector.factor * sampled / dimension
    np.testing.assert_allclose(law.floats @ law.outcomes, share * x, atol=1e-13)
    variance = law.floats @ law.outcomes**2 - (law.floats @ law.outcomes) ** 2
    np.testing.assert_allclose(vector.variance(x), variance, rtol=1e-12)
    assert (share == 1) == (rescaled or dimension == sampled)


@pytest.mark.parametrize("kind", [Piecewise, Hybrid, LaplaceFeature])
def test_log_densities_of_sampled_records(kind):
    """Where the sample shows in the output, the density is one over the number of samples times those of its features."""
    vector, x = NumericVector(kind, 2.0, 4, 2), np.array([0.3, -1.0, 0.0, 0.9])
    outputs = vector(x, 200, rng=rng())
    chosen = outputs != 0
    assert (chosen.sum(axis=1) == 2).all()
    expected = [
        sum(vector.one.log_prob(row[mask] / 2 if kind is not Hybrid else near_atom(vector, row[mask]), at)[i] for i, at in
            enumerate(x[mask]))
        for row, mask in zip(outputs, chosen, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(
        vector.log_prob(outputs, x), np.array(expected) - math.log(6), rtol=1e-12
    )


def near_atom(vector, outputs):
    """Outputs before the scaling, atoms exactly."""
    plain = outputs / vector.factor
    for atom in vector.one.atoms:
        plain[np.isclose(plain, atom, rtol=1e-14)] = atom
    return plain


@pytest.mark.parametrize("dimension", [3, 7, 10])
def test_atoms_survive_the_scaling(dimension):
    """A product and a quotient of doubles need not give the double back, so the law compares products."""
    for epsilon in np.linspace(0.5, 6, 12):
        vector = NumericVector(Duchi, float(epsilon), dimension, sampled=3)
        outputs = vector(np.full(dimension, 0.4), 20, rng=rng())
        assert np.isfinite(vector.log_prob(outputs, np.full(dimension, 0.4))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_perturbed_on_their_own(kind):
    vector = NumericVector(kind, 2.0, 3, 2)
    outputs = vector.perturb(np.zeros((50, 3)), rng=rng())
    assert outputs.shape == (50, 3)
    assert outputs.dtype == np.float64
    assert len(np.unique(outputs, axis=0)) > 5


def test_one_feature_of_a_record():
    vector, x = NumericVector(Duchi, 2.0, 3), np.array([0.3, -1.0, 0.0])
    np.testing.assert_array_equal(
        Feature(vector, 1)(x, 9, rng=rng()), vector(x, 9, rng=rng())[:, 1]
    )
    assert Feature(vector, 1).name == f"feature 1 of {vector.name}"


def test_what_is_refused():
    with pytest.raises(
        MechanismError,
        match=r"expected sampled <= dimension=3, got 4; a feature is sampled at most once",
    ):
        NumericVector(Duchi, 1.0, 3, 4)
    with pytest.raises(
        MechanismError, match="expected sampled, an integer >= 1, got 0"
    ):
        NumericVector(Duchi, 1.0, 3, 0)
    with pytest.raises(
        MechanismError, match="expected dimension, an integer >= 1, got 0"
    ):
        NumericVector(Duchi, 1.0, 0)
    with pytest.raises(
        MechanismError,
        match=r"NumericVector: expected epsilon, a finite number > 0, got 0",
    ):
        NumericVector(Duchi, 0, 2)
    with pytest.raises(
        MechanismError,
        match=r"more than 10,000 outcomes; use fewer features, or log_prob",
    ):
        NumericVector(Duchi, 1.0, 9).law(np.zeros(9))
    with pytest.raises(MechanismError, match=r"more than 10,000 outcomes"):
        NumericVector(Piecewise, 1.0, 1).law([0.0])
    with pytest.raises(
        MechanismError, match=r"expected records, shape \(n, 2\), got shape \(2,\)"
    ):
        NumericVector(Duchi, 1.0, 2).perturb([0.0, 1.0], rng=rng())
    with pytest.raises(MechanismError, match="expected a record of 2 numbers"):
        NumericVector(Duchi, 1.0, 2)(np.zeros(3), 5, rng=rng())
    with pytest.raises(MechanismError, match=r"expected numbers of \[-1, 1\], got 1.5"):
        NumericVector(Duchi, 1.0, 2)([0.0, 1.5], 5, rng=rng())


@pytest.mark.parametrize("rescaled", [True, False])
@pytest.mark.parametrize("sampled", [1, 2, 3])
@pytest.mark.parametrize("kind", [Duchi, ThreeOutput])
def test_the_range_of_a_feature_is_that_of_its_law(kind, sampled, rescaled):
    whole, data = (
        NumericVector(kind, 2.0, 3, sampled=sampled, rescaled=rescaled),
        np.array([0.3, -1.0, 1.0]),
    )
    outcomes = whole.law(data).outcomes[:, 1]
    assert Feature(whole, 1).output_range(data) == pytest.approx(
        (outcomes.min(), outcomes.max()), rel=1e-15
    )


def test_a_feature_with_laplace_noise_has_no_range():
    assert (
        Feature(every_feature(LaplaceFeature, 2.0, 2)).output_range(np.zeros(2)) is None
    )
