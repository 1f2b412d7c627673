"""The beginning of a game, which decides how many calls it has and which pairs, and how it goes on from where it stopped."""

from __future__ import annotations

from dataclasses import dataclass

from auditdp.adjacency import Adjacency
from auditdp.betting.forecasting.forecasters import default_forecasters
from auditdp.betting.game import Game
from auditdp.betting.pairs import propose, search_calls
from auditdp.betting.watching import going_on
from auditdp.betting.wealth.levels import level_grid
from auditdp.claims.base import Claim
from auditdp.errors import ConfigurationError
from auditdp.evidence.game.power_line import calls_of_pair
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls.elsewhere import calls_of
from auditdp.mechanism.calls.independence import check_calls, outputs_to_look
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.randomness import Streams
from auditdp.numerics.rounding import SAME, same_number
from auditdp.record.details import Part


@dataclass(frozen=True)
class PreparedGame:
    """A game that can begin.

    Attributes:
        game: The game, with its pairs.
        calls: Its calls, those that are spent included.
        checked: Calls that the look at independence took.
        searched: Calls that the search for pairs took.
        to_find: What so many calls find, in words, where a fault is to be found.
        lacking: How many calls it lacks of those that find it.
    """

    game: Game
    calls: int
    checked: int
    searched: int
    to_find: str | None = None
    lacking: int = 0

    @property
    def spent(self) -> int:
        """Calls before the game."""
        return self.checked + self.searched

    @property
    def used(self) -> int:
        """All calls so far."""
        return self.game.wealth.calls + self.spent

    def stopped(self) -> Part:
        """Return what the game has played and won so far."""
        return Part(calls=self.used, log_e_value=self.game.wealth.log_wealth)


def open_game(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    options: GameOptions,
    streams: Streams,
) -> PreparedGame:
    """Look at how calls draw, decide how many calls there are, and search for further pairs."""
    made, find, calls, chosen = calls_of(mechanism), options.find, options.calls, options.play or ()
    check_calls(made, [chosen[0].data, chosen[0].neighbour], streams)
    forecasters = default_forecasters(mechanism) if options.forecasters is None else list(options.forecasters)
    game = Game(made, claim, chosen, forecasters, streams, levels=level_grid(claim) if options.bounded else None)
    least, each = calls, calls_of_pair(find, game, options.alpha) if find else 0
    if find:
        calls = _at_most(max(least, each * len(game.tables)), options.most)
    checked = outputs_to_look(calls)
    searched = propose(game, adjacency, search_calls(calls)) if options.search else 0
    if find is None:
        return PreparedGame(game, calls, checked, searched)
    pairs = len(game.tables)  # those that were found, too
    to_find = f"{each:,} on each pair of {pairs}, for {find.description}, nine times in ten (--find {find})"
    needed = max(least, checked + searched + each * pairs)
    calls = _at_most(needed, options.most)
    return PreparedGame(game, calls, checked, searched, to_find if calls == needed else None, needed - calls)


def _at_most(calls: int, most: int | None) -> int:
    return calls if most is None else min(calls, most)


def go_on(opened: PreparedGame, options: GameOptions) -> list[Part]:
    """Play a game on, once for each goal, and return where it stopped, each time and last."""
    game, parts, alpha, recorded = opened.game, [opened.stopped()], options.alpha, options.recorded
    for goal in options.further:
        won = game.wealth.log_wealth
        last = len(parts) == len(options.further)
        if last and recorded is not None and not same_number(won, recorded, near=SAME):
            raise ConfigurationError(
                f"the log wealth after {parts[-1].calls:,} calls is {won!r}, and {recorded!r} is "
                "recorded: the audit, the harness or a library has changed since, so this is another game; run it anew"
            )
        most = goal - opened.spent if isinstance(goal, int) else calls_of_pair(goal, game, alpha) * len(game.tables)
        game.play(most, alpha=alpha, stop_when_refuted=not options.bounded, going_on=going_on)
        parts.append(opened.stopped())
    return parts
