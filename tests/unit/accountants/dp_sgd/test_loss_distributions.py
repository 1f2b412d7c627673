"""Losses on a grid are bounds, near the truth, and cheap to compose."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import GaussianDP
from auditdp.accountants import AccountantError, Soundness
from auditdp.accountants.loss_grid import GridCurve, centred, from_above, from_below
from auditdp.accountants.normal_quantiles import gaussian_cells

WEIGHTS = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(1, 1000)), min_size=2, max_size=5
)


@dataclass(frozen=True)
class Lower(GridCurve):
    """A loss, composed."""

    loss: object
    count: int
    soundness = Soundness.LOWER

    @property
    def uses(self):
        return self.count

    def loss_quantile(self, negligible):
        return 1.0

    def losses(self, negligible, interval):
        return [self.loss]


class Upper(Lower):
    """The same, rounded the other way."""

    soundness = Soundness.UPPER


def brute_delta(first, second, epsilon, count):
    """Σ (∏p − e^ε ∏q)₊ over all outputs of ``count`` uses."""
    return sum(
        max(
            0.0,
            math.prod(first[list(where)])
            - math.exp(epsilon) * math.prod(second[list(where)]),
        )
        for where in product(range(len(first)), repeat=count)
    )


def laws(weights):
    first, second = np.array(weights, dtype=float).T
    return first / first.sum(), second / second.sum()


COUNTS = st.integers(1, 3)
INTERVALS = st.sampled_from([1e-3, 0.01, 0.1])


@given(WEIGHTS, COUNTS, INTERVALS, st.floats(0, 1))
def test_from_below_is_a_lower_bound_and_near(weights, count, interval, share):
    first, second = laws(weights)
    largest = count * float(np.max(np.log(first / second), initial=0))
    epsilon = share * largest
    bound = Lower(from_below(first, second, interval), count).delta_at(epsilon)
    assert bound <= brute_delta(first, second, epsilon, count) + 1e-15
    # Every loss is put down by less than two steps of the grid.
    further = epsilon + 2 * count * interval
    least = brute_delta(first, second, further, count)
    assert bound >= least * (1 - 1e-2) - 1e-12


def test_no_cell_gives_away_more_than_it_has():
    """Both neighbours of the middle cell need a quarter of its mass.

    Cells further out need as much of theirs.
    """
    points = 0.1 * np.arange(-8, 9)
    second = np.ones(17)
    first = np.exp(points + 0.02 * np.sign(points))
    one, other = centred(first, second, points)
    assert one.min() >= 0 <= other.min()
    assert one.sum() <= first.sum()
    assert other.sum() <= second.sum()
    kept = other > 1e-9
    assert np.all(np.log(one[kept] / other[kept]) <= np.log(first / second).max())
    losses = np.log(one / other)
    assert losses[6:11] == pytest.approx(points[6:11], abs=1e-9)


def test_from_below_keeps_losses_that_lie_near_the_grid():
    """Cells that end half-way between points of the grid are rounded by little.

    It is far less than the half interval of rounding down.
    """
    sigma, interval, count = 1.0, 0.01, 100
    losses = (np.arange(-1000, 1000) + 0.5) * interval
    edges = losses * sigma**2 + 0.5
    lower, _ = gaussian_cells(edges, 1.0, sigma)
    _, upper = gaussian_cells(edges, 0.0, sigma)
    found = from_below(lower, upper, interval)
    assert found.shift < interval / 100
    exact = GaussianDP(math.sqrt(count) / sigma)
    bound = Lower(found, count)
    epsilon = bound.epsilon_at(1e-5)
    assert exact.delta_at(epsilon) >= 1e-5
    assert exact.delta_at(epsilon + 0.02 * count * interval) < 1e-5


@given(WEIGHTS, COUNTS, INTERVALS, st.floats(-1, 1))
def test_from_above_is_an_upper_bound_and_near(weights, count, interval, share):
    first, second = laws(weights)
    losses = np.log(first / second)
    lowest = math.floor(np.min(losses) / interval) - 1
    cells = np.ceil(losses / interval).astype(int) - lowest
    length = math.ceil(np.max(losses) / interval) - lowest + 3
    masses = (np.bincount(cells, law, length) for law in (first, second))
    bound = Upper(from_above(*masses, lowest, interval), count)
    epsilon = max(0.0, share * count * float(np.max(losses)))
    exact = brute_delta(first, second, epsilon, count)
    # The polygon lies between the values of the curve at the points on either side.
    most = brute_delta(first, second, epsilon - 2 * count * interval, count)
    assert exact <= bound.delta_at(epsilon) <= most * (1 + 1e-2) + 1e-12


def test_losses_outside_the_grid_are_put_to_its_first_point_or_lost():
    """The points are .5 and .6, so that the second cell has the loss .545."""
    first, second = np.array([0.2, 0.5, 0.3]), np.array([0.7, 0.29, 0.01])
    bound = Upper(from_above(first, second, 5, 0.1), 1)
    at_half = 0.3 + 0.5 - 0.29 * math.exp(0.5)
    at_zero = 0.3 + 0.2 * (1 - math.exp(-0.5)) + 0.5 - 0.29
    for epsilon, delta in ((10.0, 0.3), (0.5, at_half), (0.0, at_zero)):
        assert bound.delta_at(epsilon) == pytest.approx(delta, abs=1e-11)


def gaussian_from_above(mu, points):
    """Return the loss of N(mu, 1) against N(0, 1) up to ten standard deviations.

    The grid has ``points`` for each of them.
    """
    interval = mu / points
    last = math.ceil((mu**2 / 2 + 10 * mu) / interval)
    edges = np.arange(-last, last + 1) * interval / mu + mu / 2
    return from_above(
        gaussian_cells(edges, mu, 1.0)[1],
        gaussian_cells(edges, 0.0, 1.0)[0],
        -last,
        interval,
    )


@pytest.mark.dear
@pytest.mark.parametrize(
    ("mu", "uses", "points"), [(1.0, 10**6, 100), (1e-4, 100, 1000), (0.01, 10**4, 300)]
)
def test_fine_grids_stay_exact(mu, uses, points):
    """The points are as near as 1e-8.

    There the δ of one use differs between points by less than its rounding.
    """
    one_use = gaussian_from_above(mu / math.sqrt(uses), points)
    bound, law = Upper(one_use, uses), GaussianDP(mu)
    for deviations in (0.0, 1.0, 3.0):
        epsilon = mu**2 / 2 + deviations * mu
        exact = law.delta_at(epsilon)
        assert exact <= bound.delta_at(epsilon) <= 1.001 * exact + 1e-12 * uses


def test_a_grid_has_no_answer_beyond_its_error():
    one = np.array([0.75, 0.25])
    loss = from_below(one, one[::-1].copy(), 0.01)
    lower, upper = Lower(loss, 5), Upper(loss, 5)
    assert upper.epsilon_at(0.0) == math.inf
    assert lower.epsilon_at(1e-15) <= 5 * math.log(3)
    assert lower.epsilon_at(0.0) <= 5 * math.log(3)
    assert lower.epsilon_at(1.0) == upper.epsilon_at(1.0) == 0.0
    assert lower.delta_at(math.inf) == 0.0
    assert 0 <= upper.delta_at(math.inf) < 1e-13
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(AccountantError, match="expected delta"):
            lower.epsilon_at(wrong)
    with pytest.raises(AccountantError, match="expected epsilon"):
        lower.delta_at(-1.0)


def test_losses_beyond_the_range_of_the_exponential_function():
    """dp-accounting's own inverse is infinite there."""
    bound = Lower(from_below(*gaussian_pair(14.0), 0.1), 8)
    epsilon = bound.epsilon_at(1e-6)
    assert 950 < epsilon < 1000
    assert GaussianDP(14 * math.sqrt(8)).delta_at(epsilon) >= 1e-6


def gaussian_pair(mu):
    """Cells of N(mu, 1), rounded down, and of N(0, 1), rounded up."""
    edges = np.linspace(-9, mu + 9, 20_001)
    return gaussian_cells(edges, mu, 1.0)[0], gaussian_cells(edges, 0.0, 1.0)[1]
