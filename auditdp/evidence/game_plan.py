"""Plan a game: its calls, its pairs and its forecasters; and resume a recorded game.

There are two kinds of games. In a plain game a run is cheap: the game has a number of
calls, the trace and the search for pairs take a share of them, and a confirmation
follows. In a scarce game a run is expensive, such as a training (``Budget.is_scarce``):
all runs together have a limit, which is higher if the trace suggests that the claim is
false. ``open_game`` prepares a game, ``play`` plays it, and ``resume`` continues it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from auditdp.adjacency import Adjacency, Pair
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
from auditdp.evidence.request import GameOptions, processes_to_check_memory
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import ASIDE, Allowance, allowance, allowing
from auditdp.mechanism.calls.calling import PROBES
from auditdp.mechanism.calls.independence import (
    check_calls,
    runs_in_processes,
    runs_to_look,
)
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.calls.remote_mechanism import calls_of
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.rounding import SAME, same_number
from auditdp.numerics.streams import Streams
from auditdp.record.budget import AuditBudget
from auditdp.record.details import Part

Traced = TraceLook | TraceElsewhere
"""Result of a trace, in this process or in that of the mechanism."""


@dataclass(frozen=True)
class PlainPolicy:
    """Shares of the calls of a plain game. No benchmark varies these numbers."""

    trace: float = 1 / 4
    """Share of the calls for the trace. Fitting laws to it has the same share again."""
    prediction: float = 1 / 15
    """Share of the calls for tests of the trace's predictions with other draws."""
    max_predictions: int = 400
    """Limit of the calls for these tests."""
    confirmation_factor: int = 8
    """Calls of a confirmation, as a multiple of the calls that refuted the claim."""
    min_confirmation: int = 4_000
    """Smallest number of calls of a confirmation, if the budget has them."""
    min_kept: int = 200
    """Smallest number of calls that the game leaves for a confirmation.

    After the verdict the game continues with the other calls for a better bound.
    """
    smaller_pair: float = 1 / 3
    """Share of the remaining calls for the search of a smaller pair and its
    confirmation."""
    after_fault: int = 2
    """Limit of all runs, as a multiple of the calls that find the fault."""
    scarce_below: int = 1_000
    """Number of runs below which the check of the generator has two outputs per input.

    It checks that the mechanism draws from the given generator.
    """


@dataclass(frozen=True)
class ScarcePolicy:
    """Shares of the runs of a scarce game. No benchmark varies these numbers."""

    game: float = 0.6
    """Share of the runs for the trace, the search and the game.

    The other runs are kept for a confirmation.
    """
    laws: float = 0.6
    """Share of the game's runs that the trace and its laws may take before the game."""
    search: float = 0.05
    """Share of the game's runs for the search of a worse pair, once one pair breaks the
    claim."""
    min_runs_for_laws: int = 200
    """Smallest number of runs with which laws are fitted to the trace."""
    runs_to_contradict_trace: int = 60
    """Number of runs within which a fitted law has to predict a refutation.

    Only then does it override a complete trace that found nothing.
    """


PLAIN = PlainPolicy()
SCARCE = ScarcePolicy()
GAINING = 0.5
"""Smallest log wealth, in nats, at which a game counts as gaining and gets more runs."""


@dataclass
class PreparedGame:
    """A game that is ready to be played.

    Attributes:
        game: The game, with its pairs.
        allowed: The allowance of all runs before, in and after the game.
        calls: Planned number of runs until the end of the game, in all phases.
        options: The options of the game.
        look: The result of the trace; None if the code was not traced.
        searched: Number of runs that the search for pairs took.
        to_find: Phrase for the number of calls and the fault that they find; None if
            the budget names no fault or the calls do not suffice.
        lacking: Number of calls by which the game is too short to find the fault.
    """

    game: Game
    allowed: Allowance
    calls: int
    options: GameOptions
    look: Traced | None
    searched: int = 0
    to_find: str | None = None
    lacking: int = 0

    @property
    def is_scarce(self) -> bool:
        """True if a run is expensive."""
        return self.options.budget.is_scarce

    @property
    def shrinks(self) -> bool:
        """True if a smaller pair is searched for after a finding."""
        ends_early = self.options.stop_when_refuted or self.is_scarce
        return self.options.search and not ends_early

    @property
    def used(self) -> int:
        """Number of runs so far, in all phases."""
        return self.allowed.made

    @property
    def to_believe(self) -> int:
        """Number of runs that are kept for the check of independence."""
        seeded = self.game.calls.seeded
        if self.is_scarce:
            runs = int(self.allowed.most)
            return runs_to_look(runs, seeded=seeded, finding=False)
        needed = runs_to_look(self.calls, seeded=seeded)
        if self.game.refuted_at is not None and self._is_constant():
            processes = processes_to_check_memory(self.game.claim)
            needed += runs_in_processes(processes, seeded=seeded)
        return min(needed, self.calls // 2)

    def _is_constant(self) -> bool:
        """True if each input of the best pair had one and the same output in all calls."""
        memory = self.game.best.memory
        sides = (memory.ones, memory.zeros)
        return all((side == side[:1]).all() for side in sides)

    @property
    def to_predict(self) -> float:
        """Number of runs to test the trace's predictions; infinite in a scarce game."""
        if self.is_scarce:
            return math.inf
        return min(PLAIN.prediction * self.calls, PLAIN.max_predictions)

    @property
    def kept(self) -> int:
        """Number of runs that the game leaves for later checks; 0 in a scarce game.

        The confirmation of a finding is not counted.
        """
        if self.is_scarce:
            return 0
        if self.look is None:
            return self.to_believe
        return self.to_believe + int(self.to_predict)

    @property
    def to_play(self) -> int:
        """Total number of runs, of all phases, at which the game has to end.

        Later checks need the other runs (``kept``).
        """
        return int(min(self.calls, self.allowed.most - self.kept))

    @property
    def to_confirm(self) -> int:
        """Limit of the calls of a confirmation."""
        refuted_at = self.game.refuted_at or self.game.wealth.calls
        wanted = max(PLAIN.min_confirmation, PLAIN.confirmation_factor * refuted_at)
        return min(wanted, max(int(self.allowed.left) - self.to_believe, 0))

    def advance(
        self,
        total: float,
        *,
        alpha: float | None = None,
        stop_when_refuted: bool = True,
        watched: Callable[[int, int], bool] | None = going_on,
        first: int = 0,
    ) -> None:
        """Play until the total number of runs, of all phases, is ``total``.

        Nothing is played if this number is reached or the run is stopped.

        Args:
            total: Number of runs of all phases at which to stop.
            alpha: Level of the verdict; by default that of the options.
            stop_when_refuted: Whether to end at the verdict.
            watched: Called after each batch, and ends the game if it returns False; see
                ``Game.play``. None to play on.
            first: Index of the first pair that is played; pairs before it are left out.
        """
        runs = int(total) - self.used
        if runs <= 0 or is_stopped():
            return
        with allowing(runs):
            self.game.play(
                self.game.wealth.calls + runs,
                alpha=self.options.alpha if alpha is None else alpha,
                stop_when_refuted=stop_when_refuted,
                going_on=watched,
                first=first,
            )

    def stopped(self) -> Part:
        """Return the number of runs and the log wealth so far."""
        return Part(calls=self.used, log_e_value=self.game.wealth.log_wealth)


def open_game(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    options: GameOptions,
    streams: Streams,
) -> PreparedGame:
    """Return a game that is ready to be played.

    This checks the calls, traces the code, decides the number of calls, and searches
    for pairs. It may play the first calls already. All these runs count towards the
    budget.

    Raises:
        ExhaustedError: If the budget is too small for the check of the calls.
        MechanismError: If the calls do not draw from the generator that they get.
        ConfigurationError: If the number of calls that find the budget's fault is
            unknown or too large.
    """
    opening = _Opening(calls_of(mechanism), claim, adjacency, options, streams)
    if options.budget.is_scarce:
        return _open_scarce_game(opening)
    return _open_plain_game(opening)


@dataclass(frozen=True)
class _Opening:
    """The arguments of ``open_game``."""

    calls: Calls
    claim: Claim
    adjacency: Adjacency
    options: GameOptions
    streams: Streams

    @property
    def pairs(self) -> Sequence[Pair]:
        return self.options.play or ()

    def check_calls(self, pairs: Sequence[Pair], probes: int) -> None:
        """Check that calls on these pairs draw from the generator that they get.

        ``probes`` is the number of compared outputs per input.
        """
        inputs = [data for pair in pairs for data in (pair.data, pair.neighbour)]
        check_calls(self.calls, inputs, self.streams, probes=probes)

    def start(self, forecaster: ReplayedRatio | None) -> Game:
        """Return the game, with one more forecaster if the trace gave one."""
        forecasters = self.options.forecasters
        if forecasters is None:
            forecasters = default_forecasters(self.calls.mechanism)
        players = list(forecasters)
        if forecaster is not None:
            players.append(forecaster)
        # A control has to be refuted: its lower bound is of no use.
        levels = None if self.options.control else level_grid(self.claim)
        return Game(
            self.calls, self.claim, self.pairs, players, self.streams, levels=levels
        )

    def trace_seed(self) -> int:
        return int(self.streams("trace", 0).integers(2**32))

    def traced_adjacency(self) -> Adjacency | None:
        """The adjacency from which a trace may take further pairs; None for none."""
        return self.adjacency if self.options.search else None

    def can_read_laws(self, look: Traced | None) -> bool:
        """Return True if a forecaster may be derived from the trace.

        It is not derived if the audit names its forecasters, or the mechanism states
        its law, which gives a better forecaster. A mechanism that draws its own
        randomness cannot be replayed.
        """
        if look is None or self.options.forecasters is not None:
            return False
        stated = capabilities(self.calls.mechanism).knows_odds
        return self.calls.seeded and not stated


def _open_plain_game(opening: _Opening) -> PreparedGame:
    budget = opening.options.budget
    allowed = allowance()
    if budget.fault is None:
        allowed.most = min(budget.game_calls + budget.reserve, allowed.left)
    opening.check_calls(
        opening.pairs, probes=2 if allowed.left < PLAIN.scarce_below else PROBES
    )

    runs = PLAIN.trace * budget.game_calls
    look = None
    if opening.options.trace:
        with allowing(runs, share=ASIDE):
            look = _plain_trace(opening)
    forecaster = None
    if look is not None and opening.can_read_laws(look):
        with allowing(runs, share=ASIDE), suppress(ExhaustedError, Timeout):
            forecaster = _plain_forecaster(opening, look)

    game = opening.start(forecaster)
    opened = PreparedGame(game, allowed, budget.game_calls, opening.options, look)
    if budget.fault is not None:
        calls = _calls_to_find(opened)
        opened.calls = min(calls, budget.max_calls or calls) + allowed.made
    is_refuted = look is not None and _play_proposed_pairs(opened, look)
    if opening.options.control and not is_refuted:
        # Most controls are refuted without a search by calls.
        opened.advance(opened.to_play // 2)
        is_refuted = game.refuted_at is not None
    if opening.options.search and not is_refuted:
        _search_pairs(opened, opening.adjacency)
    if budget.fault is not None:
        _extend_to_find(opened)
    return opened


def _calls_to_find(opened: PreparedGame) -> int:
    """Return the number of calls that find the fault, in whichever pair it is."""
    budget, game = opened.options.budget, opened.game
    assert budget.fault is not None
    calls = calls_of_pair(budget.fault, game, opened.options.alpha)
    return max(budget.game_calls, calls * len(game.tables))


def _extend_to_find(opened: PreparedGame) -> None:
    """Set the number of calls again, with the pairs that the search added."""
    budget, game = opened.options.budget, opened.game
    assert budget.fault is not None
    # The runs so far, such as those of the search, come in addition.
    wanted = _calls_to_find(opened) + opened.used
    opened.lacking = max(wanted - (budget.max_calls or wanted), 0)
    opened.calls = wanted - opened.lacking
    opened.allowed.most = PLAIN.after_fault * opened.calls
    if not opened.lacking:
        pairs = len(game.tables)
        each = calls_of_pair(budget.fault, game, opened.options.alpha)
        opened.to_find = (
            f"{each:,} on each pair of {pairs}, for {budget.fault.description}, "
            f"with probability 9 in 10 (--find {budget.fault})"
        )


@phase("trace")
def _plain_trace(opening: _Opening) -> Traced:
    calls = opening.options.budget.game_calls
    seed = opening.trace_seed()
    if isinstance(opening.adjacency, AdjacencyElsewhere):
        return opening.adjacency.traced(
            opening.calls, opening.pairs, calls, seed, search=opening.options.search
        )
    return looked_by_trace(
        opening.calls.mechanism,
        opening.claim,
        opening.pairs,
        opening.traced_adjacency(),
        calls=calls,
        seed=seed,
    )


@phase("trace")
def _plain_forecaster(opening: _Opening, look: Traced) -> ReplayedRatio | None:
    if isinstance(look, TraceElsewhere):
        return ReplayedElsewhere() if look.reads() else None
    return look.replayed(opening.calls.form, opening.claim)


def _open_scarce_game(opening: _Opening) -> PreparedGame:
    budget = opening.options.budget
    allowed = allowance()
    most = max(budget.game_calls, budget.suspect_calls)
    allowed.most = min(most + budget.reserve, allowed.left)
    opening.check_calls(opening.pairs[:1], probes=2)

    look = None
    if opening.options.trace:
        with allowing(allowed.most, share=ASIDE):
            look = _scarce_trace(opening)
    forecaster = None
    has_runs = budget.game_calls >= SCARCE.min_runs_for_laws
    if look is not None and has_runs and opening.can_read_laws(look):
        # Without a law from traces, the game still has its other forecasters.
        with allowing(allowed.most, share=ASIDE), suppress(ExhaustedError, Timeout):
            forecaster = _scarce_forecaster(opening, look)

    is_suspect = _predicts_refutation(opening.claim, opening.options, look, forecaster)
    allowed.most = budget.suspect_calls if is_suspect else budget.game_calls
    game = opening.start(forecaster)
    calls = int(SCARCE.game * allowed.most)
    opened = PreparedGame(game, allowed, calls, opening.options, look)
    is_refuted = False
    if look is not None:
        is_refuted = _play_proposed_pairs(opened, look, is_suspect=is_suspect)
    is_searched = look is not None and _has_searched(look)
    if opening.options.search and not is_refuted and not is_searched:
        _search_pairs(opened, opening.adjacency)
    return opened


@phase("trace")
def _scarce_trace(opening: _Opening) -> TraceLook:
    return looked_by_trace(
        opening.calls.mechanism,
        opening.claim,
        opening.pairs,
        opening.traced_adjacency(),
        calls=int(SCARCE.game * opening.options.budget.game_calls),
        seed=opening.trace_seed(),
        budget=_run_budget(opening.options.budget),
    )


@phase("trace")
def _scarce_forecaster(opening: _Opening, look: TraceLook) -> ReplayedRatio | None:
    budget = _run_budget(opening.options.budget, is_suspect=look.is_suspect)
    return look.replayed(opening.calls.form, opening.claim, budget)


def _run_budget(budget: AuditBudget, *, is_suspect: bool = False) -> RunBudget:
    """Return the limits of the runs that precede a scarce game.

    They are larger if the trace suggests that the claim is false (``is_suspect``).
    """
    runs = budget.suspect_calls if is_suspect else budget.game_calls
    return RunBudget(
        total=budget.suspect_calls,
        before_game=int(SCARCE.laws * SCARCE.game * runs),
        for_worse_pair=int(SCARCE.search * SCARCE.game * (budget.if_suspect or 0)),
    )


def _predicts_refutation(
    claim: Claim,
    options: GameOptions,
    look: TraceLook | None,
    forecaster: ReplayedRatio | None,
) -> bool:
    """Return True if the trace or a fitted law predicts a refutation of the claim."""
    if look is not None and look.is_suspect:
        return True
    law = None if forecaster is None else forecaster.promised
    if law is None:
        return False
    budget = options.budget
    if look is None or not look.is_traced:
        runs = budget.suspect_calls
    elif look.is_sampled:
        runs = budget.game_calls
    else:
        runs = SCARCE.runs_to_contradict_trace
    growth, _ = gain(claim, law)
    return growth * SCARCE.game * runs > math.log(1 / options.alpha)


def _has_searched(look: TraceLook) -> bool:
    """Return True if the trace makes a search for other pairs unnecessary.

    The traced loss has to bound that of every compared pair, and the trace has to
    propose a pair. If records are sampled, the traced loss does not rank the pairs.
    Instead, their outputs, or the laws of their outputs, must have been compared.
    """
    if not look.covers:
        return False
    return look.is_compared if look.is_sampled else bool(look.proposed)


def _play_proposed_pairs(
    opened: PreparedGame, look: Traced, *, is_suspect: bool = False
) -> bool:
    """Add the pairs that the trace proposes; return whether playing them refutes the claim.

    If the trace predicts a refutation on one of them, they are played at once: most
    such games end before a search for other pairs. If it does not, but the claim is
    suspected to be false (``is_suspect``), all pairs of the game are played at once.
    Otherwise nothing is played, and the result is False.
    """
    game = opened.game
    for pair, promise in look.proposed:
        game.add(replace(pair, name=pair.name or "traced"), promise=promise)
    first = len(game.tables) - len(look.proposed)
    if all(promise != PROMISED for _, promise in look.proposed):
        if not is_suspect:
            return False
        first = 0
    before = opened.used - game.wealth.calls
    room = opened.to_play - before
    early = room
    if opened.is_scarce:
        early = int(SCARCE.game * opened.options.budget.game_calls)
    # Half of the calls are kept for the search until the bets gain.
    opened.advance(before + min(early, room // 2), first=first)
    if game.wealth.log_wealth >= 0.0:
        opened.advance(before + room // 2, first=first)
        if game.wealth.log_wealth >= GAINING:
            opened.advance(before + room, first=first)
    return game.refuted_at is not None


@phase("search")
def _search_pairs(opened: PreparedGame, adjacency: Adjacency) -> None:
    before = opened.used
    left = max(opened.to_play - before, 0)
    with allowing(left, share=ASIDE), suppress(ExhaustedError, Timeout):
        propose(opened.game, adjacency, search_calls(left))
    opened.searched = opened.used - before


def play(opened: PreparedGame, *, stop_when_refuted: bool) -> None:
    """Play a game to its verdict, and then for a better bound unless it stops there."""
    if opened.is_scarce:
        _play_scarce(opened, stop_when_refuted=stop_when_refuted)
        return
    opened.advance(opened.to_play)
    refuted_at = opened.game.refuted_at
    if refuted_at is None or stop_when_refuted:
        return
    # The game goes on for a better bound, and a confirmation needs fresh calls.
    room = opened.allowed.left - opened.kept
    wanted = max(PLAIN.confirmation_factor * refuted_at, PLAIN.min_kept)
    confirmation = min(wanted, room)
    kept = float(opened.kept + confirmation)
    if opened.shrinks:
        kept += PLAIN.smaller_pair * (room - confirmation)
    with allowing(share=ASIDE):
        total = min(opened.allowed.most - kept, opened.calls)
        opened.advance(total, stop_when_refuted=False)


def _play_scarce(opened: PreparedGame, *, stop_when_refuted: bool) -> None:
    """Play a scarce game to its verdict.

    If the bets gain, the game gets the runs of a game whose trace was suspicious.
    """
    game, budget = opened.game, opened.options.budget
    planned = opened.used - game.wealth.calls + budget.game_calls
    opened.advance(min(opened.calls, planned), stop_when_refuted=stop_when_refuted)
    if game.refuted_at is not None or is_stopped():
        return
    if budget.if_suspect is not None and game.wealth.log_wealth >= GAINING:
        opened.allowed.most = budget.if_suspect
        opened.calls = int(SCARCE.game * budget.if_suspect)
    opened.advance(opened.calls)
    # Without a refutation nothing needs confirmation, so the kept runs are played as well.
    is_over = stop_when_refuted and game.wealth.calls > 0
    if game.refuted_at is None and not is_over:
        opened.calls = int(opened.allowed.most)
        opened.advance(opened.calls - opened.to_believe)


def resume(opened: PreparedGame) -> list[Part]:
    """Continue a game once for each later goal of the budget.

    Returns:
        The runs and the log wealth at each stop and at the end.

    Raises:
        ConfigurationError: If the log wealth before the last goal differs from the
            recorded one.
    """
    game, options = opened.game, opened.options
    parts = [opened.stopped()]
    later = options.budget.later
    for number, goal in enumerate(later, start=1):
        if number == len(later) and options.recorded is not None:
            _check_recorded(parts[-1], options.recorded)
        if isinstance(goal, int):
            opened.calls = opened.allowed.most = goal
        else:
            calls = calls_of_pair(goal, game, options.alpha) * len(game.tables)
            opened.calls = opened.used - game.wealth.calls + calls
            opened.allowed.most = PLAIN.after_fault * opened.calls
        play(opened, stop_when_refuted=options.control)
        parts.append(opened.stopped())
    return parts


def _check_recorded(part: Part, recorded: float) -> None:
    if not same_number(part.log_e_value, recorded, near=SAME):
        raise ConfigurationError(
            f"the log wealth after {part.calls:,} calls is {part.log_e_value!r}, and "
            f"{recorded!r} is recorded: the audit, the harness or a library has changed "
            "since, so this is another game; run it anew"
        )
