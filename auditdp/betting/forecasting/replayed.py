"""The replayed ratio: the likelihood ratio of an output, by the noise that a trace read off the code.

Before a pair is played, the code is traced on it a few times (``auditdp.tracing``), both ways round. Where all runs agree on
the same releases, with the same values and scales on an input, and every noisy value that loses anything is a number of the
output, or a linear function of one, the noisy values of any output can be read from it, and so can the probability that
either input gives them. Where chance decides among few outputs, the probability of each is known instead.
Where outputs got round the noise, values are known that come again and again from one input and from the other one never.

**Why bets by it are valid, whatever the trace says.** What is read off a pair before its first call is a function f from
outputs to log-odds, and f is fixed from then on. The traced runs have randomness of their own, which no call of the game
shares, so f depends on nothing that comes after it. The log-odds of a call are f of that call's output: neither its coin
nor its input is looked at, and the code does not run for it. So they are forecasts as any others, and the expected factor
of bets by them is at most 1 where the claim is true, for any f (``betting/wealth/regions.py``). A wrong f loses its stake.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.claims.base import Claim
from auditdp.claims.dominating import Floats
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array, as_mechanism, is_vectorised
from auditdp.tracing import PairTrace, Trace, compare
from auditdp.tracing.draws import ALONE, NOISY, Release
from auditdp.tracing.families import Family
from auditdp.tracing.losses import Moved

Ratio = Callable[[Array], Floats]
"""Log-odds of rows, NaN for those that do not look like the traced ones."""
RUNS = 3
"""Runs that are traced on each input of a pair."""
VALUE_RUNS, OFTEN = 24, 3
"""Runs on each input that show which values come again, and how often one has to."""
CLOSE = 1e-9
"""How far, relatively, rounding may take a number of the output from a linear function of a noisy value."""
MOST_FITTED = 64
"""Numbers of an output among which linear functions are looked for."""


class ReplayedRatio:
    """Forecasts with the laws that a trace read off the code; it abstains where these do not fit an output.

    Args:
        trace: Of the mechanism.
        claim: Of the game.
        seed: Of the traced runs.

    Attributes:
        abstained: Outputs that did not look like those that were traced.
    """

    name = "replayed ratio"
    share = 16.0
    calibrated = True

    def __init__(self, trace: Trace, claim: Claim, *, seed: int) -> None:
        self.trace, self.claim, self.seed = trace, claim, seed
        self.abstained = 0

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair, after the pair was traced."""
        bound = copy.copy(self)
        bound._ratio = self._read(pair, mechanism.form)
        return bound

    def reads(self, pair: Pair, form: Representation) -> bool:
        """Return whether the laws of a pair can be read off, and tell its inputs apart."""
        return self._read(pair, form) is not None

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

    def _read(self, pair: Pair, form: Representation) -> Ratio | None:
        """Return the log-odds of rows by the laws of a pair; None where these cannot be read off."""
        trace, both = self.trace, ((pair.data, pair.neighbour, True), (pair.neighbour, pair.data, False))
        try:
            with trace:
                seen = [
                    (compare(trace, a, b, np.random.default_rng([self.seed, k]), claim=self.claim, outcomes=0), forward)
                    for a, b, forward in both
                    for k in range(RUNS)
                ]
                if (ratio := _by_noise(trace, seen, form)) is not None:
                    return ratio
                rng = np.random.default_rng([self.seed, 0])
                in_full = compare(trace, pair.data, pair.neighbour, rng, claim=self.claim)
                return _by_table(trace, in_full, form) or (self._by_values(in_full, form) if in_full.proposes else None)
        except Exception:  # of the code that is traced, or of outputs that are no rows
            return None

    def _by_values(self, seen: PairTrace, form: Representation) -> Ratio | None:
        """Return certainty where an output has a value that came several times from one input and never from the other."""
        ones, zeros = (
            [self.trace.record(run.data, np.random.default_rng([self.seed, k])).output for k in range(VALUE_RUNS)]
            for run in (seen.first, seen.second)
        )
        for tail in seen.shown:
            ones += [one for one, _ in tail.outputs]
            zeros += [other for _, other in tail.outputs]
        counts = [
            Counter(chain.from_iterable(map(set, _values(_rows(self.trace, side, form), form))))
            for side in (ones, zeros)
        ]
        only = [
            {value for value, times in mine.items() if times >= OFTEN and value not in theirs}
            for mine, theirs in (counts, counts[::-1])
        ]

        def ratio(outputs: Array) -> Floats:
            shown = [(not only[0].isdisjoint(row), not only[1].isdisjoint(row)) for row in _values(outputs, form)]
            return np.array([0.0 if one == other else np.inf if one else -np.inf for one, other in shown])

        return ratio if any(only) else None

    _ratio: Ratio | None = None


class ReplayedElsewhere(ReplayedRatio):
    """The same, where the code is traced in the process of the mechanism: that is asked for the log-odds of outputs."""

    def __init__(self) -> None:
        self.abstained = 0

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair, after the pair was traced there."""
        bound = copy.copy(self)
        bound._ratio = mechanism.mechanism.replayed(mechanism.form, pair)
        return bound


Value = tuple[int, float]
"""A number of an output and its place, which is 1 for all numbers of outputs that have more or fewer of them."""


def _values(rows: Array, form: Representation) -> list[list[Value]]:
    """Return the numbers of each row."""
    last = rows.shape[1] - 1
    places = [k if not form.flat or k in (0, last) else 1 for k in range(last + 1)]
    return [[(place, x) for place, x in zip(places, row, strict=True) if x == x] for row in rows.tolist()]


def _loses(moved: Moved) -> bool:
    return moved.loss is None or any(moved.loss)


def _rows(trace: Trace, outputs: Sequence[Any], form: Representation) -> Array:
    """Return single outputs as rows, shape (outputs, numbers)."""
    together = is_vectorised(as_mechanism(trace.function))
    rows = form.rows(np.concatenate(outputs) if together else list(outputs))
    return rows.reshape(len(outputs), -1)


def _by_table(trace: Trace, seen: PairTrace, form: Representation) -> Ratio | None:
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

    return ratio if np.any(p != q) else None


def _by_noise(trace: Trace, seen: Sequence[tuple[PairTrace, bool]], form: Representation) -> Ratio | None:
    """Return the log-odds of outputs that show all noisy values that lose anything; None where the traced runs differ."""
    first = seen[0][0]
    if not all(each.extent == "full" and each.differ is None and not each.second.parted for each, _ in seen):
        return None
    kinds = [(moved.first.site, moved.first.law.family, moved.first.shape) for moved in first.moved]
    if any([(m.first.site, m.first.law.family, m.first.shape) for m in each.moved] != kinds for each, _ in seen):
        return None
    rows = _rows(trace, [each.first.output for each, _ in seen], form).astype(float)
    read: list[_Entry] = []
    for place, moved in enumerate(first.moved):
        if any(_loses(each.moved[place]) for each, _ in seen):
            entries = None if moved.first.groups is not None or moved.first.earlier else _entries(seen, place, rows)
            if entries is None:
                return None
            read += entries
    if not read:
        return None
    fixed = {place: rows[0, place] for place in ((0, -1) if form.flat else ()) if len({*rows[:, place].tolist()}) == 1}

    def ratio(outputs: Array) -> Floats:
        outputs = outputs.astype(float)
        odds = np.sum([entry.log_odds(outputs) for entry in read], axis=0)
        for place, value in fixed.items():
            odds[outputs[:, place] != value] = np.nan
        return np.asarray(odds)

    return ratio


@dataclass(frozen=True)
class _Law:
    """The law of one noisy value on one input: its family, what the noise is added to, and its scale and parameter."""

    family: Family
    location: float
    scale: float
    parameter: float | None

    def log_density(self, values: Floats) -> Floats:
        assert self.family.log_density is not None  # else it is not read
        logs = self.family.log_density((values - self.location) / self.scale, self.parameter)
        return np.asarray(logs) - (0.0 if self.family.is_whole else np.log(abs(self.scale)))


@dataclass(frozen=True)
class _Entry:
    """One noisy number, as a linear function of one number of the output, and its laws on both inputs."""

    column: int
    slope: float
    offset: float
    laws: tuple[_Law, _Law]

    def log_odds(self, outputs: Floats) -> Floats:
        values = self.slope * outputs[:, self.column] + self.offset
        with np.errstate(all="ignore"):
            one, other = (law.log_density(values) for law in self.laws)
            return one - other


def _entries(seen: Sequence[tuple[PairTrace, bool]], place: int, rows: Floats) -> list[_Entry] | None:
    """Return the numbers of one release that have another law on the other input; None where one cannot be read."""
    sides: list[list[_Law]] = []
    for is_data in (True, False):
        made = [_laws(m.first if forward is is_data else m.second) for m, forward in _moved(seen, place)]
        if made[0] is None or any(laws != made[0] for laws in made):  # it depends on other noise, or is not known
            return None
        sides.append(made[0])
    values = np.array([np.ravel(np.real(m.first.result)).astype(float) for m, _ in _moved(seen, place)])
    entries = []
    for k, laws in enumerate(zip(*sides, strict=True)):
        if laws[0] != laws[1]:
            if (at := _column(values[:, k], rows)) is None:
                return None
            entries.append(_Entry(*at, laws))
    return entries


def _moved(seen: Sequence[tuple[PairTrace, bool]], place: int) -> list[tuple[Moved, bool]]:
    return [(each.moved[place], forward) for each, forward in seen]


def _laws(release: Release) -> list[_Law] | None:
    """Return the law of every number of a release; None where it is not known."""
    law = release.law
    if law.known is None or law.known.log_density is None or release.kind not in (NOISY, ALONE):
        return None
    location = 0.0 if release.location is None else release.location
    parameter = np.nan if law.parameter is None else law.parameter
    numbers = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (location, law.scale, parameter)), np.empty(release.shape)
    )
    return [
        _Law(law.known, v, c, None if law.parameter is None else p)
        for v, c, p in zip(*(each.ravel().tolist() for each in numbers[:3]), strict=True)
    ]


def _column(values: Floats, rows: Floats) -> tuple[int, float, float] | None:
    """Return the number of an output that shows a value, and slope and offset of the value as a function of it."""
    alike = np.flatnonzero(np.all(rows == values[:, None], axis=0))
    if len(alike):
        return int(alike[0]), 1.0, 0.0
    if rows.shape[1] > MOST_FITTED:
        return None
    low, high = int(np.argmin(values)), int(np.argmax(values))
    with np.errstate(all="ignore"):
        slopes = (values[high] - values[low]) / (rows[high] - rows[low])
        offsets = values[low] - slopes * rows[low]
        near = np.abs(slopes * rows + offsets - values[:, None]) <= CLOSE * np.max(np.abs(values))
    fits = np.flatnonzero(np.all(near, axis=0) & np.isfinite(slopes) & (slopes != 0))
    return (int(fits[0]), float(slopes[fits[0]]), float(offsets[fits[0]])) if len(fits) else None
