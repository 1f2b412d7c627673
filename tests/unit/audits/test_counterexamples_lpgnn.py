"""The counterexamples to statements about LPGNN, by another route than the audits."""

import math
from itertools import product

import numpy as np
import pytest


def bit(x, epsilon, low=0.0, high=1.0):
    """P(1) of the 1-bit mechanism as printed."""
    e = math.exp(epsilon)
    return 1 / (e + 1) + (x - low) / (high - low) * (e - 1) / (e + 1)


def largest_loss(first, second, epsilon):
    """The largest log ratio over all outputs of independent bits of two populations."""
    losses = []
    for outputs in product((0, 1), repeat=len(first)):
        p, q = (
            math.prod(
                bit(x, epsilon) if y else 1 - bit(x, epsilon)
                for x, y in zip(values, outputs, strict=True)
            )
            for values in (first, second)
        )
        losses.append(abs(math.log(p / q)))
    return max(losses)


def test_the_encoder_alone_is_biased():
    """E[x*] = (m/d)(2P(1) − 1): below x on [0, 1], with slopes below, at and above 1; x itself on one range [−a, a]."""
    x = np.linspace(0, 1, 101)
    for epsilon, share in (
        (0.5, 1.0),
        (math.log(3), 1.0),
        (2.0, 1.0),
        (10.0, 1.0),
        (2.0, 0.5),
    ):
        mean = share * (2 * np.array([bit(v, epsilon) for v in x]) - 1)
        assert (mean < x).all()
    a = math.tanh(1.0)
    assert [2 * bit(v, 2.0, -a, a) - 1 for v in (-a, 0.1, a)] == pytest.approx(
        [-a, 0.1, a]
    )


def variance(epsilon, m):
    """The largest variance of a feature's estimate, in units of d((β−α)/2)²."""
    return 1 / (m * math.tanh(epsilon / (2 * m)) ** 2)


def test_the_best_number_of_sampled_features():
    printed = max(1, math.floor(4.0 / 2.18))
    assert (printed, round(variance(4.0, 1), 4), round(variance(4.0, 2), 4)) == (
        1,
        1.076,
        0.862,
    )
    assert variance(4.0, 1) / variance(4.0, 2) > 1.24
    best = {
        e: min(range(1, 9), key=lambda m, e=e: variance(e, m))
        for e in np.arange(0.05, 10, 0.05)
    }
    wrong = [e for e, m in best.items() if m != max(1, math.floor(e / 2.18))]
    assert 3.05 < min(wrong) < 3.15
    assert all(
        best[e] in (max(1, math.floor(e / 2.18)), math.ceil(e / 2.18)) for e in best
    )


def test_the_accuracy_of_noisy_labels():
    slide = math.exp(7) / (math.exp(7) + 6)
    kept = math.exp(1) / (math.exp(1) + 6)
    assert (round(slide, 3), math.floor(kept * 1000) / 1000) == (0.995, 0.311)


def test_the_budget_grows_with_the_number_of_features():
    for features in (1, 2, 5):
        assert largest_loss([0.0] * features, [1.0] * features, 0.7) == pytest.approx(
            0.7 * features
        )


def test_how_many_neighbours_cancel_the_noise():
    one = 1433 * (0.5 / math.tanh(0.5)) ** 2
    assert math.ceil(one / 0.1**2) == 167_758


def test_a_feature_beyond_the_range():
    beyond = 1 + 1 / (math.e - 1)
    assert bit(beyond, 1.0) == pytest.approx(1.0)
    assert 1 - bit(1.0, 1.0) > 0.2
