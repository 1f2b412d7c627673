"""Perturbed graphs drawn in time and memory linear in input and output, never n².

Each function states the dense process whose law it has, and why it has that law. "The same law" is up to the rounding
of floating point in numpy's geometric, binomial and exponential samplers; the dense forms in the mechanisms'
``__call__`` have exact bit probabilities and are the ones that exact audits speak about.

``users`` are ascending node ids whose rows are perturbed; the result has no arcs from anybody else.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.cells import (
    Rng,
    arc_cells,
    arcs_at,
    bernoulli_cells,
    contains,
    distinct_cells,
    pair_cells,
    pair_count,
    pairs_at,
)
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.neighbour_lists import PackedLists, id_type

BLOCK = 1 << 22
"""Cells that are drawn at a time. The arrays of a block take about a hundred bytes a cell."""


def user_ids(graph: Graph | PackedLists, users: Sequence[int] | Array | None) -> Array:
    """Return the ids as an ascending array without repetition; all nodes by default."""
    if users is None:
        return np.arange(graph.nodes, dtype=np.int64)
    ids = np.unique(np.asarray(users, np.int64))
    if len(ids) and not (ids[0] >= 0 and ids[-1] < graph.nodes):
        raise MechanismError(
            f"expected user ids from 0 to {graph.nodes - 1}, got {ids[0]} to {ids[-1]}"
        )
    return ids


def row_cells(graph: Graph, users: Array) -> Array:
    """Return the users' true ones as ascending keys row·(nodes − 1) + place, row = position in ``users``."""
    mine = contains(users, graph.arcs[0])
    cells = arc_cells(graph.arcs[:, mine], graph.nodes)
    owner, place = np.divmod(cells, max(graph.nodes - 1, 1))
    return np.searchsorted(users, owner) * (graph.nodes - 1) + place


def from_row_cells(cells: Array, users: Array, nodes: int) -> DirectedGraph:
    """Return the directed graph whose ones are the given keys (the inverse of ``row_cells``)."""
    row, place = np.divmod(cells, max(nodes - 1, 1))
    return DirectedGraph(nodes, arcs_at(users[row] * (nodes - 1) + place, nodes))


def flipped_rows(graph: Graph, users: Array, flip: float, rng: Rng) -> DirectedGraph:
    """Return the users' rows with every bit flipped independently with probability ``flip``.

    The set of flipped cells holds each cell independently, so it is drawn by geometric gaps and not cell by cell; the
    result is the symmetric difference of that set and the true ones. Time: true ones + flips.
    """
    flips = bernoulli_cells(len(users) * (graph.nodes - 1), flip, rng)
    return from_row_cells(
        np.setxor1d(row_cells(graph, users), flips, assume_unique=True),
        users,
        graph.nodes,
    )


def flipped_pairs(graph: Graph, flip: float, rng: Rng) -> Graph:
    """Return the graph with every pair flipped independently with probability ``flip`` (as ``flipped_rows``)."""
    flips = bernoulli_cells(pair_count(graph.nodes), flip, rng)
    cells = np.setxor1d(pair_cells(graph.edges, graph.nodes), flips, assume_unique=True)
    return Graph(graph.nodes, pairs_at(cells, graph.nodes))


def thinned_lists(
    lists: PackedLists, users: Array, keep_one: Array, set_zero: Array, rng: Rng
) -> PackedLists:
    """Return lists in which ones of the r-th user stay with probability keep_one[r] and zeros turn one with set_zero[r].

    The ones are drawn one by one. For the zeros, each of *all* n − 1 cells of a row is marked independently with
    probability set_zero[r]: the number of marks is binomial, and given the number the marked set is uniform. Marks on
    true ones are dropped; what is left is independent of them, because the cells are independent of each other. So the
    zeros have their law, and the ones, which never look at the marks, have theirs.

    Rows are independent of each other, so they are drawn in blocks of about ``BLOCK`` cells: beside what goes in and comes
    out, memory does not grow with the graph.
    """
    bits, parts, sizes = (
        lists.nodes - 1,
        [np.empty(0, id_type(lists.nodes))],
        np.zeros(lists.nodes, np.int64),
    )
    work = np.cumsum(
        lists.starts[users + 1] - lists.starts[users] + bits * set_zero + 1
    )
    bounds = np.searchsorted(work, np.arange(0, work[-1] if len(work) else 0, BLOCK))
    for low, high in itertools.pairwise([*np.unique(bounds), len(users)]):
        mine = users[low:high]
        ones = lists.cells(mine)
        kept = ones[rng.random(len(ones)) < keep_one[low + ones // max(bits, 1)]]
        marks = distinct_cells(rng.binomial(bits, set_zero[low:high]), bits, rng)
        marks = marks[~contains(ones, marks)]
        row, place = np.divmod(np.sort(np.concatenate([kept, marks])), max(bits, 1))
        parts.append((place + (place >= mine[row])).astype(parts[0].dtype))
        sizes[mine] = np.bincount(row, minlength=len(mine))
    return PackedLists(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(parts))


def top_noise(populations: Array, takes: Array, scale: float, rng: Rng) -> Array:
    """Return the takes[r] largest of populations[r] independent Laplace(scale) variables, row after row, descending.

    Let U be uniform. −log U is exponential, and by Rényi (1953) the ascending order statistics of M exponentials are
    G_j = Σ_{i<=j} X_i/(M−i+1) with X_i independent exponentials. So the j-th largest of M uniforms is exp(−G_j), and
    the j-th largest Laplace variable is its quantile there: −scale·log(2(1 − e^−G)) in the upper half, scale·(log 2 −
    G) in the lower one. ``expm1`` keeps the survival 1 − e^−G to full relative precision where it is tiny.

    Args:
        populations: How many variables each row has, shape (rows,).
        takes: How many of the largest to return, takes <= populations, shape (rows,).
        scale: The Laplace scale.
        rng: The randomness.
    """
    takes = np.asarray(takes, np.int64)
    ends = np.cumsum(takes)
    rank = np.arange(int(takes.sum()), dtype=np.int64) - np.repeat(ends - takes, takes)
    gaps = rng.standard_exponential(len(rank)) / (np.repeat(populations, takes) - rank)
    for end, take in zip(ends[takes > 1], takes[takes > 1], strict=True):
        np.cumsum(
            gaps[end - take : end], out=gaps[end - take : end]
        )  # row by row: one long sum would lose digits
    with np.errstate(divide="ignore"):
        upper = -np.log(-2 * np.expm1(-gaps))
    return scale * np.where(gaps < np.log(2), upper, np.log(2) - gaps)


def _largest(
    ones: Array, rows: int, capacity: int, totals: Array, scale: float, rng: Rng
) -> Array:
    """Keys of the totals[r] largest cells of each row after Laplace noise on bits of which ``ones`` are one.

    Every one gets its own noise. Of the zeros only the totals[r] largest can be selected, and ``top_noise`` draws just
    those values. Merging both lists and taking the totals[r] largest gives the selected ones and the *number* of
    selected zeros. The zeros' noises are exchangeable, so which zeros hold the largest ones is a uniform set of that
    size, independent of the values: ``distinct_cells`` draws it outside the ones.
    """
    zeros = capacity - np.bincount(ones // max(capacity, 1), minlength=rows)
    takes = np.minimum(totals, zeros)
    values = np.concatenate(
        [1 + rng.laplace(0, scale, len(ones)), top_noise(zeros, takes, scale, rng)]
    )
    if rows == 1:  # one row of hundreds of millions of cells need not be sorted
        first = len(values) - int(totals[0])
        selected = (
            np.argpartition(values, first)[first:]
            if first < len(values)
            else np.empty(0, np.int64)
        )
        is_one = selected < len(ones)
        from_zeros = np.array([np.count_nonzero(~is_one)])
    else:
        row = np.concatenate(
            [ones // max(capacity, 1), np.repeat(np.arange(rows), takes)]
        )
        order = np.lexsort((-values, row))
        counts = np.bincount(row, minlength=rows)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        selected = order[rank < np.repeat(totals, counts)]
        is_one = selected < len(ones)
        from_zeros = np.bincount(row[selected[~is_one]], minlength=rows)
    kept = ones[selected[is_one]]
    del values, selected, is_one  # the largest arrays of all
    others = distinct_cells(from_zeros, capacity, rng, taken=ones)
    return np.sort(np.concatenate([kept, others]))


def largest_pairs(graph: Graph, total: int, scale: float, rng: Rng) -> Graph:
    """Return the graph of the ``total`` pairs with the largest bit + Laplace(scale), 0 <= total <= n(n−1)/2."""
    cells: Any = pair_cells(graph.edges, graph.nodes)
    cells = _largest(cells, 1, pair_count(graph.nodes), np.array([total]), scale, rng)
    return Graph(graph.nodes, pairs_at(cells, graph.nodes))


def largest_rows(
    graph: Graph, users: Array, totals: Array, scale: float, rng: Rng
) -> DirectedGraph:
    """Return the users' rows in which the totals[r] cells with the largest bit + Laplace(scale) are one."""
    cells = _largest(
        row_cells(graph, users),
        len(users),
        graph.nodes - 1,
        np.asarray(totals),
        scale,
        rng,
    )
    return from_row_cells(cells, users, graph.nodes)
