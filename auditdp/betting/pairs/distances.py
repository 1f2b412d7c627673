"""How far apart a few outputs of two inputs are, for a search that looks at many pairs by few calls each.

That is no evidence, and need not be right about one pair: it has to rank pairs. Outputs of both inputs are taken to have
been made with the same randomness where that is possible, so that each differs from its partner by what the inputs change.

How far apart the outputs of pairs are that lose as much by a trace: a final model may forget what its steps lost.

Both inputs run a few times with the same draws each. The change of the output from one input to the other, in standard
deviations of the outputs along it, is what a normal law would be told apart by; noise of another size counts as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.normal_laws import FINEST, MOST_CORRELATED, SUREST
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace, Trace

KNOWN = 8.0
"""Outputs for which the usual deviation counts, beside the outputs themselves."""
NEVER_REPEATING = 0.9
"""Share of distinct values above which a column is taken for continuous."""
LEAST_SPREAD = 0.5
"""Share of the usual deviation that few outputs of numbers which repeat are taken to have: some are equal by chance."""
ERRORS = 2.0
"""Standard errors by which deviations have to differ."""
KURTOSIS = 6.0
"""Of Laplace noise: logarithms of two deviations, each of n outputs, differ with variance (6 - 1)/(2n); of normal, less."""
SPREAD_WEIGHT = 3.0
"""Of a difference between log deviations, in standard deviations of a mean."""
MOST_DIFFERENCES = 32
"""Differences of neighbouring columns are looked at where there are at most so many columns."""
ROUNDING = 1e-9
"""Differences of columns that are smaller, relative to the largest number, are taken for rounding."""
MISSING_WEIGHT = 3.0
"""Of a difference between shares of missing numbers."""


@dataclass(frozen=True, eq=False)
class Usual:
    """What outputs of one input are like: of every column, their sum, their largest, and differences of neighbours.

    Attributes:
        spread: The standard deviation, pooled over some inputs, shape (columns,).
        repeating: Whether values occur more than once, as those of continuous noise do not, shape (columns,).
    """

    spread: Floats
    repeating: NDArray[np.bool_]

    @classmethod
    def of(cls, sides: Sequence[Array]) -> Usual:
        """Return what is usual in outputs of some inputs, each of shape (n, d)."""
        distinct = [
            [len(np.unique(column)) / len(column) for column in _columns(side)[0].T]
            for side in sides
        ]
        return cls(spread_of(sides), np.median(distinct, axis=0) < NEVER_REPEATING)


def spread_of(sides: Sequence[Array]) -> Floats:
    """Return the deviation of every column and of what is made of them, pooled over some inputs, shape (columns,)."""
    with np.errstate(all="ignore"):
        return np.asarray(
            np.nan_to_num(
                np.sqrt(
                    np.mean([_columns(side)[0].var(axis=0) for side in sides], axis=0)
                )
            )
        )


def distance(
    ones: Array, zeros: Array, usual: Usual, spread: Floats
) -> tuple[float, int]:
    """Return how far apart two few outputs are, in standard deviations, and in which column most.

    Looked at are the columns together, their sum, their largest, and the differences of neighbouring ones, which show noise
    that several have in common. Of each it is the gap between the means. The deviation
    of few outputs is mostly chance, but the same chance for all inputs where noise is added; so it is taken to be the usual
    one, times how much that of these outputs exceeds what listed inputs show with the same randomness. That ratio is drawn
    towards 1, as variances are in

        Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
        Experiments", Stat. Appl. Genet. Mol. Biol. 3, section 3.

    To that is added by how much one side's deviation exceeds that of the other beyond two standard errors. The distance is
    infinite where a side does not vary in numbers that hardly ever repeat, as those of continuous noise.

    Args:
        ones: Outputs of one input, shape (n, d).
        zeros: As many outputs of the other.
        usual: What outputs of one input are like.
        spread: The deviations of n outputs of listed inputs with this randomness, shape (columns,).
    """
    (one, here), (zero, there) = _columns(ones), _columns(zeros)
    n = len(one)
    with np.errstate(all="ignore"):
        spreads = np.stack([one.std(axis=0), zero.std(axis=0)])
        times = (
            np.square(spreads).sum(axis=0)
            / np.where(spread > 0, spread, usual.spread) ** 2
        )
        own = usual.spread * np.sqrt((KNOWN + n * times) / (KNOWN + 2 * n))
        own = np.where(usual.spread > 0, own, spreads.mean(axis=0))
        gap = np.abs(one.mean(axis=0) - zero.mean(axis=0))
        own_columns = here.shape[1]
        made = np.arange(len(gap)) >= own_columns + 2
        rounded = ROUNDING * max(
            float(np.abs(side[:, :own_columns]).max(initial=0.0))
            for side in (one, zero)
        )
        z = np.where(
            gap > np.where(made, rounded, 0.0),
            gap / np.where(made & (own <= rounded), 0.0, own),
            0.0,
        )
        low, high = np.sort(
            np.maximum(
                spreads, np.where(usual.repeating, LEAST_SPREAD * usual.spread, 0.0)
            ),
            axis=0,
        )
        error = math.sqrt((KURTOSIS - 1) / (2 * n))
        wider = np.where((high > 0) & ~made, np.log(high / low), 0.0) - ERRORS * error
        silent = (
            ~made
            & (spreads.min(axis=0) == 0)
            & ~usual.repeating
            & ((spreads.max(axis=0) > 0) | (gap > 0))
        )
        together = max(
            float(np.sqrt(np.square(z[:own_columns]).sum())), *z[own_columns:].tolist()
        )
        missing = float(np.abs(here.mean(axis=0) - there.mean(axis=0)).max(initial=0.0))
        far = (
            together
            + SPREAD_WEIGHT * max(float(wider.max()), 0.0)
            + MISSING_WEIGHT * missing
        )
    where = int(np.argmax(np.where(silent, np.inf, z)))
    return np.inf if silent.any() or missing == 1 else float(
        np.nan_to_num(far, nan=0.0, posinf=np.inf)
    ), where


def _columns(rows: Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the columns of rows and what is made of them, with 0 for what is not finite, and which columns are finite."""
    with np.errstate(all="ignore"):
        rows = rows.astype(np.float64)
        differences = np.diff(rows, axis=1)[
            :, : MOST_DIFFERENCES if rows.shape[1] <= MOST_DIFFERENCES else 0
        ]
        found = np.column_stack(
            [rows, rows.sum(axis=1), rows.max(axis=1, initial=-np.inf), differences]
        )
    finite = np.isfinite(found)
    return np.where(finite, found, 0.0), finite[:, : rows.shape[1]]


RUNS, CLEAR = 6, 10.0
"""Runs on each input, unless there are to be others; so far apart that any forecaster tells the inputs apart."""
SAME_RUNS, SAME = 2, 1e-9
"""Pairs are the same whose outputs are so in the first runs, but for rounding, as where records are in another order."""
CLOSEST = 3
"""Pairs that are run more often."""


def telling(
    trace: Trace,
    pair: Pair,
    *,
    seed: int,
    runs: int = RUNS,
    seen: list[Floats] | None = None,
    made: list[Floats] | None = None,
) -> float:
    """Return how far apart the outputs of a pair are, in standard deviations; 0 where they are no rows of numbers.

    So it is where first outputs are ``seen`` already; else they are added there. Outputs that were ``made`` count.
    """
    made = [] if made is None else made
    try:
        first = np.stack(_outputs(trace, pair, seed, SAME_RUNS, made), axis=1)
        if seen is not None:
            near = SAME * np.abs(first).max(
                axis=(0, 1)
            )  # of each number: others may be larger
            if any(
                first.shape == other.shape
                and bool((np.abs(first - other) <= near).all())
                for other in seen
            ):
                return 0.0
            seen.append(first)
        ones, zeros = np.stack(_outputs(trace, pair, seed, runs, made), axis=1)
    except Exception:  # of the code that runs, or of outputs that are no numbers
        return 0.0
    if not ones.size or not (np.isfinite(ones).all() and np.isfinite(zeros).all()):
        return 0.0
    if ones.shape[1] <= MOST_CORRELATED:
        return _apart(ones, zeros, ones, zeros)
    halves = (
        slice(0, None, 2),
        slice(1, None, 2),
    )  # of many numbers some are apart by chance: others tell how far
    return float(
        np.mean(
            [
                _apart(ones[a], zeros[a], ones[b], zeros[b])
                for a, b in (halves, halves[::-1])
            ]
        )
    )


def _apart(ones: Floats, zeros: Floats, *others: Floats) -> float:
    """Return how far apart outputs are along the change that outputs show, the same ones or others."""
    tiny = np.maximum(
        FINEST * np.maximum(np.abs(ones), np.abs(zeros)).max(axis=0),
        np.finfo(float).tiny,
    )
    spreads = [np.maximum(side.std(axis=0, ddof=1), tiny) for side in (ones, zeros)]
    change = (ones - zeros).mean(axis=0) / np.hypot(*spreads) * math.sqrt(2)
    length = float(np.linalg.norm(change))
    along = [
        (side / np.hypot(*spreads) * math.sqrt(2)) @ (change / (length or 1.0))
        for side in others
    ]
    deviation = math.hypot(*(side.std(ddof=1) for side in along)) / math.sqrt(2)
    sizes = np.abs(np.log(spreads[0] / spreads[1]))
    if others[0] is not ones:
        return float(along[0].mean() - along[1].mean()) / max(deviation, FINEST)
    return max(length / max(deviation, FINEST), float(np.linalg.norm(sizes)))


def farthest(
    trace: Trace, pairs: Sequence[Pair], *, seed: int, runs: int = RUNS, again: int
) -> Pair:
    """Return the pair whose outputs are farthest apart, or one that is clearly far.

    Args:
        trace: Of the mechanism.
        pairs: The pairs; records in another order make none of its own.
        seed: Of the runs.
        runs: On each input of each pair; twice as many each time of the half that comes first.
        again: On each input of those that come first at last, if these are several.
    """
    chosen: list[tuple[Pair, list[Floats]]] = [(pair, []) for pair in pairs]
    while True:
        told, seen = list[float](), list[Floats]()
        for pair, made in chosen:
            told.append(
                telling(trace, pair, seed=seed, runs=runs, seen=seen, made=made)
            )
            if told[-1] > CLEAR:
                return pair
        first = np.argsort(-np.array(told), kind="stable")[
            : max(-(-len(chosen) // 2), CLOSEST)
        ].tolist()
        chosen = [chosen[k] for k in first if told[k] or k == first[0]]
        if len(chosen) == 1 or runs >= again:
            return chosen[0][0]
        runs = min(2 * runs, again)


def apart_in(runs: Sequence[Sequence[PairTrace]]) -> list[float]:
    """Return how far apart the outputs of pairs are where all noise is the same, in standard deviations of outputs.

    That is what got round the noise. Deviations are those of each pair's outputs, and while it has few, of those of all.
    """
    sides = [
        [_row(run.output) for both in each for run in (both.first, both.second)]
        for each in runs
    ]
    if not sides:
        return []
    size = Counter(len(row) for side in sides for row in side).most_common(1)[0][0]
    alike = np.array([row for side in sides for row in side if len(row) == size])
    middle = np.median(alike, axis=0)
    usual = (
        np.median(np.abs(alike - middle), axis=0)
        + FINEST * np.abs(middle)
        + np.finfo(float).tiny
    )

    def apart(side: Sequence[Floats]) -> float:
        if any(len(row) != size for row in side):
            return SUREST
        each = np.array(side).reshape(-1, 2, size)
        with np.errstate(all="ignore"):
            own = each.var(axis=0).sum(axis=0) * len(each)
            scale = np.sqrt((own + usual**2) / (2 * len(each) - 1))
            far = float(
                np.linalg.norm(
                    np.sqrt(np.square(each[:, 0] - each[:, 1]).mean(axis=0)) / scale
                )
            )
        return far if far < SUREST else SUREST  # so where it is no number

    return [apart(each) for each in sides]


def _row(output: Any) -> Floats:
    try:
        return np.array([float(x) for x in leaves(output)])
    except Exception:  # of outputs that are no numbers
        return np.zeros(0)


def _outputs(
    trace: Trace, pair: Pair, seed: int, runs: int, made: list[Floats]
) -> list[Floats]:
    """Return the outputs of both inputs with the same draws, run by run, each of shape (2, numbers); add those to come."""
    for k in range(len(made), runs):
        sides = trace.both(pair.data, pair.neighbour, np.random.default_rng([seed, k]))
        made.append(
            np.array([[float(x) for x in leaves(side.output)] for side in sides])
        )
    return made[:runs]
