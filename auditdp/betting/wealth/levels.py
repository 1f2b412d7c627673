"""The lower bound: levels that are crossed one after the other.

The forecasts are bet against the claim at every level of a grid (levels of ε, of μ, or
of another parameter of a claim's family). A level is *crossed* when the wealth against
it has reached 1/α. The bound is the largest level such that it and all levels below it
are crossed. If the truth is at level ε*, the claims at all levels from ε* on are true.
For a bound of ε* or more, the smallest of these levels has to be crossed, which has
probability at most α. The claim is one of the levels, so "the bound reaches the claim"
is the very event that makes a verdict VIOLATED, and one α covers both statements.
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
"""Ratio of neighbouring levels. The grid lowers a bound by at most this factor."""
LOWEST_LEVEL = 1e-3
"""Level down to which a grid goes; its smallest level above 0 may be a step lower."""
HIGHEST_LEVEL = 64.0
"""Level up to which a grid goes; its largest level may be a step higher.

Larger violations are not considered.
"""


def level_grid(claim: Claim, *, ratio: float = GRID_RATIO) -> Floats:
    """Return the increasing levels that a lower bound can take, the claim's among them.

    The levels are the claim's level times powers of ``ratio``, from about 0.001 to 64.
    For a claim of level 0 they are 0, and 0.001 times powers of ``ratio``. For a claim
    from an accountant's curve they are the levels of its family.
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
    """Return True if a refuted level is a lower bound on the parameter of the claim.

    It is one for a claim with one parameter, such as ε, μ or ρ: all claims at larger
    levels than the truth are true. It is none for a family of curves: a mechanism may
    exceed a curve at one δ only, and have a smaller ε than the curve at the quoted δ.
    """
    return claim.levels is None


class Grid:
    """The levels that are bet against, and the anchors at which leaders are chosen.

    A level takes the leader of the nearest anchor that is not above it: if the truth is
    just above the level, that leader gains at the anchor already. Levels below the
    first anchor take its leader.

    Args:
        values: The levels, increasing.
        position: Index of the claim's level.

    Attributes:
        anchors: Indices of the anchors among the levels, equally spaced; the claim's
            level is one of them.
        anchor: For every level the place, in ``anchors``, of the anchor that chooses
            its leader.
        claim: The place, in ``anchors``, of the claim's level.
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

    Rounding goes towards "the claim looks true": a level counts as crossed only if its
    highest log wealth is 1e-9 above ln(1/alpha).

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
        leaders: Log factors of the leaders against every level, shape (levels,).
        at_anchors: Log factors that each forecaster would have at every anchor, by each
            way of betting, shape (forecasters, anchors, ways).
        right: Number of calls on which each forecaster's log-odds were beyond the
            claim's cap (its ε, or the first ε of its curve) and favoured the true coin,
            shape (forecasters,).
        wrong: Number of calls on which they were beyond the cap and favoured the other
            coin, shape (forecasters,).
    """

    leaders: Floats
    at_anchors: Floats
    right: Floats
    wrong: Floats
