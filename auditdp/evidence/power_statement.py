"""The power of a played game: detectable levels, and calls that find a fault.

``betting/power.py`` has the computations. The power of a game with several pairs is
that of the pair with the most calls.
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
    """Return the number of calls on one pair that find a fault there nine times in ten.

    Raises:
        ConfigurationError: If this number is unknown, or times the number of pairs
            exceeds ``MOST_CALLS``.
    """
    white_box = fault.kind == "level" and _knows_the_law(game)
    share, pairs = _share(game, white_box=white_box), len(game.tables)
    calls = calls_to_find(
        fault, game.claim, alpha=alpha, share=share, white_box=white_box
    )
    if calls * pairs > MOST_CALLS:
        of_pairs = "" if pairs == 1 else f" ({calls:,} on each of {pairs} pairs)"
        raise ConfigurationError(
            f"find {fault}: {calls * pairs:,} calls{of_pairs} would find {fault.description} with probability 9 in 10, "
            f"and the limit is {MOST_CALLS:,}; find a larger fault, list fewer pairs, or name the calls"
        )
    return calls


def _knows_the_law(game: Game) -> bool:
    """Return True if the stated law gave a forecast for every output of the game.

    The likelihood ratio abstains on outputs that its law does not list.
    """
    return bool(game.names[0] == LikelihoodRatio.name and not game.unlisted)


def detectable(game: Game, alpha: float) -> tuple[float, str]:
    """Return the smallest level that the calls would have refuted nine times in ten.

    The calls are those of the pair with the most calls.

    Returns:
        The level of the claim's parameter, which may be infinite, and the description
        of a mechanism that has exactly this level.
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
    """Return probabilities of the rarest outputs that would have refuted a pure claim.

    A forecaster that does not know the law would have refuted it nine times in ten, by
    the calls of the pair with the most calls.

    Returns:
        The probability of outputs that lose twice the claim, and that of an output that
        only one input gives; 1.0 if no probability suffices.
    """
    share, calls = _share(game, white_box=False), _most_played(game)
    return detectable_rarely(game.claim, calls=calls, alpha=alpha, share=share)


def calls_to_show(game: Game, alpha: float) -> int | None:
    """Return the number of calls that would nearly always refute the claim.

    It assumes that outputs follow the laws that the game's forecasters have, such as
    the laws of a trace.

    Returns:
        The number, or None if no forecaster has a law that breaks the claim, or the
        number is at least ``MOST_CALLS``.
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
        512, the number of calls on each input in the last comparison. None if some
        outputs differed, too few calls were left, or the mechanism draws its own
        randomness.
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
    """Return the share of the initial wealth that one forecaster has.

    Args:
        game: The game.
        white_box: True for the share of the likelihood ratio, False for the median of
            the shares of all forecasters.
    """
    shares = game.wealth.shares
    own = shares[0] if white_box else float(np.median(shares))
    return own / (sum(shares) + game.wealth.leader)
