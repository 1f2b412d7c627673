"""Shuffled batches: the event of the paper, and two batches by integration."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from auditdp.accountants import ShuffledLower, ShuffledUpper


def event_delta(sigma, batches, epsilon):
    """Return the supremum over C of P(max >= C) − e^ε Q(max >= C).

    It is the bound of Chua et al. (2024), arXiv:2403.17673v2.
    """
    events = np.linspace(-2, 4 + 9 * sigma, 20_001)
    others = (batches - 1) * log_ndtr(events / sigma)
    first = -np.expm1(log_ndtr((events - 2) / sigma) + others)
    second = -np.expm1(log_ndtr((events - 1) / sigma) + others)
    return float(np.max(first - math.exp(epsilon) * second))


@pytest.mark.parametrize(
    ("sigma", "batches"), [(0.6, 1000), (0.4, 10_000), (2.0, 10), (1.0, 2)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_epoch_is_the_best_event(sigma, batches, epsilon):
    """The loss of the maximum increases.

    For this reason its own δ is that of the best threshold.
    """
    lower = ShuffledLower(sigma, batches).delta_at(epsilon)
    event = event_delta(sigma, batches, epsilon)
    assert event * (1 - 1e-2) - 1e-9 <= lower <= event * (1 + 1e-4) + 1e-9


def test_two_batches_by_integration_over_the_plane():
    """The maximum is post-processing.

    What it shows is no more than what both outputs show.
    """
    epsilon = 0.5
    x, step = np.linspace(-6, 8, 1401, retstep=True)

    def density(mean):
        in_the_first = np.outer(norm.pdf(x, mean), norm.pdf(x))
        return (in_the_first + in_the_first.T) / 2

    excess = density(2) - math.exp(epsilon) * density(1)
    whole = np.maximum(excess, 0).sum() * step**2
    lower = ShuffledLower(1.0, 2).delta_at(epsilon)
    assert 0.7 * whole <= lower <= whole <= ShuffledUpper(1.0, 2).delta_at(epsilon)
