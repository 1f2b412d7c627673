"""The beginning of a game, which decides how many calls it has and which pairs, and how it goes on from where it stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from auditdp.adjacency import Adjacency
from auditdp.adjacency.elsewhere import AdjacencyElsewhere, TraceElsewhere
from auditdp.betting.forecasting.forecasters import default_forecasters
from auditdp.betting.forecasting.replayed import ReplayedElsewhere, ReplayedRatio
from auditdp.betting.game import Game
from auditdp.betting.pairs import propose, search_calls
from auditdp.betting.power import gain
from auditdp.betting.trace_look import PROMISED, TraceLook
from auditdp.betting.traced_pairs import looked_by_trace
from auditdp.betting.watching import going_on, is_stopped
from auditdp.betting.wealth.levels import level_grid
from auditdp.claims.base import Claim
from auditdp.errors import ConfigurationError
from auditdp.evidence.game.power_line import calls_of_pair
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.elsewhere import calls_of
from auditdp.mechanism.calls.independence import check_calls, outputs_to_look
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.randomness import Streams
from auditdp.numerics.rounding import SAME, same_number
from auditdp.record.details import Part

FIRST = 2
"""Half of the calls go to the pairs that a trace proposes for a reason that it understood, before others are searched."""
READING = 200
"""Runs, where they are bounded, from which on some are for laws that are read off."""
PLAYED = 0.6
"""Of the runs, where they are bounded, a game has so many, with its trace and its search; the others confirm a finding."""
TRACED = 0.6
"""Of these, so many are traced at most before a finding is promised."""
BROKEN = 0.05
"""Of the runs of a game that a broken pair has, so many are for the search of a worse one."""
ENOUGH = 3.0
"""Where runs are bounded, a traced loss of so many times the claim is played before others are looked for."""
SOON = 60
"""Runs in which a law is to promise a finding where a trace that understands all that is drawn proposes none."""
GAINING = 0.5
"""Nats from which on these go on to be played alone."""


@dataclass(frozen=True)
class RunLimit:
    """Runs of all kinds, where they are bounded.

    Attributes:
        most: Runs at most.
        look: The trace, whose runs are among them, where the code was traced.
        promises: Whether the trace, or a law that was read off, gives reason to expect a finding.
    """

    most: int
    look: TraceLook | None
    promises: bool = False

    @property
    def traced(self) -> int:
        """Runs of the trace so far."""
        return self.look.runs if self.look is not None else 0

    @property
    def game(self) -> int:
        """Runs that a game has, with its trace and its search."""
        return int(PLAYED * self.most)


@dataclass(frozen=True)
class PreparedGame:
    """A game that can begin.

    Attributes:
        game: The game, with its pairs.
        calls: Its calls, those that are spent included.
        checked: Calls that the look at independence took.
        searched: Calls that the search for pairs took.
        look: What a trace saw before it, where the code was traced.
        limit: Of runs of all kinds, where there is one; ``calls`` is then the part of them that is not kept back for a
            confirmation.
        to_find: What so many calls find, in words, where a fault is to be found.
        lacking: How many calls it lacks of those that find it.
    """

    game: Game
    calls: int
    checked: int
    searched: int
    look: TraceLook | TraceElsewhere | None = None
    limit: RunLimit | None = None
    to_find: str | None = None
    lacking: int = 0

    @property
    def spent(self) -> int:
        """Calls before the game; where runs are bounded, those of the trace are among them."""
        return self.checked + self.searched + (self.limit.traced if self.limit is not None else 0)

    @property
    def used(self) -> int:
        """All calls so far."""
        return self.game.wealth.calls + self.spent

    @property
    def left(self) -> int | None:
        """Runs that may still be made, at least one; None where they are not bounded."""
        return None if self.limit is None else max(self.limit.most - self.used, 1)

    def is_left(self, made: int, most: int, *, more: bool = False) -> bool:
        """Return whether runs are left for further calls of its game, or with ``more`` of another one that has made some."""
        return self.limit is None or self.used + (made if more else 0) < self.limit.most

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
    looked_at = chosen[:1] if options.within else chosen
    check_calls(made, [data for pair in looked_at for data in (pair.data, pair.neighbour)], streams)
    look = _traced(made, claim, adjacency, options, streams)
    forecasters = default_forecasters(mechanism) if options.forecasters is None else list(options.forecasters)
    read = None
    if options.forecasters is None and look is not None and not (options.within and options.calls < READING):
        read = _replayed(made, claim, look, options, streams)
    limit = _limit(options, look, claim, read)
    calls = calls if limit is None else max(limit.game - limit.traced, 1)
    players = forecasters if read is None else [*forecasters, read]
    game = Game(made, claim, chosen, players, streams, levels=level_grid(claim) if options.bounded else None)
    least, each = calls, calls_of_pair(find, game, options.alpha) if find else 0
    if find:
        calls = _at_most(max(least, each * len(game.tables)), options.most)
    checked = outputs_to_look(calls)
    won = look is not None and _is_won(game, look, calls - checked, options, limit)
    searches = options.search and not won and not (limit is not None and _is_searched(look))
    searched = propose(game, adjacency, search_calls(calls - game.wealth.calls)) if searches else 0
    if find is None:
        return PreparedGame(game, calls if limit is None else limit.game, checked, searched, look, limit)
    pairs = len(game.tables)  # those that were found, too
    to_find = f"{each:,} on each pair of {pairs}, for {find.description}, nine times in ten (--find {find})"
    needed = max(least, checked + searched + each * pairs)
    calls = _at_most(needed, options.most)
    return PreparedGame(
        game, calls, checked, searched, look, None, to_find if calls == needed else None, needed - calls
    )


def _limit(
    options: GameOptions, look: TraceLook | TraceElsewhere | None, claim: Claim, read: ReplayedRatio | None
) -> RunLimit | None:
    """Return the limit of runs, where there is one.

    It is higher where a trace, or a law that was read off, promises a finding, or runs are not what an accountant was told.
    """
    if not options.within:
        return None
    assert not isinstance(look, TraceElsewhere)  # who trains and who judges are one process
    law, most = None if read is None else read.promised, options.proposed or options.calls
    runs = most if look is None or not look.is_traced else options.calls if look.is_sampled else SOON
    promised = law is not None and gain(claim, law)[0] * PLAYED * runs > math.log(1 / options.alpha)
    promises = promised or (look is not None and look.is_suspect)
    return RunLimit(most if promises else options.calls, look, promises)


def _traced(
    calls: Calls, claim: Claim, adjacency: Adjacency, options: GameOptions, streams: Streams
) -> TraceLook | TraceElsewhere | None:
    """Return what a trace saw of the pairs and, where pairs are searched, of others."""
    if not options.trace:
        return None
    seed, listed = int(streams("trace", 0).integers(2**32)), options.play or ()
    if isinstance(adjacency, AdjacencyElsewhere):
        return adjacency.traced(calls, listed, options.calls, seed, search=options.search)
    among = adjacency if options.search else None
    share, enough = (PLAYED, ENOUGH) if options.within else (1.0, math.inf)
    runs, more = int(share * options.calls), int(BROKEN * share * (options.proposed or 0))
    return looked_by_trace(calls.mechanism, claim, listed, among, calls=runs, seed=seed, enough=enough, more=more)


def _replayed(
    calls: Calls, claim: Claim, look: TraceLook | TraceElsewhere, options: GameOptions, streams: Streams
) -> ReplayedRatio | None:
    """Return the forecaster by the replayed ratio, where laws can be read off the pair that promises most.

    A mechanism that states its law has a better one. A finding of one that draws from elsewhere has to be played again
    without running it, which a trace cannot be.
    """
    if not calls.seeded or capabilities(calls.mechanism).knows_odds:
        return None
    if isinstance(look, TraceElsewhere):
        return ReplayedElsewhere() if look.reads() else None
    if not options.within:
        return look.replayed(calls.form, claim)
    most = options.proposed or options.calls
    until = TRACED * PLAYED * (most if look.is_suspect else options.calls)
    return look.replayed(calls.form, claim, few=most, until=until)


def _is_won(
    game: Game, look: TraceLook | TraceElsewhere, calls: int, options: GameOptions, limit: RunLimit | None
) -> bool:
    """Add the pairs that a trace proposes to a game; return whether the first calls refute the claim, where it says so.

    What is proposed for a reason that the trace understands is played before other pairs are searched: by then most such
    games have ended.
    """
    for pair, promise in look.proposed:
        game.add(replace(pair, name=pair.name or "traced"), promise=promise)
    first = len(game.tables) - len(look.proposed)
    if all(promise != PROMISED for _, promise in look.proposed):
        if limit is None or not limit.promises:
            return False
        first = 0
    few = calls if limit is None else int(PLAYED * options.calls)
    for most, least in ((min(few, calls // FIRST), 0.0), (calls // FIRST, GAINING), (calls, GAINING)):
        game.play(most, alpha=options.alpha, stop_when_refuted=True, going_on=going_on, first=first)
        if game.wealth.log_wealth < least:
            break
    return game.refuted_at is not None


def _is_searched(look: TraceLook | TraceElsewhere | None) -> bool:
    """Return whether a trace has found a pair to play, and its loss bounds that of the output on all that it looked at.

    Where records are drawn, the loss does not tell which pair that is: their outputs, or laws of these, have to be compared.
    """
    if not isinstance(look, TraceLook) or not look.covers:
        return False
    return look.is_compared if look.is_sampled else bool(look.proposed)


def _at_most(calls: int, most: int | None) -> int:
    return calls if most is None else min(calls, most)


def play(opened: PreparedGame, options: GameOptions) -> PreparedGame:
    """Play a game; where runs are bounded, and it gains, on to the verdict with as many as where the trace proposes one."""
    game, alpha = opened.game, options.alpha
    calls = opened.calls - opened.spent
    limit = opened.limit
    first = calls if limit is None else min(calls, options.calls)

    def within(made: int, most: int) -> bool:  # forecasters may ask the code of outputs, which are runs as well
        return going_on(made, most) and (limit is None or opened.used < opened.calls)

    game.play(first, alpha=alpha, stop_when_refuted=options.stop_when_refuted, going_on=within)
    if limit is not None and game.refuted_at is None and not is_stopped():
        if options.proposed is not None and game.wealth.log_wealth >= GAINING:
            limit = replace(limit, most=options.proposed)
            opened = replace(opened, calls=limit.game, limit=limit)
        game.play(opened.calls - opened.spent, alpha=alpha, stop_when_refuted=True, going_on=within)
        if game.refuted_at is None and not options.stop_when_refuted:  # there is nothing to confirm
            opened = replace(opened, calls=limit.most, checked=outputs_to_look(limit.most))
            game.play(opened.calls - opened.spent, alpha=alpha, stop_when_refuted=True, going_on=within)
    return opened


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
