"""Clopper and Pearson's limits: against SciPy's, and how often they are wrong."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from auditdp.numerics.binomial import lower_limit, upper_limit

TRIALS = 30
COUNTS = np.arange(TRIALS + 1)


def test_both_limits_are_those_of_scipy():
    found = np.transpose(
        [lower_limit(COUNTS, TRIALS, 0.05), upper_limit(COUNTS, TRIALS, 0.05)]
    )
    tests = (binomtest(int(k), TRIALS) for k in COUNTS)
    expected = [test.proportion_ci(0.9, method="exact") for test in tests]

    assert found == pytest.approx(np.array(expected), rel=1e-9)
    assert lower_limit([[1], [2]], [10, 20, 30], 0.05).shape == (2, 3)


@pytest.mark.parametrize("error", [1e-6, 0.05])
def test_a_limit_is_wrong_no_more_often_than_stated(error):
    """By summing the law at the limits, which are the worst probabilities, and between."""
    low, high = (limit(COUNTS, TRIALS, error) for limit in (lower_limit, upper_limit))
    at_low = low[1:] * (1 - 1e-9)
    at_high = 1 - (1 - high[:-1]) * (1 - 1e-9)
    p = np.concatenate([at_low, at_high, np.linspace(0.001, 0.999, 300)])
    laws = binom.pmf(COUNTS[:, None], TRIALS, p)
    too_high = (laws * (low[:, None] > p)).sum(axis=0)
    too_low = (laws * (high[:, None] < p)).sum(axis=0)
    for wrong in (too_high, too_low):
        assert wrong.max() == pytest.approx(error, rel=1e-5)
        assert wrong.max() <= error * (1 + 1e-6)


def test_limits_of_rare_events_keep_their_precision():
    """1 - (1-p)^n = error for one success in n, and (1-p)^n = error for none."""
    trials, error = 10**9, 1e-9
    low = -np.expm1(np.log1p(-error) / trials)
    high = -np.expm1(np.log(error) / trials)

    assert lower_limit(1, trials, error) == pytest.approx(low, rel=1e-9)
    assert upper_limit(0, trials, error) == pytest.approx(high, rel=1e-9)
    assert lower_limit(0, trials, error) == 0.0
    assert upper_limit(trials, trials, error) == 1.0
