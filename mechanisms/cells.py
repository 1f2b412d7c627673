"""Numbering the cells of an adjacency matrix, and drawing random sets of cells in time proportional to the set.

A *pair* cell is one of the n(n−1)/2 cells above the diagonal, numbered row by row (``np.triu_indices`` order). An *arc*
cell is one of the n(n−1) off the diagonal, numbered row by row, so that cell = row·(n−1) + place in the row's neighbour
list. All numbers are int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array

Rng = np.random.Generator


def pair_count(nodes: int) -> int:
    """Return n(n−1)/2."""
    return nodes * (nodes - 1) // 2


def _pair_starts(nodes: int) -> Array:
    i = np.arange(nodes, dtype=np.int64)
    return i * (2 * nodes - i - 1) // 2


def pair_cells(edges: Array, nodes: int) -> Array:
    """Return the pair cell of each edge (i, j), i < j; ``edges`` has shape (2, E)."""
    i, j = np.asarray(edges, np.int64)
    return i * (2 * nodes - i - 1) // 2 + j - i - 1


def pairs_at(cells: Array, nodes: int) -> Array:
    """Return the edges (i, j), i < j, shape (2, len(cells)), that the pair cells stand for."""
    starts = _pair_starts(nodes)
    i = np.searchsorted(starts[: nodes - 1], cells, side="right") - 1
    return np.stack([i, cells - starts[i] + i + 1]).astype(np.int64)


def arc_cells(arcs: Array, nodes: int) -> Array:
    """Return the arc cell of each arc (source, target); ``arcs`` has shape (2, A)."""
    source, target = np.asarray(arcs, np.int64)
    return source * (nodes - 1) + target - (target > source)


def arcs_at(cells: Array, nodes: int) -> Array:
    """Return the arcs (source, target), shape (2, len(cells)), that the arc cells stand for."""
    source, place = np.divmod(np.asarray(cells, np.int64), max(nodes - 1, 1))
    return np.stack([source, place + (place >= source)]).astype(np.int64)


def contains(ordered: Array, values: Array) -> Array:
    """Return for each value whether it is in the ascending array ``ordered``."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[at] == values


def distinct(values: Array) -> Array:
    """Return the values of an array without repetition, ascending.

    np.unique hashes integers since numpy 2.3: of 4 million it takes 2 CPU seconds, and sorting them .1.
    """
    ordered = np.sort(values)
    return (
        ordered[np.append(True, ordered[1:] != ordered[:-1])]
        if len(ordered)
        else ordered
    )


def bernoulli_cells(count: int, probability: float, rng: Rng) -> Array:
    """Return a random subset of range(count) that holds each cell independently with the given probability, ascending.

    The gaps between successes of independent trials are independent geometric variables, so gaps are drawn instead of
    trials: time and memory are proportional to the result. Exact up to the rounding of numpy's geometric sampler.
    """
    found: list[Any] = [np.empty(0, np.int64)]
    last = -1
    while probability > 0 and last < count - 1:
        expected = (count - 1 - last) * probability
        # A gap beyond the end is as good as one just beyond it; without the cap, tiny probabilities overflow the sum.
        gaps = np.minimum(
            rng.geometric(probability, int(expected + 4 * expected**0.5) + 16),
            count + 1,
        )
        cells = last + np.cumsum(gaps)
        found.append(cells[cells < count])
        last = int(cells[-1])
    return np.concatenate(found)


def distinct_cells(
    sizes: Array, capacity: int, rng: Rng, *, taken: Array | None = None
) -> Array:
    """Return for each row r a uniformly random set of sizes[r] of its free cells, as ascending keys r·capacity + cell.

    Cells are drawn uniformly with replacement, those taken or drawn before are dropped, and what is missing is drawn
    again. The law of the final set does not change under any permutation of a row's free cells, because no step looks
    at anything but equality of cells; so all sets of that size are equally likely. In a row that is more than half full
    in the end, its free cells (at most as many as the taken and the chosen ones together) are listed and drawn from.

    Args:
        sizes: How many cells to draw in each row, shape (rows,).
        capacity: Cells in a row.
        rng: The randomness.
        taken: Keys r·capacity + cell that must not be drawn, ascending; none by default.

    Raises:
        MechanismError: If a row has fewer free cells than are asked of it.
    """
    sizes = np.asarray(sizes, np.int64)
    taken = np.empty(0, np.int64) if taken is None else taken
    rows = len(sizes)
    used = (
        np.bincount(taken // capacity, minlength=rows)
        if len(taken)
        else np.zeros(rows, np.int64)
    )
    if (sizes > capacity - used).any():
        row = int(np.argmax(sizes - capacity + used))
        raise MechanismError(
            f"distinct_cells: row {row} has {capacity - used[row]} free cells, asked for {sizes[row]}"
        )
    full = (sizes > 0) & (2 * (sizes + used) > capacity)
    parts = [
        _from_full_row(int(r), int(sizes[r]), capacity, taken, rng)
        for r in np.flatnonzero(full)
    ]
    goal = np.where(full, 0, sizes)
    chosen = np.empty(0, np.int64)
    missing = goal
    while missing.any():
        owner = np.repeat(np.arange(rows, dtype=np.int64), missing)
        drawn = owner * capacity + rng.integers(capacity, size=len(owner))
        chosen = distinct(np.concatenate([chosen, drawn[~contains(taken, drawn)]]))
        missing = goal - np.bincount(chosen // capacity, minlength=rows)
    return np.sort(np.concatenate([chosen, *parts])) if parts else chosen


def _from_full_row(row: int, size: int, capacity: int, taken: Array, rng: Rng) -> Array:
    """A uniform set of ``size`` free cells of one row, by listing them."""
    free = np.ones(capacity, bool)
    low, high = np.searchsorted(taken, [row * capacity, (row + 1) * capacity])
    free[taken[low:high] - row * capacity] = False
    return row * capacity + rng.choice(
        np.flatnonzero(free), size, replace=False, shuffle=False
    )
