"""The replayed ratio: the likelihood ratio of an output, by the noise that a trace read off the code.

Before a pair is played, the code is traced on it a few times (``auditdp.tracing``), both ways round. Where what loses
anything can be read from the output (`reading.py`), so can the probability that either input gives it. Where chance decides
among few outputs, the probability of each is known instead.
Where outputs got round the noise, values are known that come again and again from one input and from the other one never.

**Why bets by it are valid, whatever the trace says.** What is read off a pair before its first call is a function f from
outputs to log-odds, and f is fixed from then on. The traced runs have randomness of their own, which no call of the game
shares, so f depends on nothing that comes after it. The log-odds of a call are f of that call's output: neither its coin
nor its input is looked at. So they are forecasts as any others, and the expected factor
of bets by them is at most 1 where the claim is true, for any f (``betting/wealth/regions.py``). A wrong f loses its stake.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.normal import FEWEST_PAIRED, by_change, paired_runs
from auditdp.betting.forecasting.reading import SPARE, Ratio, SeenRuns, by_shift, ratio_of
from auditdp.betting.forecasting.reused import by_reuse
from auditdp.betting.forecasting.sampled import ratio_by_parts
from auditdp.betting.power import gain
from auditdp.betting.wealth.forecasts import Law
from auditdp.claims.base import Claim
from auditdp.claims.dominating import Floats
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array, as_mechanism, is_vectorised
from auditdp.tracing import PairTrace, Trace, compare
from auditdp.tracing.exploring import MOST_RUNS

Read = tuple[Ratio, Law | None]
"""The log-odds of rows, and how often they are which, where that is known beforehand."""
Way = Callable[["ReplayedRatio", Pair, Representation], Read | None]
RUNS, MORE_RUNS = 3, 32
"""Runs that are traced on each input of a pair; and where so few do not show how its outputs come about."""
FEW_FOLLOWED = 8
"""The same, where runs are few: at least, and half as many as an output has numbers, with some to spare."""
SHOWING_RUNS = 16
"""Runs, at most, among which one is looked for in which more differs than noise, to be looked at in full."""
LEAST_RUNS = 300
"""Runs that a trace may have, from which on laws are read off in ways that take as many."""
WON, TINY, MORE_PAIRED, SHARE_PAIRED = 3.0, 1e-12, (96, 400), 10
"""Nats that end a game, about; a gain of nothing; runs on each input that show two normal laws better, where a game by them
takes as many, and the part of all runs that they are, at most."""
PROMISE = 0.1
"""Of the runs at most, if those that are traced whatever they show are fewer, more are for a law that promises a finding."""
FEW_PARTED, PARTED = 16, 48
"""Runs on each input where records are drawn: to choose a pair by, and to bet by."""
SHIFT_RUNS = (128, 1_024)
"""Runs on each input that show noise which is not followed: one by one, and where many make one call."""
VALUE_RUNS, OFTEN, MOST_VALUES = (8, 64), 4, 4_096
"""Runs on each input that show which values come again, few first; how often one has to; numbers of an output, at most."""


class ReplayedRatio:
    """Forecasts with the laws that a trace read off the code; it abstains where these do not fit an output.

    Args:
        trace: Of the mechanism.
        claim: Of the game.
        seed: Of the traced runs.
        ways: How laws are read off, in the order in which it is tried; ``WAYS`` where it is not said.
        few: Runs of all kinds at most, where they are bounded; else 0. As many as ``until`` are traced before it is known
            whether they promise a finding.

    Attributes:
        abstained: Outputs that did not look like those that were traced.
        stated: How often it gives which log-odds, where that is known before the first call.
    """

    name = "replayed ratio"
    share = 16.0  # with 4 and with 64, refutations take 2 % more calls in the mean of 22 games
    calibrated = is_read = True

    def __init__(
        self, trace: Trace, claim: Claim, *, seed: int, ways: Sequence[Way] = (), few: int = 0, until: float = math.inf
    ) -> None:
        self.trace, self.claim, self.seed, self.few, self.until = trace, claim, seed, few, until
        self.abstained = 0
        self.ways: Sequence[Way] = ways or WAYS
        self._read_before: dict[tuple[int, int], Read] = {}  # of pairs that whoever asked keeps

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair, after the pair was traced."""
        bound = copy.copy(self)
        if (found := self._read(pair, mechanism.form, self.ways)) is not None:
            bound._ratio, bound.stated = copy.copy(found[0]), found[1]  # it may count what it was asked
        return bound

    def reads(self, pair: Pair, form: Representation) -> bool:
        """Return whether the laws of a pair can be read off, and tell its inputs apart; other pairs are then read alike."""
        for way in self.ways:
            if (found := self._read(pair, form, (way,))) is not None:
                self.ways, self._known = tuple(dict.fromkeys((self.ways[0], way))), (pair, found)
                return True
        return False

    def fit(self, outputs: Array, labels: NDArray[np.int8]) -> Self:
        """Do nothing: the laws are read off the code."""
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-likelihood ratio of each output; 0 where it does not look like those that were traced."""
        if self._ratio is None:
            return np.zeros(len(outputs))
        odds = self._ratio(outputs.reshape(len(outputs), -1))
        self.abstained += int(np.isnan(odds).sum())
        return np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf)

    def _read(self, pair: Pair, form: Representation, ways: Sequence[Way]) -> Read | None:
        """Return the log-odds of rows by the laws of a pair; None where these cannot be read off."""
        if self._known and self._known[0].data is pair.data and self._known[0].neighbour is pair.neighbour:
            return self._known[1]
        if (before := self._read_before.get((id(pair.data), id(pair.neighbour)))) is not None:
            return before
        if self._known and self.few:
            return None  # runs are few, and this pair promises most
        try:
            with self.trace:
                return next(filter(None, (way(self, pair, form) for way in ways)), None)
        except Exception:  # of the code that is traced, or of outputs that are no rows
            return None

    def _by_releases(self, pair: Pair, form: Representation, runs: int) -> Read | None:
        """Return the log-odds by what can be read from the output, with so many runs."""
        if self.few and self._is_lossy(pair, form):
            return None
        seen = self._seen(pair, form, RUNS)
        if runs == RUNS and (found := by_reuse(self.trace, pair, seen)) is not None:
            return found
        if runs > RUNS and seen.is_alike:
            runs = max(FEW_FOLLOWED, min((int(np.prod(form.shape)) + SPARE) // 2, runs)) if self.few else runs
            if not self._affords(4 * runs):
                return None
            seen = self._seen(pair, form, runs)
        return ratio_of(seen, (0, -1) if form.flat else (), averaged=runs > RUNS)

    def _is_lossy(self, pair: Pair, form: Representation) -> bool:
        """Return whether an output has fewer numbers than noise was added to: these cannot be read from it."""
        noisy = [
            moved.first for moved in self._compared(pair, 0, outcomes=0).noisy if moved.loss is None or any(moved.loss)
        ]
        return sum(int(np.prod(release.shape)) for release in noisy) > int(np.prod(form.shape))

    def _by_outcomes(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by what chance decides, or by values that got round the noise."""
        shows = (k for k in range(SHOWING_RUNS) if self._compared(pair, k, outcomes=0).is_notable)
        in_full = self._compared(pair, next(shows, 0))
        if (table := _by_table(self.trace, in_full, form)) is not None:
            return table
        if not (in_full.differ is not None or in_full.second.parted or in_full.fixed):
            return None
        sizes = [runs for runs in VALUE_RUNS[not self.few :] if self._affords(2 * runs)]
        return self._by_values(in_full, form, sizes) if sizes else None

    def _by_shift(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by noise that is not followed."""
        ratio = by_shift(*self._paired(pair, form, SHIFT_RUNS[is_vectorised(as_mechanism(self.trace.function))]))
        return None if ratio is None else (ratio, None)

    def _by_change(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by two normal laws; where they win little in so many calls, by more runs."""
        few = int(min(paired_runs(int(np.prod(form.shape))), (self.until - self.trace.runs) // 2))
        sizes = [runs for runs in (few, *MORE_PAIRED) if max(few, FEWEST_PAIRED) <= runs <= self.few // SHARE_PAIRED]
        found: Read | None = None
        calls = math.inf  # that a game by what was found takes
        for runs in sizes:
            if found is not None and not runs < calls < self.few:
                break
            if not self._affords(2 * runs) and not (found is not None and self.few > self.until / PROMISE):
                break
            if (found := by_change(*self._paired(pair, form, runs))) is None or found[1] is None:
                return None
            calls = WON / max(gain(self.claim, found[1])[0], TINY)
        return found

    def by_parts(self, pair: Pair, form: Representation, runs: int) -> Read | None:
        """Return the log-odds where records are drawn, with so many runs on each input; None where they cannot be read."""
        if not self._affords(2 * runs):
            return None
        rows_of = partial(_rows, self.trace, form=form)
        return ratio_by_parts(self.trace, pair, rows_of, runs=runs, seed=self.seed)

    def won(self, pairs: Sequence[Pair], form: Representation) -> list[float | None]:
        """Return what a call of each pair gains by laws of few runs, which are kept; none where the first has none."""
        for way in self.ways[:2]:
            won = list[float | None]()
            for pair in pairs:
                found = self._read(pair, form, (way,))
                law = None if found is None else found[1]
                if law is None and not won:
                    break
                won.append(None if law is None else gain(self.claim, law)[0])
                self._read_before |= {(id(pair.data), id(pair.neighbour)): found} if found is not None else {}
            if won:
                return won
        return []

    def told_by_parts(self, pairs: Sequence[Pair], form: Representation) -> Pair | None:
        """Return, of some pairs on which records are drawn, the one by which most is won; None where none can be read."""
        won = []
        with self.trace:
            for pair in pairs:
                if not self._affords(2 * (FEW_PARTED + PARTED)):
                    break
                with suppress(Exception):  # of the code that is traced, or of outputs that are no rows
                    if (found := self.by_parts(pair, form, FEW_PARTED)) is not None and found[1] is not None:
                        told = float(
                            np.tanh(np.abs(found[1].log_odds) / 2).mean()
                        )  # where the claim is far, odds are told
                        won.append((max(gain(self.claim, found[1])[0], 0.0), told, pair))
        return max(won, key=lambda each: each[:2])[2] if won else None

    def _affords(self, runs: int) -> bool:
        """Return whether so many more runs may be traced, whatever they show."""
        return self.trace.runs + runs <= self.until

    def _paired(self, pair: Pair, form: Representation, runs: int) -> tuple[Floats, Floats]:
        """Return the outputs of so many runs on either input with the same draws."""
        one, other = (
            form.rows(self.trace.outputs(data, runs, np.random.default_rng([self.seed, runs]))).reshape(runs, -1)
            for data in (pair.data, pair.neighbour)
        )
        return one.astype(float), other.astype(float)

    def _seen(self, pair: Pair, form: Representation, runs: int) -> SeenRuns:
        """Return traced runs of a pair, so many from each input."""
        traces = [self._compared(way, k, outcomes=0) for way in (pair, pair.swapped()) for k in range(runs)]
        forward = [True] * runs + [False] * runs
        pairs = [
            (t.first, t.second) if ahead else (t.second, t.first) for t, ahead in zip(traces, forward, strict=True)
        ]
        one, other = (
            _rows(self.trace, [run.output for run in side], form).astype(float) for side in zip(*pairs, strict=True)
        )
        return SeenRuns(traces, forward, (one, other))

    def _compared(self, pair: Pair, number: int, outcomes: int = MOST_RUNS) -> PairTrace:
        rng = np.random.default_rng([self.seed, number])
        return compare(self.trace, pair.data, pair.neighbour, rng, claim=self.claim, outcomes=outcomes)

    def _by_values(self, seen: PairTrace, form: Representation, sizes: Sequence[int]) -> Read | None:
        """Return certainty where an output has a value that came several times from one input and never from the other.

        In few runs it has to come in all; where one comes twice at least, there are more.
        """
        if np.prod(form.shape) > MOST_VALUES:
            return None
        sides: tuple[list[Any], list[Any]] = [], []
        for runs in sizes:
            for side, run in zip(sides, (seen.first, seen.second), strict=True):
                generators = (np.random.default_rng([self.seed, k]) for k in range(len(side), runs))
                side += [self.trace.record(run.data, rng).output for rng in generators]
            often, shown = (OFTEN, seen.shown) if runs == VALUE_RUNS[-1] else (runs, ())
            tails = [[both[k] for tail in shown for both in tail.outputs] for k in (0, 1)]
            counts = [
                Counter(chain.from_iterable(map(set, _values(_rows(self.trace, [*side, *tail], form), form))))
                for side, tail in zip(sides, tails, strict=True)
            ]
            alone, twice = (
                [
                    {x for x, n in mine.items() if n >= least and x not in theirs}
                    for mine, theirs in (counts, counts[::-1])
                ]
                for least in (often, 2)
            )
            if any(alone) or not any(twice):
                break
        anywhere = [{value for value in side if value[0] == ANYWHERE} for side in alone]
        only = anywhere if any(anywhere) else alone  # what is seldom at one place may be frequent at another

        def ratio(outputs: Array) -> Floats:
            shown = [(not only[0].isdisjoint(row), not only[1].isdisjoint(row)) for row in _values(outputs, form)]
            return np.array([0.0 if one == other else np.inf if one else -np.inf for one, other in shown])

        told = [float(np.mean(ratio(_rows(self.trace, side, form)) != 0)) for side in sides]
        for k, run in enumerate((seen.first, seen.second)):
            chances = [tail.chance for tail in seen.shown if tail.release in run.releases]
            told[k] = max(told[k], min(1.0, sum(chances)))  # at most: an output may show several
        law = Law(np.array([np.inf, -np.inf, 0.0]), np.array([*told, 2 - sum(told)]))
        return (ratio, law) if any(only) else None

    @property
    def promised(self) -> Law | None:
        """How often the pair that it was asked about first has which log-odds, where that is known."""
        return self._known[1][1] if self._known else None

    stated: Law | None = None
    _ratio: Ratio | None = None
    _known: tuple[Pair, Read] | None = None


WAYS: tuple[Way, ...] = (
    partial(ReplayedRatio._by_releases, runs=RUNS),
    ReplayedRatio._by_outcomes,
    partial(ReplayedRatio._by_releases, runs=MORE_RUNS),
    ReplayedRatio._by_shift,
)
"""How laws are read off, in the order in which it is tried."""
FEW_WAYS: tuple[Way, ...] = (
    WAYS[0],
    partial(ReplayedRatio.by_parts, runs=PARTED),
    WAYS[1],
    WAYS[2],
    ReplayedRatio._by_change,
)
"""The same, where runs are few and outputs nearly normal, as those of trainings are."""


def ways_of(*, understood: bool, runs: int, few: bool) -> Sequence[Way]:
    """Return how laws are read off of code that a trace understands or not, within so many runs; none for no way."""
    if few:
        return FEW_WAYS if understood else FEW_WAYS[-1:]
    known = WAYS[:2] if runs < LEAST_RUNS else WAYS
    return known if understood else known[len(WAYS) - 1 :]


class ReplayedElsewhere(ReplayedRatio):
    """The same, where the code is traced in the process of the mechanism: that is asked for the log-odds of outputs."""

    def __init__(self) -> None:
        self.abstained = 0

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair, after the pair was traced there."""
        bound = copy.copy(self)
        if (found := mechanism.mechanism.replayed(mechanism.form, pair)) is not None:
            bound._ratio, stated = found
            bound.stated = Law(*stated) if stated else None
        return bound


Value = tuple[int, float]
"""A number of an output and its place; of outputs that have more or fewer numbers only the first and last places count."""
ANYWHERE = -1
"""The place that every number has as well."""


def _values(rows: Array, form: Representation) -> list[list[Value]]:
    """Return the numbers of each row."""
    last = rows.shape[1] - 1
    places = [k if not form.flat or k in (0, last) else ANYWHERE for k in range(last + 1)]
    found = [[(place, x) for place, x in zip(places, row, strict=True) if x == x] for row in rows.tolist()]
    return found if form.flat else [[*row, *((ANYWHERE, x) for _, x in row)] for row in found]


def _rows(trace: Trace, outputs: Sequence[Any], form: Representation) -> Array:
    """Return single outputs as rows, shape (outputs, numbers)."""
    together = is_vectorised(as_mechanism(trace.function))
    rows = form.rows(np.concatenate(outputs) if together else list(outputs))
    return rows.reshape(len(outputs), -1)


def _by_table(trace: Trace, seen: PairTrace, form: Representation) -> Read | None:
    """Return the log-odds of outputs that chance decides, where the probability of each is known."""
    law = seen.outcomes
    if law is None or not law.complete or seen.extent != "full" or seen.noisy:
        return None
    rows = _rows(trace, [law.outputs[name] for name in law.masses], form)
    with np.errstate(divide="ignore"):
        p, q = np.log(np.array(list(law.masses.values()))).T
    table = {row.tobytes(): odds for row, odds in zip(rows, p - q, strict=True)}

    def ratio(outputs: Array) -> Floats:
        return np.array([table.get(row.tobytes(), np.nan) for row in outputs])

    return (ratio, Law(p - q, np.exp(p) + np.exp(q))) if np.any(p != q) else None
