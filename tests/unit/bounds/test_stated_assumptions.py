"""The bound under the assumption of Gaussian scores.

Its law, its calibration, and the power of the tests of the assumption.
"""

from math import sqrt

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import binom, nct, ttest_ind

from auditdp.accountants import GaussianCurve
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.bounds.result import Question
from auditdp.bounds.stated_assumptions import FREEDOM, assuming_gaussian

MU = 1.0


def normal(rng, n):
    return rng.normal(size=n)


def heavy_tails(rng, n, freedom=4):
    return rng.standard_t(freedom, size=n)


def correlated(rng, n):
    return np.convolve(rng.normal(size=n + 1), [0.8, 0.6], "valid")


def drawn(seed, canaries, noise=normal):
    rng = default_rng(seed)
    labels = (rng.random(canaries) < 0.5).astype(np.int8)
    return 7 + 3 * (MU * labels + noise(rng, canaries)), labels


def bound(scores, labels, curve=Gaussian()):  # noqa: B008
    return assuming_gaussian(scores, labels, Question(curve, 0.05, None))


def test_the_bound_inverts_the_noncentral_t():
    scores, labels = drawn(2, 300)
    first = scores[labels == 1]
    second = scores[labels == 0]
    width = sqrt(1 / len(first) + 1 / len(second))
    statistic = ttest_ind(first, second).statistic
    tail = nct.sf(statistic, 298, bound(scores, labels).lower / width)

    assert tail == pytest.approx(0.05, abs=1e-6)


def test_epsilon_is_that_of_the_gaussian_mechanism():
    mu = bound(*drawn(1, 400)).lower
    epsilon = bound(*drawn(1, 400), EpsilonDelta(1e-5)).lower
    exact = GaussianCurve(1 / mu).epsilon_at(1e-5)
    assert exact * (1 - 1e-3) <= epsilon <= exact


def test_the_bound_is_calibrated_and_certifies_most_of_the_truth(repeats):
    """Above the truth at most 5 % of the time; the tests of the assumption stop 1 %.

    Each limit fails with probability 1e-6.
    """
    times = repeats(2_000, least=100)
    found = [bound(*drawn(seed, 100)).lower for seed in range(times)]
    passed = [lower for lower in found if lower is not None]

    assert times - len(passed) <= repeats.most(times, 0.02)
    assert sum(lower > MU for lower in passed) <= repeats.most(len(passed), 0.05)

    large = [bound(*drawn(seed, 1_000)).lower or 0 for seed in range(9)]
    assert np.median(large) > 0.85 * MU


def test_scores_that_break_the_assumption_give_no_bound():
    scores, labels = drawn(4, 1_000)
    unequal = np.where(labels == 1, 10 + 1.5 * (scores - 10), scores)
    for against, broken in {
        "moments": drawn(3, 1_000, heavy_tails),
        "neighbours": drawn(3, 1_000, correlated),
        "variances": (unequal, labels),
    }.items():
        found = bound(*broken)
        assert found.lower is None
        assert found.against == against
        assert found.p_value < 1e-4
        assert "no bound is given" in found.statement("ε", "confidence 95%")


def test_the_stated_power_is_that_of_the_test():
    """Of 60 trainings with Student's t the stated share is refused.

    The limits fail with probability 1e-6.
    """
    power = bound(*drawn(5, 600)).power
    assert 0.2 < power < 0.95

    refused = 0
    for seed in range(60):
        scores = drawn(seed, 600, lambda rng, n: heavy_tails(rng, n, FREEDOM))
        refused += bound(*scores).lower is None
    assert binom.ppf(1e-6, 60, power - 0.1) <= refused
    assert refused <= binom.isf(1e-6, 60, min(power + 0.1, 1))


def test_nothing_is_assumed_if_nothing_follows():
    """A Gaussian pair has no pure ε.

    30 canaries have no moments, and equal scores no variance.
    """
    scores, labels = drawn(6, 400)
    assert bound(scores, labels, EpsilonDelta()) is None
    assert bound(scores[:30], labels[:30]) is None
    assert bound(0 * scores, labels) is None
    assert bound(scores, labels).lower > 0
