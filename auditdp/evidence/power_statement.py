"""What the calls of a game would have shown, and how many calls show a fault: `betting/power.py` for a game that is played.

With several pairs, the calls of the one that was played most are those that count.
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

SAME = (8, 32, 128, 512)
"""Calls on each input that are looked at, one after the other, while outputs are the same."""
SURELY = 3.0
"""So many times the calls that the best bet takes on average show a loss nearly always, whatever bets with it."""
MOST_CALLS = 10**9
"""Calls that are spent to find a fault, at most."""


def calls_of_pair(fault: Fault, game: Game, alpha: float) -> int:
    """Return how many calls of one pair find a fault there.

    Raises:
        ConfigurationError: If that is not known, or they are too many for all pairs.
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
    """Return whether the likelihood ratio takes part: on outputs that its law does not list it abstains."""
    return bool(game.names[0] == LikelihoodRatio.name and not game.unlisted)


def detectable(game: Game, alpha: float) -> tuple[float, str]:
    """Return the smallest level that the calls of the best-played pair would have refuted nine times in ten."""
    white_box, calls = _knows_the_law(game), _most_played(game)
    share = _share(game, white_box=white_box)
    return detectable_level(
        game.claim, calls=calls, alpha=alpha, share=share, white_box=white_box
    )


def rarely(game: Game, alpha: float) -> tuple[float, float]:
    """Return how rare what tells may be for a black box to refute the claim by it nine times in ten."""
    share = _share(game, white_box=False)
    return detectable_rarely(
        game.claim, calls=_most_played(game), alpha=alpha, share=share
    )


def calls_to_show(game: Game, alpha: float) -> int | None:
    """Return how many calls would refute the claim by the laws that were read off the pairs; None where none would."""
    won = max(
        (
            gain(game.claim, law)[0]
            for law in game.of_forecasters("stated")
            if law is not None
        ),
        default=0.0,
    )
    needed = SURELY * math.log(1 / alpha) / won if won > 0 else math.inf
    return math.ceil(needed) if needed < MOST_CALLS else None


def same_outputs(game: Game) -> int | None:
    """Return how many calls gave the same outputs on both inputs of every pair, with the same randomness.

    None where some differed, or too few calls were left. A pair of which all are the same shows no loss, whatever the
    noise. A mechanism that draws its own randomness is not looked at.
    """
    if not game.calls.seeded:
        return None
    for size in SAME:
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
    return SAME[-1]


def _most_played(game: Game) -> int:
    return max(table.calls for table in game.tables)


def _share(game: Game, *, white_box: bool) -> float:
    """Return the share of the wealth that the likelihood ratio, or a usual other forecaster, has from the start."""
    shares = game.wealth.shares
    own = shares[0] if white_box else float(np.median(shares))
    return own / (sum(shares) + game.wealth.leader)
