"""Figures of the statements about LPGNN, from the laws of the encoder and from printed formulas."""

import math

import numpy as np
import pytest

from mechanisms.features import MinMaxScaled, MultiBit, OneBit, RangeEstimates
from tests.statistical.stated_laws import loss


def mean_of_bit(encoder, x):
    """E[x*] = (m/d)(2P(1) − 1)."""
    law = encoder.distribution(np.array([x]))
    return law.floats @ law.outcomes[:, 0]


def test_the_encoder_alone_is_biased():
    """E[x*] is below x on [0, 1], with slopes below, at and above 1.

    x itself on one range [−a, a].
    """
    for epsilon in (0.5, math.log(3), 2.0, 10.0):
        encoder = OneBit(epsilon, 1)
        for share in (1.0, 0.5):
            for x in np.linspace(0, 1, 21):
                assert share * mean_of_bit(encoder, x) < x or x == 1
    a = math.tanh(1.0)
    for x in (-a, 0.1, a):
        assert mean_of_bit(OneBit(2.0, 1, -a, a), x) == pytest.approx(x)


def test_the_best_number_of_sampled_features():
    """The largest variance of a feature's estimate.

    The printed number is not the best one for ε = 4.
    """

    def variance(epsilon, m):
        return MultiBit(epsilon, 8, sampled=m).variance(0.5)

    assert MultiBit(4.0, 8).m == 1
    assert variance(4.0, 1) / variance(4.0, 2) == pytest.approx(1.248, abs=1e-3)
    wrong = []
    for epsilon in np.arange(0.05, 10, 0.05).tolist():
        best = min(range(1, 9), key=lambda m, epsilon=epsilon: variance(epsilon, m))
        printed = MultiBit(epsilon, 8).m
        assert best in (printed, math.ceil(epsilon / 2.18))
        if best != printed:
            wrong.append(epsilon)
    assert 3.05 < min(wrong) < 3.15


@pytest.mark.parametrize(("epsilon", "kept"), [(7, 0.995), (1, 0.312)])
def test_the_accuracy_of_noisy_labels(epsilon, kept):
    """With seven classes."""
    found = math.exp(epsilon) / (math.exp(epsilon) + 6)
    assert found == pytest.approx(kept, abs=5e-4)


@pytest.mark.parametrize("features", [1, 2, 5])
def test_the_budget_grows_with_the_number_of_features(features):
    """If each feature is sent with the whole budget."""
    encoder = OneBit(0.7 * features, features)
    found = loss(encoder, np.zeros(features), np.ones(features))
    assert found.lower == pytest.approx(0.7 * features)
    one = loss(OneBit(0.7, 1), [0.0], [1.0])
    assert features * one.lower == pytest.approx(found.lower)


def test_how_many_neighbours_cancel_the_noise():
    one = 1433 * (0.5 / math.tanh(0.5)) ** 2
    assert math.ceil(one / 0.1**2) == 167_758


def test_a_feature_beyond_the_range():
    """P(1) as printed, beyond the range, is 1: no output is possible but one."""
    e = math.e
    beyond = 1 + 1 / (e - 1)
    assert 1 / (e + 1) + beyond * (e - 1) / (e + 1) == pytest.approx(1.0)
    law = OneBit(1.0, 1).distribution(np.array([1.0]))
    assert law.floats.min() > 0.2


@pytest.mark.parametrize(
    ("features", "sent"), [((0, 1), (-0.58, 1.58)), ((-1, 1), (-2.16, 2.16))]
)
def test_estimates_of_two_users_show_the_range_of_their_features(features, sent):
    """As PrivGraphConv of the early published code: (y(e + 1) − 1)(β − α)/(e − 1) + α for a bit y, at ε = 1."""
    mechanism = RangeEstimates(MinMaxScaled(OneBit(1.0, 1), 2))
    population = np.array(features, float)[:, None]
    found = np.unique(mechanism.distribution(population).outcomes)
    low, high = features
    bits = np.array([0, 1])
    formula = (bits * (math.e + 1) - 1) * (high - low) / (math.e - 1) + low
    assert found == pytest.approx(formula)
    assert found == pytest.approx(sent, abs=5e-3)
