"""The likelihood ratio of noise on values that hang on which records were drawn: shuffled, or sampled for each batch.

Runs on each input alone show what noise is added to, run by run. Between two draws of records stands one part of a
training, a step of Poisson batches or an epoch of shuffled ones. The density of its noisy numbers is averaged over the
runs, and parts are multiplied: what is drawn for one does not hang on what was drawn for another. Where values depend on
noise that was added before, as unclipped gradients do, that is left out. Some runs are kept to see whether the log-odds
tell them apart.

Where every record has a coin of its own, its probability is known: a run is replayed with the other coin of the record that
differs, and both laws are weighed by it. The others are then the same on both inputs, and the ratio is that of one record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

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

DRAWN: dict[str, Callable[..., Floats]] = {
    "Gaussian": np.random.Generator.standard_normal,
    "Laplace": np.random.Generator.laplace,
}
"""Families whose outputs are drawn anew, for how often there are which log-odds."""
SIMULATED = 2_000
"""Outputs of each input that are drawn."""
LARGEST = 20.0
"""Log-odds beyond it count as it, where means of them are compared."""
KEPT, SEEN = 4, 0.4
"""One run of so many is kept; these have to tell so much of what the laws tell."""


class Worlds(NamedTuple):
    """What noise is added to on an input: the releases with noise of each run, and the chance of each."""

    runs: list[list[Release]]
    chances: Floats


@dataclass(frozen=True, eq=False)
class SampledPart:
    """The numbers that are released between two draws of records, and the chance of each of their laws on either input."""

    entries: list[NoisyNumber]
    chances: tuple[Floats, Floats]

    def log_odds(self, values: Sequence[Floats]) -> Floats:
        """Return the log-odds of values of its numbers, shape (outputs,) each: their joint density is averaged."""
        with np.errstate(all="ignore"):
            densities = [
                sum(entry.laws[side].log_densities(x) for entry, x in zip(self.entries, values, strict=True))
                for side in (0, 1)
            ]
            one, other = (
                logsumexp(each + np.log(chances)[:, None], axis=0)
                for each, chances in zip(densities, self.chances, strict=True)
            )
            return np.asarray(one - other)

    def simulated(self, side: int, family: str, rng: np.random.Generator) -> Floats:
        """Return the log-odds of values that are drawn by the laws of one side."""
        chosen = rng.choice(len(self.chances[side]), size=SIMULATED, p=self.chances[side])
        values = []
        for entry in self.entries:
            location, scale, _ = entry.laws[side].numbers[chosen].T
            values.append(np.asarray(location + scale * DRAWN[family](rng, size=SIMULATED)))
        return self.log_odds(values)


def ratio_by_parts(
    trace: Trace, pair: Pair, rows_of: Callable[[Sequence[Any]], Floats], *, runs: int, seed: int
) -> tuple[Ratio, Law] | None:
    """Return the log-odds of rows, and how often they are which by the laws that were read; None where they cannot be read.

    Args:
        trace: Of the mechanism.
        pair: The pair.
        rows_of: Makes rows of outputs.
        runs: Runs on each input; half as many more where records have coins and one is replaced.
        seed: Of the runs.
    """
    kept, inputs = runs // KEPT, (pair.data, pair.neighbour)

    def recorded(side: int, first: int, last: int) -> list[TracedRun]:
        return [trace.record(inputs[side], np.random.default_rng([seed, side, k])) for k in range(first, last)]

    first = recorded(0, 0, 1)
    if not any(map(is_sample, first[0].releases)):
        return None
    sides = [first + recorded(0, 1, kept), recorded(1, 0, kept)]
    if (coin := _coin(pair, sides)) is not None:
        sides[coin.side] += recorded(coin.side, kept, runs - kept)
        worlds = _by_coin(trace, inputs, coin, sides[coin.side][kept:])
    else:
        sides = [side + recorded(k, kept, runs) for k, side in enumerate(sides)]
        worlds = _of_runs(sides[0][kept:]), _of_runs(sides[1][kept:])
    kinds = [[(r.site, r.law.family, r.shape) for r in run] for run in [*worlds[0].runs, *worlds[1].runs]]
    if not kinds[0] or any(kind != kinds[0] for kind in kinds) or (family := kinds[0][0][1]) not in DRAWN:
        return None
    parts = _parts(worlds, sides, [rows_of([run.output for run in side]).astype(float) for side in sides])
    if parts is None:
        return None

    def ratio(outputs: Array) -> Floats:
        values = np.asarray(outputs, float)
        return np.asarray(sum(part.log_odds([entry.values(values) for entry in part.entries]) for part in parts))

    rng = np.random.default_rng([seed, runs])
    odds = [np.asarray(sum(part.simulated(side, family, rng) for part in parts)) for side in (0, 1)]
    told = float(np.clip(odds[0], -LARGEST, LARGEST).mean() - np.clip(odds[1], -LARGEST, LARGEST).mean())
    shown = [ratio(rows_of([run.output for run in side[:kept]])) for side in sides]
    seen = float(np.diff([np.clip(each, -LARGEST, LARGEST).mean() for each in shown[::-1]])[0])
    return (ratio, Law(np.concatenate(odds), np.ones(2 * SIMULATED))) if told > 0 and seen > SEEN * told else None


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


def _of_runs(runs: Sequence[TracedRun]) -> Worlds:
    return Worlds([[release for release, _ in _noisy(run)] for run in runs], np.full(len(runs), 1 / len(runs)))


class Coin(NamedTuple):
    """The coin of the record that differs: on which side, its place among the records', its rate, whether both have one."""

    side: int
    place: int
    rate: float
    both: bool


def _coin(pair: Pair, sides: Sequence[Sequence[TracedRun]]) -> Coin | None:
    """Return the coin of the record that differs; None where records have none of their own."""
    if (changed := changed_record(pair)) is None:
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
    taken, left, replaced = list[list[Release]](), list[list[Release]](), list[list[Release]]()
    for run in runs:
        both = [_of_runs([_with(trace, inputs[coin.side], coin, run, heads)]).runs[0] for heads in (True, False)]
        taken, left = [*taken, both[0]], [*left, both[1]]
        if coin.both:
            replaced += _of_runs([_with(trace, inputs[1 - coin.side], coin, run, heads=True)]).runs
    count = len(runs)
    tossed = np.repeat([coin.rate / count, (1 - coin.rate) / count], count)
    first = Worlds(taken + left, tossed)
    second = Worlds(replaced + left, tossed) if coin.both else Worlds(left, np.full(count, 1 / count))
    return (second, first) if coin.side else (first, second)


def _with(trace: Trace, data: Any, coin: Coin, run: TracedRun, heads: bool) -> TracedRun:
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
    return [SampledPart(entries, (worlds[0].chances, worlds[1].chances)) for entries in parts if entries]


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
