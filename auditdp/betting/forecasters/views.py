"""A view makes a number: what there is to look at in an output, one number per call.

A scalar is looked at as it is. A vector is looked at coordinate by coordinate, by differences of neighbouring
coordinates, by its sum, its extremes and where they are, and as a whole (its *fingerprint*, which tells equal rows from
different ones). Where the noise on a number has steps, it is also looked at by its remainder beyond them.
Where inputs are as long as outputs, it is also looked at by which of them it, or its steps, are nearer to, and along the
change from one to the other. NaN means "no number here" (a query that was not answered, the padding of a short trace).

To add a view, add it to ``views_of``; one that has to be learned first is a learner (`learned_views.py`).

What is left of an output beyond the steps of its noise.

Noise of single precision, or rounded before it is added, is a multiple of some step: the output modulo that step is then
what was added to, modulo it, on which there is no noise. Outputs are all different, and their residues are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

MOST_COORDINATES = 32
"""Numbers of an output with a view of their own; of longer ones, learners choose."""
TOGETHER = 3.0
"""Prior weight of all coordinates together, and of all their differences: beside one view of the whole, they are many."""
AS_A_NAME = 0.5
"""Prior weight of the whole as a name, of which few estimators make anything, and none where nearly all are different."""
BY_INPUTS = 4.0
"""Prior weight of a view that knows the inputs: under additive noise it is all that there is to see."""
GRID = 2.0**-40
"""Of the largest number of a row: steps of what is computed from its distances, far above the error of computing them."""

BELOW_ZERO = -np.nextafter(0.0, 1.0)


@dataclass(eq=False)
class View:
    """One number per output: ``values(outputs)`` takes rows of shape (n, d) and returns shape (n,).

    Attributes:
        weight: Its prior weight beside other views.
        names: Whether the numbers are names, of which no order means anything.
        heavy: Whether it is slow.
    """

    name: str
    values: Callable[[Array], Floats]
    weight: float = 1.0
    names: bool = False
    heavy: bool = False

    def is_ready(self, calls: int, stalled: bool) -> bool:
        """Return whether it can be used after so many calls; ``stalled`` as long as the claim still stands."""
        return True

    def learn(self, sides: tuple[Array, Array]) -> tuple[Floats, Floats]:
        """Learn from rows under coin 0 and coin 1, and return its values of rows that it was not learned from.

        There is nothing to learn, but for a ``Learner``.
        """
        return self.values(sides[0]), self.values(sides[1])


def as_rows(outputs: Array) -> Array:
    """Return outputs with one row of numbers each, shape (n, d)."""
    return np.ascontiguousarray(outputs).reshape(
        len(outputs), math.prod(outputs.shape[1:])
    )


def by_inputs(pair: Pair, width: int) -> bool:
    """Return whether the inputs of a pair are as wide as its outputs, so that these can be compared with them."""
    return width > 1 and _numbers(pair, width) is not None


def views_of(
    outputs: Array, pair: Pair, *, with_inputs: bool, labels: Sequence[str] = ()
) -> list[View]:
    """Return the views of the outputs of a pair that look like these.

    Args:
        outputs: Rows of shape (n, d).
        pair: The inputs.
        labels: What each of the d numbers is called, if that is known.
        with_inputs: Whether to compare outputs with the inputs. All pairs of one game have the same views, so where the
            inputs of this pair are of another width, there is nothing to see in these.
    """
    whole = View("fingerprint", fingerprint, AS_A_NAME, names=True)
    width = outputs.shape[1]
    if width == 0:
        return [whole]
    if width == 1:
        return [View("value", _coordinate(0)), *_residues(outputs, ["value"]), whole]
    seen = min(width, MOST_COORDINATES)
    called = labels_of(width, labels)
    views = [
        View(called[j], _coordinate(j), min(1.0, TOGETHER / seen)) for j in range(seen)
    ]
    if width <= MOST_COORDINATES:
        weight = min(1.0, TOGETHER / (width - 1))
        views += [
            View(f"{called[j + 1]} - {called[j]}", _difference(j), weight)
            for j in range(width - 1)
        ]
    views += [
        View("sum", _sum),
        View("largest", lambda rows: _floats(rows.max(axis=1))),
        View("smallest", lambda rows: _floats(rows.min(axis=1))),
        View("place of the largest", lambda rows: _floats(rows.argmax(axis=1))),
        View("place of the smallest", lambda rows: _floats(rows.argmin(axis=1))),
    ]
    if (
        width > MOST_COORDINATES and _minus_zeros(outputs).any()
    ):  # which learners take for zeros
        views += [
            View(
                "number of zeros with a minus",
                lambda rows: _floats(_minus_zeros(rows).sum(axis=1)),
            ),
            View(
                "which zeros have a minus",
                lambda rows: fingerprint(_minus_zeros(rows)),
                names=True,
            ),
        ]
    views += _residues(outputs, called[:seen])
    if with_inputs:
        ends = _numbers(pair, width) or (np.zeros(width), np.zeros(width))
        views += [
            View("nearer input", _nearness(*ends, _numbers_at), BY_INPUTS),
            View("steps nearer to input", _nearness(*ends, _steps_at), BY_INPUTS),
            View("along the change", _along(*ends), BY_INPUTS),
        ]
    return [*views, whole]


def labels_of(width: int, labels: Sequence[str]) -> Sequence[str]:
    """Return what each of ``width`` numbers is called: by its label, or else by its place."""
    return labels if len(labels) == width else [f"[{j}]" for j in range(width)]


def _numbers(pair: Pair, width: int) -> tuple[Floats, Floats] | None:
    """Return both inputs as rows of numbers, where they are as wide as an output."""
    try:
        data, neighbour = (
            np.asarray(x, dtype=np.float64).ravel() for x in (pair.data, pair.neighbour)
        )
    except (TypeError, ValueError):
        return None
    return (data, neighbour) if len(data) == len(neighbour) == width else None


def _nearness(
    data: Floats,
    neighbour: Floats,
    seen_at: Callable[[Array, NDArray[np.intp]], Floats],
) -> Callable[[Array], Floats]:
    """Return how much nearer an output, or what is seen of it, is to the data than to the neighbour, in ℓ₁.

    This is the log-likelihood ratio of Laplace noise around the inputs, times its scale, and of randomised response.
    """
    changed = np.flatnonzero(data != neighbour)
    a, b = data[changed], neighbour[changed]
    return lambda rows: _total(
        seen_at(rows, changed), lambda seen: np.abs(seen - b) - np.abs(seen - a)
    )


def _along(data: Floats, neighbour: Floats) -> Callable[[Array], Floats]:
    """Return the product of an output with the difference of the inputs.

    But for a constant and a factor, this is how much nearer it is to the data in squared ℓ₂ distance: the log-likelihood
    ratio of normal noise.
    """
    changed = np.flatnonzero(data != neighbour)
    change = (data - neighbour)[changed]
    return lambda rows: _total(_numbers_at(rows, changed), lambda seen: seen * change)


def _total(seen: Floats, terms: Callable[[Floats], Floats]) -> Floats:
    """Return the sum of a term of every number of a row, shape (n,), rounded well above the last bits of the numbers.

    Beyond both inputs the distances to them differ by a constant, and in the last bits of what is computed for it one sees
    to which input noise was added, a leak of floating-point sampling (see ``evidence/output_support.py``). Where terms
    cancel, those bits are all that is left; so the sum is a multiple of ``GRID`` times the largest number, too.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(seen, where=np.isfinite(seen), out=np.zeros_like(seen)).max(
            axis=1, initial=0.0
        )
        step = np.ldexp(GRID, np.frexp(largest)[1])
        total = np.nansum(terms(seen), axis=1)
        rounded = np.where(
            step > 0, np.round(total / np.where(step > 0, step, 1.0)) * step, total
        )
        return np.asarray(rounded, dtype=np.float32).astype(np.float64)


def _numbers_at(rows: Array, places: NDArray[np.intp]) -> Floats:
    """Return the numbers of every row at some places, shape (n, places), in an array of its own."""
    return np.take(rows, places, axis=1).astype(np.float64, copy=False)


def _steps_at(rows: Array, places: NDArray[np.intp]) -> Floats:
    """Return by how much the number at each place is above the one before it: what a row of running sums adds there."""
    steps, later = _numbers_at(rows, places), places > 0
    with np.errstate(over="ignore", invalid="ignore"):
        steps[:, later] -= rows[:, places[later] - 1]
    return steps


def _residues(outputs: Array, called: Sequence[str]) -> list[View]:
    """Return a view of each number whose noise has steps."""
    if outputs.dtype != np.float64:
        return []
    found = {
        name: (j, of)
        for j, name in enumerate(called)
        if (of := residue_of(outputs[:, j])) is not None
    }
    weight = min(1.0, TOGETHER / max(len(found), 1))
    return [
        View(f"{name} beyond the steps of its noise", _residue(j, of), weight)
        for name, (j, of) in found.items()
    ]


def _residue(j: int, of: Callable[[Floats], Floats]) -> Callable[[Array], Floats]:
    return lambda rows: of(_floats(rows[:, j]))


def _coordinate(j: int) -> Callable[[Array], Floats]:
    return lambda rows: signed(rows[:, j])


def signed(column: Array) -> Floats:
    """Return numbers of which -0.0 is one of its own, below 0.0: whoever gets it sees the sign."""
    values = _floats(column)
    if column.dtype.kind != "f" or not (zeros := values == 0).any():
        return values
    return np.where(zeros & np.signbit(values), BELOW_ZERO, values)


def _difference(j: int) -> Callable[[Array], Floats]:
    def values(rows: Array) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return _floats(rows[:, j + 1]) - rows[:, j]

    return values


def _sum(rows: Array) -> Floats:
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a sum may overflow, and ∞ - ∞ is no number
        return np.asarray(rows.sum(axis=1, dtype=np.float64))


def _minus_zeros(rows: Array) -> NDArray[np.bool_]:
    """Return which numbers of rows are -0.0, shape (n, d); none where rows are no floats."""
    return (
        np.asarray(np.signbit(rows) & (rows == 0))
        if rows.dtype.kind == "f"
        else np.zeros(rows.shape, np.bool_)
    )


def _floats(column: Array) -> Floats:
    return np.asarray(column, dtype=np.float64)


def fingerprint(rows: Array) -> Floats:
    """Return a number per row that equal rows share, and different ones almost never do, shape (n,)."""
    random = np.random.default_rng(0)
    if (
        rows.dtype.itemsize == 1
    ):  # so many bits that the sum is exact in a double, whatever order it is taken in
        weights = random.integers(
            1 << (45 - rows.shape[1].bit_length()), size=rows.shape[1]
        ).astype(np.float64)
        return np.asarray(rows.astype(np.float64) @ weights)
    kind = (
        np.float64 if rows.dtype.kind == "f" else np.int64
    )  # a double would round large integers
    bits = np.ascontiguousarray(rows, dtype=kind).view(np.uint64)
    odd = random.integers(1 << 62, size=rows.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(29))) * odd
    return np.asarray(
        np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(32)), axis=1),
        dtype=np.float64,
    )


FINE = 2.0**-30
"""Step, relative to the spread, that noise of single precision has except in one call of some 200."""
DECIMALS = 10.0 ** -np.arange(8)
"""Steps of numbers that are rounded to decimals."""
PARTS = 2.0**14
"""Residues are rounded to this part of a step: beyond are the last bits of doubles, which no noise of doubles hides
(`evidence/output_support.py`)."""
DISTINCT = 0.75
"""Share of distinct numbers below which they repeat by themselves."""
FEW = 0.5
"""Share of distinct residues up to which there are few."""
LEAST = 8
"""Numbers that are needed."""


def residue_of(column: Floats) -> Callable[[Floats], Floats] | None:
    """Return the residues of outputs by the largest step that leaves few of them, where there is one.

    Args:
        column: Numbers of outputs of both inputs, shape (n,).

    Returns:
        A function of numbers, or None where the numbers themselves repeat, where their residues are as many, or where all
        have the same, such as integers.
    """
    seen = column[np.isfinite(column)]
    if len(seen) < LEAST or len(np.unique(seen)) < DISTINCT * len(seen):
        return None
    spread = (
        len(seen) / 2 * float(np.median(np.diff(np.sort(seen))))
    )  # of either input, however far apart the two are
    if not 0 < spread < np.inf:
        return None
    finest = 2.0 ** np.floor(np.log2(spread)) * FINE
    for step in (*(step for step in DECIMALS if finest < step < spread), finest):
        if 2 <= len(np.unique(_residues_residue(seen, step))) <= FEW * len(seen):
            return lambda column, step=step: _residues_residue(column, step)  # type: ignore[misc]
    return None


def _residues_residue(column: Floats, step: float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = column / step
        return np.asarray(np.round((steps - np.floor(steps)) * PARTS) % PARTS)
