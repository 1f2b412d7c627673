"""The lower bound: levels that are crossed one after the other.

The forecasts are bet against the claim at every level of a grid (levels of ε, of μ, or of whatever a claim's family
states). A level is *crossed* when the wealth against it has reached 1/α, and the bound is the largest level such that
it and all below it are crossed. If the truth is at level ε*, the claims at all levels from ε* on are true, and a bound
of ε* or more needs the smallest of them to be crossed, which has probability at most α. The claim is one of the levels,
so "the bound reaches the claim" is the very event that makes a verdict VIOLATED, and one α covers both statements.

What one batch of bets has come to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.claims.claim import Claim
from auditdp.numerics.arrays import Floats

ANCHORS = 8
"""Levels between two anchors: choosing leaders at every level costs as many times more."""
ROUNDING_SLACK = 1e-9
"""Nats by which a level has to be exceeded; rounding then errs towards the claim."""
GRID_RATIO = 1.01
"""Between two levels: what a bound may lose to the grid."""
LOWEST_LEVEL = 1e-3
"""Smallest level of a grid, except 0."""
HIGHEST_LEVEL = 64.0
"""Largest level of a grid; larger violations are not considered."""


def level_grid(claim: Claim, *, ratio: float = GRID_RATIO) -> Floats:
    """Return the levels that a lower bound can take, with the claim's own among them; increasing.

    Levels are the claim times powers of ``ratio``, from 0.001 to 64, so a bound loses at most ``ratio`` to the grid; those
    of a claim of 0 are 0 and the powers, and those of an accountant's curve its family's.
    """
    if claim.levels is not None:
        return np.array(claim.levels)
    low, high = LOWEST_LEVEL, HIGHEST_LEVEL
    if claim.level == 0:
        return np.append(0.0, level_grid(claim.at(low), ratio=ratio))
    down = max(0, math.ceil(math.log(claim.level / low) / math.log(ratio)))
    up = max(0, math.ceil(math.log(high / claim.level) / math.log(ratio)))
    steps = np.arange(-down, up + 1)
    grid = claim.level * ratio ** steps.astype(float)
    grid[down] = claim.level
    return np.asarray(grid)


def is_bound(claim: Claim) -> bool:
    """Return whether a level of a claim that is refuted is a lower bound on the parameter that the claim is about.

    It is where the claims at all levels from the truth on are true, as of one ε, μ or ρ. A mechanism that exceeds a curve of
    a family does so somewhere, and its ε at the quoted δ may be smaller than the curve's.
    """
    return claim.levels is None


class Grid:
    """The levels that are bet against, and the anchors among them at which leaders are chosen.

    At a level the leaders of the anchor just below bet: there they still win where only a little more is true.

    Args:
        values: The levels, increasing.
        position: Index of the claim's.

    Attributes:
        anchors: Indices of the anchors: every ``ANCHORS``-th level, the claim's among them.
        anchor: For every level the place, among the anchors, of the one that decides who leads there.
    """

    def __init__(self, values: Floats, position: int) -> None:
        self.values, self.position = values, position
        self.anchors = np.arange(position % ANCHORS, len(values), ANCHORS)
        places: NDArray[np.intp] = np.searchsorted(
            self.anchors, np.arange(len(values)), side="right"
        )
        self.anchor = np.maximum(places - 1, 0)
        self.claim = int(self.anchor[position])
        """The place of the claim's anchor."""

    def __len__(self) -> int:
        return len(self.values)


def crossed(highest: Floats, alpha: float) -> int:
    """Return how many levels, counted from the smallest, have been crossed without a gap.

    Rounding goes towards "the claim looks true": a level counts as crossed only 1e-9 above ln(1/alpha).

    Args:
        highest: The highest log wealth that there has been against each level, shape (levels,).
        alpha: The level of the test.
    """
    reached = highest >= math.log(1 / alpha) + ROUNDING_SLACK
    return len(reached) if reached.all() else int(np.argmin(reached))


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Log factors of one batch.

    Attributes:
        own: Of each forecaster against the claim, by each way of betting, shape (forecasters, ways).
        leaders: Of the leaders against every level, shape (levels,).
        at_anchors: Of each forecaster, had it bet there, at every anchor by each way, shape (forecasters, anchors, ways).
        right: Calls on which each forecaster's odds were beyond the claim's cap and on the side of the coin, shape (K,).
        wrong: Calls on which they were on the other side.
    """

    own: Floats
    leaders: Floats
    at_anchors: Floats
    right: Floats
    wrong: Floats
