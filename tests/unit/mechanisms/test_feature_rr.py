"""FeatureRR: bins, shares, the exact loss with public and with record-dependent shares, the repairs, and errors."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import precision
from mechanisms.backend import backend_of
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    RecordFeatureRR,
    safe_budget,
    worst_loss,
)
from mechanisms.features.feature_rr import LEAST_BUDGET, bin_law, bins_of
from mechanisms.rounding import GRID

RNG = np.random.default_rng
BACKEND = backend_of(RNG(0))


def identity(features):
    return LinearExtractor(tuple(map(tuple, np.eye(features))))


def scale_records(inputs):
    return [np.array(record) for record in product((0.0, 0.5, 1.0), repeat=inputs)]


def largest_loss(mechanism, records):
    laws = [mechanism.distribution(record) for record in records]
    return max(
        (pair_loss(p, q) for i, p in enumerate(laws) for q in laws[:i]),
        key=lambda each: each.lower,
    )


def test_bins():
    """T = max(1, ⌈kz⌉)."""
    z = np.array([0.0, 0.01, 0.25, 0.26, 0.5, 0.99, 1.0])
    assert bins_of(z, 4, np).tolist() == [1, 1, 1, 2, 2, 4, 4]


def test_known_law():
    """K = 3 and e^(−ε/2) = 1/2: P(·|1) ∝ 1, 1/2, 1/4 and P(·|2) ∝ 1/2, 1, 1/2."""
    mechanism = FeatureRR(2 * math.log(2), (1.0,), 3)
    assert mechanism.distribution(np.array([0.1])).floats == pytest.approx(
        [4 / 7, 2 / 7, 1 / 7], rel=1e-12
    )
    assert mechanism.distribution(np.array([0.5])).floats == pytest.approx(
        [1 / 4, 1 / 2, 1 / 4], rel=1e-12
    )
    assert mechanism.distribution(np.array([1.0])).floats == pytest.approx(
        [1 / 7, 2 / 7, 4 / 7], rel=1e-12
    )


@pytest.mark.parametrize("bins", range(2, 12))
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_the_printed_law_of_one_feature_loses_exactly_epsilon(epsilon, bins):
    """The supremum over t, t′ and u, normalisers included, is e^ε: no factor 2 is needed, for any k."""
    with precision():
        rows = [bin_law(epsilon, bins, t) for t in range(1, bins + 1)]
        ratios = [
            p / q for column in zip(*rows, strict=True) for p in column for q in column
        ]
        assert float(max(ratios, key=float).log()) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "shares", "bins"),
    [
        (1.0, (1.0,), 2),
        (0.1, (1.0,), 7),
        (3.0, (1.0, 2.0), 3),
        (2.0, (1.0, 0.0, 3.0), 4),
        (12.0, (1.0,), 10),
    ],
)
def test_exact_epsilon_is_the_claimed_one(epsilon, shares, bins):
    """By the envelope over [0, 1]^d; never more than ε, and not 1e-9 less."""
    losses = envelope_losses(FeatureRR(epsilon, shares, bins).envelope())
    assert max(each.upper for each in losses) <= epsilon
    assert max(each.lower for each in losses) == pytest.approx(epsilon, rel=1e-9)


def test_envelope_agrees_with_all_pairs():
    mechanism = FeatureRR(1.5, (1.0, 2.0), 3)
    enumerated = largest_loss(
        mechanism, [np.array(z) for z in product((0.2, 0.5, 0.9), repeat=2)]
    )
    assert max(
        each.upper for each in envelope_losses(mechanism.envelope())
    ) == pytest.approx(enumerated.upper, rel=1e-12)


def test_budgets_sum_to_at_most_epsilon_and_nothing_is_spent_below_the_least():
    mechanism = FeatureRR(1.0, (0.1, 0.2, 0.7, 1e-12), 3)
    assert sum(map(Fraction, mechanism.budgets)) <= 1
    assert sum(mechanism.budgets) == pytest.approx(1.0, rel=1e-12)
    assert mechanism.budgets[3] < LEAST_BUDGET
    assert (mechanism.steps[3] == mechanism.steps[3][0]).all()
    assert (mechanism.steps.sum(axis=2) == GRID).all()


def test_log_prob_agrees_with_the_law():
    mechanism, z = FeatureRR(1.5, (1.0, 2.0), 3), np.array([0.2, 0.9])
    law = mechanism.distribution(z)
    assert all(isinstance(p, Fraction) for p in law.probabilities)
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, z), law.log_prob(law.outcomes), atol=1e-13
    )


# Shares that a record computes.


def test_shares_by_hand():
    """The record z = (1/2, 1, 0) has the importances |z − 1/2| = (0, 1/2, 1/2), and one sensitive feature.

    Without input 0 it is ẑ = (0, 1, 0), so β = (1, 0, 0) and β_min + β_max − β = (0, 1, 1). α = (0, 1/2, 1/2). With
    γ = 1/4 that gives (0, 7/8, 7/8), and θ = (0, 1/2, 1/2).
    """
    record = np.array([[0.5, 1.0, 0.0]])
    np.testing.assert_allclose(
        identity(3).shares(record, 0.25, BACKEND), [[0, 0.5, 0.5]], atol=1e-15
    )


def test_shares_where_the_quotients_are_zero_over_zero():
    """No sensitive influence and no importance: every feature counts the same."""
    np.testing.assert_allclose(
        identity(2).shares(np.array([[0.0, 0.5]]), 0.0, BACKEND), [[0.5, 0.5]]
    )
    np.testing.assert_allclose(
        identity(2).shares(np.array([[0.5, 0.5]]), 1.0, BACKEND), [[0.5, 0.5]]
    )


def test_extractor():
    """Z = clip(Wx, 0, 1)."""
    extractor = LinearExtractor(((1.0, 1.0), (0.5, -1.0)), sensitive=(1,))
    np.testing.assert_allclose(
        extractor.features(np.array([[0.5, 1.0], [0.4, 0.1]]), BACKEND),
        [[1, 0], [0.5, 0.1]],
    )


def test_one_feature_has_all_of_the_budget():
    record = RecordFeatureRR(1.0, identity(1), 3)
    assert largest_loss(record, scale_records(1)).upper == pytest.approx(1.0, rel=1e-12)
    assert float(worst_loss(1.0, 1, 3).mid()) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "bins"), [(1.0, 2), (4.0, 4), (0.2, 3)])
def test_largest_loss_with_shares_of_the_record_is_the_closed_form(epsilon, bins):
    """Answers on a three-point scale attain it: with γ = 1, (1/2, 1) shares as (0, 1) and (0, 0) as (1/2, 1/2)."""
    exact = largest_loss(
        RecordFeatureRR(epsilon, identity(2), bins, gamma=1.0), scale_records(2)
    )
    form = float(worst_loss(epsilon, 2, bins).mid())
    assert exact.lower == pytest.approx(form, rel=1e-9)
    assert form > epsilon * (1 + 1e-4)


def test_closed_form_by_hand():
    """Two features in two bins: ε + ln(1+e^-ε) + ln 2 − 2 ln(1+e^(-ε/2)), 1.05825 for ε = 1."""
    by_hand = (
        1 + math.log1p(math.exp(-1)) + math.log(2) - 2 * math.log1p(math.exp(-0.5))
    )
    assert float(worst_loss(1.0, 2, 2).mid()) == pytest.approx(by_hand, rel=1e-12)
    assert by_hand == pytest.approx(1.05825, abs=1e-5)


@pytest.mark.parametrize(("features", "bins"), [(2, 2), (3, 4), (5, 10)])
def test_closed_form_bounds_any_shares(features, bins):
    """Against random budgets e, e′ of sum ε: ε + Σ ln S(e′_i) − ln S(e_i) is at most the closed form."""
    rng, epsilon = RNG(3), 2.0
    steps = np.arange(bins) / (bins - 1)

    def logs(shares):
        return np.log(np.exp(-epsilon * shares[..., None] * steps).sum(axis=-1)).sum(
            axis=-1
        )

    shares = np.concatenate(
        [
            rng.dirichlet(np.ones(features), 500),
            np.eye(features),
            np.full((1, features), 1 / features),
        ]
    )
    form = float(worst_loss(epsilon, features, bins).mid())
    assert epsilon + logs(shares).max() - logs(shares).min() == pytest.approx(
        form, rel=1e-12
    )


def test_published_shares_tell_records_apart():
    record = RecordFeatureRR(1.0, identity(2), 2, publish_shares=True)
    assert largest_loss(record, scale_records(2)).lower == math.inf
    outputs = record(np.array([0.5, 1.0]), 4, rng=RNG(0))
    np.testing.assert_allclose(
        outputs[:, 2:],
        identity(2).shares(np.array([[0.5, 1.0]]), 0.5, BACKEND).repeat(4, axis=0),
    )


def test_repairs():
    """Public shares keep ε, and so does the smaller budget; the latter is as large as it may be."""
    public = ExtractedFeatureRR(identity(2), FeatureRR(2.0, (1.0, 1.0), 3))
    assert largest_loss(public, scale_records(2)).upper <= 2.0
    budget = safe_budget(2.0, 2, 3)
    assert (
        largest_loss(RecordFeatureRR(budget, identity(2), 3), scale_records(2)).upper
        <= 2.0
    )
    with precision():
        assert worst_loss(budget, 2, 3) <= arb(2)
        assert worst_loss(budget * (1 + 1e-9), 2, 3) > arb(2)


def test_populations():
    extractor = LinearExtractor(tuple(map(tuple, RNG(0).random((5, 3)) / 3)))
    public = ExtractedFeatureRR(extractor, FeatureRR(3.0, (1.0,) * 5, 6))
    for mechanism in (public, RecordFeatureRR(3.0, extractor, 6)):
        released = mechanism.perturb(RNG(1).random((40, 3)), rng=RNG(2))
        assert released.shape == (40, 5)
        assert released.dtype == np.int16
        assert released.min() >= 1
        assert released.max() <= 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FeatureRR(0.0, (1.0,), 2), r"expected epsilon, a finite number > 0"),
        (lambda: FeatureRR(1.0, (1.0,), 1), r"expected bins, an integer >= 2, got 1"),
        (
            lambda: FeatureRR(1.0, (0.0, 0.0), 2),
            r"not all 0, got \(0\.0, 0\.0\); for equal shares",
        ),
        (
            lambda: FeatureRR(1.0, (1.0, -1.0), 2),
            r"expected shares, finite numbers >= 0",
        ),
        (
            lambda: FeatureRR(60.0, (1.0,), 2).steps,
            r"budget of 60\.0 is too large.*at most 30",
        ),
        (
            lambda: FeatureRR(1.0, (1.0,), 2)(np.array([1.5]), 1, rng=RNG(0)),
            r"features in \[0, 1\].*scale and clip",
        ),
        (
            lambda: FeatureRR(1.0, (1.0,), 2)(np.zeros(2), 1, rng=RNG(0)),
            r"shape \(n, 1\), got \(1, 2\)",
        ),
        (
            lambda: FeatureRR(1.0, (1.0,) * 5, 10).distribution(np.zeros(5)),
            r"100000 outputs, at most 4096",
        ),
        (
            lambda: LinearExtractor(((1.0,), (2.0, 3.0))),
            r"expected a matrix of finite weights",
        ),
        (
            lambda: LinearExtractor(((1.0,),), sensitive=(1,)),
            r"expected sensitive inputs from 0 to 0, got \(1,\)",
        ),
        (
            lambda: LinearExtractor(((1.0,),), coefficients=(1.0, 2.0)),
            r"expected 1 coefficients",
        ),
        (
            lambda: RecordFeatureRR(1.0, identity(2), 2, gamma=2.0),
            r"expected gamma in \[0, 1\], got 2\.0",
        ),
        (
            lambda: ExtractedFeatureRR(identity(2), FeatureRR(1.0, (1.0,), 2)),
            r"expected 2 shares, one a feature",
        ),
        (
            lambda: RecordFeatureRR(1.0, identity(2), 2)(
                np.array([2.0, 0.0]), 1, rng=RNG(0)
            ),
            r"records in \[0, 1\]",
        ),
        (
            lambda: RecordFeatureRR(1.0, identity(2), 2)(np.zeros(3), 1, rng=RNG(0)),
            r"shape \(n, 2\), got \(1, 3\)",
        ),
        (lambda: safe_budget(0.0, 2, 2), r"expected epsilon, a finite number > 0"),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


@pytest.mark.parametrize(
    "mechanism",
    [
        RecordFeatureRR(2.0, identity(2), 4),
        RecordFeatureRR(2.0, identity(2), 4, publish_shares=True),
        ExtractedFeatureRR(identity(2), FeatureRR(2.0, (1.0, 2.0), 4)),
    ],
)
def test_tensors_stay_where_they_are(device, mechanism):
    import torch

    rng = torch.Generator(device).manual_seed(1)
    released = mechanism.perturb(
        torch.rand((30, 2), generator=rng, device=device), rng=rng
    )
    assert released.device.type == device
    assert released.shape == (30, 4 if "published" in mechanism.name else 2)
    assert bool(((released[:, :2] >= 1) & (released[:, :2] <= 4)).all())
