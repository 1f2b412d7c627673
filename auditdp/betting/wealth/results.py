"""What one batch of bets has come to."""

from __future__ import annotations

from dataclasses import dataclass

from auditdp.numerics.arrays import Floats


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
