"""Distances between the outputs of two inputs, by which a search ranks pairs.

A distance is no evidence, and may be wrong about one pair: it only has to rank pairs.
It is computed from a few outputs. If possible, both inputs run with the same draws.
Then each output differs from its partner by the change of the inputs only, and a few
outputs are enough.

`distance` is for a search by calls of the game. It estimates standard deviations from
many inputs, since those of a few outputs are mostly chance. `farthest_pair` is for a
search with a run budget. It compares outputs: a trace computes the loss of all steps,
but a final model may forget it.
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
from auditdp.betting.forecasters.normal_laws import NormalLimits
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace, Trace


@dataclass(frozen=True, eq=False)
class Usual:
    """The usual spread of outputs on one input, for each column and for their sum.

    Attributes:
        spread: The standard deviations, pooled over some inputs, shape (columns + 1,).
        repeating: Whether more than a tenth of the values are repetitions, unlike those
            of continuous noise, shape (columns + 1,).
    """

    spread: Floats
    repeating: NDArray[np.bool_]

    @classmethod
    def of(cls, sides: Sequence[Array]) -> Usual:
        """Return the usual spread, given outputs of several inputs.

        Args:
            sides: The outputs of each input, shape (n, d).
        """
        distinct = []
        for side in sides:
            columns = _with_sum(side).T
            distinct.append([len(np.unique(x)) / len(x) for x in columns])
        return cls(spread_of(sides), np.median(distinct, axis=0) < 0.9)


def spread_of(sides: Sequence[Array]) -> Floats:
    """Return the standard deviation of every column and of their sum, shape (d + 1,).

    It is pooled over inputs. Infinities and NaN count as 0.

    Args:
        sides: The outputs of each input, shape (n, d).
    """
    with np.errstate(all="ignore"):
        variances = np.mean([_with_sum(side).var(axis=0) for side in sides], axis=0)
    return np.asarray(np.nan_to_num(np.sqrt(variances)))


def distance(
    ones: Array, zeros: Array, usual: Usual, spread: Floats
) -> tuple[float, int]:
    """Return the distance of a few outputs, and the column with the largest gap.

    The sum of all columns counts as one more column, with index d. Gaps between the
    means of both inputs are measured in standard deviations. The distance is the gap of
    the sum, or the Euclidean norm of the gaps of all columns if this is larger.

    The standard deviation of a few outputs is mostly chance, and with added noise it is
    the same chance on all inputs. So the usual standard deviation is used, times a
    factor: the deviation of these outputs, divided by that of outputs of listed inputs
    with the same randomness. The factor is shrunken towards 1, as variances are in

        Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing
        Differential Expression in Microarray Experiments", Stat. Appl. Genet. Mol.
        Biol. 3, section 3.

    If the deviations of both inputs differ by more than two standard errors, a multiple
    of the excess is added. The distance is infinite if a column, whose values usually
    do not repeat, is constant on one input only, or has another constant on each input.
    It is also infinite if a column has a finite number in all outputs of one input, and
    in no output of the other.

    Args:
        ones: Outputs of one input, shape (n, d).
        zeros: Outputs of the other input, shape (n, d).
        usual: The usual spread of outputs on one input.
        spread: Standard deviations of n outputs of listed inputs with the same
            randomness, shape (d + 1,).
    """
    one, zero = _with_sum(ones), _with_sum(zeros)
    n = len(one)
    is_missing = ~np.isfinite(ones.astype(float)), ~np.isfinite(zeros.astype(float))
    shares = [side.mean(axis=0) for side in is_missing if side.size]
    with np.errstate(all="ignore"):
        spreads = np.stack([one.std(axis=0), zero.std(axis=0)])
        reference = np.where(spread > 0, spread, usual.spread)
        factor = np.square(spreads).sum(axis=0) / reference**2
        # The usual deviation counts as eight outputs.
        own = np.sqrt((8 + n * factor) / (8 + 2 * n))
        own = np.where(usual.spread > 0, own * usual.spread, spreads.mean(axis=0))
        gap = np.abs(one.mean(axis=0) - zero.mean(axis=0))
        gaps = np.where(gap > 0, gap / own, 0.0)
        # A few numbers that repeat may be equal by chance.
        least = np.where(usual.repeating, usual.spread / 2, 0.0)
        low, high = np.sort(np.maximum(spreads, least), axis=0)
        # For Laplace noise the variance of log(high / low) is (6 - 1) / (2 n).
        excess = np.log(high / low) - 2 * math.sqrt(5 / (2 * n))
        wider = np.where(high > 0, excess, 0.0)
        columns = float(np.sqrt(np.square(gaps[:-1]).sum()))
        total = max(columns, float(gaps[-1]))
        # A deviation that is larger by a factor of e counts as three standard
        # deviations of a mean.
        total += 3 * max(float(wider[:-1].max(initial=0.0)), 0.0)
    moves = (spreads.max(axis=0) > 0) | (gap > 0)
    is_silent = (spreads.min(axis=0) == 0) & ~usual.repeating & moves
    is_silent[-1] = False
    column = int(np.argmax(np.where(is_silent, np.inf, gaps)))
    if is_silent.any() or (shares and np.abs(shares[0] - shares[1]).max() == 1):
        return np.inf, column
    return float(np.nan_to_num(total, nan=0.0, posinf=np.inf)), column


def _with_sum(rows: Array) -> Floats:
    """Return the columns of rows and their sum, with infinities and NaN set to 0."""
    rows = rows.astype(np.float64)
    with np.errstate(all="ignore"):
        columns = np.column_stack([rows, rows.sum(axis=1)])
    return np.where(np.isfinite(columns), columns, 0.0)


def farthest_pair(
    trace: Trace, pairs: Sequence[Pair], *, seed: int, runs: int, rounds: int
) -> Pair:
    """Return the pair with the most distant outputs.

    A pair with a distance above 10 standard deviations is returned at once. If no
    outputs differ, this is the first pair.

    Args:
        trace: Trace of the mechanism.
        pairs: The pairs. Of pairs with equal outputs, such as pairs with records in
            another order, only the first counts.
        seed: The seed of the runs.
        runs: Number of runs on each input of each pair after the first round; each
            further round doubles it.
        rounds: Number of rounds. The better half of the pairs goes on to the next
            round, and at least three, but no pair whose outputs do not differ.
    """
    chosen: list[tuple[Pair, list[Floats]]] = [(pair, []) for pair in pairs]
    for number in range(rounds):
        size = runs << number
        distances: list[float] = []
        compared: list[Floats] = []
        for pair, outputs in chosen:
            found = output_distance(trace, pair, outputs, compared, seed, size)
            # At ten standard deviations, every forecaster separates the inputs.
            if found > 10:
                return pair
            distances.append(found)
        order = np.argsort(-np.array(distances), kind="stable").tolist()
        half = order[: max(-(-len(chosen) // 2), 3)]
        chosen = [chosen[k] for k in half if distances[k] or k == order[0]]
        if len(chosen) == 1:
            break
    return chosen[0][0]


def output_distance(
    trace: Trace,
    pair: Pair,
    outputs: list[Floats],
    compared: list[Floats],
    seed: int,
    runs: int,
) -> float:
    """Return the distance of the outputs of a pair, in standard deviations.

    Args:
        trace: Trace of the mechanism.
        pair: The pair.
        outputs: The outputs of earlier runs of the pair, each of shape (2, numbers) for
            the data and the neighbour; further ones are appended.
        compared: The first two outputs of other pairs; those of this pair are appended.
        seed: The seed of the runs.
        runs: Number of runs on each input, including earlier ones.

    Returns:
        The distance. It is 0 if the code raises, if outputs are not finite numbers, if
        their number varies, or if a pair in ``compared`` has the same first outputs.
    """
    try:
        for number in range(len(outputs), runs):
            if len(outputs) == 2 and _is_repeated(np.array(outputs), compared):
                return 0.0
            rng = np.random.default_rng([seed, number])
            sides = trace.both(pair.data, pair.neighbour, rng)
            rows = [[float(x) for x in leaves(side.output)] for side in sides]
            outputs.append(np.array(rows))
        compared.append(np.array(outputs[:2]))
        ones, zeros = np.stack(outputs[:runs], axis=1)
    except Exception:
        # The code raises, or outputs are not rows of numbers.
        return 0.0
    if not ones.size or not (np.isfinite(ones).all() and np.isfinite(zeros).all()):
        return 0.0
    if ones.shape[1] <= NormalLimits.correlated_columns:
        both = (ones, zeros)
        return _separation(both, both)
    # Among many numbers, some differ by chance. So the direction of the change is
    # estimated on one half of the runs, and the distance along it on the other half.
    even, odd = (ones[::2], zeros[::2]), (ones[1::2], zeros[1::2])
    return (_separation(even, odd) + _separation(odd, even)) / 2


def _is_repeated(first: Floats, compared: Sequence[Floats]) -> bool:
    """Return True if another pair has the same first outputs, up to rounding."""
    tolerance = 1e-9 * np.abs(first).max(axis=(0, 1))
    same_shape = [other for other in compared if other.shape == first.shape]
    return any((np.abs(first - other) <= tolerance).all() for other in same_shape)


def bypassing_distances(pairs: Sequence[Sequence[PairTrace]]) -> list[float]:
    """Return for each pair the distance of outputs with the same noise on both inputs.

    It is the size of the differences that bypass the noise, in standard deviations of
    the pair's outputs; the spread over all pairs counts as one more run. It is at most
    ``NormalLimits.distance``, and equal to it if an output is not finite or has another
    length than most outputs.

    Args:
        pairs: The traces of each pair.
    """
    rows = []
    for traces in pairs:
        runs = [run for trace in traces for run in (trace.first, trace.second)]
        rows.append([_numbers(run.output) for run in runs])
    if not rows:
        return []
    sizes = Counter(len(row) for side in rows for row in side)
    size = sizes.most_common(1)[0][0]
    of_size = np.array([row for side in rows for row in side if len(row) == size])
    middle = np.median(of_size, axis=0)
    usual = np.median(np.abs(of_size - middle), axis=0)
    usual += NormalLimits.min_deviation * np.abs(middle) + np.finfo(float).tiny
    found = []
    for side in rows:
        distance = NormalLimits.distance
        if all(len(row) == size for row in side):
            both = np.array(side).reshape(-1, 2, size)
            with np.errstate(all="ignore"):
                own = both.var(axis=0).sum(axis=0) * len(both)
                scale = np.sqrt((own + usual**2) / (2 * len(both) - 1))
                changes = np.square(both[:, 0] - both[:, 1]).mean(axis=0)
                distance = float(np.linalg.norm(np.sqrt(changes) / scale))
        # Outputs that are not finite get the largest distance.
        if not distance < NormalLimits.distance:
            distance = NormalLimits.distance
        found.append(distance)
    return found


def _numbers(output: Any) -> Floats:
    try:
        return np.array([float(x) for x in leaves(output)])
    except Exception:
        # The output has parts that are not numbers.
        return np.zeros(0)


def _separation(learned: Sequence[Floats], tested: Sequence[Floats]) -> float:
    """Return the distance of tested outputs along the mean change of learned ones.

    It is in standard deviations, and negative if the tested outputs changed the other
    way. If both arguments are one object, a difference of spreads between the two
    inputs counts as well.

    Args:
        learned: Outputs of both inputs whose mean change is the direction.
        tested: Outputs of both inputs whose distance is computed.
    """
    ones, zeros = learned
    largest = np.maximum(np.abs(ones), np.abs(zeros)).max(axis=0)
    finest = np.maximum(NormalLimits.min_deviation * largest, np.finfo(float).tiny)
    spreads = [np.maximum(side.std(axis=0, ddof=1), finest) for side in learned]
    scale = np.hypot(*spreads) / math.sqrt(2)
    change = (ones - zeros).mean(axis=0) / scale
    length = float(np.linalg.norm(change))
    one, zero = ((side / scale) @ (change / (length or 1.0)) for side in tested)
    deviation = math.hypot(one.std(ddof=1), zero.std(ddof=1)) / math.sqrt(2)
    moved = float(one.mean() - zero.mean()) / max(deviation, NormalLimits.min_deviation)
    if tested is not learned:
        return moved
    # Noise of another size counts as well.
    return max(moved, float(np.linalg.norm(np.log(spreads[0] / spreads[1]))))
