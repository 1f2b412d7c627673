"""Findings of a game once more: on fresh randomness, on a smaller pair, and on outputs that were recorded.

A confirmation is a game of its own on one pair, at its own alpha, of calls that are made one by one: it confirms a pair that
keeps the claim with probability at most that alpha, for any finding and any pair that a search came to. It is for what
outputs of one call may share: a mechanism may keep its claim in single calls, and seem to break it in larger ones.
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
from auditdp.mechanism.calls.recording import Playback, Recorder
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.streams import Streams, prefixed
from auditdp.record.details import Confirmation

SHRINKING_ALPHA = 0.05
"""Level at which smaller pairs are looked for: what is found is confirmed at the audit's own."""


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
    """Replay the best pair on fresh randomness, with its own alpha, and return the game that was played.

    Its calls are made one by one, or have several outputs each unless ``singly``. There are at most ``most`` of them, and a
    game that has won nothing when a share ``patience`` of these has been made ends there.
    Where the mechanism draws from elsewhere, the game starts from nothing and its outputs are kept: they are all that it
    depends on, so that it can be played again from the record.
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
    """Look for the smallest pair that refutes the claim as the best pair did, and confirm it on fresh randomness.

    Return None where there is no smaller pair, or it was not confirmed.
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
    """Return what happened on fresh randomness."""
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
    """Play the confirmation of a finding again on the outputs that were recorded, and return its log wealth.

    Raises:
        ConfigurationError: If the outputs were not kept, or their pair is not one that the audit lists.
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
