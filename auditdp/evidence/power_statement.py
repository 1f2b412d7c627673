"""The power of a game that is played: detectable levels, and calls that find a fault.

`betting/power.py` has the computations. With several pairs, the calls of the pair that
was played most count.
"""

from __future__ import annotations

import math

import numpy as np

from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.betting.power import (
    calls_to_find,
    detectable_level,
    detectable_rarely,
    gain,
)
from auditdp.errors import ConfigurationError, ExhaustedError, Timeout
from auditdp.record.budget import Fault

MOST_CALLS = 10**9
"""Largest number of calls that are spent to find a fault."""


def calls_of_pair(fault: Fault, game: Game, alpha: float) -> int:
    """Return the number of calls of one pair that find a fault there.

    Raises:
        ConfigurationError: If that is not known, or the calls of all pairs are too
            many.
    """
    white_box = fault.kind == "level" and _knows_the_law(game)
    share, pairs = _share(game, white_box=white_box), len(game.tables)
    calls = calls_to_find(
        fault, game.claim, alpha=alpha, share=share, white_box=white_box
    )
    if calls * pairs > MOST_CALLS:
        of_pairs = "" if pairs == 1 else f" ({calls:,} on each of {pairs} pairs)"
        raise ConfigurationError(
            f"find {fault}: {calls * pairs:,} calls{of_pairs} would find {fault.description} nine times in ten, and "
            f"{MOST_CALLS:,} are the most; find a larger fault, list fewer pairs, or name the calls"
        )
    return calls


def _knows_the_law(game: Game) -> bool:
    """Return True if the likelihood ratio takes part.

    It abstains on outputs that its law does not list.
    """
    return bool(game.names[0] == LikelihoodRatio.name and not game.unlisted)


def detectable(game: Game, alpha: float) -> tuple[float, str]:
    """Return the smallest level that the most-played pair would have refuted.

    Its calls would have refuted it nine times in ten.
    """
    white_box = _knows_the_law(game)
    return detectable_level(
        game.claim,
        calls=_most_played(game),
        alpha=alpha,
        share=_share(game, white_box=white_box),
        white_box=white_box,
    )


def rarely(game: Game, alpha: float) -> tuple[float, float]:
    """Return the rarest events by which a black box would have refuted the claim.

    It would have refuted it nine times in ten.
    """
    share, calls = _share(game, white_box=False), _most_played(game)
    return detectable_rarely(game.claim, calls=calls, alpha=alpha, share=share)


def calls_to_show(game: Game, alpha: float) -> int | None:
    """Return the number of calls that would refute the claim by the traced laws.

    Returns:
        The number, or None if none is large enough.
    """
    laws = [law for law in game.of_forecasters("stated") if law is not None]
    growth = max((gain(game.claim, law)[0] for law in laws), default=0.0)
    if growth <= 0:
        return None
    # Three times the calls that the best bet takes on average nearly always suffice.
    needed = 3.0 * math.log(1 / alpha) / growth
    return math.ceil(needed) if needed < MOST_CALLS else None


def same_outputs(game: Game) -> int | None:
    """Return the number of calls with equal outputs on both inputs of every pair.

    The calls on both inputs use the same randomness. A pair with equal outputs shows no
    loss, whatever the noise.

    Returns:
        The number, or None if some outputs differed, too few calls were left, or the
        mechanism draws its own randomness.
    """
    if not game.calls.seeded:
        return None
    for size in (8, 32, 128, 512):
        # Few calls nearly always show a difference, and end the comparison.
        seed = [int(game.streams("same outputs", size).integers(2**32)), size]
        for table in game.tables:
            sides = (table.pair.data, table.pair.neighbour)
            try:
                one, other = (
                    game.calls(data, size, np.random.default_rng(seed))
                    for data in sides
                )
            except (ExhaustedError, Timeout):
                return None
            if one.shape != other.shape or one.tobytes() != other.tobytes():
                return None
    return size


def _most_played(game: Game) -> int:
    return max(table.calls for table in game.tables)


def _share(game: Game, *, white_box: bool) -> float:
    """Return the initial share of the wealth of one forecaster.

    It is that of the likelihood ratio, or of the median of all.
    """
    shares = game.wealth.shares
    own = shares[0] if white_box else float(np.median(shares))
    return own / (sum(shares) + game.wealth.leader)
