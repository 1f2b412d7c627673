"""The replayed ratio: the likelihood ratio of an output, by laws from traced runs.

Before a pair is played, the code is traced on it a few times (``auditdp.tracing``). A
run is recorded on each input and replayed on the other. There are several *ways* to
derive laws from these runs, and the first way that applies is used:

- the densities of noisy numbers that the output determines (`traced_release.py`), or
  replays of the code with these numbers (`traced_replay.py`);
- tables (`traced_outcomes.py`): the probabilities of all outputs if there are few, or
  numbers that only one input gives because a value bypasses the noise;
- laws that are fitted to several runs (`traced_subsampling.py`, `traced_shift.py`,
  `normal_laws.py`).

**Why bets by it are valid, even if the trace is wrong.** The laws that are derived for
a pair before its first call are a function f from outputs to log-odds, and f is fixed
from then on. The traced runs have randomness of their own, which no call of the game
shares, so f does not depend on later calls. The log-odds of a call are f of that call's
output: they depend neither on its coin nor on its input. So they are forecasts like any
others, and the expected factor of bets by them is at most 1 if the claim is true, for
any f (``betting/wealth/regions.py``). A wrong f loses its stake.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.pair_search import key
from auditdp.betting.forecasters.normal_laws import by_change, by_threshold
from auditdp.betting.forecasters.traced_noise import Ratio, TracedRuns
from auditdp.betting.forecasters.traced_outcomes import by_table, by_values
from auditdp.betting.forecasters.traced_release import by_releases
from auditdp.betting.forecasters.traced_replay import by_replay
from auditdp.betting.forecasters.traced_shift import by_shift
from auditdp.betting.forecasters.traced_subsampling import RatioByParts, ratio_by_parts
from auditdp.betting.power import gain
from auditdp.betting.wealth.forecasts import Law
from auditdp.claims.claim import Claim
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array, as_mechanism, is_vectorised
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace, Trace, compare, in_full
from auditdp.tracing.chance import is_sample
from auditdp.tracing.outcomes import MOST_RUNS

FittedRatio = tuple[Ratio, Law | None]
"""A function from rows to log-odds, and the law of these log-odds; None if unknown."""
Result = TypeVar("Result")
Way = Callable[["ReplayedRatio", Pair, Representation], FittedRatio | None]
"""A way to derive the log-odds of a pair from runs of the code; None if it fails."""

TYPICAL_FINAL_LOG_WEALTH = 3.0
"""Log wealth at which a game typically ends, in nats."""
SHORT_GAME = 40
"""Largest number of calls of a short game, which needs no better pair or law."""
PAIRED_RUN_SCHEDULE = (8, 16, 32, 96, 400)
"""Runs per input for fits of two normal laws, one after the other.

The next fit is made if its runs cost less than the calls that it saves.
"""
SUBSAMPLED_RUN_SCHEDULE = (48, 192)
"""Runs per input for fits of a law if records are sampled or shuffled."""


@dataclass(frozen=True)
class RunBudget:
    """Limits of an audit in which each run is expensive, as a training is.

    Attributes:
        total: Largest number of runs of all kinds, including those of the game.
        before_game: Largest number of runs before the game; all others are reserved for
            the game.
        for_worse_pair: Number of runs, with all earlier ones, up to which a search for
            a worse pair goes on once a pair violates the claim; 0 for no longer search.
    """

    total: int
    before_game: int
    for_worse_pair: int = 0


@dataclass(eq=False)
class _PairRuns:
    """The runs of a pair, and the law that was derived from them.

    Attributes:
        traces: Comparisons of both inputs; the index of a comparison selects its draws.
        outputs: Outputs of further runs on the data, and on the neighbour with the same
            draws, run by run.
        law: The log-odds and their law, once ``reads_one_of`` has derived them; None
            before. With a run budget, only the chosen pair has them.
    """

    traces: list[PairTrace] = field(default_factory=list)
    outputs: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    law: FittedRatio | None = None


class ReplayedRatio:
    """Forecasts by laws from traced runs.

    It abstains on outputs that are unlike the traced ones.

    Args:
        trace: Trace of the mechanism.
        claim: The claim of the game.
        seed: The seed of the traced runs.
        ways: The ways to derive laws, in the order in which they are tried; by default
            ``WAYS``.
        budget: The run budget, or None if runs are cheap.

    Attributes:
        abstained: Number of outputs so far that were unlike the traced ones.
        stated: The law of the log-odds, or None if it is not estimated.
    """

    name = "replayed ratio"
    # With 4 and with 64, refutations take 2 % more calls in 22 games.
    share = 16.0
    calibrated = is_read = True
    stated: Law | None = None
    _fitted: Ratio | None = None
    _ratio: Ratio | None = None

    def __init__(
        self,
        trace: Trace,
        claim: Claim,
        *,
        seed: int,
        ways: Sequence[Way] = (),
        budget: RunBudget | None = None,
    ) -> None:
        self.trace, self.claim, self.seed = trace, claim, seed
        self.budget = budget
        self.abstained = 0
        self.ways: Sequence[Way] = ways or WAYS
        self._best: Pair | None = None
        self._runs: dict[Any, _PairRuns] = {}

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Trace a pair, and return its forecaster, which abstains if no way applies."""
        bound = copy.copy(self)
        found = self._read(pair, mechanism.form, self.ways)
        if found is None:
            return bound
        bound._fitted, bound.stated = found
        return bound.afresh()

    def afresh(self) -> Self:
        """Return a copy for another game, with a new limit of replays."""
        again = copy.copy(self)
        again._ratio = copy.copy(self._fitted)
        return again

    def reads_one_of(self, pairs: Sequence[Pair], form: Representation) -> Pair | None:
        """Choose the pair to play, and fix the way to derive laws from then on.

        Returns:
            The pair with the largest expected growth. With a run budget, the first pair
            with an expected short game, if there is one. None if no law can be derived
            for either of the first two pairs.
        """
        self._best = None
        ways = self.ways
        fits: list[tuple[float, Pair, FittedRatio]] = []
        unread = 0
        for pair in pairs:
            for way in ways:
                fitted = self._read(pair, form, (way,))
                if fitted is not None:
                    break
            if fitted is None:
                unread += 1
                # Ways that fail on two pairs fail on most others, and cost runs.
                if unread == 2 and not fits:
                    break
                continue
            # The way that applies to this pair is used for all further pairs.
            ways = (way,)
            growth = math.inf if fitted[1] is None else self._growth(fitted[1])
            fits.append((growth, pair, fitted))
            # If runs are cheap, all pairs are compared to find the shortest game.
            is_cheap = self.budget is None and fitted[1] is not None
            if not is_cheap and _ends_soon(growth):
                break
        if not fits:
            return None
        # If no expected growth is positive, the first pair is chosen.
        _, best, _ = max(fits, key=lambda each: max(each[0], 0.0))
        for _, pair, fitted in fits:
            # With a run budget, the runs are for the game on the chosen pair.
            if self.budget is None or pair is best:
                self._of(pair).law = fitted
        self._best = best
        self.ways = tuple(dict.fromkeys((self.ways[0], *ways)))
        return best

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-odds of each output; 0 for outputs unlike the traced ones."""
        if self._ratio is None:
            return np.zeros(len(outputs))
        odds = self._ratio(outputs.reshape(len(outputs), -1))
        self.abstained += int(np.isnan(odds).sum())
        return np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf)

    @property
    def promised(self) -> Law | None:
        """The law of the log-odds of the chosen pair.

        It is None if no pair is chosen, or if the law is not estimated.
        """
        if self._best is None:
            return None
        fitted = self._of(self._best).law
        return fitted and fitted[1]

    def best_subsampled_pair(
        self, pairs: Sequence[Pair], form: Representation
    ) -> Pair | None:
        """Compare pairs by a small number of runs, for code that samples records.

        Returns:
            The first pair with an expected short game, or else the pair with the most
            distant laws. None if no pair has different laws in these runs.
        """
        best, largest = None, 0.0
        with self.trace:
            for runs in (16, 64):
                for pair in pairs:
                    if pair is pairs[0] and largest:
                        return best
                    # The law of the chosen pair needs further runs.
                    reserved = 2 * SUBSAMPLED_RUN_SCHEDULE[0] + 8
                    if not self._affords(2 * runs + reserved):
                        return best
                    found = _attempted(partial(self.by_parts, pair, form, runs))
                    if found is None:
                        continue
                    if found.read and _ends_soon(self._growth(found.read[1])):
                        return pair
                    if found.distance > largest:
                        best, largest = pair, found.distance
        return best

    def by_parts(
        self, pair: Pair, form: Representation, runs: int
    ) -> RatioByParts | None:
        """Fit a law for code that samples records, by ``runs`` runs on each input.

        Returns:
            The fit. None if the budget is too small, if the code samples no records, or
            if the output does not determine its noisy values.
        """
        if not self._affords(2 * runs) or self._is_hidden(pair):
            return None
        rows_of = partial(self._rows, form=form)
        return ratio_by_parts(self.trace, pair, rows_of, runs=runs, seed=self.seed)

    def compare(self, pair: Pair, number: int) -> PairTrace:
        """Return a comparison of both inputs of a pair; ``number`` selects its draws.

        Comparisons are cached. New numbers have to be used in order, from 0 on.
        """
        traces = self._of(pair).traces
        if number < len(traces):
            return traces[number]
        # The search for pairs uses the seed without the last number.
        rng = np.random.default_rng([self.seed, number, 1])
        inputs = (pair.data, pair.neighbour)
        made = compare(self.trace, *inputs, rng, claim=self.claim, outcomes=0)
        traces.append(made)
        return made

    def keep(self, runs: dict[Any, list[PairTrace]]) -> None:
        """Store comparisons of earlier runs, by the keys of their pairs, for reuse."""
        for name, traces in runs.items():
            self._runs[name] = _PairRuns(traces)

    def _read(
        self, pair: Pair, form: Representation, ways: Sequence[Way]
    ) -> FittedRatio | None:
        """Return the stored law of a pair, or the law by the first way that applies.

        It is None if no way applies. With a run budget, it is also None for other pairs
        once a pair is chosen.
        """
        law = self._of(pair).law
        if law is not None:
            return law
        if self._best is not None and self.budget is not None:
            # All further runs are for the game on the chosen pair.
            return None
        with self.trace:
            return _attempted(lambda: self._first(pair, form, ways))

    def _first(
        self, pair: Pair, form: Representation, ways: Sequence[Way]
    ) -> FittedRatio | None:
        for way in ways:
            found = way(self, pair, form)
            if found is not None:
                return found
        return None

    def _growth(self, law: Law) -> float:
        """Return the expected log growth per call, in nats."""
        return gain(self.claim, law)[0]

    def _by_releases(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Derive log-odds from noisy numbers that the output determines."""
        if self.budget is not None and self._is_hidden(pair):
            return None
        # Two runs reveal that noisy values differ between runs; three are safer.
        runs = self._traced(pair, form, 2 + (self.budget is None))
        reused = by_replay(self.trace, pair, runs, reused=True)
        if reused is not None:
            return reused
        exact = by_releases(runs, _length_columns(form), with_events=False)
        if exact is not None:
            return exact
        replays = by_replay(self.trace, pair, runs, reused=False)
        if replays is not None and _ends_soon(self._growth(replays[1])):
            return replays
        return None

    def _by_events(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Derive log-odds like ``_by_releases``, but from more runs.

        These also reveal numbers that events decide, and linear functions of many
        numbers.
        """
        if not self._traced(pair, form, 3).is_alike:
            return None
        # In 32 runs on either input, all but rare outcomes of an event occur.
        runs = self._traced(pair, form, 32)
        return by_releases(runs, _length_columns(form), with_events=True)

    def _is_hidden(self, pair: Pair) -> bool:
        """Return True if the output cannot determine all noisy values.

        Either it has fewer numbers than there are noisy values with a loss. Or outputs
        differ although all noisy values are equal, for another reason than an event or
        a choice.
        """
        trace = self.compare(pair, 0)
        if trace.differ is not None and not trace.by_chance:
            return True
        noisy = 0
        for moved in trace.noisy:
            loses = moved.loss is None or any(moved.loss)
            if loses and not is_sample(moved.first):
                noisy += int(np.prod(moved.first.shape))
        return noisy > sum(1 for _ in leaves(trace.first.output))

    def _by_outcomes(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Derive log-odds from a table of all outputs, or of numbers without noise."""
        first = self.compare(pair, 0)
        for number in range(16):
            trace = self.compare(pair, number)
            if trace.is_notable:
                first = trace
                break
        tried = MOST_RUNS
        if self.budget is not None:
            # There are too many samples of records to try all of them.
            tried = 1 if any(map(is_sample, first.first.releases)) else 16
        trace = in_full(self.trace, first, tried)
        law = trace.outcomes
        is_complete = law is not None and law.complete and trace.extent == "full"
        if law is not None and is_complete and not trace.noisy:
            outputs = [law.outputs[name] for name in law.masses]
            table = by_table(law, self._rows(outputs, form))
            if table is not None:
                return table
        if trace.differ is None and not trace.second.parted and not trace.fixed:
            return None
        return self._by_values(pair, trace, form)

    def _by_values(
        self, pair: Pair, trace: PairTrace, form: Representation
    ) -> FittedRatio | None:
        """Derive log-odds from numbers that one input gives often, the other never."""
        runs = 64 if self.budget is None else 4
        # Counting the numbers of larger outputs takes seconds.
        if np.prod(form.shape) > 4_096 or not self._affords(2 * runs):
            return None
        sides = [self._rows(side, form) for side in self._outputs(pair, runs)]
        forced: tuple[list[Any], list[Any]] = ([], [])
        if self.budget is None:
            for one, zero in (both for tail in trace.shown for both in tail.outputs):
                forced[0].append(one)
                forced[1].append(zero)
        tails = [self._rows(side, form) for side in forced if side]
        found = by_values(sides, tails, form, often=4)
        if found is None:
            return None
        ratio, shares = found
        for k, run in enumerate((trace.first, trace.second)):
            tail_chances = [t.chance for t in trace.shown if t.release in run.releases]
            # An output may show several rare events, so that the sum is a bound.
            shares[k] = max(shares[k], min(1.0, sum(tail_chances)))
        weights = np.array([*shares, 2 - shares.sum()])
        return ratio, Law(np.array([np.inf, -np.inf, 0.0]), weights)

    def _by_shift(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Fit the law of additive noise that the trace does not understand."""
        # A vectorised mechanism makes many runs in one call, which is faster.
        runs = 1_024 if self._is_vectorised else 128
        sides = []
        for data in (pair.data, pair.neighbour):
            rng = np.random.default_rng([self.seed, runs])
            rows = form.rows(self.trace.outputs(data, runs, rng))
            sides.append(rows.reshape(runs, -1).astype(float))
        ratio = by_shift(*sides)
        return ratio and (ratio, None)

    def _by_parts(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Fit a law for code that samples records, by more runs for a longer game."""
        best: FittedRatio | None = None
        made = 0
        for runs in SUBSAMPLED_RUN_SCHEDULE:
            if not self._is_worth(runs, made, best):
                break
            found = self.by_parts(pair, form, runs)
            if found is not None and found.read is not None:
                best = found.read
            made = runs
        return best

    def _by_change(self, pair: Pair, form: Representation) -> FittedRatio | None:
        """Fit two normal laws, or a threshold, by more runs for a longer game."""
        # Without a run budget, a fit by calls of the game is cheaper.
        assert self.budget is not None
        first = self.compare(pair, 0)
        bypasses = first.differ is not None or bool(first.second.parted)
        best: FittedRatio | None = None
        made = 0
        for runs in PAIRED_RUN_SCHEDULE:
            # A tenth of all runs are for fits.
            affordable = runs <= self.budget.total // 10
            hopeless = best is None and runs > 32
            if not affordable or hopeless or not self._is_worth(runs, made, best):
                break
            made = runs
            ones, zeros = (
                self._rows(side, form).astype(float)
                for side in self._outputs(pair, runs)
            )
            found = [by_change(ones, zeros)]
            if best is None:
                # By chance, a threshold separates a few runs of one law.
                most = runs / 4
                if runs < 32:
                    most = bypasses * runs / 8
                threshold = by_threshold(ones, zeros, max_errors=most)
                found.append(threshold)
            fitted = [each for each in found if each is not None]
            best = max(fitted, key=lambda each: self._growth(each[1]), default=None)
            if len(found) > 1 and best is not None and best is found[1]:
                # More runs do not find a better threshold.
                break
        return best

    def _is_worth(self, runs: int, made: int, best: FittedRatio | None) -> bool:
        """Return True if the next fit saves more calls of the game than it costs runs.

        Args:
            runs: Number of runs on each input for the next fit.
            made: Number of runs on each input so far.
            best: The best fit so far.
        """
        growth = 0.0
        if best is not None and best[1] is not None:
            growth = max(self._growth(best[1]), 0.0)
        calls = TYPICAL_FINAL_LOG_WEALTH / max(growth, 1e-12)
        if self.budget is not None:
            calls = min(calls, self.budget.total)
        # A better law saves a quarter of the calls, roughly.
        is_short = made > 0 and 4 * (runs - made) >= calls
        return not is_short and self._affords(2 * runs)

    def _affords(self, runs: int) -> bool:
        """Return True if the budget, if any, allows ``runs`` more before the game."""
        if self.budget is None:
            return True
        return self.trace.runs + runs <= self.budget.before_game

    @property
    def _is_vectorised(self) -> bool:
        """True if one call of the mechanism makes many runs."""
        return is_vectorised(as_mechanism(self.trace.function))

    def _of(self, pair: Pair) -> _PairRuns:
        return self._runs.setdefault(key(pair), _PairRuns())

    def _outputs(self, pair: Pair, runs: int) -> tuple[list[Any], list[Any]]:
        """Return outputs of both inputs with the same draws, run by run."""
        ones, zeros = self._of(pair).outputs
        # After a sample of another size, untraced runs would have other draws.
        watched = self.budget is not None and any(
            map(is_sample, self.compare(pair, 0).first.releases)
        )
        inputs = (pair.data, pair.neighbour)
        for number in range(len(zeros), runs):
            seeds = [self.seed, number]
            if watched:
                both = self.trace.both(*inputs, np.random.default_rng(seeds))
                one, zero = (run.output for run in both)
            else:
                one, zero = (
                    self.trace.outputs(data, 1, np.random.default_rng(seeds))
                    for data in inputs
                )
                if not self._is_vectorised:
                    one, zero = one[0], zero[0]
            ones.append(one)
            zeros.append(zero)
        return ones[:runs], zeros[:runs]

    def _traced(self, pair: Pair, form: Representation, runs: int) -> TracedRuns:
        """Return traced runs of a pair: ``runs`` recorded on each of its inputs."""
        ahead = [self.compare(pair, k) for k in range(runs)]
        back = [self.compare(pair.swapped(), k) for k in range(runs)]
        ones = [t.first.output for t in ahead] + [t.second.output for t in back]
        zeros = [t.second.output for t in ahead] + [t.first.output for t in back]
        rows = (self._rows(side, form).astype(float) for side in (ones, zeros))
        one, zero = rows
        forward = [True] * runs + [False] * runs
        return TracedRuns([*ahead, *back], forward, (one, zero))

    def _rows(self, outputs: Sequence[Any], form: Representation) -> Array:
        """Return single outputs as rows, shape (outputs, numbers)."""
        together = np.concatenate(outputs) if self._is_vectorised else list(outputs)
        return form.rows(together).reshape(len(outputs), -1)


def _attempted(read: Callable[[], Result | None]) -> Result | None:
    """Return a result, or None if the traced code raises or its output has no rows."""
    try:
        return read()
    except Exception:
        return None


def _length_columns(form: Representation) -> Sequence[int]:
    """Return the columns that determine the length of an output; () for one length."""
    # Such a row begins with its length, and ends with a mark if the output is too long.
    return (0, -1) if form.flat else ()


def _ends_soon(growth: float) -> bool:
    """Return True if a game with this growth per call is expected to be short."""
    return growth * SHORT_GAME > TYPICAL_FINAL_LOG_WEALTH


WAYS: tuple[Way, ...] = (
    ReplayedRatio._by_releases,
    ReplayedRatio._by_parts,
    ReplayedRatio._by_outcomes,
    ReplayedRatio._by_events,
    ReplayedRatio._by_shift,
)
"""The ways to derive laws if runs are cheap, in the order in which they are tried."""
EXPENSIVE_RUN_WAYS: tuple[Way, ...] = (
    ReplayedRatio._by_releases,
    ReplayedRatio._by_parts,
    ReplayedRatio._by_outcomes,
    ReplayedRatio._by_change,
)
"""The ways to derive laws if runs are expensive, in the order in which they are tried.

They end with a fit of normal laws, which suits outputs of trainings.
"""


def ways_of(*, understood: bool, runs: int, budget: RunBudget | None) -> Sequence[Way]:
    """Return the ways to derive laws that a mechanism allows, possibly none.

    Args:
        understood: Whether the trace understands all code on some pair. If not, only
            the last way, a fit to outputs, is left.
        runs: Largest number of runs of the trace. With fewer than 300, the way that
            fits a shift is left out.
        budget: The run budget, or None if runs are cheap.
    """
    ways = WAYS if budget is None else EXPENSIVE_RUN_WAYS
    if not understood:
        ways = ways[-1:]
    # ``_by_shift`` takes 256 runs or more.
    return [way for way in ways if way is not ReplayedRatio._by_shift or runs >= 300]


class ReplayedElsewhere(ReplayedRatio):
    """The replayed ratio of a mechanism in another process.

    That process traces the mechanism and computes the log-odds.
    """

    def __init__(self) -> None:
        self.abstained = 0

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Trace a pair in the other process, and return the forecaster of the pair."""
        bound = copy.copy(self)
        found = mechanism.mechanism.replayed(mechanism.form, pair)
        if found is None:
            return bound
        bound._fitted, stated = found
        bound.stated = Law(*stated) if stated else None
        return bound.afresh()
