"""Recorded outputs played as a game: every part of the outputs is bet on, and nothing is split off to learn from.

The outputs of either input are handed out in random order, each at most once, to the input that a fair coin chooses. That
is what a mechanism does which is run on demand, so the wealth of the game (``auditdp/betting/wealth/regions.py``) is
a certificate here as there, for a delta and for the whole curve of Gaussian DP. The game ends when one of the two
records is used up, which depends on the coins alone; and since a level counts as certified when its wealth has *ever*
reached 1/alpha, ending early can only lose certificates.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.experts import ViewExperts
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.bounds.curves import OfClaim
from auditdp.bounds.result import Answer, Question
from auditdp.claims.base import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.numerics.arrays import Floats

SOURCE = "the bet against a whole privacy curve (Ville's inequality; auditdp/betting/wealth/regions.py)"
UNCLAIMED = 1.0
"""The level that leaders bet against first where nothing is claimed."""
KEPT_BACK = 4.0
"""Outputs that are left over, in units of the root of a record's length: coins are not thrown equally often either way."""


class _SpentError(MechanismError):
    """A record has no more outputs."""


class _Recorded:
    """A mechanism that returns what was recorded: input 1 is the first record, input 0 the second."""

    name = "the record"

    def __init__(self, first: Floats, second: Floats, rng: np.random.Generator) -> None:
        self._left = {1: rng.permutation(first), 0: rng.permutation(second)}

    def __call__(self, data: int, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Return the next outputs of one record."""
        left = self._left[data]
        if size > len(left):
            raise _SpentError(f"{len(left)} outputs are left, and {size} are needed")
        self._left[data] = left[size:]
        return left[:size]


def played(first: Floats, second: Floats, question: Question, seed: int) -> tuple[Answer, int]:
    """Return the bound, the p-value of the claim, and how many of the outputs were bet on.

    Outputs are of shape (n,) or (n, features); the seed is what their order and the coins are made from.
    """
    order, coins = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    claim = _claim(question)
    record = _Recorded(first, second, order)
    shorter = min(len(first), len(second))
    with suppress(_SpentError):
        game = Game(record, claim, [Pair(1, 0)], [ViewExperts()], lambda *_: coins, levels=level_grid(claim))
        with suppress(_SpentError):
            game.play(math.floor(2 * shorter - KEPT_BACK * math.sqrt(shorter)), alpha=question.alpha)
        wealth = game.wealth
        p_value = None if question.claim is None else math.exp(-wealth.highest)
        return Answer(wealth.lower_bound(question.alpha), p_value), wealth.calls
    return Answer(0.0, None if question.claim is None else 1.0), 0


def _claim(question: Question) -> Claim:
    curve, level = question.curve, UNCLAIMED if question.claim is None else question.claim
    if isinstance(curve, OfClaim):
        return curve.claim
    if curve.parameter == "mu":
        return GaussianDP(level)
    return ApproxDP(level, curve.delta) if curve.delta else PureDP(level)
