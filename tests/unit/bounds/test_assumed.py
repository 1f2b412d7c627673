"""The bound under named assumptions: its law, its calibration and power, and how often a false assumption is seen."""

import math

import numpy as np
import pytest
from scipy.stats import binom, nct, norm, ttest_ind

from auditdp.accountants import GaussianCurve
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.bounds.result import Question
from auditdp.bounds.stated_assumptions import FREEDOM, assuming_gaussian

MU, MU_DP = 1.0, Gaussian()


def drawn(seed, canaries, noise=lambda rng, n: rng.normal(size=n)):
    rng = np.random.default_rng(seed)
    labels = (rng.random(canaries) < 0.5).astype(np.int8)
    return 7 + 3 * (MU * labels + noise(rng, canaries)), labels


def assumed(seed, canaries=400, curve=MU_DP, **noise):
    return assuming_gaussian(
        *drawn(seed, canaries, **noise), Question(curve, 0.05, None)
    )


def test_the_bound_inverts_the_noncentral_t():
    scores, labels = drawn(2, 300)
    first, second = scores[labels == 1], scores[labels == 0]
    width = math.sqrt(1 / len(first) + 1 / len(second))
    found = assumed(2, 300).lower
    assert nct.sf(
        ttest_ind(first, second).statistic, 298, found / width
    ) == pytest.approx(0.05, abs=1e-6)


def test_epsilon_is_that_of_the_gaussian_mechanism():
    mu, epsilon = assumed(1).lower, assumed(1, curve=EpsilonDelta(1e-5)).lower
    assert epsilon <= GaussianCurve(1 / mu).epsilon_at(1e-5)
    assert epsilon == pytest.approx(GaussianCurve(1 / mu).epsilon_at(1e-5), rel=1e-3)


def test_it_is_calibrated_and_certifies_most_of_the_truth(repeats):
    """Above the truth at most 5 % of the time, of those that the looks let pass too; they stop 1 %. Limits at 1e-6."""
    times = repeats(2_000, least=100)
    found = [assumed(seed, 100) for seed in range(times)]
    passed = [one.lower for one in found if one.lower is not None]
    assert times - len(passed) <= binom.ppf(1 - 1e-6, times, 0.02)
    assert sum(lower > MU for lower in passed) <= binom.ppf(1 - 1e-6, len(passed), 0.05)
    assert np.median([assumed(seed, 1_000).lower or 0 for seed in range(9)]) > 0.85 * MU


@pytest.mark.parametrize(
    ("noise", "against"),
    [
        (lambda rng, n: rng.standard_t(4, size=n), "moments"),
        (
            lambda rng, n: np.convolve(rng.normal(size=n + 1), [0.8, 0.6], "valid"),
            "neighbours",
        ),
    ],
    ids=["heavy tails", "correlated"],
)
def test_scores_that_are_not_so_give_no_bound(noise, against):
    found = assumed(3, 1_000, noise=noise)
    assert (found.lower, found.against) == (None, against)
    assert found.p_value < 1e-4
    assert "nothing is said" in found.statement("ε", "confidence 95%")


def test_a_variance_that_depends_on_the_coin_is_seen():
    scores, labels = drawn(4, 1_000)
    scores = np.where(labels == 1, 10 + 1.5 * (scores - 10), scores)
    found = assuming_gaussian(scores, labels, Question(Gaussian(), 0.05, None))
    assert (found.lower, found.against) == (None, "variances")


def test_the_power_that_is_said_is_that_of_the_look():
    """Of 60 trainings with Student's t as many are seen as is said, within limits of 1e-6."""
    power = assumed(5, 600).power
    seen = sum(
        assumed(k, 600, noise=lambda rng, n: rng.standard_t(FREEDOM, size=n)).lower
        is None
        for k in range(60)
    )
    assert (
        binom.ppf(1e-6, 60, max(power - 0.1, 0))
        <= seen
        <= binom.ppf(1 - 1e-6, 60, min(power + 0.1, 1))
    )
    assert 0.2 < power < 0.95


def test_nothing_is_assumed_where_nothing_follows():
    """A Gaussian pair has no pure ε; a few canaries have no moments, and scores that are all equal no variance."""
    assert assumed(6, curve=EpsilonDelta()) is None
    assert assumed(6, 30) is None
    scores, labels = drawn(6, 400)
    assert (
        assuming_gaussian(0 * scores, labels, Question(Gaussian(), 0.05, None)) is None
    )
    assert norm.cdf(assumed(6).lower) > 0.5
