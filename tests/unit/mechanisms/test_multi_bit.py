"""The multi-bit encoder, its rectifier, and scaling before it: known laws, exact losses, estimates, and errors."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import FiniteLaw
from mechanisms.features import (
    Everybody,
    MinMaxScaled,
    MultiBit,
    OneBit,
    OneReport,
    PublicBounds,
    RangeEstimates,
    Rectified,
)

LN3 = math.log(3)
RNG = np.random.default_rng


def loss(mechanism, a, b):
    return pair_loss(
        mechanism.distribution(np.array(a, float)),
        mechanism.distribution(np.array(b, float)),
    )


def mean(law, of):
    """The expectation of a function of the outcomes."""
    return sum(
        float(p) * of(y) for p, y in zip(law.probabilities, law.outcomes, strict=True)
    )


def test_known_law_of_one_bit():
    """e^ε = 3: +1 has probability 1/4 at α, 3/4 at β, and 1/2 in the middle."""
    encoder = OneBit(LN3, 1, low=-2.0, high=6.0)
    for x, positive in ((-2.0, 0.25), (2.0, 0.5), (6.0, 0.75)):
        law = encoder.distribution(np.array([x]))
        assert dict(
            zip(law.outcomes[:, 0].tolist(), law.floats, strict=True)
        ) == pytest.approx({-1: 1 - positive, 1: positive}, rel=1e-14)
        assert sum(law.probabilities) == 1


def test_known_law_of_one_of_two_features():
    """Each feature is sent half of the time, so that x = (α, β) shows (−1, 0) and (0, 1) with 3/8 each."""
    law = MultiBit(LN3, 2, sampled=1).distribution(np.array([0.0, 1.0]))
    shown = dict(zip(map(tuple, law.outcomes.tolist()), law.floats, strict=True))
    assert shown == pytest.approx(
        {(-1, 0): 0.375, (1, 0): 0.125, (0, -1): 0.125, (0, 1): 0.375}
    )


@pytest.mark.dear
@pytest.mark.parametrize(
    ("epsilon", "dimension", "sampled"),
    [(0.1, 1, 1), (1, 2, 1), (1, 2, 2), (4.5, 3, 2), (6, 3, 3)],
)
def test_exact_epsilon_is_the_claimed_one(epsilon, dimension, sampled):
    """Over all corners, by enumeration and by the envelope; never more than ε, and not 1e-9 less."""
    encoder = MultiBit(epsilon, dimension, sampled=sampled)
    corners = list(product((0.0, 0.3, 1.0), repeat=dimension))
    enumerated = max(
        (loss(encoder, a, b) for a in corners for b in corners),
        key=lambda each: each.upper,
    )
    (first, second) = envelope_losses(encoder.envelope())
    assert enumerated.upper <= epsilon
    assert first.upper <= epsilon
    assert second.upper <= epsilon
    assert enumerated.lower == pytest.approx(epsilon, rel=1e-9)
    assert first.lower == pytest.approx(enumerated.lower, rel=1e-12)


def test_number_of_features_that_are_sent():
    """2.18 is the root of sinh t = 2t; max(1, min(d, ⌊ε/2.18⌋)) features are sent."""
    assert brentq(lambda t: math.sinh(t) - 2 * t, 1, 3) == pytest.approx(2.18, abs=5e-3)
    assert [MultiBit(e, 4).m for e in (0.1, 2.17, 2.18, 4.36, 6.54, 100)] == [
        1,
        1,
        1,
        2,
        3,
        4,
    ]
    assert OneBit(0.1, 4).m == 4


def test_the_published_number_is_not_always_best():
    """ε = 4 sends one feature, with 1.25 times the variance that two have: 2 coth²(2)/coth²(1) = 1.248 in the middle."""
    one, two = MultiBit(4, 2), MultiBit(4, 2, sampled=2)
    assert one.m == 1
    assert one.variance(0.5) / two.variance(0.5) == pytest.approx(
        2 * (np.tanh(1) / np.tanh(2)) ** 2, rel=1e-12
    )
    assert one.variance(0.5) / two.variance(0.5) == pytest.approx(1.248, abs=1e-3)


@pytest.mark.parametrize("sampled", [1, 2, 3])
@pytest.mark.parametrize("x", [-1.0, -0.25, 0.7, 2.0])
def test_rectified_features_are_unbiased_with_the_stated_variance(sampled, x):
    """Exactly, from the law: E[x′] = x and V[x′] = (d/m)((β−α)/2·coth(ε/2m))² − (x − (α+β)/2)²."""
    encoder = MultiBit(1.7, 3, -1.0, 2.0, sampled=sampled)
    law = encoder.distribution(np.array([-1.0, x, 0.5]))
    first = mean(law, lambda y: encoder.rectify(y)[1])
    second = mean(law, lambda y: encoder.rectify(y)[1] ** 2)
    assert first == pytest.approx(x, abs=1e-12)
    printed = 3 / sampled * (1.5 / math.tanh(1.7 / sampled / 2)) ** 2 - (x - 0.5) ** 2
    assert second - first**2 == pytest.approx(printed, rel=1e-12)
    assert encoder.variance(x) == pytest.approx(printed, rel=1e-12)


def test_log_prob_agrees_with_the_law():
    encoder, x = MultiBit(2.0, 3, sampled=2), np.array([0.1, 0.5, 1.0])
    law = encoder.distribution(x)
    np.testing.assert_allclose(
        encoder.log_prob(law.outcomes, x), law.log_prob(law.outcomes), atol=1e-13
    )
    assert encoder.log_prob(np.array([[1, 1, 1], [0, 0, 1]]), x).tolist() == [
        -math.inf,
        -math.inf,
    ]


def test_population_and_single_records():
    encoder = MultiBit(3.0, 4, sampled=2)
    sent = encoder.perturb(RNG(0).random((50, 4)), rng=RNG(1))
    assert sent.dtype == np.int8
    assert (np.abs(sent).sum(axis=1) == 2).all()
    assert encoder(np.full(4, 0.5), 7, rng=RNG(2)).shape == (7, 4)
    assert Rectified(encoder, 3)(np.full(4, 0.5), 7, rng=RNG(2)).shape == (7,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiBit(0.0, 2), r"expected epsilon, a finite number > 0, got 0\.0"),
        (lambda: MultiBit(1.0, 0), r"expected dimension, an integer >= 1, got 0"),
        (
            lambda: MultiBit(1.0, 2, 1.0, 1.0),
            r"expected finite bounds low < high, got 1\.0 and 1\.0",
        ),
        (
            lambda: MultiBit(1.0, 2, sampled=3),
            r"expected sampled <= dimension=2, got 3",
        ),
        (
            lambda: MultiBit(1.0, 2).perturb([[0.0, 1.5]], rng=RNG(0)),
            r"expected features in \[0, 1\].*clip them",
        ),
        (
            lambda: MultiBit(1.0, 2)(np.array([0.0, np.nan]), 1, rng=RNG(0)),
            r"expected features in \[0, 1\]",
        ),
        (
            lambda: MultiBit(1.0, 2)(np.zeros(3), 1, rng=RNG(0)),
            r"expected records of shape \(n, 2\), got \(1, 3\)",
        ),
        (
            lambda: MultiBit(1.0, 20, sampled=9).distribution(np.zeros(20)),
            r"outputs, at most 4096; use log_prob",
        ),
        (
            lambda: MinMaxScaled(MultiBit(1.0, 1, -1.0, 1.0), 2),
            r"expected an encoder with bounds 0 and 1",
        ),
        (
            lambda: MinMaxScaled(MultiBit(1.0, 1), 2, "zero"),
            r"expected constant='low' or 'drop', got 'zero'",
        ),
        (
            lambda: Everybody(MultiBit(1.0, 1), 2)(np.zeros((3, 1)), 1, rng=RNG(0)),
            r"shape \(2, 1\), got shape \(3, 1\)",
        ),
        (
            lambda: MinMaxScaled(MultiBit(1.0, 1), 1)([[np.inf]], 1, rng=RNG(0)),
            r"expected finite raw features",
        ),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


# Scaling.


def moved(users):
    """Populations in which one record takes the range of all others from [0, 1] to [−1, 0]."""
    first = np.zeros((users, 1))
    second = first.copy()
    first[-1], second[-1] = 1, -1
    return first, second


@pytest.mark.parametrize("constant", ["low", "drop"])
@pytest.mark.parametrize("users", [2, 3, 4])
def test_min_max_scaling_loses_epsilon_for_every_user(users, constant):
    scaled = MinMaxScaled(OneBit(0.8, 1), users, constant)
    first, second = moved(users)
    assert np.array_equal(scaled.prepared(first, np), [[0]] * (users - 1) + [[1]])
    assert np.array_equal(scaled.prepared(second, np), [[1]] * (users - 1) + [[0]])
    assert loss(scaled, first, second).lower == pytest.approx(users * 0.8, rel=1e-9)
    assert loss(OneReport(scaled), first, second).lower == pytest.approx(0.8, rel=1e-9)


@pytest.mark.parametrize("sampled", [1, 2])
def test_min_max_scaling_loses_as_much_with_several_features(sampled):
    scaled = MinMaxScaled(MultiBit(0.8, 2, sampled=sampled), 2)
    assert loss(scaled, [[0, 0], [1, 1]], [[0, 0], [-1, -1]]).lower == pytest.approx(
        1.6, rel=1e-9
    )


def test_a_user_alone_releases_nothing_of_the_record():
    for constant in ("low", "drop"):
        scaled = MinMaxScaled(OneBit(0.8, 2), 1, constant)
        assert loss(scaled, [[0.0, 3.0]], [[5.0, -1.0]]).upper == 0
    assert np.isnan(scaled(np.array([[0.0, 3.0]]), 4, rng=RNG(0))).all()
    assert scaled.perturb(np.array([[0.0, 3.0]]), rng=RNG(0)).shape == (1, 0)


def test_estimates_in_the_range_of_one_user_are_the_number_itself():
    estimates = RangeEstimates(MinMaxScaled(OneBit(0.8, 2), 1))
    data = np.array([[0.25, -3.0]])
    assert (estimates(data, 5, rng=RNG(0)) == data).all()
    law = estimates.distribution(data)
    assert law.outcomes.tolist() == [data.tolist()]
    assert law.probabilities == [1]
    assert loss(estimates, data, [[0.25, 3.0]]).lower == math.inf


def test_estimates_in_the_range_are_unbiased_and_tell_the_range():
    estimates, data = (
        RangeEstimates(MinMaxScaled(OneBit(0.8, 1), 3)),
        np.array([[1.0], [2.0], [5.0]]),
    )
    law = estimates.distribution(data)
    np.testing.assert_allclose(
        np.tensordot(law.floats, law.outcomes, 1), data, rtol=1e-12
    )
    assert loss(estimates, data, [[1.0], [2.0], [6.0]]).lower == math.inf


def test_dropped_features_tell_that_all_agree():
    scaled = MinMaxScaled(OneBit(0.8, 2), 2, "drop")
    data = np.array([[0.0, 1.0], [0.0, 2.0]])
    outputs = scaled(data, 5, rng=RNG(0))
    assert np.isnan(outputs[:, :, 1]).all()
    assert np.isin(outputs[:, :, 0], (-1, 1)).all()
    np.testing.assert_allclose(
        scaled.log_prob(outputs, data),
        scaled.distribution(data).log_prob(outputs),
        atol=1e-12,
    )
    assert loss(scaled, data, [[0.0, 1.0], [3.0, 2.0]]).lower == math.inf


def test_dropping_keeps_the_number_that_the_encoder_would_send():
    """max(1, min(d′, ⌊ε/2.18⌋)) for the d′ features that are left."""
    for epsilon in (1.0, 5.0, 50.0):
        for left in (1, 2, 3):
            scaled = MinMaxScaled(MultiBit(epsilon, 4), 2, "drop")
            assert scaled.encoder_of(np.zeros((2, left))).m == MultiBit(epsilon, left).m


@pytest.mark.parametrize("users", [1, 2])
def test_public_bounds_keep_epsilon_whatever_the_record(users):
    clipped = PublicBounds(OneBit(0.8, 1, -1.0, 1.0), users)
    first, second = moved(users)
    assert loss(clipped, 1e6 * first, 1e6 * second).lower == pytest.approx(
        0.8, rel=1e-9
    )
    assert loss(clipped, 1e6 * first, 1e6 * second).upper <= 0.8
    assert loss(clipped, 5 * first, first).upper == 0


def test_everybody_is_the_product_of_the_users():
    everybody, data = (
        Everybody(MultiBit(1.0, 2), 2),
        np.array([[0.0, 1.0], [0.5, 0.25]]),
    )
    law = everybody.distribution(data)
    assert isinstance(law, FiniteLaw)
    assert law.outcomes.shape == (16, 2, 2)
    assert all(isinstance(p, Fraction) for p in law.probabilities)
    np.testing.assert_allclose(
        everybody.log_prob(law.outcomes, data), law.log_prob(law.outcomes), atol=1e-12
    )
    assert everybody.perturb(data, rng=RNG(0)).shape == (2, 2)


# The same code on torch.


def test_tensors_stay_where_they_are(device):
    import torch

    rng = torch.Generator(device).manual_seed(5)
    records = torch.rand((20, 4), generator=rng, device=device)
    encoder = MultiBit(5.0, 4)
    sent = encoder.perturb(records, rng=rng)
    assert sent.dtype == torch.int8
    assert sent.device.type == device
    assert (sent.abs().sum(1) == encoder.m).all()
    assert encoder.rectify(sent).dtype == torch.float64
    released = MinMaxScaled(MultiBit(5.0, 4), 20).perturb(records, rng=rng)
    assert released.shape == (20, 4)
    assert (
        PublicBounds(MultiBit(5.0, 4), 20).perturb(10 * records, rng=rng).device.type
        == device
    )


def test_the_range_of_the_estimates_is_what_they_reach():
    rectified = Rectified(MultiBit(1.0, 2, -1.0, 2.0))
    found = rectified(np.array([0.5, 0.5]), 200, rng=RNG(1))
    assert rectified.output_range(np.array([0.5, 0.5])) == (found.min(), found.max())
