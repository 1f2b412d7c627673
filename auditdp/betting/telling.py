"""How far apart the outputs of pairs are that lose as much by a trace: a final model may forget what its steps lost.

Both inputs run a few times with the same draws each. The change of the output from one input to the other, in standard
deviations of the outputs along it, is what a normal law would be told apart by; noise of another size counts as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.normal import FINEST, MOST_CORRELATED, SUREST
from auditdp.mechanism.calls.leaves import leaves
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace, Trace

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
            near = SAME * np.abs(first).max(axis=(0, 1))  # of each number: others may be larger
            if any(first.shape == other.shape and bool((np.abs(first - other) <= near).all()) for other in seen):
                return 0.0
            seen.append(first)
        ones, zeros = np.stack(_outputs(trace, pair, seed, runs, made), axis=1)
    except Exception:  # of the code that runs, or of outputs that are no numbers
        return 0.0
    if not ones.size or not (np.isfinite(ones).all() and np.isfinite(zeros).all()):
        return 0.0
    if ones.shape[1] <= MOST_CORRELATED:
        return _apart(ones, zeros, ones, zeros)
    halves = slice(0, None, 2), slice(1, None, 2)  # of many numbers some are apart by chance: others tell how far
    return float(np.mean([_apart(ones[a], zeros[a], ones[b], zeros[b]) for a, b in (halves, halves[::-1])]))


def _apart(ones: Floats, zeros: Floats, *others: Floats) -> float:
    """Return how far apart outputs are along the change that outputs show, the same ones or others."""
    tiny = np.maximum(FINEST * np.maximum(np.abs(ones), np.abs(zeros)).max(axis=0), np.finfo(float).tiny)
    spreads = [np.maximum(side.std(axis=0, ddof=1), tiny) for side in (ones, zeros)]
    change = (ones - zeros).mean(axis=0) / np.hypot(*spreads) * math.sqrt(2)
    length = float(np.linalg.norm(change))
    along = [(side / np.hypot(*spreads) * math.sqrt(2)) @ (change / (length or 1.0)) for side in others]
    deviation = math.hypot(*(side.std(ddof=1) for side in along)) / math.sqrt(2)
    sizes = np.abs(np.log(spreads[0] / spreads[1]))
    if others[0] is not ones:
        return float(along[0].mean() - along[1].mean()) / max(deviation, FINEST)
    return max(length / max(deviation, FINEST), float(np.linalg.norm(sizes)))


def farthest(trace: Trace, pairs: Sequence[Pair], *, seed: int, runs: int = RUNS, again: int) -> Pair:
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
            told.append(telling(trace, pair, seed=seed, runs=runs, seen=seen, made=made))
            if told[-1] > CLEAR:
                return pair
        first = np.argsort(-np.array(told), kind="stable")[: max(-(-len(chosen) // 2), CLOSEST)].tolist()
        chosen = [chosen[k] for k in first if told[k] or k == first[0]]
        if len(chosen) == 1 or runs >= again:
            return chosen[0][0]
        runs = min(2 * runs, again)


def apart_in(runs: Sequence[Sequence[PairTrace]]) -> list[float]:
    """Return how far apart the outputs of pairs are where all noise is the same, in standard deviations of outputs.

    That is what got round the noise. Deviations are those of each pair's outputs, and while it has few, of those of all.
    """
    sides = [[_row(run.output) for both in each for run in (both.first, both.second)] for each in runs]
    if not sides:
        return []
    size = Counter(len(row) for side in sides for row in side).most_common(1)[0][0]
    alike = np.array([row for side in sides for row in side if len(row) == size])
    middle = np.median(alike, axis=0)
    usual = np.median(np.abs(alike - middle), axis=0) + FINEST * np.abs(middle) + np.finfo(float).tiny

    def apart(side: Sequence[Floats]) -> float:
        if any(len(row) != size for row in side):
            return SUREST
        each = np.array(side).reshape(-1, 2, size)
        with np.errstate(all="ignore"):
            own = each.var(axis=0).sum(axis=0) * len(each)
            scale = np.sqrt((own + usual**2) / (2 * len(each) - 1))
            far = float(np.linalg.norm(np.sqrt(np.square(each[:, 0] - each[:, 1]).mean(axis=0)) / scale))
        return far if far < SUREST else SUREST  # so where it is no number

    return [apart(each) for each in sides]


def _row(output: Any) -> Floats:
    try:
        return np.array([float(x) for x in leaves(output)])
    except Exception:  # of outputs that are no numbers
        return np.zeros(0)


def _outputs(trace: Trace, pair: Pair, seed: int, runs: int, made: list[Floats]) -> list[Floats]:
    """Return the outputs of both inputs with the same draws, run by run, each of shape (2, numbers); add those to come."""
    for k in range(len(made), runs):
        sides = trace.both(pair.data, pair.neighbour, np.random.default_rng([seed, k]))
        made.append(np.array([[float(x) for x in leaves(side.output)] for side in sides]))
    return made[:runs]
