"""The grid of levels, and the chain of crossed ones."""

from math import log

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("highest", "count"),
    [
        ([5.0, 2.9, 5.0], 1),
        ([5.0, 3.0, 5.0], 3),
        ([log(20)], 0),  # rounding goes towards the claim
        ([log(20) + 2 * NEGLIGIBLE], 1),
    ],
)
def test_levels_without_a_gap_are_counted(highest, count):
    assert crossed(np.array(highest), 0.05) == count
