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
from tests.statistical.stated_laws import loss, outputs_of, torch_generator

approx = pytest.approx
parametrize = pytest.mark.parametrize
same = np.testing.assert_array_equal

close = np.testing.assert_allclose

RNG = np.random.default_rng
BACKEND = backend_of(RNG(0))
budgets = st.floats(1e-3, 8.0)


def largest_loss(mechanism, records):
    laws = [mechanism.distribution(np.array(record)) for record in records]
    losses = [pair_loss(p, q) for i, p in enumerate(laws) for q in laws[:i]]
    return max(losses, key=lambda each: each.lower)


def identity(features):
    return LinearExtractor(tuple(map(tuple, np.eye(features))))


def three_point_records(inputs):
    return list(product((0.0, 0.5, 1.0), repeat=inputs))


@parametrize(
    ("z", "expected"),
    [
        (0.1, [4 / 7, 2 / 7, 1 / 7]),
        (0.5, [1 / 4, 1 / 2, 1 / 4]),
    ],
)
def test_known_laws_of_three_bins(z, expected):
    """For e^(−ε/2) = 1/2."""
    law = FeatureRR(2 * math.log(2), (1.0,), 3).distribution([z])
    assert law.outcomes.ravel().tolist() == [1, 2, 3]
    assert law.floats == approx(expected, rel=1e-12)


# The multi-bit encoder.


@pytest.mark.dear
@parametrize(
    ("epsilon", "dimension", "sampled"),
    [
        (4.5, 3, 2),
        (0.1, 1, 1),
        (1, 2, 1),
        (6, 3, 3),
    ],
)
def test_exact_epsilon_of_the_encoder(epsilon, dimension, sampled):
    """Over a grid of records, and by the envelope."""
    encoder = MultiBit(epsilon, dimension, sampled=sampled)
    enumerated = largest_loss(encoder, product((0.0, 0.3, 1.0), repeat=dimension))
    assert enumerated.lower == approx(epsilon, rel=1e-9)
    assert enumerated.upper <= epsilon
    for by_envelope in envelope_losses(encoder.envelope()):
        assert by_envelope.lower == approx(epsilon, rel=1e-9)
        assert by_envelope.upper <= epsilon


def test_number_of_features_that_are_sent():
    """2.18 is the root of sinh t = 2t; max(1, min(d, ⌊ε/2.18⌋)) features are sent."""
    assert brentq(lambda t: math.sinh(t) - 2 * t, 1, 3) == approx(2.18, abs=5e-3)
    sent = [MultiBit(e, 4).m for e in (0.1, 2.17, 2.18, 4.36, 6.54, 100)]
    assert sent == [1, 1, 1, 2, 3, 4]
    assert OneBit(0.1, 4).m == 4


@parametrize("sampled", [1, 2, 3])
@parametrize("x", [-1.0, -0.25, 2.0])
def test_rectified_features_are_unbiased_with_the_printed_variance(sampled, x):
    """V[x′] = (d/m)((β−α)/2·coth(ε/2m))² − (x − (α+β)/2)²."""
    encoder = MultiBit(1.7, 3, -1.0, 2.0, sampled=sampled)
    record = np.array([-1.0, x, 0.5])
    law = encoder.distribution(record)
    estimates = encoder.rectify(law.outcomes)[:, 1]
    size = 1.5 / math.tanh(1.7 / sampled / 2)
    printed = 3 / sampled * size**2 - (x - 0.5) ** 2
    assert law.floats @ estimates == approx(x, abs=1e-12)
    assert law.floats @ (estimates - x) ** 2 == approx(printed, rel=1e-12)
    assert encoder.variance(x) == approx(printed, rel=1e-12)


@parametrize("sampled", [1, 2])
def test_a_rectified_feature_is_that_of_the_records_sent(sampled):
    encoder = MultiBit(1.7, 3, -1.0, 2.0, sampled=sampled)
    rectified = Rectified(encoder, 1)
    found = outputs_of(rectified, np.zeros(3), 200)
    sent = outputs_of(encoder, np.zeros(3), 200)
    same(found, encoder.rectify(sent)[:, 1])
    assert rectified.output_range(np.zeros(3)) == (found.min(), found.max())


def test_an_impossible_output_of_the_encoder():
    encoder = MultiBit(2.0, 3, sampled=2)
    found = encoder.log_prob(
        [
            [1, 1, 1],
            [0, 0, 1],
        ],
        np.ones(3),
    )
    assert found.tolist() == [-math.inf, -math.inf]


# Scaling.


def moved(users):
    """Populations in which one record takes the range of all others from [0, 1] to [−1, 0]."""
    first = np.zeros((users, 1))
    second = first.copy()
    first[-1], second[-1] = 1, -1
    return first, second


@parametrize("constant", ["low", "drop"])
@parametrize("users", [2, 4])
def test_min_max_scaling_loses_epsilon_for_every_user(users, constant):
    scaled = MinMaxScaled(OneBit(0.8, 1), users, constant)
    pair = moved(users)
    first, second = (scaled.prepared(each, np).ravel() for each in pair)
    assert first.tolist() == [0] * (users - 1) + [1]
    assert second.tolist() == [1] * (users - 1) + [0]
    assert loss(scaled, *pair).lower == approx(users * 0.8, rel=1e-9)
    assert loss(OneReport(scaled), *pair).lower == approx(0.8, rel=1e-9)


@parametrize("constant", ["low", "drop"])
def test_a_user_alone_releases_nothing_of_the_record(constant):
    scaled = MinMaxScaled(OneBit(0.8, 2), 1, constant)
    record = np.array([[0.0, 3.0]])
    assert loss(scaled, record, [[5.0, -1.0]]).upper == 0
    if constant == "drop":
        assert np.isnan(outputs_of(scaled, record, 4)).all()
        assert scaled.perturb(record, rng=RNG(0)).shape == (1, 0)


def test_estimates_in_the_range_of_one_user_are_the_number_itself():
    estimates = RangeEstimates(MinMaxScaled(OneBit(0.8, 2), 1))
    data = np.array([[0.25, -3.0]])
    assert (outputs_of(estimates, data, 5) == data).all()
    assert estimates.distribution(data).outcomes.tolist() == [data.tolist()]
    assert loss(estimates, data, [[0.25, 3.0]]).lower == math.inf


def test_estimates_in_the_range_are_unbiased_and_show_the_range():
    estimates = RangeEstimates(MinMaxScaled(OneBit(0.8, 1), 3))
    data = np.array([[1.0], [2.0], [5.0]])
    law = estimates.distribution(data)
    mean = np.tensordot(law.floats, law.outcomes, 1)
    close(mean, data, rtol=1e-12)
    assert loss(estimates, data, [[1.0], [2.0], [6.0]]).lower == math.inf


def test_dropped_features_show_that_all_agree():
    scaled = MinMaxScaled(OneBit(0.8, 2), 2, "drop")
    data = np.array([[0.0, 1.0], [0.0, 2.0]])
    outputs = outputs_of(scaled, data, 5)
    law = scaled.distribution(data)
    expected = law.log_prob(outputs)
    close(scaled.log_prob(outputs, data), expected, atol=1e-12)
    assert loss(scaled, data, [[0.0, 1.0], [3.0, 2.0]]).lower == math.inf


@parametrize("epsilon", [1.0, 5.0, 50.0])
@parametrize("left", [1, 3])
def test_dropping_keeps_the_number_that_the_encoder_would_send(epsilon, left):
    scaled = MinMaxScaled(MultiBit(epsilon, 4), 2, "drop")
    encoder = scaled.encoder_of(np.zeros((2, left)))
    assert encoder.m == MultiBit(epsilon, left).m


@parametrize("users", [1, 2])
def test_public_bounds_keep_epsilon_for_any_record(users):
    clipped = PublicBounds(OneBit(0.8, 1, -1.0, 1.0), users)
    first, second = moved(users)
    found = loss(clipped, 1e6 * first, 1e6 * second)
    assert found.lower == approx(0.8, rel=1e-9)
    assert found.upper <= 0.8
    assert loss(clipped, 5 * first, first).upper == 0


# Labels.


@parametrize("epsilon", [LEAST_EPSILON, 1e-5, 1.0, 30.0, 50.0, 700.0])
@parametrize("classes", [2, 3, MOST_CLASSES - 1, MOST_CLASSES])
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
    ends = [0, n - 1, n, 2 * n, 3 * n - 1, 3 * n, 2**53 - 1]

    class Fixed(np.random.Generator):
        def random(self, size=None, **how):
            return np.array(ends) / 2**53

    released = response.perturb(np.full(7, 3), rng=Fixed(np.random.PCG64(0)))
    assert released.tolist() == [0, 0, 1, 2, 2, 3, 3]


@parametrize(
    ("other", "epsilon"),
    [
        ([1.0, 1.0, 2.0], 1.1),
        ([1.0, 1.0, 0.0], 0.7),
        ([0.0, 0.0, 1.0], 0.4),
    ],
)
def test_losses_of_features_and_label_add_up(other, epsilon):
    mechanism = FeaturesAndLabel(MultiBit(0.7, 2), LabelRR(0.4, 3))
    found = loss(mechanism, [0.0] * 3, other)
    assert found.lower == approx(epsilon, rel=1e-9)
    assert found.upper <= epsilon


def test_a_population_has_its_features_and_its_labels_perturbed():
    encoder, response = MultiBit(0.7, 2), LabelRR(0.4, 3)
    records, labels = RNG(0).random((6, 2)), np.arange(6) % 3
    both = FeaturesAndLabel(encoder, response)
    features, noisy = both.perturb(records, labels, rng=RNG(1))
    rng = RNG(1)
    same(features, encoder.perturb(records, rng=rng))
    same(noisy, response.perturb(labels, rng=rng))


# FeatureRR with public shares.


def test_bins():
    """T = max(1, ⌈kz⌉)."""
    z = np.array([0.0, 0.01, 0.25, 0.26, 0.5, 0.99, 1.0])
    assert bins_of(z, 4, np).tolist() == [1, 1, 1, 2, 2, 4, 4]


@parametrize("bins", [2, 3, 11])
@parametrize("epsilon", [0.05, 6.0])
def test_the_printed_law_of_one_feature_loses_exactly_epsilon(epsilon, bins):
    """The supremum over t, t′ and u, normalisers included: no factor 2 is needed."""
    with precision():
        rows = [bin_law(epsilon, bins, t) for t in range(1, bins + 1)]
        logs = np.log(np.array(rows, float))
    largest = np.ptp(logs, axis=0).max()
    assert largest == approx(epsilon, rel=1e-12)


@parametrize(
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
    assert max(each.lower for each in losses) == approx(epsilon, rel=1e-9)
    if len(shares) == 2:
        enumerated = largest_loss(mechanism, product((0.2, 0.5, 0.9), repeat=2))
        assert upper == approx(enumerated.upper, rel=1e-12)


def test_nothing_is_spent_below_the_least_budget():
    mechanism = FeatureRR(1.0, (0.1, 0.2, 0.7, 1e-12), 3)
    steps = mechanism.steps
    assert sum(mechanism.budgets) == approx(1.0, rel=1e-12)
    assert mechanism.budgets[3] < LEAST_BUDGET
    assert (steps[3] == steps[3][0]).all()
    assert (steps.sum(axis=2) == GRID).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4).filter(any), budgets)
def test_shared_budgets_sum_to_at_most_epsilon(shares, epsilon):
    spent = FeatureRR(epsilon, tuple(shares), 2).budgets
    assert sum(map(Fraction, spent)) <= Fraction(epsilon)


# Shares that a record computes.


@parametrize(
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
    shares = identity(len(record)).shares([record], gamma, BACKEND)
    close(shares, [expected], atol=1e-15)


def test_extractor():
    """Z = clip(Wx, 0, 1)."""
    extractor = LinearExtractor(((1.0, 1.0), (0.5, -1.0)), sensitive=(1,))
    found = extractor.features([[0.5, 1.0], [0.4, 0.1]], BACKEND)
    close(found, [[1, 0], [0.5, 0.1]])


@parametrize(
    ("epsilon", "features", "bins"),
    [
        (1.0, 1, 3),
        (1.0, 2, 2),
        (4.0, 2, 4),
    ],
)
def test_largest_loss_with_shares_of_the_record_is_the_closed_form(
    epsilon, features, bins
):
    """With γ = 1, (1/2, 1) shares as (0, 1), and (0, 0) as (1/2, 1/2)."""
    record = RecordFeatureRR(epsilon, identity(features), bins, gamma=1.0)
    exact = largest_loss(record, three_point_records(features))
    form = float(worst_loss(epsilon, features, bins))
    assert exact.lower == approx(form, rel=1e-9)
    assert (form > epsilon * (1 + 1e-4)) == (features > 1)


@parametrize(
    ("features", "bins"),
    [
        (2, 2),
        (5, 10),
    ],
)
def test_closed_form_bounds_any_shares(features, bins):
    """Budgets e and e′ of sum ε lose ε + Σ ln S(e′_i) − ln S(e_i)."""
    epsilon = 2.0
    even = np.full((1, features), 1 / features)
    drawn = RNG(3).dirichlet(np.ones(features), 500)
    shares = np.concatenate([drawn, np.eye(features), even])
    steps = np.arange(bins) / (bins - 1)
    sums = np.exp(-epsilon * np.multiply.outer(shares, steps)).sum(axis=-1)
    largest = epsilon + np.ptp(np.log(sums).sum(axis=-1))
    form = worst_loss(epsilon, features, bins)
    assert largest == approx(float(form), rel=1e-12)


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


@parametrize("kind", [MinMaxScaled, PublicBounds])
def test_populations_stay_on_their_device(device, kind):
    rng = torch_generator(device, 1)
    records = backend_of(rng).uniform(30, 2)
    released = kind(MultiBit(5.0, 2), 30).perturb(records, rng=rng)
    assert released.device.type == device
    assert released.shape == (30, 2)
    assert bool((released.abs() == 1).all())
