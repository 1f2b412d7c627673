"""Repeat a finding: on fresh randomness, on a smaller pair, and on recorded outputs.

A confirmation is a game on one pair, at its own alpha, with calls that are made one by
one. If the pair satisfies the claim, the confirmation refutes it with probability at
most that alpha, however the finding and the pair were found. Single calls matter,
because outputs of one call may depend on each other: a mechanism may satisfy its claim
in single calls and seem to break it in calls of several outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game, checked_pairs
from auditdp.betting.pairs.search import smaller
from auditdp.claims.claim import Claim
from auditdp.errors import ConfigurationError
from auditdp.evidence.game_plan import PLAIN
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import MAIN, allowing
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.calls.recording import Playback, Recorder
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.streams import Streams, prefixed
from auditdp.record.details import Confirmation

SHRINKING_ALPHA = 0.05
"""Level of the search for smaller pairs. A smaller pair is then confirmed at the level of
the audit."""


@phase("confirmation")
def confirm(
    game: Game,
    streams: Streams,
    purpose: str,
    alpha: float,
    most: int,
    *,
    singly: bool = True,
    patience: float = 1.0,
) -> Game:
    """Play the best pair again on fresh randomness and return the game.

    If the mechanism draws from ``rng``, the forecasters keep what they have learned. If
    it draws its own randomness, they start anew, and the outputs of the confirmation
    are recorded: then ``play_again`` can repeat it from the record.

    Args:
        game: The game with the finding.
        streams: Random streams by purpose and batch.
        purpose: Name that keys the random streams.
        alpha: Level of the confirmation.
        most: Largest number of calls.
        singly: Whether calls are made one by one. Otherwise they have several outputs.
        patience: Share of ``most`` after which the confirmation ends unless its wealth
            is above the initial one.
    """
    calls = game.calls.singly() if singly else game.calls
    streams = prefixed(streams, purpose)
    if calls.seeded:
        fresh = game.confirmation(calls, streams)
    else:
        fresh = Game(
            Recorder(calls), game.claim, [game.best.pair], game.forecasters, streams
        )

    def gaining(made: int, wanted: int) -> bool:
        return made < patience * wanted or fresh.wealth.log_wealth > 0

    with allowing(most, share=MAIN):
        fresh.play(most, alpha=alpha, stop_when_refuted=True, going_on=gaining)
    return fresh


def confirm_smaller(
    game: Game, adjacency: Adjacency, streams: Streams, purpose: str, alpha: float
) -> Game | None:
    """Search for the smallest pair with the same finding, and confirm it.

    The search has the level ``SHRINKING_ALPHA``, and the confirmation the level
    ``alpha``.

    Returns:
        The game of the confirmation. None if no smaller pair was found, too few runs
        were left, or the finding on it was not confirmed.
    """
    with allowing(share=MAIN) as allowed:
        with allowing(MAIN * allowed.left, share=MAIN):
            small = smaller(game, adjacency, SHRINKING_ALPHA)
        if small is None:
            return None
        needed = PLAIN.confirmation_factor * (small.refuted_at or small.wealth.calls)
        fresh = confirm(small, streams, purpose, alpha, int(min(needed, allowed.left)))
    return fresh if fresh.wealth.refuted(alpha) else None


def confirmation_of(fresh: Game, alpha: float) -> Confirmation:
    """Return the record of a confirmation at level ``alpha``."""
    right, wrong = fresh.wealth.record_of_best
    return Confirmation(
        pair=str(fresh.best.pair),
        calls=fresh.wealth.calls,
        log_e_value=fresh.wealth.log_wealth,
        alpha=alpha,
        confirmed=fresh.wealth.refuted(alpha),
        forecaster=fresh.best_forecaster,
        bets=right + wrong,
        right=right,
        outputs=fresh.calls.recorded() if isinstance(fresh.calls, Recorder) else None,
    )


def play_again(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    confirmation: Confirmation,
    *,
    streams: Streams,
    forecasters: Sequence[Any] | None = None,
    play: Sequence[Pair] | None = None,
) -> float:
    """Repeat a confirmation on its recorded outputs, and return its log wealth.

    The mechanism is not called.

    Args:
        mechanism: The mechanism of the recorded outputs.
        claim: Its claim.
        adjacency: The adjacency, which checks the pairs.
        confirmation: The record of the confirmation, with its outputs.
        streams: Random streams by purpose and batch; those of the recorded audit.
        forecasters: The forecasters of the audit; None for
            ``default_forecasters(mechanism)``.
        play: The pairs of the audit; None for ``adjacency.pairs()``.

    Raises:
        ConfigurationError: If the outputs were not recorded or cannot be read, or if
            the audit does not play the pair of the confirmation.
    """
    listed = [
        pair
        for pair in checked_pairs(adjacency, play)
        if str(pair) == confirmation.pair
    ]
    if not listed:
        raise ConfigurationError(
            f"the pair of this finding, {confirmation.pair}, is not one that the audit lists; give it with play="
        )
    templates = (
        list(forecasters) if forecasters is not None else default_forecasters(mechanism)
    )
    recorded = Playback(Calls(mechanism), confirmation.outputs or {})
    game = Game(
        recorded, claim, listed[:1], templates, prefixed(streams, "confirmation")
    )
    game.play(confirmation.calls, alpha=confirmation.alpha, stop_when_refuted=True)
    return game.wealth.log_wealth
