"""The grid of levels, and the chain of crossed ones."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import ApproxDP, GaussianDP
from auditdp.betting.limits import NEGLIGIBLE
from auditdp.betting.wealth.levels import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    crossed,
    level_grid,
)


@pytest.mark.parametrize("level", [1e-5, 1e-3, 7.3, 64.0, 200.0])
@pytest.mark.parametrize("kind", [lambda level: ApproxDP(level, 0.1), GaussianDP])
def test_the_grid_contains_the_claim_and_covers_its_range(kind, level):
    levels = level_grid(kind(level))
    assert (levels == level).sum() == 1
    assert levels[1:] / levels[:-1] == pytest.approx(1.01, rel=1e-9)
    assert levels[0] <= max(LOWEST_LEVEL, level)
    assert levels[-1] >= max(level, HIGHEST_LEVEL)


wealths = st.floats(-50, 50) | st.just(-inf)
paths = st.lists(st.lists(wealths, min_size=4, max_size=4), min_size=1, max_size=6)


@given(paths, st.floats(1e-12, 0.99), st.floats(1e-12, 0.99))
def test_the_bound_is_the_chain_of_levels_that_were_ever_crossed(path, alpha, other):
    highest = np.maximum.accumulate(np.maximum(path, 0.0))
    counts = [crossed(each, alpha) for each in highest]
    reached = highest[-1] >= log(1 / alpha) + NEGLIGIBLE
    chain = np.logical_and.accumulate(reached).sum()
    assert counts[-1] == chain
    assert counts == sorted(counts), "a crossed level stays crossed"
    assert (crossed(highest[-1], other) > chain) <= (other > alpha)


@pytest.mark.parametrize(
    ("excess", "count"),
    [
        (0, 0),
        (2 * NEGLIGIBLE, 1),
    ],
)
def test_a_level_is_crossed_by_more_than_rounding(excess, count):
    assert crossed(np.array([log(20) + excess]), 0.05) == count
