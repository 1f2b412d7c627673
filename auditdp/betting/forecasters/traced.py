"""The replayed ratio: the likelihood ratio of an output, by the noise that a trace read off the code.

Before a pair is played, the code is traced on it a few times (``auditdp.tracing``), both ways round. Where what loses
anything can be read from the output (`traced_release.py`), so can the probability that either input gives it. Where chance
decides among few outputs, the probability of each is known instead. Where outputs got round the noise, values are known that
come again and again from one input and from the other one never.

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
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, product
from typing import Any, Self

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.pair_search import key
from auditdp.betting.forecasters.normal_laws import by_change, by_threshold
from auditdp.betting.forecasters.traced_noise import SPARE, Ratio, SeenRuns
from auditdp.betting.forecasters.traced_outcomes import by_shift
from auditdp.betting.forecasters.traced_release import ratio_of
from auditdp.betting.forecasters.traced_replay import by_asking
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

Read = tuple[Ratio, Law | None]
"""The log-odds of rows, and how often they are which, where that is known beforehand."""
Way = Callable[["ReplayedRatio", Pair, Representation], Read | None]
RUNS, FEW_SEEN, MORE_RUNS = 3, 2, 32
"""Runs that are traced on each input of a pair, of many and of few; and where these do not show how outputs come about."""
FEW_FOLLOWED = 8
"""The same, where runs are few: at least, and half as many as an output has numbers, with some to spare."""
FEW_OUTCOMES = 16
"""Runs, where they are few, that look what else chance may decide."""
SHOWING_RUNS = 16
"""Runs, at most, among which one is looked for in which more differs than noise, to be looked at in full."""
LEAST_RUNS = 300
"""Runs that a trace may have, from which on laws are read off in ways that take as many."""
WON, TINY, MORE_PAIRED, SHARE_PAIRED = 3.0, 1e-12, (8, 16, 32, 96, 400), 10
"""Nats that end a game, about; a gain of nothing; runs on each input that show two normal laws, ever better, where a game by
them takes as many, and the part of all runs that they are, at most."""
WORTH, CHEAP = 4, 16
"""Further runs on each input are made where a game takes so many times as many; where it takes too many, so small a part."""
WRONG = 0.25
"""Of as many runs on each input, so many are on the wrong side of a threshold, at most; half as many where runs are few, and
none where nothing got round the noise."""
IN_VAIN = 32
"""Runs on each input after which no more are made where they do not show two laws."""
SHORT = 40
"""Trainings of a short game."""
FEW_PARTED, PARTED = (16, 64), (48, 192)
"""Runs on each input where records are drawn: to choose a pair by, and to bet by; more where fewer tell nothing, or a game
by them takes as many."""
SHIFT_RUNS = (128, 1_024)
"""Runs on each input that show noise which is not followed: one by one, and where many make one call."""
VALUE_RUNS, FEW_VALUE_RUNS, OFTEN, MOST_VALUES = 64, 4, 4, 4_096
"""Runs on each input that show which values come again, of many and of few; how often one has to; numbers of an output, at
most."""


@dataclass(eq=False)
class _KeptRuns:
    """What is kept of a pair, which is kept itself, so that no other one has its address.

    Attributes:
        pair: The pair.
        outputs: Those of plain runs on either input.
        law: What was read off it, where it is not to be read again.
    """

    pair: Pair
    outputs: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    law: Read | None = None


class ReplayedRatio:
    """Forecasts with the laws that a trace read off the code; it abstains where these do not fit an output.

    Args:
        trace: Of the mechanism.
        claim: Of the game.
        seed: Of the traced runs.
        ways: How laws are read off, in the order in which it is tried; ``WAYS`` where it is not said.
        few: Runs of all kinds at most, where they are bounded; else 0.
        until: Runs that are traced at most; the others are for the game.

    Attributes:
        abstained: Outputs that did not look like those that were traced.
        compared: Runs of pairs by their keys, where runs are few.
        stated: How often it gives which log-odds, where that is known before the first call.
    """

    name = "replayed ratio"
    share = 16.0  # with 4 and with 64, refutations take 2 % more calls in the mean of 22 games
    calibrated = is_read = True

    def __init__(
        self,
        trace: Trace,
        claim: Claim,
        *,
        seed: int,
        ways: Sequence[Way] = (),
        few: int = 0,
        until: float = math.inf,
    ) -> None:
        self.trace, self.claim, self.seed, self.few, self.until = (
            trace,
            claim,
            seed,
            few,
            until,
        )
        self.abstained = 0
        self.compared: dict[Any, list[PairTrace]] = {}
        self.ways: Sequence[Way] = ways or WAYS
        self._best: Pair | None = None
        self._kept: dict[tuple[int, int], _KeptRuns] = {}

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair, after the pair was traced."""
        bound = copy.copy(self)
        if (found := self._read(pair, mechanism.form, self.ways)) is not None:
            bound._read_off, bound.stated = found[0], found[1]
            return bound.afresh()
        return bound

    def afresh(self) -> Self:
        """Return it for another game: where the code is asked of outputs, it may be asked as often again."""
        again = copy.copy(self)
        again._ratio = copy.copy(self._read_off)
        return again

    def reads_one_of(self, pairs: Sequence[Pair], form: Representation) -> Pair | None:
        """Return the first of some pairs whose laws promise a short game, or else the one by which most is won, if any.

        Other pairs are then read in the way in which it was.
        """
        self._best, found = None, list[tuple[float, Pair, Way, Read]]()
        for pair in pairs:
            read = (
                (way, law)
                for way in self.ways
                if (law := self._read(pair, form, (way,))) is not None
            )
            for way, law in islice(read, 1):
                found.append(
                    (
                        math.inf if law[1] is None else gain(self.claim, law[1])[0],
                        pair,
                        way,
                        law,
                    )
                )
            if found and found[-1][0] * SHORT > WON:
                break
        if not found:
            return None
        _, self._best, way, law = max(found, key=lambda each: each[0])
        self.ways, self._of(self._best).law = (
            tuple(dict.fromkeys((self.ways[0], way))),
            law,
        )
        return self._best

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-likelihood ratio of each output; 0 where it does not look like those that were traced."""
        if self._ratio is None:
            return np.zeros(len(outputs))
        odds = self._ratio(outputs.reshape(len(outputs), -1))
        self.abstained += int(np.isnan(odds).sum())
        return np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf)

    def _read(
        self, pair: Pair, form: Representation, ways: Sequence[Way]
    ) -> Read | None:
        """Return the log-odds of rows by the laws of a pair; None where these cannot be read off."""
        if (law := self._of(pair).law) is not None or (
            self._best is not None and self.few
        ):
            return law  # where runs are few, none of a pair that promises less
        try:
            with self.trace:
                return next(filter(None, (way(self, pair, form) for way in ways)), None)
        except Exception:  # of the code that is traced, or of outputs that are no rows
            return None

    def _by_releases(self, pair: Pair, form: Representation, runs: int) -> Read | None:
        """Return the log-odds by what can be read from the output, with so many runs."""
        if self.few and self._is_hidden(pair):
            return None
        seen = self._seen(pair, form, FEW_SEEN if self.few else RUNS)
        if (
            runs == RUNS
            and (asked := by_asking(self.trace, pair, seen, reused=True)) is not None
        ):
            return asked
        if runs > RUNS and seen.is_alike:
            runs = (
                max(FEW_FOLLOWED, min((int(np.prod(form.shape)) + SPARE) // 2, runs))
                if self.few
                else runs
            )
            if not self._affords(4 * runs):
                return None
            seen = self._seen(pair, form, runs)
        found = ratio_of(seen, (0, -1) if form.flat else (), averaged=runs > RUNS)
        if found is None and self.few and runs == RUNS:
            asked = by_asking(self.trace, pair, seen, reused=False)
            found = (
                asked
                if asked is not None and gain(self.claim, asked[1])[0] * SHORT > WON
                else None
            )
        return found

    def _is_hidden(self, pair: Pair) -> bool:
        """Return whether an output has fewer numbers than noise was added to, which cannot be read from it, or others."""
        seen = self.compare(pair, 0)
        moved = [
            each.first for each in seen.noisy if each.loss is None or any(each.loss)
        ]
        noisy = [release for release in moved if not is_sample(release)]
        round_it = seen.differ is not None and not seen.by_chance
        shown = sum(1 for _ in leaves(seen.first.output))
        return round_it or sum(int(np.prod(release.shape)) for release in noisy) > shown

    def _by_outcomes(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by what chance decides, or by values that got round the noise."""
        shows = (k for k in range(SHOWING_RUNS) if self.compare(pair, k).is_notable)
        shown = self.compare(pair, next(shows, 0))
        sampled = any(map(is_sample, shown.first.releases))
        seen = in_full(
            self.trace,
            shown,
            MOST_RUNS if not self.few else 1 if sampled else FEW_OUTCOMES,
        )
        if (table := _by_table(self.trace, seen, form)) is not None:
            return table
        if not (seen.differ is not None or seen.second.parted or seen.fixed):
            return None
        return self._by_values(pair, seen, form)

    def _by_shift(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by noise that is not followed."""
        runs = SHIFT_RUNS[self._together]
        sides = (
            self.trace.outputs(data, runs, np.random.default_rng([self.seed, runs]))
            for data in (pair.data, pair.neighbour)
        )
        ratio = by_shift(
            *(form.rows(side).reshape(runs, -1).astype(float) for side in sides)
        )
        return None if ratio is None else (ratio, None)

    def _by_change(self, pair: Pair, form: Representation) -> Read | None:
        """Return the log-odds by two normal laws, or by a threshold: of more runs where a game by these is long."""
        sizes = [runs for runs in MORE_PAIRED if runs <= self.few // SHARE_PAIRED]
        first, found = self.compare(pair, 0), list[tuple[float, Read]]()
        round_it = first.differ is not None or bool(first.second.parted)
        calls, made = (
            math.inf,
            0,
        )  # that a game by what was found takes, and the runs that showed it
        for runs in sizes:
            worth = not made or (
                WORTH * (runs - made) < calls
                if calls < self.few
                else runs < self.until // CHEAP
            )
            early = runs < IN_VAIN
            if not (
                worth
                and (found or early or runs == IN_VAIN)
                and self._affords(2 * runs)
            ):
                break
            one, other = (
                _rows(self.trace, side, form).astype(float)
                for side in self._outputs(pair, runs)
            )
            wrong = 0.0 if early and not round_it else WRONG * runs / (1 + early)
            told = None if found else by_threshold(one, other, most=wrong)
            found = [
                (gain(self.claim, law)[0], (ratio, law))
                for ratio, law in filter(None, (by_change(one, other), told))
            ]
            if not found:
                continue
            won, read = max(found, key=lambda each: each[0])
            if told is not None and read[1] is told[1]:
                return told  # more runs do not tell it better
            calls, made = WON / max(won, TINY), runs
        return found[0][1] if found else None

    def by_parts(
        self, pair: Pair, form: Representation, runs: int
    ) -> RatioByParts | None:
        """Return the log-odds where records are drawn, with so many runs on each input; None where they cannot be read."""
        if not self._affords(2 * runs) or self._is_hidden(pair):
            return None
        rows_of = partial(_rows, self.trace, form=form)
        return ratio_by_parts(self.trace, pair, rows_of, runs=runs, seed=self.seed)

    def _by_parts(self, pair: Pair, form: Representation) -> Read | None:
        """Return the same with as many runs as a game by them is worth."""
        found, calls, made = None, math.inf, 0
        for runs in PARTED:
            if made and WORTH * (runs - made) > min(calls, self.few):
                break
            seen, made = self.by_parts(pair, form, runs), runs
            found = found if seen is None else seen.read or found
            if found is not None and found[1] is not None:
                calls = WON / max(gain(self.claim, found[1])[0], TINY)
        return found

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
                self._of(pair).law = found
            if won:
                return won
        return []

    def told_by_parts(self, pairs: Sequence[Pair], form: Representation) -> Pair | None:
        """Return, of some pairs on which records are drawn, one that promises a short game, or else tells most, if any."""
        told = list[tuple[float, Pair]]()
        with self.trace:
            for runs, pair in product(FEW_PARTED, pairs):
                told_before = pair is pairs[0] and any(apart for apart, _ in told)
                if told_before or not self._affords(2 * (runs + PARTED[0]) + SPARE):
                    break
                with suppress(
                    Exception
                ):  # of the code that is traced, or of outputs that are no rows
                    if (found := self.by_parts(pair, form, runs)) is not None:
                        told.append((found.apart, pair))
                        if (
                            found.read is not None
                            and gain(self.claim, found.read[1])[0] * SHORT > WON
                        ):
                            return pair
        apart, best = max(told, key=lambda each: each[0], default=(0.0, None))
        return best if apart else None

    def _affords(self, runs: int) -> bool:
        """Return whether so many more runs may be traced, whatever they show."""
        return self.trace.runs + runs <= self.until

    @property
    def _together(self) -> bool:
        """Whether many runs make one call."""
        return is_vectorised(as_mechanism(self.trace.function))

    def _of(self, pair: Pair) -> _KeptRuns:
        """Return what is kept of a pair."""
        return self._kept.setdefault(
            (id(pair.data), id(pair.neighbour)), _KeptRuns(pair)
        )

    def _outputs(self, pair: Pair, runs: int) -> tuple[list[Any], list[Any]]:
        """Return the outputs of so many runs on each input, with the same draws; those that were made count."""
        ones, zeros = kept = self._of(pair).outputs
        watched = self.few > 0 and any(
            map(is_sample, self.compare(pair, 0).first.releases)
        )
        for k in range(len(zeros), runs):
            made = self._watched(pair, k) if watched else self._plain(pair, k)
            for side, output in zip(kept, made, strict=True):
                side.append(output)
        return ones[:runs], zeros[:runs]

    def _plain(self, pair: Pair, number: int) -> list[Any]:
        """Return the outputs of plain runs with the same generator."""
        inputs = (pair.data, pair.neighbour)
        sides = [
            self.trace.outputs(data, 1, np.random.default_rng([self.seed, number]))
            for data in inputs
        ]
        return sides if self._together else [side[0] for side in sides]

    def _watched(self, pair: Pair, number: int) -> list[Any]:
        """Return those of watched runs, which have the same draws also where records are drawn."""
        runs = self.trace.both(
            pair.data, pair.neighbour, np.random.default_rng([self.seed, number])
        )
        return [run.output for run in runs]

    def _seen(self, pair: Pair, form: Representation, runs: int) -> SeenRuns:
        """Return traced runs of a pair, so many from each input."""
        traces = [
            self.compare(way, k) for way in (pair, pair.swapped()) for k in range(runs)
        ]
        forward = [True] * runs + [False] * runs
        pairs = [
            (t.first, t.second) if ahead else (t.second, t.first)
            for t, ahead in zip(traces, forward, strict=True)
        ]
        one, other = (
            _rows(self.trace, [run.output for run in side], form).astype(float)
            for side in zip(*pairs, strict=True)
        )
        return SeenRuns(traces, forward, (one, other))

    def compare(self, pair: Pair, number: int) -> PairTrace:
        """Return a run on one input and its replay on the other; where runs are few, those that were made count."""
        kept = self.compared.setdefault(key(pair), []) if self.few else []
        if number < len(kept):
            return kept[number]
        own = (
            [1] if self.few else []
        )  # other draws than those of the runs that a search made
        rng = np.random.default_rng([self.seed, number, *own])
        made = compare(
            self.trace, pair.data, pair.neighbour, rng, claim=self.claim, outcomes=0
        )
        kept.append(made)
        return made

    def _by_values(
        self, pair: Pair, seen: PairTrace, form: Representation
    ) -> Read | None:
        """Return certainty where an output has a value that came several times from one input and never from the other.

        In few runs it has to come in all.
        """
        runs = FEW_VALUE_RUNS if self.few else VALUE_RUNS
        if np.prod(form.shape) > MOST_VALUES or not self._affords(2 * runs):
            return None
        sides = self._outputs(pair, runs)
        tails = [
            [both[k] for tail in seen.shown if not self.few for both in tail.outputs]
            for k in (0, 1)
        ]
        counts = [
            Counter(
                chain.from_iterable(
                    map(set, _values(_rows(self.trace, [*side, *tail], form), form))
                )
            )
            for side, tail in zip(sides, tails, strict=True)
        ]
        alone = [
            {x for x, n in mine.items() if n >= OFTEN and x not in theirs}
            for mine, theirs in (counts, counts[::-1])
        ]
        anywhere = [{value for value in side if value[0] == ANYWHERE} for side in alone]
        only = (
            anywhere if any(anywhere) else alone
        )  # what is seldom at one place may be frequent at another

        def ratio(outputs: Array) -> Floats:
            shown = [
                (not only[0].isdisjoint(row), not only[1].isdisjoint(row))
                for row in _values(outputs, form)
            ]
            return np.array(
                [
                    0.0 if one == other else np.inf if one else -np.inf
                    for one, other in shown
                ]
            )

        told = [
            float(np.mean(ratio(_rows(self.trace, side, form)) != 0)) for side in sides
        ]
        for k, run in enumerate((seen.first, seen.second)):
            chances = [
                tail.chance for tail in seen.shown if tail.release in run.releases
            ]
            told[k] = max(
                told[k], min(1.0, sum(chances))
            )  # at most: an output may show several
        law = Law(np.array([np.inf, -np.inf, 0.0]), np.array([*told, 2 - sum(told)]))
        return (ratio, law) if any(only) else None

    @property
    def promised(self) -> Law | None:
        """How often the pair that promises most has which log-odds, where that is known."""
        law = None if self._best is None else self._of(self._best).law
        return None if law is None else law[1]

    stated: Law | None = None
    _read_off: Ratio | None = None
    _ratio: Ratio | None = None


WAYS: tuple[Way, ...] = (
    partial(ReplayedRatio._by_releases, runs=RUNS),
    ReplayedRatio._by_outcomes,
    partial(ReplayedRatio._by_releases, runs=MORE_RUNS),
    ReplayedRatio._by_shift,
)
"""How laws are read off, in the order in which it is tried."""
FEW_WAYS: tuple[Way, ...] = (
    WAYS[0],
    ReplayedRatio._by_parts,
    WAYS[1],
    ReplayedRatio._by_change,
    WAYS[2],
)
"""The same, where runs are few and outputs nearly normal, as those of trainings are."""


def ways_of(*, understood: bool, runs: int, few: bool) -> Sequence[Way]:
    """Return how laws are read off of code that a trace understands or not, within so many runs; none for no way."""
    if few:
        return FEW_WAYS if understood else (ReplayedRatio._by_change,)
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
            bound._read_off, stated = found
            bound.stated = Law(*stated) if stated else None
        return bound.afresh()


Value = tuple[int, float]
"""A number of an output and its place; of outputs that have more or fewer numbers only the first and last places count."""
ANYWHERE = -1
"""The place that every number has as well."""


def _values(rows: Array, form: Representation) -> list[list[Value]]:
    """Return the numbers of each row."""
    last = rows.shape[1] - 1
    places = [
        k if not form.flat or k in (0, last) else ANYWHERE for k in range(last + 1)
    ]
    found = [
        [(place, x) for place, x in zip(places, row, strict=True) if x == x]
        for row in rows.tolist()
    ]
    return (
        found
        if form.flat
        else [[*row, *((ANYWHERE, x) for _, x in row)] for row in found]
    )


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
    masses = {
        name: both for name, both in law.masses.items() if any(both)
    }  # others come on neither input
    rows = _rows(trace, [law.outputs[name] for name in masses], form)
    with np.errstate(divide="ignore"):
        p, q = np.log(np.array(list(masses.values()))).T
    table = {row.tobytes(): odds for row, odds in zip(rows, p - q, strict=True)}

    def ratio(outputs: Array) -> Floats:
        return np.array([table.get(row.tobytes(), np.nan) for row in outputs])

    return (ratio, Law(p - q, np.exp(p) + np.exp(q))) if np.any(p != q) else None
