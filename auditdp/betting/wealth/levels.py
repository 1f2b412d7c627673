"""The lower bound: levels that are crossed one after the other.

The forecasts are bet against the claim at every level of a grid (levels of ε, of μ, or
of another parameter of a claim's family). A level is *crossed* when the wealth against
it has reached 1/α, and the bound is the largest level such that it and all below it are
crossed. If the truth is at level ε*, the claims at all levels from ε* on are true, and
a bound of ε* or more needs the smallest of them to be crossed, which has probability at
most α. The claim is one of the levels, so "the bound reaches the claim" is the very
event that makes a verdict VIOLATED, and one α covers both statements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.claims.claim import Claim
from auditdp.numerics.arrays import Floats

GRID_RATIO = 1.01
"""Ratio of two neighbouring levels, which a bound may lose to the grid."""
LOWEST_LEVEL = 1e-3
"""Smallest level of a grid, except 0."""
HIGHEST_LEVEL = 64.0
"""Largest level of a grid; larger violations are not considered."""


def level_grid(claim: Claim, *, ratio: float = GRID_RATIO) -> Floats:
    """Return the increasing levels that a lower bound can take, the claim's among them.

    Levels are the claim times powers of ``ratio``, from 0.001 to 64, so a bound loses
    at most ``ratio`` to the grid. The levels of a claim of 0 are 0 and the powers, and
    the levels of an accountant's curve are those of its family.
    """
    if claim.levels is not None:
        return np.array(claim.levels)
    if claim.level == 0:
        return np.append(0.0, level_grid(claim.at(LOWEST_LEVEL), ratio=ratio))
    step = math.log(ratio)
    down = max(0, math.ceil(math.log(claim.level / LOWEST_LEVEL) / step))
    up = max(0, math.ceil(math.log(HIGHEST_LEVEL / claim.level) / step))
    grid = claim.level * ratio ** np.arange(-down, up + 1).astype(float)
    grid[down] = claim.level
    return np.asarray(grid)


def is_bound(claim: Claim) -> bool:
    """Return True if a refuted level bounds the parameter of the claim.

    It does so if the claims at all levels from the truth on are true, as of one ε, μ or
    ρ. A mechanism that exceeds a curve of a family does so somewhere, and its ε at the
    quoted δ may be smaller than the curve's.
    """
    return claim.levels is None


class Grid:
    """The levels that are bet against, and the anchors at which leaders are chosen.

    At a level the leaders of the anchor just below bet: there they still win if the
    truth is only a little above.

    Args:
        values: The levels, increasing.
        position: Index of the claim's level.

    Attributes:
        anchors: Indices of the anchors, equally spaced, the claim's level among them.
        anchor: For every level the place, among the anchors, of the anchor that chooses
            its leader.
        claim: The place of the claim's anchor.
    """

    def __init__(self, values: Floats, position: int) -> None:
        self.values, self.position = values, position
        spacing = LIMITS.anchor_spacing
        self.anchors = np.arange(position % spacing, len(values), spacing)
        places: NDArray[np.intp] = np.searchsorted(
            self.anchors, np.arange(len(values)), side="right"
        )
        self.anchor = np.maximum(places - 1, 0)
        self.claim = int(self.anchor[position])

    def __len__(self) -> int:
        return len(self.values)


def crossed(highest: Floats, alpha: float) -> int:
    """Return the number of crossed levels, counted from the smallest without a gap.

    Rounding goes towards "the claim looks true": a level counts as crossed only 1e-9
    above ln(1/alpha).

    Args:
        highest: The highest log wealth so far against each level, shape (levels,).
        alpha: The level of the test.
    """
    reached = highest >= math.log(1 / alpha) + NEGLIGIBLE
    return len(reached) if reached.all() else int(np.argmin(reached))


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Log factors of one batch.

    Attributes:
        leaders: Those of the leaders against every level, shape (levels,).
        at_anchors: Each forecaster's, had it bet there, at every anchor by each way,
            shape (forecasters, anchors, ways).
        right: Calls on which each forecaster's odds were beyond the claim's cap and on
            the side of the coin, shape (K,).
        wrong: Calls on which they were on the other side.
    """

    leaders: Floats
    at_anchors: Floats
    right: Floats
    wrong: Floats
