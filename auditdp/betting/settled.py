"""What one batch of bets has come to."""

from __future__ import annotations

from dataclasses import dataclass

from auditdp.dominating import Floats


@dataclass(frozen=True, eq=False)
class Settled:
    """Log factors of one batch.

    Attributes:
        own: What each forecaster won against the claim, by each way of betting, shape (forecasters, ways).
        led: What the leaders won against every level, shape (levels,).
        won: What each forecaster won, or would have, at every anchor, by each way, shape (forecasters, anchors, ways).
        right: Calls on which each forecaster's odds were beyond the claim's cap and on the side of the coin, shape (K,).
        wrong: Calls on which they were on the other side.
    """

    own: Floats
    led: Floats
    won: Floats
    right: Floats
    wrong: Floats
