"""Views: one number per output, on which forecasts are based.

A scalar is its own view. The views of a vector are its coordinates, the differences of
neighbouring coordinates, its sum, its extremes and their places, and the whole row (its
*fingerprint*, a number that is equal for equal rows). If inputs are as long as outputs,
there are three more views. Two compare the distances of the output, and of its
differences, to both inputs. The third is the place of the output along the change from
one input to the other. NaN means "no number here" (a query that was not answered, the
padding of a short output).

If noise is of single precision, or rounded before it is added, it is a multiple of some
step. The output modulo this step is then the signal modulo the step, without any noise:
outputs are all different, and their residues are few. These residues are a view as
well.

To add a view, add it to ``views_of``; a view that has to be learned first is a learner
(`learned_views.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.partitions import MOSTLY_DISTINCT
from auditdp.betting.limits import LIMITS
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

TOGETHER = 3.0
"""Largest prior weight of all coordinates together, and of all their differences.

With half of this value, games on the mechanisms of `benchmarks/ablation_mechanisms.py`
take 2.0 % more calls, and with twice this value 3.1 %.
"""
BY_INPUTS = 4.0
"""Prior weight of a view that uses the inputs; it is best under additive noise.

With half or twice this value, games take at most 0.7 % more calls
(`benchmarks/ablation.py`).
"""


@dataclass(eq=False)
class View:
    """One number per output, by a function of rows.

    Attributes:
        name: The name in reports.
        values: The function from rows, shape (n, d), to numbers, shape (n,).
        weight: Prior weight, relative to other views.
        names: Whether the numbers are names, which have no order.
        heavy: Whether the function is slow.
    """

    name: str
    values: Callable[[Array], Floats]
    weight: float = 1.0
    names: bool = False
    heavy: bool = False

    def is_ready(self, calls: int, stalled: bool) -> bool:
        """Return True if the view can be used now.

        Args:
            calls: Number of calls so far.
            stalled: Whether the claim is not refuted yet.
        """
        return True

    def learn(self, sides: tuple[Array, Array]) -> tuple[Floats, Floats]:
        """Learn from rows under coin 0 and coin 1, if the view is a ``Learner``.

        Returns:
            Values under coin 0 and under coin 1. No value comes from a function that
            was trained on the coin of its row; rows without such a value are left out.
        """
        return self.values(sides[0]), self.values(sides[1])


def as_rows(outputs: Array) -> Array:
    """Return outputs as rows of numbers, shape (n, d)."""
    width = math.prod(outputs.shape[1:])
    return np.ascontiguousarray(outputs).reshape(len(outputs), width)


def by_inputs(pair: Pair, width: int) -> bool:
    """Return True if ``width`` > 1 and both inputs of a pair are ``width`` numbers."""
    return width > 1 and _numbers(pair, width) is not None


def views_of(
    outputs: Array, pair: Pair, *, with_inputs: bool, labels: Sequence[str] = ()
) -> list[View]:
    """Return the views of the outputs of a pair.

    Args:
        outputs: Examples of outputs as rows, shape (n, d).
        pair: The pair of inputs.
        with_inputs: Whether to add views that compare outputs with the inputs. They are
            constant if the inputs of this pair are not d numbers each: all pairs of a
            game need the same views.
        labels: The names of the d numbers; empty if they are unknown.
    """
    # With half of the weight of other views, games on single numbers take fewer calls
    # (`benchmarks/ablation.py`).
    whole = View("fingerprint", fingerprint, 0.5, names=True)
    width = outputs.shape[1]
    if width == 0:
        return [whole]
    if width == 1:
        return [View("value", _coordinate(0)), *_residues(outputs, ["value"]), whole]
    count = min(width, LIMITS.coordinates)
    names = labels_of(width, labels)
    weight = min(1.0, TOGETHER / count)
    views = [View(names[j], _coordinate(j), weight) for j in range(count)]
    if width == count:
        weight = min(1.0, TOGETHER / (width - 1))
        for j in range(width - 1):
            name = f"{names[j + 1]} - {names[j]}"
            views.append(View(name, _difference(j), weight))
    views += [
        View("sum", _sum),
        View("largest", lambda rows: _floats(rows.max(axis=1))),
        View("smallest", lambda rows: _floats(rows.min(axis=1))),
        View("place of the largest", lambda rows: _floats(rows.argmax(axis=1))),
        View("place of the smallest", lambda rows: _floats(rows.argmin(axis=1))),
    ]
    # Learned views of long outputs do not distinguish -0.0 from 0.0.
    if width > count and _minus_zeros(outputs).any():
        number = View(
            "number of zeros with a minus",
            lambda rows: _floats(_minus_zeros(rows).sum(axis=1)),
        )
        places = View(
            "which zeros have a minus",
            lambda rows: fingerprint(_minus_zeros(rows)),
            names=True,
        )
        views += [number, places]
    views += _residues(outputs, names[:count])
    if with_inputs:
        ends = _numbers(pair, width) or (np.zeros(width), np.zeros(width))
        views += [
            View("nearer input", _nearness(*ends, _numbers_at), BY_INPUTS),
            View("steps nearer to input", _nearness(*ends, _steps_at), BY_INPUTS),
            View("along the change", _along(*ends), BY_INPUTS),
        ]
    return [*views, whole]


def labels_of(width: int, labels: Sequence[str]) -> Sequence[str]:
    """Return ``labels`` if there are ``width`` of them, else names such as "[0]"."""
    return labels if len(labels) == width else [f"[{j}]" for j in range(width)]


def _numbers(pair: Pair, width: int) -> tuple[Floats, Floats] | None:
    """Return both inputs as arrays, or None if they are not ``width`` numbers each."""
    try:
        data = np.asarray(pair.data, dtype=np.float64).ravel()
        neighbour = np.asarray(pair.neighbour, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None
    return (data, neighbour) if len(data) == len(neighbour) == width else None


def _nearness(
    data: Floats,
    neighbour: Floats,
    numbers_at: Callable[[Array, NDArray[np.intp]], Floats],
) -> Callable[[Array], Floats]:
    """Return the function of a view: the difference of the ℓ₁ distances to both inputs.

    This is the log-likelihood ratio of Laplace noise around the inputs, and that of
    randomised response, up to a factor.

    Args:
        data: The first input.
        neighbour: The second input.
        numbers_at: Function from rows and columns to the numbers that are compared.
    """
    changed = np.flatnonzero(data != neighbour)
    a, b = data[changed], neighbour[changed]
    return lambda rows: _total(
        numbers_at(rows, changed),
        lambda numbers: np.abs(numbers - b) - np.abs(numbers - a),
    )


def _along(data: Floats, neighbour: Floats) -> Callable[[Array], Floats]:
    """Return the function of a view: the inner product of an output and the change.

    The change is the first input minus the second one.

    Up to a constant and a factor, it is the difference of the squared ℓ₂ distances to
    both inputs, which is the log-likelihood ratio of normal noise.
    """
    changed = np.flatnonzero(data != neighbour)
    change = (data - neighbour)[changed]
    return lambda rows: _total(
        _numbers_at(rows, changed), lambda numbers: numbers * change
    )


def _total(numbers: Floats, terms: Callable[[Floats], Floats]) -> Floats:
    """Return the sum of the terms of each row, shape (n,), without its last bits.

    For outputs beyond both inputs, the distances to the inputs differ by a constant.
    The last bits of the computed constant depend on the input to which noise was added.
    This leak of floating-point sampling is tested by ``evidence/output_support.py``, so
    the sum is rounded to single precision. If terms cancel, only such bits are left; so
    it is also rounded to a multiple of 2^-40 times the largest number.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
        largest = finite.max(axis=1, initial=0.0)
        step = np.ldexp(2.0**-40, np.frexp(largest)[1])
        divisor = np.where(step > 0, step, 1.0)
        total = np.nansum(terms(numbers), axis=1)
        rounded = np.where(step > 0, np.round(total / divisor) * step, total)
        return np.asarray(rounded, dtype=np.float32).astype(np.float64)


def _numbers_at(rows: Array, places: NDArray[np.intp]) -> Floats:
    """Return a copy of the numbers in some columns, shape (n, places)."""
    return np.take(rows, places, axis=1).astype(np.float64, copy=False)


def _steps_at(rows: Array, places: NDArray[np.intp]) -> Floats:
    """Return some columns minus their left neighbours, for running sums.

    The first column has no left neighbour and stays as it is.
    """
    steps, later = _numbers_at(rows, places), places > 0
    with np.errstate(over="ignore", invalid="ignore"):
        steps[:, later] -= rows[:, places[later] - 1]
    return steps


def _residues(outputs: Array, names: Sequence[str]) -> list[View]:
    """Return a view of the residues of each number whose noise has steps."""
    if outputs.dtype != np.float64:
        return []
    views = []
    for j, name in enumerate(names):
        residue = residue_of(outputs[:, j])
        if residue is not None:
            title = f"{name} beyond the steps of its noise"
            views.append(View(title, _of_coordinate(residue, j)))
    for view in views:
        view.weight = min(1.0, TOGETHER / len(views))
    return views


def _of_coordinate(
    function: Callable[[Floats], Floats], j: int
) -> Callable[[Array], Floats]:
    return lambda rows: function(_floats(rows[:, j]))


def _coordinate(j: int) -> Callable[[Array], Floats]:
    return lambda rows: signed(rows[:, j])


def signed(column: Array) -> Floats:
    """Return numbers with -0.0 replaced by the largest number below 0.0."""
    values = _floats(column)
    zeros = values == 0
    if column.dtype.kind != "f" or not zeros.any():
        return values
    return np.where(zeros & np.signbit(values), -np.nextafter(0.0, 1.0), values)


def _difference(j: int) -> Callable[[Array], Floats]:
    def values(rows: Array) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return _floats(rows[:, j + 1]) - rows[:, j]

    return values


def _sum(rows: Array) -> Floats:
    # A sum may overflow, and ∞ - ∞ is no number.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(rows.sum(axis=1, dtype=np.float64))


def _minus_zeros(rows: Array) -> NDArray[np.bool_]:
    """Return a mask of the numbers that are -0.0, shape (n, d)."""
    if rows.dtype.kind != "f":
        return np.zeros(rows.shape, np.bool_)
    return np.asarray(np.signbit(rows) & (rows == 0))


def _floats(column: Array) -> Floats:
    return np.asarray(column, dtype=np.float64)


def fingerprint(rows: Array) -> Floats:
    """Return a number per row, shape (n,), that is equal for equal rows.

    Different rows almost never have the same number.
    """
    random = np.random.default_rng(0)
    width = rows.shape[1]
    if rows.dtype.itemsize == 1:
        # Weights have so few bits that the sum is exact, whatever its order.
        weights = random.integers(1 << (45 - width.bit_length()), size=width)
        return np.asarray(rows.astype(np.float64) @ weights.astype(np.float64))
    # A double would round large integers.
    kind = np.float64 if rows.dtype.kind == "f" else np.int64
    # A multiplicative hash of each number, with its own odd factor per column.
    bits = np.ascontiguousarray(rows, dtype=kind).view(np.uint64)
    odd = 2 * random.integers(1 << 62, size=width, dtype=np.uint64) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(29))) * odd
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(np.bitwise_xor.reduce(mixed, axis=1), dtype=np.float64)


def residue_of(column: Floats) -> Callable[[Floats], Floats] | None:
    """Return the function from numbers to their residues modulo a step of their noise.

    This is the largest step that leaves few distinct residues.

    Args:
        column: One number of the outputs of both inputs, shape (n,).

    Returns:
        The function, or None if there are fewer than 8 numbers, if the numbers
        themselves repeat, or if every step leaves a single residue, as of integers, or
        more residues than half of the numbers.
    """
    numbers = column[np.isfinite(column)]
    count = len(numbers)
    if count < 8 or len(np.unique(numbers)) < MOSTLY_DISTINCT * count:
        return None
    # The median of the gaps is that of either input, however far apart the two are.
    spread = count / 2 * float(np.median(np.diff(np.sort(numbers))))
    if not 0 < spread < np.inf:
        return None
    # Noise of single precision is a multiple of this step except in one call of 200.
    finest = 2.0 ** np.floor(np.log2(spread)) * 2.0**-30
    decimals = 10.0 ** -np.arange(8)
    for step in (*decimals[(finest < decimals) & (decimals < spread)], finest):
        residue = partial(_residue, step=step)
        if 2 <= len(np.unique(residue(numbers))) <= count / 2:
            return residue
    return None


def _residue(column: Floats, step: float) -> Floats:
    """Return numbers modulo a step, rounded, in units of 2^-14 steps.

    Smaller differences are in the last bits of doubles, which no noise of doubles hides
    (`evidence/output_support.py`).
    """
    parts = 2.0**14
    with np.errstate(over="ignore", invalid="ignore"):
        steps = column / step
        return np.asarray(np.round((steps - np.floor(steps)) * parts) % parts)
