"""Clopper and Pearson's limits: against SciPy's, and how often they are wrong, exactly."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from auditdp.numerics.binomial import lower_limit, upper_limit

TRIALS = 30
COUNTS = np.arange(TRIALS + 1)


def test_both_limits_are_those_of_scipy():
    found = [
        binomtest(int(k), TRIALS).proportion_ci(0.9, method="exact") for k in COUNTS
    ]
    np.testing.assert_allclose(
        lower_limit(COUNTS, TRIALS, 0.05), [limit.low for limit in found], rtol=1e-9
    )
    np.testing.assert_allclose(
        upper_limit(COUNTS, TRIALS, 0.05), [limit.high for limit in found], rtol=1e-9
    )


@pytest.mark.parametrize("error", [1e-6, 0.01, 0.05])
def test_a_limit_is_wrong_no_more_often_than_it_may_be(error):
    """At any probability, by summing the law; at the limits themselves, where it is worst, as often as it may be."""
    low, high = lower_limit(COUNTS, TRIALS, error), upper_limit(COUNTS, TRIALS, error)
    for p in (
        *np.linspace(0.001, 0.999, 300),
        *(low[1:] * (1 - 1e-9)),
        *(1 - (1 - high[:-1]) * (1 - 1e-9)),
    ):
        law = binom.pmf(COUNTS, TRIALS, p)
        assert law[low > p].sum() <= error * (1 + 1e-6)
        assert law[high < p].sum() <= error * (1 + 1e-6)
    worst = max(
        float(binom.pmf(COUNTS, TRIALS, p)[low > p].sum()) for p in low[1:] * (1 - 1e-9)
    )
    assert worst == pytest.approx(error, rel=1e-5)


def test_limits_of_rare_events_keep_their_precision():
    """1 - (1-p)^n = error for one success in n, and (1-p)^n = error for none."""
    trials = 10**9
    assert lower_limit(1, trials, 1e-9) == pytest.approx(
        -np.expm1(np.log1p(-1e-9) / trials), rel=1e-9
    )
    assert upper_limit(0, trials, 1e-9) == pytest.approx(
        -np.expm1(np.log(1e-9) / trials), rel=1e-9
    )
    assert lower_limit(0, trials, 1e-9) == 0.0
    assert upper_limit(trials, trials, 1e-9) == 1.0


def test_arguments_are_broadcast():
    assert lower_limit([[1], [2]], [10, 20, 30], 0.05).shape == (2, 3)
