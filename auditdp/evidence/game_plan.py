"""The beginning of a game, which decides how many calls it has and which pairs, and how it goes on from where it stopped."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from auditdp.adjacency import Adjacency
from auditdp.adjacency.remote_adjacency import AdjacencyElsewhere, TraceElsewhere
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.forecasters.traced import (
    ReplayedElsewhere,
    ReplayedRatio,
    RunBudget,
)
from auditdp.betting.game import Game, going_on, is_stopped
from auditdp.betting.pairs.search import propose, search_calls
from auditdp.betting.pairs.trace_summary import PROMISED, TraceLook
from auditdp.betting.pairs.traced_search import looked_by_trace
from auditdp.betting.power import gain
from auditdp.betting.wealth.levels import level_grid
from auditdp.claims.claim import Claim
from auditdp.errors import ConfigurationError, ExhaustedError, Timeout
from auditdp.evidence.power_statement import calls_of_pair
from auditdp.evidence.request import GameOptions, runs_alone
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import ASIDE, Allowance, allowance, allowing
from auditdp.mechanism.calls.calling import PROBES
from auditdp.mechanism.calls.independence import (
    check_calls,
    runs_in_processes,
    runs_to_look,
)
from auditdp.mechanism.calls.remote_mechanism import calls_of
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.rounding import SAME, same_number
from auditdp.numerics.streams import Streams
from auditdp.record.details import Part

FIRST = 2
"""Half of the calls go to the pairs that a trace proposes for a reason that it understood, before others are searched."""
FEW_PROBES, DEAR = 2, 1_000
"""Outputs that are made twice to see whether a mechanism draws from its generator alone, where runs are dear or so few."""
READING = 200
"""Runs, where they are bounded, from which on some are for laws that are read off."""
PLAYED = 0.6
"""Of the runs, where they are bounded, a game has so many, with its trace and its search; the others confirm a finding."""
TRACED = 0.6
"""Of these, so many are traced at most before a finding is promised."""
BROKEN = 0.05
"""Of the runs of a game that a broken pair has, so many are for the search of a worse one."""
SOON = 60
"""Runs in which a law is to promise a finding where a trace that understands all that is drawn proposes none."""
GAINING = 0.5
"""Nats from which on these go on to be played alone."""
TRACING = 1 / 4
"""Of the runs, a trace has so many at most, and laws that are read off have as many; those of the game are what is left."""
CONFIRMATION_FACTOR, CONFIRMATION_LEAST = 8, 4_000
"""Calls of a confirmation, relative to those that refuted the claim, and where there are more than that."""
FEWEST_KEPT = 200
"""Calls that are kept for a confirmation, at least, before more are played for a better bound."""
SHRINKING = 1 / 3
"""Of the calls that are left, a look for a smaller pair has so many, with its confirmation."""
TRYING, MOST_TRIED = 1 / 15, 400
"""Of the runs, so many try by other draws what a trace says of pairs, but no more than so many."""
AS_MANY = 2
"""Where calls are to find a fault, what comes after them has as many again."""


@dataclass
class PreparedGame:
    """A game that can begin.

    Attributes:
        game: The game, with its pairs.
        allowed: All runs of it and of what comes before and after it.
        calls: Of these, the ones until its end.
        is_dear: Whether a run is dear: ``calls`` is then the part of them that is not kept back for a confirmation.
        look: What a trace saw before it, where the code was traced.
        searched: Calls that the search for pairs took.
        to_find: What so many calls find, in words, where a fault is to be found.
        lacking: How many calls it lacks of those that find it.
        shrinks: Whether a finding is shown on a smaller pair.
    """

    game: Game
    allowed: Allowance
    calls: int
    is_dear: bool
    look: TraceLook | TraceElsewhere | None
    searched: int = 0
    to_find: str | None = None
    lacking: int = 0
    shrinks: bool = False

    @property
    def used(self) -> int:
        """All runs so far."""
        return self.allowed.made

    @property
    def to_believe(self) -> int:
        """Runs that show whether the calls of a finding are independent: they are kept from the first."""
        seeded = self.game.calls.seeded
        if self.is_dear:
            return runs_to_look(int(self.allowed.most), seeded=seeded, finding=False)
        needed = runs_to_look(self.calls, seeded=seeded)
        if self.game.refuted_at is not None:
            memory = self.game.best.memory
            constant = all(
                (side == side[:1]).all() for side in (memory.ones, memory.zeros)
            )
            needed += (
                runs_in_processes(runs_alone(self.game.claim), seeded=seeded)
                if constant
                else 0
            )
        return min(needed, self.calls // 2)

    @property
    def to_try(self) -> float:
        """Runs that try what a trace says of pairs: they are kept from the first, unless runs are dear."""
        return math.inf if self.is_dear else min(TRYING * self.calls, MOST_TRIED)

    @property
    def kept(self) -> int:
        """Runs that are not for the game, whether it refutes the claim or not; 0 where runs are dear."""
        return (
            0
            if self.is_dear
            else self.to_believe + (int(self.to_try) if self.look is not None else 0)
        )

    @property
    def to_play(self) -> int:
        """Runs until the end of the game, those before it included."""
        return int(min(self.calls, self.allowed.most - self.kept))

    @property
    def to_confirm(self) -> int:
        """Calls of a confirmation, at most."""
        wanted = max(
            CONFIRMATION_LEAST,
            CONFIRMATION_FACTOR * (self.game.refuted_at or self.game.wealth.calls),
        )
        return min(wanted, max(int(self.allowed.left) - self.to_believe, 0))

    def advance(
        self,
        total: float,
        *,
        alpha: float,
        stop_when_refuted: bool = True,
        watched: Callable[[int, int], bool] | None = going_on,
        first: int = 0,
    ) -> None:
        """Play until so many runs of all kinds have been made."""
        if (runs := int(total) - self.used) > 0 and not is_stopped():
            with allowing(runs):
                most = self.game.wealth.calls + runs
                self.game.play(
                    most,
                    alpha=alpha,
                    stop_when_refuted=stop_when_refuted,
                    going_on=watched,
                    first=first,
                )

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
    """Look at how calls draw, decide how many calls there are, and search for further pairs.

    What each of these takes is counted among the calls, and bounded by a share of them and of the time.
    """
    allowed, made, find, chosen = (
        allowance(),
        calls_of(mechanism),
        options.find,
        options.play or (),
    )
    if not find:
        most = (
            max(options.calls, options.proposed or 0)
            if options.within
            else options.calls
        )
        allowed.most = min(most + options.after, allowed.left)
    looked_at = chosen[:1] if options.within else chosen
    inputs = [data for pair in looked_at for data in (pair.data, pair.neighbour)]
    check_calls(
        made,
        inputs,
        streams,
        probes=FEW_PROBES if options.within or allowed.left < DEAR else PROBES,
    )
    traced = allowed.most if options.within else options.calls * TRACING
    with allowing(traced, share=ASIDE):
        look = _traced(made, claim, adjacency, options, streams)
    forecasters = (
        default_forecasters(mechanism)
        if options.forecasters is None
        else list(options.forecasters)
    )
    read = None
    if (
        options.forecasters is None
        and look is not None
        and not (options.within and options.calls < READING)
    ):
        with allowing(traced, share=ASIDE), suppress(ExhaustedError, Timeout):
            read = _replayed(made, claim, look, options, streams)
    promises = options.within and _promises(options, look, claim, read)
    if options.within:
        allowed.most = (
            options.calls
            if not promises or options.proposed is None
            else options.proposed
        )
    calls = int(PLAYED * allowed.most) if options.within else options.calls
    players = forecasters if read is None else [*forecasters, read]
    game = Game(
        made,
        claim,
        chosen,
        players,
        streams,
        levels=level_grid(claim) if options.bounded else None,
    )
    shrinks = options.search and not (options.stop_when_refuted or options.within)
    opened = PreparedGame(game, allowed, calls, options.within, look, shrinks=shrinks)
    each = calls_of_pair(find, game, options.alpha) if find else 0
    if find:
        wanted = max(calls, each * len(game.tables))
        opened.calls = min(wanted, options.most or wanted) + allowed.made
    won = look is not None and _is_won(opened, options, promises=promises)
    before = allowed.made
    if options.search and not won and not (options.within and _is_searched(look)):
        left = max(opened.to_play - before, 0)
        with allowing(left, share=ASIDE), suppress(ExhaustedError, Timeout):
            propose(game, adjacency, search_calls(left))
    opened.searched = allowed.made - before
    if find is None:
        return opened
    pairs = len(game.tables)  # those that were found, too
    opened.calls = max(calls, each * pairs) + allowed.made
    opened.lacking = max(opened.calls - (options.most or opened.calls), 0)
    opened.calls -= opened.lacking
    allowed.most = AS_MANY * opened.calls
    if not opened.lacking:
        opened.to_find = f"{each:,} on each pair of {pairs}, for {find.description}, nine times in ten (--find {find})"
    return opened


def _promises(
    options: GameOptions,
    look: TraceLook | TraceElsewhere | None,
    claim: Claim,
    read: ReplayedRatio | None,
) -> bool:
    """Return whether a trace, or a law that was read off, promises a finding, or a run is not what its accountant has."""
    assert not isinstance(
        look, TraceElsewhere
    )  # who trains and who judges are one process
    law, most = (
        None if read is None else read.promised,
        options.proposed or options.calls,
    )
    runs = (
        most
        if look is None or not look.is_traced
        else options.calls
        if look.is_sampled
        else SOON
    )
    promised = law is not None and gain(claim, law)[0] * PLAYED * runs > math.log(
        1 / options.alpha
    )
    return promised or (look is not None and look.is_suspect)


def _traced(
    calls: Calls,
    claim: Claim,
    adjacency: Adjacency,
    options: GameOptions,
    streams: Streams,
) -> TraceLook | TraceElsewhere | None:
    """Return what a trace saw of the pairs and, where pairs are searched, of others."""
    if not options.trace:
        return None
    seed, listed = int(streams("trace", 0).integers(2**32)), options.play or ()
    if isinstance(adjacency, AdjacencyElsewhere):
        return adjacency.traced(
            calls, listed, options.calls, seed, search=options.search
        )
    among = adjacency if options.search else None
    budget = _budget(options) if options.within else None
    return looked_by_trace(
        calls.mechanism,
        claim,
        listed,
        among,
        calls=options.calls if budget is None else int(PLAYED * options.calls),
        seed=seed,
        budget=budget,
    )


def _budget(options: GameOptions, *, suspect: bool = False) -> RunBudget:
    """Return the limits of an audit whose runs are all counted."""
    proposed = options.proposed or 0
    most = proposed or options.calls
    return RunBudget(
        total=most,
        before_game=int(TRACED * PLAYED * (most if suspect else options.calls)),
        for_worse_pair=int(BROKEN * PLAYED * proposed),
    )


def _replayed(
    calls: Calls,
    claim: Claim,
    look: TraceLook | TraceElsewhere,
    options: GameOptions,
    streams: Streams,
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
    return look.replayed(calls.form, claim, _budget(options, suspect=look.is_suspect))


def _is_won(opened: PreparedGame, options: GameOptions, *, promises: bool) -> bool:
    """Add the pairs that a trace proposes to a game; return whether the first calls refute the claim, where it says so.

    What is proposed for a reason that the trace understands is played before other pairs are searched: by then most such
    games have ended.
    """
    game, look = opened.game, opened.look
    assert look is not None  # else nothing is proposed
    for pair, promise in look.proposed:
        game.add(replace(pair, name=pair.name or "traced"), promise=promise)
    first = len(game.tables) - len(look.proposed)
    if all(promise != PROMISED for _, promise in look.proposed):
        if not promises:
            return False
        first = 0
    before = opened.used - game.wealth.calls
    room = opened.to_play - before
    few = int(PLAYED * options.calls) if opened.is_dear else room
    for most, least in (
        (min(few, room // FIRST), 0.0),
        (room // FIRST, GAINING),
        (room, GAINING),
    ):
        opened.advance(before + most, alpha=options.alpha, first=first)
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


def play(opened: PreparedGame, options: GameOptions) -> None:
    """Play a game to its verdict and then, unless it stops there, for a better bound.

    Where runs are dear and it gains, it goes on with as many as where the trace proposes a finding.
    """
    game, alpha = opened.game, options.alpha
    if not opened.is_dear:
        opened.advance(opened.to_play, alpha=alpha)
        if game.refuted_at is not None and not options.stop_when_refuted:
            room = opened.allowed.left - opened.kept
            confirming = min(
                max(CONFIRMATION_FACTOR * game.refuted_at, FEWEST_KEPT), room
            )
            kept = (
                opened.kept
                + confirming
                + SHRINKING * (room - confirming) * opened.shrinks
            )
            with allowing(share=ASIDE):
                total = min(opened.allowed.most - kept, opened.calls)
                opened.advance(total, alpha=alpha, stop_when_refuted=False)
        return
    named = opened.used - game.wealth.calls + options.calls
    opened.advance(
        min(opened.calls, named),
        alpha=alpha,
        stop_when_refuted=options.stop_when_refuted,
    )
    if game.refuted_at is not None or is_stopped():
        return
    if options.proposed is not None and game.wealth.log_wealth >= GAINING:
        opened.allowed.most, opened.calls = (
            options.proposed,
            int(PLAYED * options.proposed),
        )
    opened.advance(opened.calls, alpha=alpha)
    if game.refuted_at is None and not (
        options.stop_when_refuted and game.wealth.calls
    ):  # nothing is to be confirmed
        opened.calls = int(opened.allowed.most)
        opened.advance(opened.calls - opened.to_believe, alpha=alpha)


def go_on(opened: PreparedGame, options: GameOptions) -> list[Part]:
    """Play a game on, once for each goal, and return where it stopped, each time and last."""
    game, parts, alpha, recorded = (
        opened.game,
        [opened.stopped()],
        options.alpha,
        options.recorded,
    )
    for goal in options.further:
        won = game.wealth.log_wealth
        last = len(parts) == len(options.further)
        if last and recorded is not None and not same_number(won, recorded, near=SAME):
            raise ConfigurationError(
                f"the log wealth after {parts[-1].calls:,} calls is {won!r}, and {recorded!r} is "
                "recorded: the audit, the harness or a library has changed since, so this is another game; run it anew"
            )
        if isinstance(goal, int):
            opened.calls = opened.allowed.most = goal
        else:
            calls = calls_of_pair(goal, game, alpha) * len(game.tables)
            opened.calls = opened.used - game.wealth.calls + calls
            opened.allowed.most = AS_MANY * opened.calls
        play(opened, replace(options, stop_when_refuted=not options.bounded))
        parts.append(opened.stopped())
    return parts
