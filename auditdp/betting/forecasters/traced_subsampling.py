"""The likelihood ratio of noise on values that hang on which records were drawn: shuffled, or sampled for each batch.

Runs on each input alone show what noise is added to, run by run. Between two draws of records stands one part of a
training, a step of Poisson batches or an epoch of shuffled ones. The density of its noisy numbers is averaged over the
runs, and parts are multiplied: what is drawn for one does not hang on what was drawn for another. Where values depend on
noise that was added before, as unclipped gradients do, that is left out: the log-odds are made as much smaller as those of
each run show, by all other runs, that they say too much.

Where every record has a coin of its own, its probability is known: a run is replayed with the other coin of the record that
differs, and both laws are weighed by it. The others are then the same on both inputs, and the ratio is that of one record.
So it is where a record is replaced and rows are shuffled: each run is replayed on the other input.

Numbers without noise that move with that coin, such as how many records a batch has, say which records were drawn: in a run
they are what they are with the record where its coin in one part shows heads, and else what they are without it. Their
law in that part is nearly normal, and what noise is added to is taken where they are, along its regression on them.
Coins have one law in all parts, so that each part may have the worlds of those that are alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.betting.forecasters.traced_noise import (
    CLOSE,
    Laws,
    LinearFunction,
    NoisyNumber,
    Ratio,
    function_of,
    laws_of,
)
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import COIN, NOISY, Release
from auditdp.tracing.watched_run import TracedRun

LARGEST = 20.0
"""Log-odds beyond it count as it, where they are compared."""
FINEST = 1e-6
"""How far, relatively, rounding takes numbers that the records decide."""
MOST_WORLDS = 512
"""Worlds of a part that has those of others as well, at most."""
PARTS, NEARLY = np.linspace(0, 1, 21), 1.0
"""Parts of the log-odds, of which the largest counts that tells runs which are left out nearly best, by so many nats."""
RowsOf = Callable[[Sequence[Any]], Floats]
"""Makes rows of outputs."""


class Worlds(NamedTuple):
    """What noise is added to on an input, run by run.

    Attributes:
        runs: The releases with noise of each.
        rows: Its output.
        chances: How likely it is.
        owners: By which run it was seen.
        kinds: Whether the coin of the record shows heads in it, or tails, where it was seen by the same run with both.
    """

    runs: list[list[Release]]
    rows: Floats
    chances: Floats
    owners: NDArray[np.intp]
    kinds: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        rows_of: RowsOf,
        runs: Sequence[TracedRun],
        owners: Sequence[int],
        weights: Floats | None = None,
    ) -> Worlds:
        """Return those of runs, each as likely as its weight has it; of those with one owner each is of its own kind."""
        shares = np.ones(len(runs)) if weights is None else weights
        kinds = np.arange(len(runs)) // (max(owners) + 1 - min(owners))
        noisy = [[release for release, _ in _noisy(run)] for run in runs]
        rows = rows_of([run.output for run in runs]).astype(float)
        return cls(noisy, rows, shares / shares.sum(), np.array(owners), kinds)

    def times(self, parts: int) -> Worlds:
        """Return them for so many parts together."""
        owners, kinds = np.tile(self.owners, parts), np.tile(self.kinds, parts)
        return self._replace(
            chances=np.tile(self.chances, parts), owners=owners, kinds=kinds
        )


@dataclass(frozen=True, eq=False)
class SampledPart:
    """The numbers that are released between two draws of records, and the worlds that their laws are of on either input.

    Attributes:
        entries: Those with noise.
        columns: Places of those without it, which say something of the records that were drawn, such as how many they are.
        seen: What these are in each world of the data, and of the neighbour.
        worlds: Of the data, and of the neighbour.
    """

    entries: list[NoisyNumber]
    columns: NDArray[np.intp]
    seen: tuple[Floats, Floats]
    worlds: tuple[Worlds, Worlds]

    @property
    def kind(self) -> Any:
        """What parts share whose steps are alike: families and sizes of the noise, and how many numbers have none."""
        laws = [law for entry in self.entries for law in entry.laws]
        return tuple(
            (law.family.name, law.numbers[0, 1:].tobytes()) for law in laws
        ), len(self.columns)

    def log_odds(self, outputs: Floats, owners: NDArray[np.intp] | None) -> Floats:
        """Return the log-odds of outputs: their joint density is averaged, of each without the worlds of its own run."""
        with np.errstate(all="ignore"):
            one, other = (self._log_densities(outputs, owners, side) for side in (0, 1))
            return np.asarray(one - other)

    def _log_densities(
        self, outputs: Floats, owners: NDArray[np.intp] | None, side: int
    ) -> Floats:
        worlds, values = (
            self.worlds[side],
            np.array([entry.values(outputs) for entry in self.entries]),
        )
        chances = np.repeat(
            worlds.chances[:, None], 1 if owners is None else len(outputs), axis=1
        )
        chances[False if owners is None else worlds.owners[:, None] == owners] = 0.0
        laws, found = [entry.laws[side] for entry in self.entries], []
        for kind in np.unique(worlds.kinds):
            own = worlds.kinds == kind
            numbers = np.array([law.numbers[own] for law in laws])
            shown, moves = _by_shown(
                outputs[:, self.columns],
                self.seen[side][own],
                numbers[:, :, 0],
                chances[own],
            )
            each = (
                Laws(law.family, n).log_densities(x)
                for law, n, x in zip(
                    laws, numbers, values[:, None] - moves, strict=True
                )
            )
            found.append(shown + np.log(chances[own]) + sum(each))
        return np.asarray(
            logsumexp(np.concatenate(found), axis=0) - np.log(chances.sum(axis=0))
        )


def _pooled(parts: Sequence[SampledPart]) -> list[SampledPart]:
    """Return parts that have the worlds of those that are alike as well: coins have one law in all of them."""
    kinds = defaultdict[Any, list[SampledPart]](list)
    for part in parts:
        kinds[part.kind].append(part)
    return [_among(part, kinds[part.kind]) for part in parts]


def _among(part: SampledPart, alike: Sequence[SampledPart]) -> SampledPart:
    """Return a part with the worlds of some others beside its own, by turns where they are many."""
    most = max(MOST_WORLDS // max(len(side.chances) for side in part.worlds), 1)
    some = [
        part,
        *[each for each in alike if each is not part][:: -(-len(alike) // most)],
    ][:most]
    entries = []
    for k, entry in enumerate(part.entries):
        numbers = [
            np.concatenate([each.entries[k].laws[side].numbers for each in some])
            for side in (0, 1)
        ]
        one, other = (
            Laws(law.family, rows)
            for law, rows in zip(entry.laws, numbers, strict=True)
        )
        entries.append(replace(entry, laws=(one, other)))
    one_seen, other_seen = (
        np.concatenate([each.seen[side] for each in some]) for side in (0, 1)
    )
    worlds = part.worlds[0].times(len(some)), part.worlds[1].times(len(some))
    return SampledPart(entries, part.columns, (one_seen, other_seen), worlds)


def _by_shown(
    values: Floats, seen: Floats, locations: Floats, chances: Floats
) -> tuple[Floats, Floats]:
    """Return the log density of numbers without noise, by a normal law, and how far they move what noise is added to.

    A size of a batch is a sum of coins, which is nearly normal. What is added to noise follows such numbers linearly,
    but for as much as it does not in a world.

    Args:
        values: The numbers, shape (outputs, numbers).
        seen: The same in worlds of one kind, shape (worlds, numbers).
        locations: What noise is added to in these, shape (noisy numbers, worlds).
        chances: Of these for each output, shape (worlds, outputs), or for all of them, shape (worlds, 1).
    """
    if not seen.shape[1]:
        return np.zeros((len(seen), 1)), np.zeros((len(locations), 1, 1))
    weights = (chances / chances.sum(axis=0)).T
    mean = weights @ seen
    off = seen - mean[:, None]
    effective = np.square(weights).sum(axis=1)[
        :, None, None
    ]  # one divided by how many worlds there are
    spread = (
        np.einsum("mg,mgk,mgl->mkl", weights, off, off)
        * (1 + effective)
        / (1 - effective)
    )
    finest = FINEST * np.abs(seen).max(axis=0) + np.finfo(float).tiny
    inverse = np.linalg.inv(spread + np.diag(finest**2))
    slopes = np.einsum("mkl,mg,mgl,ng->nmk", inverse, weights, off, locations)
    far = values - mean
    density = (
        np.linalg.slogdet(inverse)[1] / 2
        - np.einsum("mk,mkl,ml->m", far, inverse, far) / 2
    )
    moves = np.einsum("nmk,gmk->ngm", slopes, values - seen[:, None])
    return np.broadcast_to(density, (len(seen), len(values))), moves


class RatioByParts(NamedTuple):
    """What is read off a pair on which records are drawn.

    Attributes:
        read: The log-odds of rows, and how often they are which by the runs; None where these tell nothing.
        apart: How far apart the inputs are, in standard deviations of log-odds. Where a record has a coin, each part of each
            run shows its share of that, whichever input it was seen on, and few runs tell; but where earlier noise moves
            what later noise is added to, parts take back what others say, and the sum of all shows less. The smaller counts.
    """

    read: tuple[Ratio, Law] | None
    apart: float


def ratio_by_parts(
    trace: Trace, pair: Pair, rows_of: RowsOf, *, runs: int, seed: int
) -> RatioByParts | None:
    """Return the log-odds of rows by the law of each part; None where they cannot be read.

    Args:
        trace: Of the mechanism.
        pair: The pair.
        rows_of: Makes rows of outputs.
        runs: Runs on each input; a quarter more where records have coins and one is replaced.
        seed: Of the runs.
    """
    inputs = (pair.data, pair.neighbour)

    def recorded(side: int, first: int, last: int) -> list[TracedRun]:
        return [
            trace.record(inputs[side], np.random.default_rng([seed, side, k]))
            for k in range(first, last)
        ]

    first = recorded(0, 0, 1)
    if not any(map(is_sample, first[0].releases)):
        return None
    sides = [first + recorded(0, 1, runs // 2), recorded(1, 0, runs // 2)]
    own, changed = [*range(runs // 2)], changed_record(pair)
    if (coin := _coin(changed, sides)) is not None:
        worlds = _by_coin(trace, inputs, coin, sides[coin.side], rows_of)
    elif changed is not None and changed[1][0] == changed[1][1]:
        others = [
            [trace.replay(inputs[1 - side], run) for run in sides[side]]
            for side in (0, 1)
        ]
        both = [*own, *range(runs // 2, runs)]
        worlds = (
            Worlds.of(rows_of, [*sides[0], *others[1]], both),
            Worlds.of(rows_of, [*others[0], *sides[1]], both),
        )
    else:
        sides = [side + recorded(k, runs // 2, runs) for k, side in enumerate(sides)]
        worlds = (
            Worlds.of(rows_of, sides[0], range(runs)),
            Worlds.of(rows_of, sides[1], range(runs, 2 * runs)),
        )
    kinds = [
        [(r.site, r.law.family, r.shape) for r in run]
        for run in [*worlds[0].runs, *worlds[1].runs]
    ]
    if not kinds[0] or any(kind != kinds[0] for kind in kinds):
        return None
    rows = [rows_of([run.output for run in side]).astype(float) for side in sides]
    shown = (
        []
        if coin is None
        else _shown_by(coin, worlds[coin.side], sides[coin.side], rows[coin.side])
    )
    if (parts := _parts(worlds, sides, rows, shown)) is None:
        return None
    labels = np.repeat([1, -1], len(rows[0]))
    owners = (
        np.arange(len(labels))
        if coin is None or not coin.side
        else np.roll(np.arange(len(labels)), len(rows[0]))
    )
    outputs = np.concatenate(rows)
    pooled = parts if coin is None else _pooled(parts)
    each = np.array([part.log_odds(outputs, owners) for part in pooled])
    odds = np.clip(each.sum(axis=0), -LARGEST, LARGEST)
    won = log_expit(np.multiply.outer(PARTS, labels * odds)).sum(axis=1)
    told = PARTS[won >= won.max() - NEARLY][-1] if won.max() > won[0] + NEARLY else 0.0

    def ratio(outputs: Array) -> Floats:
        return np.asarray(
            told
            * sum(part.log_odds(np.asarray(outputs, float), None) for part in pooled)
        )

    sure = told * odds if coin is None else odds
    ways = [sure[None]] if coin is None else [sure[None], each]
    apart = 2 * min(
        float(np.sqrt(np.square(np.tanh(way / 2)).mean(axis=1).sum())) for way in ways
    )
    return RatioByParts(
        (ratio, Law(told * odds, np.ones(len(odds)))) if told > 0 else None, apart
    )


def _noisy(run: TracedRun) -> list[tuple[Release, int]]:
    """Return the values with noise, each with the number of its part."""
    return [(release, part) for release, part in _parted(run) if release.kind == NOISY]


def _parted(run: TracedRun) -> list[tuple[Release, int]]:
    """Return the releases, each with the number of its part: one begins with a draw of records after noise."""
    found, part, before = list[tuple[Release, int]](), 0, False
    for release in run.releases:
        is_noisy = release.kind == NOISY
        part += before and not is_noisy
        before = is_noisy
        found.append((release, part))
    return found


class Coin(NamedTuple):
    """The coin of the record that differs: on which side, its place among the records', its rate, whether both have one."""

    side: int
    place: int
    rate: float
    both: bool


def _coin(
    changed: tuple[int, tuple[int, int]] | None, sides: Sequence[Sequence[TracedRun]]
) -> Coin | None:
    """Return the coin of the record that differs; None where records have none of their own."""
    if changed is None:
        return None
    place, records = changed
    side = int(records[1] > records[0])
    samples = [
        release for run in sides[side] for release in run.releases if is_sample(release)
    ]
    if any(
        release.kind != COIN or release.shape != (records[side],) for release in samples
    ):
        return None
    rates = {
        float(np.broadcast_to(release.location, release.shape)[place])
        for release in samples
    }
    return (
        Coin(side, place, rates.pop(), records[0] == records[1])
        if len(rates) == 1
        else None
    )


def _by_coin(
    trace: Trace,
    inputs: Sequence[Any],
    coin: Coin,
    runs: Sequence[TracedRun],
    rows_of: RowsOf,
) -> tuple[Worlds, Worlds]:
    """Return what noise is added to with the record in a batch and without it, by the chance of its coin."""
    forced = partial(_with, trace, coin=coin)
    taken, left = (
        [forced(inputs[coin.side], run, heads) for run in runs]
        for heads in (True, False)
    )
    tossed, own = np.repeat([coin.rate, 1 - coin.rate], len(runs)), [*range(len(runs))]
    first, second = (
        Worlds.of(rows_of, taken + left, 2 * own, tossed),
        Worlds.of(rows_of, left, own),
    )
    if coin.both:
        second = Worlds.of(
            rows_of,
            [forced(inputs[1 - coin.side], run, True) for run in runs] + left,
            2 * own,
            tossed,
        )
    return (second, first) if coin.side else (first, second)


def _with(
    trace: Trace, data: Any, run: TracedRun, heads: bool, *, coin: Coin
) -> TracedRun:
    """Return a replay of a run in which the coin of the record shows heads, or tails, each time."""
    forced = {}
    for release in run.releases:
        if is_sample(release):
            forced[release.number] = np.array(release.result)
            forced[release.number][coin.place] = heads
    return trace.replay(data, run, forced=forced)


def _shown_by(
    coin: Coin, worlds: Worlds, runs: Sequence[TracedRun], rows: Floats
) -> list[tuple[int, int]]:
    """Return the numbers that the coin of the record decides, not noise, and the part of a training whose coin it is.

    In a run they are what they are with the record in that part's batch, or else without it.
    """
    taken, left = worlds.rows[: len(rows)], worlds.rows[len(rows) :]
    samples = [[(r, part) for r, part in _parted(run) if is_sample(r)] for run in runs]
    found = []
    for column in np.flatnonzero((taken != left).any(axis=0)).tolist():
        decides = {
            part
            for k, (_, part) in enumerate(samples[0])
            if all(
                row[column] == (one if run[k][0].result[coin.place] else other)[column]
                for run, row, one, other in zip(samples, rows, taken, left, strict=True)
            )
        }
        found += [(column, part) for part in decides if len(decides) == 1]
    return found


def _parts(
    worlds: tuple[Worlds, Worlds],
    sides: Sequence[Sequence[TracedRun]],
    rows: Sequence[Floats],
    decided: Sequence[tuple[int, int]],
) -> list[SampledPart] | None:
    """Return the parts of a training, as functions of the output; None where a number is none."""
    noisy = [[_noisy(run) for run in side] for side in sides]
    places = [[part for _, part in run] for side in noisy for run in side]
    if any(len(place) != len(worlds[0].runs[0]) for place in places):
        return None
    parted = (
        places[0]
        if all(place == places[0] for place in places)
        else [0] * len(places[0])
    )
    parts: list[list[NoisyNumber]] = [[] for _ in range(max(parted) + 1)]
    for number, part in enumerate(parted):
        one, other = (laws_of([run[number] for run in side.runs]) for side in worlds)
        shown = _shown([[run[number][0] for run in side] for side in noisy], rows)
        if one is None or other is None or shown is None:
            return None
        parts[part] += [
            NoisyNumber(*found, (a, b))
            for found, a, b in zip(shown, one, other, strict=True)
        ]
    at = [
        np.array(
            [column for column, p in decided if parted == places[0] and p == part], int
        )
        for part in range(len(parts))
    ]
    return [
        SampledPart(
            entries, own, (worlds[0].rows[:, own], worlds[1].rows[:, own]), worlds
        )
        for entries, own in zip(parts, at, strict=True)
        if entries
    ]


def _shown(
    releases: Sequence[Sequence[Release]], rows: Sequence[Floats]
) -> list[LinearFunction] | None:
    """Return how each number of a release follows from the output: as the longer side shows, and the other has it."""
    values = [
        np.array([np.ravel(np.real(r.result)).astype(float) for r in side])
        for side in releases
    ]
    long = int(len(values[1]) > len(values[0]))
    found = []
    for own, column in zip(values[long].T, values[1 - long].T, strict=True):
        if (each := function_of(own, rows[long])) is None:
            return None
        found.append(each)
        shown = rows[1 - long][:, each[0]] @ each[1] + each[2]
        if not np.allclose(
            shown, column, rtol=CLOSE, atol=CLOSE * np.abs(column).max()
        ):
            return None
    return found
