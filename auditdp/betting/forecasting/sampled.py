"""The likelihood ratio of noise on values that hang on which records were drawn: shuffled, or sampled for each batch.

Runs on each input alone show what noise is added to, run by run. Between two draws of records stands one part of a
training, a step of Poisson batches or an epoch of shuffled ones. The density of its noisy numbers is averaged over the
runs, and parts are multiplied: what is drawn for one does not hang on what was drawn for another. Where values depend on
noise that was added before, as unclipped gradients do, that is left out. Some runs are kept to see whether the log-odds
tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from auditdp.betting.forecasting.reading import CLOSE, Laws, NoisyNumber, function_of, laws_of, log_odds_by
from auditdp.betting.wealth.forecasts import Law
from auditdp.claims.dominating import Floats
from auditdp.mechanism.protocol import Array
from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.run import TracedRun

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
Sides = tuple[Sequence[TracedRun], Sequence[TracedRun]]
Parts = list[list[NoisyNumber]]


def ratio_by_parts(
    sides: Sides, rows: tuple[Floats, Floats], rng: np.random.Generator
) -> tuple[Callable[[Array], Floats], Law] | None:
    """Return the log-odds of rows, and how often they are which by the laws that were read; None where they cannot be read.

    Args:
        sides: Runs on the data, and on the neighbour.
        rows: Their outputs, each of shape (runs, numbers).
        rng: Draws the outputs that show how often log-odds are which.
    """
    noisy = [[_noisy(run) for run in side] for side in sides]
    kinds = [[(r.site, r.law.family, r.shape) for r, _ in run] for side in noisy for run in side]
    if not kinds[0] or any(kind != kinds[0] for kind in kinds) or kinds[0][0][1] not in DRAWN:
        return None
    kept = len(sides[0]) // KEPT
    used, shown = [rows[side][kept:] for side in (0, 1)], [rows[side][:kept] for side in (0, 1)]
    places = [[part for _, part in run] for side in noisy for run in side]
    parted = places[0] if all(place == places[0] for place in places) else [0] * len(kinds[0])
    parts: Parts = [[] for _ in range(max(parted) + 1)]
    for number, part in enumerate(parted):
        found = _numbers([[run[number][0] for run in side[kept:]] for side in noisy], used)
        if found is None:
            return None
        parts[part] += found
    parts = [part for part in parts if part]

    def ratio(outputs: Array) -> Floats:
        values = np.asarray(outputs, float)
        odds = [log_odds_by(part, [entry.values(values) for entry in part]) for part in parts]
        return np.asarray(np.sum(odds, axis=0))

    odds = [_simulated(parts, side, kinds[0][0][1], rng) for side in (0, 1)]
    told = float(np.clip(odds[0], -LARGEST, LARGEST).mean() - np.clip(odds[1], -LARGEST, LARGEST).mean())
    seen = float(np.diff([np.clip(ratio(side), -LARGEST, LARGEST).mean() for side in shown[::-1]])[0])
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


def _numbers(releases: Sequence[Sequence[Release]], rows: Sequence[Floats]) -> list[NoisyNumber] | None:
    """Return the numbers of one release, as functions of the output; None where one is none."""
    laws = [laws_of(side) for side in releases]
    if laws[0] is None or laws[1] is None:
        return None
    values = [np.array([np.ravel(np.real(r.result)).astype(float) for r in side]) for side in releases]
    made = []
    for k in range(values[0].shape[1]):
        if (found := function_of(values[0][:, k], rows[0])) is None:
            return None
        entry = NoisyNumber(*found, (laws[0][k], laws[1][k]))
        if not np.allclose(entry.values(rows[1]), values[1][:, k], rtol=CLOSE, atol=CLOSE * np.abs(values[1]).max()):
            return None
        made.append(entry)
    return made


def _simulated(parts: Parts, side: int, family: str, rng: np.random.Generator) -> Floats:
    """Return the log-odds of outputs that are drawn by the laws of one side."""
    odds = np.zeros(SIMULATED)
    for part in parts:
        chosen = rng.integers(len(part[0].laws[side].numbers), size=SIMULATED)
        odds += log_odds_by(part, [_drawn(entry.laws[side], chosen, family, rng) for entry in part])
    return odds


def _drawn(laws: Laws, chosen: Array, family: str, rng: np.random.Generator) -> Floats:
    location, scale, _ = laws.numbers[chosen].T
    return np.asarray(location + scale * DRAWN[family](rng, size=len(chosen)))
