"""The grid of levels, and the chain of those that were crossed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.betting.limits import NEGLIGIBLE
from auditdp.betting.wealth.levels import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    crossed,
    level_grid,
)
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP


@pytest.mark.parametrize("level", [1e-5, 1e-3, 0.1, 1.0, 7.3, 64.0, 200.0])
@pytest.mark.parametrize(
    "kind",
    [PureDP, lambda v: ApproxDP(v, 0.1), GaussianDP],
    ids=["pure", "approx", "gaussian"],
)
def test_the_grid_holds_the_claim_and_covers_its_range(kind, level):
    claim = kind(level)
    levels = level_grid(claim)
    assert (levels == claim.level).sum() == 1
    assert (np.diff(levels) > 0).all()
    assert levels[1:] / levels[:-1] == pytest.approx(1.01, rel=1e-9)
    assert levels[0] <= max(LOWEST_LEVEL, level)
    assert levels[-1] >= min(HIGHEST_LEVEL, level)
    assert levels[-1] >= level


paths = st.lists(
    st.lists(st.floats(-50, 50) | st.just(-math.inf), min_size=4, max_size=4),
    min_size=1,
    max_size=6,
)


@given(paths, st.floats(1e-12, 0.99), st.floats(1e-12, 0.99))
def test_the_bound_is_the_chain_of_what_was_ever_crossed(path, alpha, other):
    values = np.array([0.5, 1.0, 2.0, 3.0])
    highest = np.maximum.accumulate(np.maximum(path, 0.0))
    counts = [crossed(each, alpha) for each in highest]
    bound = 0.0
    for level, wealth in zip(values, np.array(path).T, strict=True):
        if max(0.0, *wealth) < math.log(1 / alpha) + NEGLIGIBLE:
            break
        bound = level
    assert counts == sorted(counts), "what was crossed stays crossed"
    assert crossed(highest[-1], min(alpha, other)) <= crossed(
        highest[-1], max(alpha, other)
    )
    assert counts[-1] == np.searchsorted(values, bound, side="right")


def test_levels_that_are_not_crossed_end_the_chain():
    assert crossed(np.array([5.0, 2.9, 5.0]), 0.05) == 1
    assert crossed(np.array([5.0, 3.0, 5.0]), 0.05) == 3


def test_rounding_goes_towards_the_claim():
    assert crossed(np.array([math.log(20)]), 0.05) == 0
    assert crossed(np.array([math.log(20) + 2 * NEGLIGIBLE]), 0.05) == 1
