"""The multi-bit encoder, scaling before it, labels, and FeatureRR.

Known laws and exact losses.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import ball, precision
from mechanisms.backend import backend_of
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    OneBit,
    OneReport,
    PublicBounds,
    RangeEstimates,
    RecordFeatureRR,
    Rectified,
    safe_budget,
    worst_loss,
)
from mechanisms.features.feature_rr import LEAST_BUDGET, bin_law, bins_of
from mechanisms.labels import FeaturesAndLabel, LabelRR
from mechanisms.labels.label_rr import LEAST_EPSILON, MOST_CLASSES
from mechanisms.rounding import GRID
from tests.statistical.stated_laws import loss

LN3 = math.log(3)
RNG = np.random.default_rng
BACKEND = backend_of(RNG(0))
BINS = FeatureRR(2 * math.log(2), (1.0,), 3)
budgets = st.floats(1e-3, 8.0)


def largest_loss(mechanism, records):
    laws = [mechanism.distribution(np.array(record)) for record in records]
    losses = [pair_loss(p, q) for i, p in enumerate(laws) for q in laws[:i]]
    return max(losses, key=lambda each: each.lower)


def identity(features):
    return LinearExtractor(tuple(map(tuple, np.eye(features))))


def three_point_records(inputs):
    return list(product((0.0, 0.5, 1.0), repeat=inputs))


@pytest.mark.parametrize(
    ("mechanism", "data", "expected"),
    [
        (OneBit(LN3, 1, low=-2.0, high=6.0), [-2.0], {(-1,): 3 / 4, (1,): 1 / 4}),
        (OneBit(LN3, 1, low=-2.0, high=6.0), [2.0], {(-1,): 1 / 2, (1,): 1 / 2}),
        (
            MultiBit(LN3, 2, sampled=1),
            [0.0, 1.0],
            {(-1, 0): 3 / 8, (1, 0): 1 / 8, (0, -1): 1 / 8, (0, 1): 3 / 8},
        ),
        (BINS, [0.1], {(1,): 4 / 7, (2,): 2 / 7, (3,): 1 / 7}),
        (BINS, [0.5], {(1,): 1 / 4, (2,): 1 / 2, (3,): 1 / 4}),
        (LabelRR(LN3, 4), 2, {(0,): 1 / 6, (1,): 1 / 6, (2,): 1 / 2, (3,): 1 / 6}),
    ],
)
def test_known_laws(mechanism, data, expected):
    """e^ε = 3; of two features each is sent half of the time.

    e^(−ε/2) = 1/2 for three bins.
    """
    law = mechanism.distribution(np.array(data))
    rows = law.outcomes.reshape(len(law.floats), -1).tolist()
    found = dict(zip(map(tuple, rows), law.floats, strict=True))
    assert found == pytest.approx(expected, rel=1e-12)
    assert sum(law.probabilities) == 1


# The multi-bit encoder.


@pytest.mark.dear
@pytest.mark.parametrize(
    ("epsilon", "dimension", "sampled"),
    [(4.5, 3, 2), (0.1, 1, 1), (1, 2, 1), (1, 2, 2), (6, 3, 3)],
)
def test_exact_epsilon_of_the_encoder(epsilon, dimension, sampled):
    """Over a grid of records, and by the envelope."""
    encoder = MultiBit(epsilon, dimension, sampled=sampled)
    enumerated = largest_loss(encoder, product((0.0, 0.3, 1.0), repeat=dimension))
    first, second = envelope_losses(encoder.envelope())
    assert max(each.upper for each in (enumerated, first, second)) <= epsilon
    assert enumerated.lower == pytest.approx(epsilon, rel=1e-9)
    assert first.lower == pytest.approx(enumerated.lower, rel=1e-12)


def test_number_of_features_that_are_sent():
    """2.18 is the root of sinh t = 2t; max(1, min(d, ⌊ε/2.18⌋)) features are sent."""
    assert brentq(lambda t: math.sinh(t) - 2 * t, 1, 3) == pytest.approx(2.18, abs=5e-3)
    sent = [MultiBit(e, 4).m for e in (0.1, 2.17, 2.18, 4.36, 6.54, 100)]
    assert sent == [1, 1, 1, 2, 3, 4]
    assert OneBit(0.1, 4).m == 4


@pytest.mark.parametrize("sampled", [1, 2, 3])
@pytest.mark.parametrize("x", [-1.0, -0.25, 2.0])
def test_rectified_features_are_unbiased_with_the_printed_variance(sampled, x):
    """V[x′] = (d/m)((β−α)/2·coth(ε/2m))² − (x − (α+β)/2)²."""
    encoder = MultiBit(1.7, 3, -1.0, 2.0, sampled=sampled)
    record = np.array([-1.0, x, 0.5])
    law = encoder.distribution(record)
    estimates = encoder.rectify(law.outcomes)[:, 1]
    printed = 3 / sampled * (1.5 / math.tanh(1.7 / sampled / 2)) ** 2 - (x - 0.5) ** 2
    assert law.floats @ estimates == pytest.approx(x, abs=1e-12)
    assert law.floats @ (estimates - x) ** 2 == pytest.approx(printed, rel=1e-12)
    assert encoder.variance(x) == pytest.approx(printed, rel=1e-12)
    rectified = Rectified(encoder, 1)
    found = rectified(record, 200, rng=RNG(1))
    sent = encoder(record, 200, rng=RNG(1))
    np.testing.assert_array_equal(found, encoder.rectify(sent)[:, 1])
    if sampled < 3:
        assert rectified.output_range(record) == (found.min(), found.max())


def test_an_impossible_output_of_the_encoder():
    encoder = MultiBit(2.0, 3, sampled=2)
    outputs = np.array([[1, 1, 1], [0, 0, 1]])
    found = encoder.log_prob(outputs, np.array([0.1, 0.5, 1.0]))
    assert found.tolist() == [-math.inf, -math.inf]


# Scaling.


def moved(users):
    """Populations in which one record takes the range of all others from [0, 1] to [−1, 0]."""
    first = np.zeros((users, 1))
    second = first.copy()
    first[-1], second[-1] = 1, -1
    return first, second


@pytest.mark.parametrize("constant", ["low", "drop"])
@pytest.mark.parametrize("users", [2, 4])
def test_min_max_scaling_loses_epsilon_for_every_user(users, constant):
    scaled = MinMaxScaled(OneBit(0.8, 1), users, constant)
    pair = moved(users)
    prepared = [scaled.prepared(each, np).ravel().tolist() for each in pair]
    assert prepared == [[0] * (users - 1) + [1], [1] * (users - 1) + [0]]
    assert loss(scaled, *pair).lower == pytest.approx(users * 0.8, rel=1e-9)
    assert loss(OneReport(scaled), *pair).lower == pytest.approx(0.8, rel=1e-9)


@pytest.mark.parametrize("constant", ["low", "drop"])
def test_a_user_alone_releases_nothing_of_the_record(constant):
    scaled = MinMaxScaled(OneBit(0.8, 2), 1, constant)
    record = np.array([[0.0, 3.0]])
    assert loss(scaled, record, [[5.0, -1.0]]).upper == 0
    if constant == "drop":
        assert np.isnan(scaled(record, 4, rng=RNG(0))).all()
        assert scaled.perturb(record, rng=RNG(0)).shape == (1, 0)


def test_estimates_in_the_range_of_one_user_are_the_number_itself():
    estimates = RangeEstimates(MinMaxScaled(OneBit(0.8, 2), 1))
    data = np.array([[0.25, -3.0]])
    assert (estimates(data, 5, rng=RNG(0)) == data).all()
    assert estimates.distribution(data).outcomes.tolist() == [data.tolist()]
    assert loss(estimates, data, [[0.25, 3.0]]).lower == math.inf


def test_estimates_in_the_range_are_unbiased_and_show_the_range():
    estimates = RangeEstimates(MinMaxScaled(OneBit(0.8, 1), 3))
    data = np.array([[1.0], [2.0], [5.0]])
    law = estimates.distribution(data)
    mean = np.tensordot(law.floats, law.outcomes, 1)
    np.testing.assert_allclose(mean, data, rtol=1e-12)
    assert loss(estimates, data, [[1.0], [2.0], [6.0]]).lower == math.inf


def test_dropped_features_show_that_all_agree():
    scaled = MinMaxScaled(OneBit(0.8, 2), 2, "drop")
    data = np.array([[0.0, 1.0], [0.0, 2.0]])
    outputs = scaled(data, 5, rng=RNG(0))
    law = scaled.distribution(data)
    expected = law.log_prob(outputs)
    np.testing.assert_allclose(scaled.log_prob(outputs, data), expected, atol=1e-12)
    assert loss(scaled, data, [[0.0, 1.0], [3.0, 2.0]]).lower == math.inf


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 50.0])
@pytest.mark.parametrize("left", [1, 3])
def test_dropping_keeps_the_number_that_the_encoder_would_send(epsilon, left):
    scaled = MinMaxScaled(MultiBit(epsilon, 4), 2, "drop")
    encoder = scaled.encoder_of(np.zeros((2, left)))
    assert encoder.m == MultiBit(epsilon, left).m


@pytest.mark.parametrize("users", [1, 2])
def test_public_bounds_keep_epsilon_for_any_record(users):
    clipped = PublicBounds(OneBit(0.8, 1, -1.0, 1.0), users)
    first, second = moved(users)
    found = loss(clipped, 1e6 * first, 1e6 * second)
    assert found.lower == pytest.approx(0.8, rel=1e-9)
    assert found.upper <= 0.8
    assert loss(clipped, 5 * first, first).upper == 0


@given(
    st.lists(st.integers(-100, 100), min_size=2, max_size=3, unique=True),
    st.floats(0.5, 4),
    st.floats(-50, 50),
)
def test_min_max_scaling_forgets_units(values, factor, shift):
    scaled = MinMaxScaled(OneBit(1.0, 1), len(values))
    column = np.array(values, float)[:, None]
    found = scaled.prepared(factor * column + shift, np)
    np.testing.assert_allclose(found, scaled.prepared(column, np), atol=1e-8)


# Labels.


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_exact_epsilon_of_labels(epsilon, classes):
    exact = loss(LabelRR(epsilon, classes), 0, classes - 1)
    assert exact.upper <= epsilon
    assert exact.lower == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, 1e-5, 1.0, 30.0, 50.0, 700.0])
@pytest.mark.parametrize("classes", [2, 3, MOST_CLASSES - 1, MOST_CLASSES])
def test_rounding_is_towards_privacy_in_both_directions(epsilon, classes):
    response = LabelRR(epsilon, classes)
    with precision(2000):
        bound = arb(epsilon).exp()
        assert ball(response.true / response.other) <= bound
        assert ball(response.other / response.true) <= bound
    assert (response.other * 2**53).denominator == 1


def test_every_stretch_of_the_uniform_number_is_one_label():
    """The deployed probabilities, by uniform numbers at the ends of every stretch."""
    response = LabelRR(0.9, 4)
    n = int(response.other * 2**53)

    class Fixed(np.random.Generator):
        def random(self, size=None, **how):
            ends = [0, n - 1, n, 2 * n, 3 * n - 1, 3 * n, 2**53 - 1]
            return np.array(ends) / 2**53

    released = response.perturb(np.full(7, 3), rng=Fixed(np.random.PCG64(0)))
    assert released.tolist() == [0, 0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("other", "epsilon"),
    [([1.0, 1.0, 2.0], 1.1), ([1.0, 1.0, 0.0], 0.7), ([0.0, 0.0, 1.0], 0.4)],
)
def test_losses_of_features_and_label_add_up(other, epsilon):
    mechanism = FeaturesAndLabel(MultiBit(0.7, 2), LabelRR(0.4, 3))
    found = loss(mechanism, [0.0] * 3, other)
    assert found.lower == pytest.approx(epsilon, rel=1e-9)
    assert found.upper <= epsilon


def test_a_population_has_its_features_and_its_labels_perturbed():
    encoder, response = MultiBit(0.7, 2), LabelRR(0.4, 3)
    records, labels = RNG(0).random((6, 2)), np.arange(6) % 3
    rng = RNG(1)
    expected = encoder.perturb(records, rng=rng), response.perturb(labels, rng=rng)
    found = FeaturesAndLabel(encoder, response).perturb(records, labels, rng=RNG(1))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


# FeatureRR with public shares.


def test_bins():
    """T = max(1, ⌈kz⌉)."""
    z = np.array([0.0, 0.01, 0.25, 0.26, 0.5, 0.99, 1.0])
    assert bins_of(z, 4, np).tolist() == [1, 1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize("bins", [2, 3, 11])
@pytest.mark.parametrize("epsilon", [0.05, 6.0])
def test_the_printed_law_of_one_feature_loses_exactly_epsilon(epsilon, bins):
    """The supremum over t, t′ and u, normalisers included: no factor 2 is needed."""
    with precision():
        rows = [bin_law(epsilon, bins, t) for t in range(1, bins + 1)]
        columns = list(zip(*rows, strict=True))
        ratios = [float(p / q) for column in columns for p in column for q in column]
    assert math.log(max(ratios)) == pytest.approx(epsilon, rel=1e-12)


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
def test_exact_epsilon_of_feature_rr(epsilon, shares, bins):
    """By the envelope over [0, 1]^d, and over a grid of records of two features."""
    mechanism = FeatureRR(epsilon, shares, bins)
    losses = envelope_losses(mechanism.envelope())
    upper = max(each.upper for each in losses)
    assert upper <= epsilon
    assert max(each.lower for each in losses) == pytest.approx(epsilon, rel=1e-9)
    if len(shares) == 2:
        enumerated = largest_loss(mechanism, product((0.2, 0.5, 0.9), repeat=2))
        assert upper == pytest.approx(enumerated.upper, rel=1e-12)


def test_nothing_is_spent_below_the_least_budget():
    mechanism = FeatureRR(1.0, (0.1, 0.2, 0.7, 1e-12), 3)
    assert sum(map(Fraction, mechanism.budgets)) <= 1
    assert sum(mechanism.budgets) == pytest.approx(1.0, rel=1e-12)
    assert mechanism.budgets[3] < LEAST_BUDGET
    assert (mechanism.steps[3] == mechanism.steps[3][0]).all()
    assert (mechanism.steps.sum(axis=2) == GRID).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4).filter(any), budgets)
def test_shared_budgets_sum_to_at_most_epsilon(shares, epsilon):
    spent = FeatureRR(epsilon, tuple(shares), 2).budgets
    assert sum(map(Fraction, spent)) <= Fraction(epsilon)


# Shares that a record computes.


@pytest.mark.parametrize(
    ("record", "gamma", "expected"),
    [
        ([0.5, 1.0, 0.0], 0.25, [0, 0.5, 0.5]),
        ([0.0, 0.5], 0.0, [0.5, 0.5]),
        ([0.5, 0.5], 1.0, [0.5, 0.5]),
    ],
)
def test_shares_by_hand(record, gamma, expected):
    """The record z = (1/2, 1, 0) has the importances |z − 1/2| = (0, 1/2, 1/2), and one sensitive feature.

    Without input 0 it is ẑ = (0, 1, 0), so β = (1, 0, 0) and β_min + β_max − β = (0, 1, 1).
    α = (0, 1/2, 1/2). With γ = 1/4 that gives (0, 7/8, 7/8), and θ = (0, 1/2, 1/2).
    If quotients are 0/0, every feature counts the same.
    """
    shares = identity(len(record)).shares(np.array([record]), gamma, BACKEND)
    np.testing.assert_allclose(shares, [expected], atol=1e-15)


def test_extractor():
    """Z = clip(Wx, 0, 1)."""
    extractor = LinearExtractor(((1.0, 1.0), (0.5, -1.0)), sensitive=(1,))
    found = extractor.features(np.array([[0.5, 1.0], [0.4, 0.1]]), BACKEND)
    np.testing.assert_allclose(found, [[1, 0], [0.5, 0.1]])


@pytest.mark.parametrize(
    ("epsilon", "features", "bins"),
    [(1.0, 1, 3), (1.0, 2, 2), (4.0, 2, 4), (0.2, 2, 3)],
)
def test_largest_loss_with_shares_of_the_record_is_the_closed_form(
    epsilon, features, bins
):
    """With γ = 1, (1/2, 1) shares as (0, 1) and (0, 0) as (1/2, 1/2).

    One feature has all.
    """
    record = RecordFeatureRR(epsilon, identity(features), bins, gamma=1.0)
    exact = largest_loss(record, three_point_records(features))
    form = float(worst_loss(epsilon, features, bins).mid())
    assert exact.lower == pytest.approx(form, rel=1e-9)
    assert (form > epsilon * (1 + 1e-4)) == (features > 1)


@pytest.mark.parametrize(("features", "bins"), [(2, 2), (5, 10)])
def test_closed_form_bounds_any_shares(features, bins):
    """Random budgets e, e′ of sum ε.

    ε + Σ ln S(e′_i) − ln S(e_i) is at most the closed form.
    """
    epsilon = 2.0
    steps = np.arange(bins) / (bins - 1)
    even = np.full((1, features), 1 / features)
    drawn = RNG(3).dirichlet(np.ones(features), 500)
    shares = np.concatenate([drawn, np.eye(features), even])
    sums = np.exp(-epsilon * shares[..., None] * steps).sum(axis=-1)
    logs = np.log(sums).sum(axis=-1)
    form = float(worst_loss(epsilon, features, bins).mid())
    assert epsilon + np.ptp(logs) == pytest.approx(form, rel=1e-12)


def test_published_shares_tell_records_apart():
    record = RecordFeatureRR(1.0, identity(2), 2, publish_shares=True)
    assert largest_loss(record, three_point_records(2)).lower == math.inf


def test_public_shares_and_a_smaller_budget_repair_it():
    """The smaller budget is as large as it may be."""
    budget = safe_budget(2.0, 2, 3)
    public = ExtractedFeatureRR(identity(2), FeatureRR(2.0, (1.0, 1.0), 3))
    for repaired in (public, RecordFeatureRR(budget, identity(2), 3)):
        assert largest_loss(repaired, three_point_records(2)).upper <= 2.0
    with precision():
        assert worst_loss(budget * (1 + 1e-9), 2, 3) > arb(2)


@given(budgets, st.integers(2, 20), st.integers(2, 12))
def test_shares_of_the_record_cost_more_than_epsilon(epsilon, features, bins):
    safe = safe_budget(epsilon, features, bins)
    assert safe < epsilon
    with precision():
        assert worst_loss(epsilon, features, bins) > arb(epsilon)
        assert worst_loss(safe, features, bins) <= arb(epsilon)


# Populations on torch.


@pytest.mark.parametrize("kind", [MinMaxScaled, PublicBounds])
def test_populations_stay_on_their_device(device, kind):
    import torch

    rng = torch.Generator(device).manual_seed(1)
    records = torch.rand((30, 2), generator=rng, device=device)
    released = kind(MultiBit(5.0, 2), 30).perturb(records, rng=rng)
    assert released.device.type == device
    assert released.shape == (30, 2)
    assert bool((released.abs() == 1).all())
