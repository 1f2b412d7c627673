"""The likelihood ratio of noise on values that hang on which records were drawn: shuffled, or sampled for each batch.

Runs on each input alone show what noise is added to, run by run. Between two draws of records stands one part of a
training, a step of Poisson batches or an epoch of shuffled ones. The density of its noisy numbers is averaged over the
runs, and parts are multiplied: what is drawn for one does not hang on what was drawn for another. Where values depend on
noise that was added before, as unclipped gradients do, that is left out: the log-odds are made as much smaller as those of
each run show, by all other runs, that they say too much.

Where every record has a coin of its own, its probability is known: a run is replayed with the other coin of the record that
differs, and both laws are weighed by it. The others are then the same on both inputs, and the ratio is that of one record.
So it is where a record is replaced and rows are shuffled: each run is replayed on the other input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from auditdp.adjacency import Pair
from auditdp.adjacency.alike import changed_record
from auditdp.betting.forecasting.noise_laws import CLOSE, LinearFunction, NoisyNumber, Ratio, function_of, laws_of
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.draws import COIN, NOISY, Release
from auditdp.tracing.run import TracedRun
from auditdp.tracing.steps import is_sample

LARGEST = 20.0
"""Log-odds beyond it count as it, where they are compared."""
PARTS, NEARLY = np.linspace(0, 1, 21), 1.0
"""Parts of the log-odds, of which the largest counts that tells runs which are left out nearly best, by so many nats."""


class Worlds(NamedTuple):
    """What noise is added to on an input: the releases with noise of each run, its chance, and by which run it was seen."""

    runs: list[list[Release]]
    chances: Floats
    owners: NDArray[np.intp]

    @classmethod
    def of(cls, runs: Sequence[TracedRun], owners: Sequence[int], weights: Floats | None = None) -> Worlds:
        """Return those of runs, each as likely as its weight has it."""
        shares = np.ones(len(runs)) if weights is None else weights
        noisy = [[release for release, _ in _noisy(run)] for run in runs]
        return cls(noisy, shares / shares.sum(), np.array(owners))


@dataclass(frozen=True, eq=False)
class SampledPart:
    """The numbers that are released between two draws of records, and the worlds that their laws are of on either input."""

    entries: list[NoisyNumber]
    worlds: tuple[Worlds, Worlds]

    def log_odds(self, outputs: Floats, owners: NDArray[np.intp] | None) -> Floats:
        """Return the log-odds of outputs: their joint density is averaged, of each without the worlds of its own run."""
        values = [entry.values(outputs) for entry in self.entries]
        sides = []
        for side, worlds in enumerate(self.worlds):
            with np.errstate(all="ignore"):
                densities = sum(each.laws[side].log_densities(x) for each, x in zip(self.entries, values, strict=True))
                chances = np.repeat(worlds.chances[:, None], len(outputs), axis=1)
                chances[False if owners is None else worlds.owners[:, None] == owners] = 0.0
                sides.append(logsumexp(densities + np.log(chances / chances.sum(axis=0)), axis=0))
        return np.asarray(sides[0] - sides[1])


def ratio_by_parts(
    trace: Trace, pair: Pair, rows_of: Callable[[Sequence[Any]], Floats], *, runs: int, seed: int
) -> tuple[Ratio, Law] | None:
    """Return the log-odds of rows, and how often they are which by the runs; None where they cannot be read or tell nothing.

    Args:
        trace: Of the mechanism.
        pair: The pair.
        rows_of: Makes rows of outputs.
        runs: Runs on each input; a quarter more where records have coins and one is replaced.
        seed: Of the runs.
    """
    inputs = (pair.data, pair.neighbour)

    def recorded(side: int, first: int, last: int) -> list[TracedRun]:
        return [trace.record(inputs[side], np.random.default_rng([seed, side, k])) for k in range(first, last)]

    first = recorded(0, 0, 1)
    if not any(map(is_sample, first[0].releases)):
        return None
    sides = [first + recorded(0, 1, runs // 2), recorded(1, 0, runs // 2)]
    own, changed = [*range(runs // 2)], changed_record(pair)
    if (coin := _coin(changed, sides)) is not None:
        worlds = _by_coin(trace, inputs, coin, sides[coin.side])
    elif changed is not None and changed[1][0] == changed[1][1]:
        others = [[trace.replay(inputs[1 - side], run) for run in sides[side]] for side in (0, 1)]
        both = [*own, *range(runs // 2, runs)]
        worlds = Worlds.of([*sides[0], *others[1]], both), Worlds.of([*others[0], *sides[1]], both)
    else:
        sides = [side + recorded(k, runs // 2, runs) for k, side in enumerate(sides)]
        worlds = Worlds.of(sides[0], range(runs)), Worlds.of(sides[1], range(runs, 2 * runs))
    kinds = [[(r.site, r.law.family, r.shape) for r in run] for run in [*worlds[0].runs, *worlds[1].runs]]
    if not kinds[0] or any(kind != kinds[0] for kind in kinds):
        return None
    rows = [rows_of([run.output for run in side]).astype(float) for side in sides]
    if (parts := _parts(worlds, sides, rows)) is None:
        return None
    labels = np.repeat([1, -1], len(rows[0]))
    owners = np.arange(len(labels)) if coin is None or not coin.side else np.roll(np.arange(len(labels)), len(rows[0]))
    odds = np.clip(sum(part.log_odds(np.concatenate(rows), owners) for part in parts), -LARGEST, LARGEST)
    won = log_expit(np.multiply.outer(PARTS, labels * odds)).sum(axis=1)
    told = PARTS[won >= won.max() - NEARLY][-1] if won.max() > won[0] + NEARLY else 0.0

    def ratio(outputs: Array) -> Floats:
        return np.asarray(told * sum(part.log_odds(np.asarray(outputs, float), None) for part in parts))

    return (ratio, Law(told * odds, np.ones(len(odds)))) if told > 0 else None


def _noisy(run: TracedRun) -> list[tuple[Release, int]]:
    """Return the values with noise, each with the number of the draw of records that it follows."""
    found, part, before = list[tuple[Release, int]](), 0, True
    for release in run.releases:
        is_noisy = release.kind == NOISY
        part += bool(found) and is_noisy and not before
        before = is_noisy
        if is_noisy:
            found.append((release, part))
    return found


class Coin(NamedTuple):
    """The coin of the record that differs: on which side, its place among the records', its rate, whether both have one."""

    side: int
    place: int
    rate: float
    both: bool


def _coin(changed: tuple[int, tuple[int, int]] | None, sides: Sequence[Sequence[TracedRun]]) -> Coin | None:
    """Return the coin of the record that differs; None where records have none of their own."""
    if changed is None:
        return None
    place, records = changed
    side = int(records[1] > records[0])
    samples = [release for run in sides[side] for release in run.releases if is_sample(release)]
    if any(release.kind != COIN or release.shape != (records[side],) for release in samples):
        return None
    rates = {float(np.broadcast_to(release.location, release.shape)[place]) for release in samples}
    return Coin(side, place, rates.pop(), records[0] == records[1]) if len(rates) == 1 else None


def _by_coin(trace: Trace, inputs: Sequence[Any], coin: Coin, runs: Sequence[TracedRun]) -> tuple[Worlds, Worlds]:
    """Return what noise is added to with the record in a batch and without it, by the chance of its coin."""
    forced = partial(_with, trace, coin=coin)
    taken, left = ([forced(inputs[coin.side], run, heads) for run in runs] for heads in (True, False))
    tossed, own = np.repeat([coin.rate, 1 - coin.rate], len(runs)), [*range(len(runs))]
    first, second = Worlds.of(taken + left, 2 * own, tossed), Worlds.of(left, own)
    if coin.both:
        second = Worlds.of([forced(inputs[1 - coin.side], run, True) for run in runs] + left, 2 * own, tossed)
    return (second, first) if coin.side else (first, second)


def _with(trace: Trace, data: Any, run: TracedRun, heads: bool, *, coin: Coin) -> TracedRun:
    """Return a replay of a run in which the coin of the record shows heads, or tails, each time."""
    forced = {}
    for release in run.releases:
        if is_sample(release):
            forced[release.number] = np.array(release.result)
            forced[release.number][coin.place] = heads
    return trace.replay(data, run, forced=forced)


def _parts(
    worlds: tuple[Worlds, Worlds], sides: Sequence[Sequence[TracedRun]], rows: Sequence[Floats]
) -> list[SampledPart] | None:
    """Return the parts of a training, as functions of the output; None where a number is none."""
    noisy = [[_noisy(run) for run in side] for side in sides]
    places = [[part for _, part in run] for side in noisy for run in side]
    if any(len(place) != len(worlds[0].runs[0]) for place in places):
        return None
    parted = places[0] if all(place == places[0] for place in places) else [0] * len(places[0])
    parts: list[list[NoisyNumber]] = [[] for _ in range(max(parted) + 1)]
    for number, part in enumerate(parted):
        one, other = (laws_of([run[number] for run in side.runs]) for side in worlds)
        shown = _shown([[run[number][0] for run in side] for side in noisy], rows)
        if one is None or other is None or shown is None:
            return None
        parts[part] += [NoisyNumber(*found, (a, b)) for found, a, b in zip(shown, one, other, strict=True)]
    return [SampledPart(entries, worlds) for entries in parts if entries]


def _shown(releases: Sequence[Sequence[Release]], rows: Sequence[Floats]) -> list[LinearFunction] | None:
    """Return how each number of a release follows from the output: as the longer side shows, and the other has it."""
    values = [np.array([np.ravel(np.real(r.result)).astype(float) for r in side]) for side in releases]
    long = int(len(values[1]) > len(values[0]))
    found = []
    for own, column in zip(values[long].T, values[1 - long].T, strict=True):
        if (each := function_of(own, rows[long])) is None:
            return None
        found.append(each)
        shown = rows[1 - long][:, each[0]] @ each[1] + each[2]
        if not np.allclose(shown, column, rtol=CLOSE, atol=CLOSE * np.abs(column).max()):
            return None
    return found
