"""Approximate personalised PageRank by ISTA: the ℓ₁-regularised problem, its optimality conditions, and a sparse solver.

With A a symmetric matrix of zeros and ones (a one on the diagonal is a self-loop, which counts once for the degree), D its
degrees, s the seed's indicator and Q = D^-½(D − (1−α)/2·(D+A))D^-½, the problem is

    minimise  ½ qᵀQq − α sᵀD^-½q + ρα‖D^½q‖₁,    and p = D^½q is the row.

Everything here is written for p. With g = D^½∇f(q) = (1+α)/2·p − (1−α)/2·AD⁻¹p − αs, the step p ← (p − g − ραd)₊ is the
proximal gradient step of length 1 for q: one step of the lazy walk (I + AD⁻¹)/2 with restarts, less ραd. A solution has
g_i = −ραd_i where p_i > 0, and −ραd_i <= g_i <= 0 elsewhere.

α restarts the *lazy* walk. The plain walk AD⁻¹ of the same PageRank restarts with 2α/(1+α): .4 for α = .25.

Started from 0 the iterates never decrease, never exceed the solution, and so touch nothing outside its support, whose
degrees sum to at most 1/ρ. The exact PageRank is above the solution by at most ρd_i at node i, because
p_exact − p = (I − (1−α)W)⁻¹(−g) with 0 <= −g <= ραd and Wd = d, W the lazy walk.

A node of degree 0 is not there: D⁻¹ is read as a pseudo-inverse, its row is 0 and it is in nobody's row. A node with a
self-loop only has the row 1 − ρ at itself.

Source: Fountoulakis, Roosta-Khorasani, Shun, Cheng & Mahoney (2019), "Variational perspective on local graph clustering",
Mathematical Programming 174 (arXiv:1602.01886): the problem, its optimality conditions and ISTA.

Note:
    ISTA stops there when no −g_i/d_i exceeds (1 + tolerance)ρα. Here the number of steps is fixed, such that this holds for
    every graph: rows then depend on nothing but graph and seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, brief
from mechanisms.graphs import Graph
from mechanisms.validation import check_positive

ALPHA = 0.25
RHO = 1e-4
TOLERANCE = 1e-4

Matrix = Any
"""A dense array, or a sparse one (CSR), shape (rows, nodes)."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The plain walk on a graph: D⁻¹A, dense or sparse, with rows of zeros for nodes that are not there, and the degrees."""

    matrix: Matrix
    degrees: Array

    @classmethod
    def on(cls, graph: Any) -> Walk:
        """Return the walk on a graph.

        Args:
            graph: Symmetric matrix of zeros and ones, shape (nodes, nodes): an array (rows are then arrays too), or a sparse
                matrix or ``Graph`` (rows are then sparse).

        Raises:
            MechanismError: If it is anything else.
        """
        if isinstance(graph, Graph):
            arcs = graph.arcs
            graph = sparse.csr_array(
                (np.ones(arcs.shape[1]), (arcs[0], arcs[1])),
                shape=(graph.nodes, graph.nodes),
            )
        matrix = (
            sparse.csr_array(graph, dtype=float)
            if sparse.issparse(graph)
            else np.asarray(graph, np.float64)
        )
        entries = matrix.data if sparse.issparse(matrix) else matrix
        shaped = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if (
            not shaped
            or not np.isin(entries, (0, 1)).all()
            or (matrix != matrix.T).sum()
        ):
            raise MechanismError(
                f"expected a graph: a symmetric matrix of zeros and ones, got {brief(graph)}"
            )
        degrees = np.asarray(matrix.sum(axis=1), np.float64)
        shares = 1 / np.maximum(degrees, 1)
        return cls(
            sparse.diags_array(shares) @ matrix
            if sparse.issparse(matrix)
            else shares[:, None] * matrix,
            degrees,
        )

    def starts(self, seeds: Sequence[int] | Array) -> Matrix:
        """Return the indicators of the seeds that are there, shape (seeds, nodes).

        Raises:
            MechanismError: If a seed is no node id.
        """
        ids, nodes = np.asarray(seeds, np.int64), len(self.degrees)
        if ids.ndim != 1 or not ((ids >= 0) & (ids < nodes)).all():
            raise MechanismError(
                f"expected seeds, node ids from 0 to {nodes - 1}, got {brief(ids)}"
            )
        there = self.degrees[ids] > 0
        made = sparse.csr_array(
            (there.astype(float), (np.arange(len(ids)), ids)), shape=(len(ids), nodes)
        )
        return made if sparse.issparse(self.matrix) else made.toarray()


def proximal_step(
    walk: Walk, rows: Matrix, starts: Matrix, *, alpha: float, rho: float
) -> Matrix:
    """Return (p − g − ραd)₊ for every row p, shape (rows, nodes): in sparse form at a cost of the degrees of its support."""
    moved = (1 - alpha) / 2 * (rows + rows @ walk.matrix) + alpha * starts
    if not sparse.issparse(moved):
        return np.maximum(moved - rho * alpha * walk.degrees, 0)
    moved.data = np.maximum(moved.data - rho * alpha * walk.degrees[moved.indices], 0)
    moved.eliminate_zeros()
    return moved


def steps(
    *, alpha: float = ALPHA, rho: float = RHO, tolerance: float = TOLERANCE
) -> int:
    """Return the number of steps from 0 until every KKT residual is at most ``tolerance``.

    This holds on every graph.

    A step takes |p − p′| <= c·d to at most (1−α)c·d, since Wd = d; the first moves by at most αd; and after t steps the next
    one moves entry i by what its condition is violated, at most (1−α)^t αd_i, which has to be at most ρα·tolerance·d_i.
    """
    return math.ceil(math.log(rho * tolerance) / math.log1p(-alpha))


def ista(
    graph: Any,
    seeds: Sequence[int] | Array,
    *,
    alpha: float = ALPHA,
    rho: float = RHO,
    tolerance: float = TOLERANCE,
) -> Matrix:
    """Return the approximate personalised PageRank of every seed, shape (seeds, nodes), float64.

    Args:
        graph: As for ``Walk.on``; the rows are sparse (CSR) if it is sparse, else dense.
        seeds: Node ids.
        alpha: Restart probability of the lazy walk, in (0, 1).
        rho: Regularisation, in (0, 1): the larger, the fewer nodes in a row.
        tolerance: Largest KKT residual of a row, > 0, in units of its scale ραd.

    Raises:
        MechanismError: If an argument is out of range.
    """
    for name, value in (("alpha", alpha), ("rho", rho), ("tolerance", tolerance)):
        check_positive("ista", name, value)
    if alpha >= 1 or rho >= 1:
        raise MechanismError(
            f"ista: expected alpha and rho in (0, 1), got {alpha!r} and {rho!r}"
        )
    walk = Walk.on(graph)
    starts = walk.starts(seeds)
    rows = 0 * starts
    for _ in range(steps(alpha=alpha, rho=rho, tolerance=tolerance)):
        rows = proximal_step(walk, rows, starts, alpha=alpha, rho=rho)
    return rows


def gradient(
    graph: Any, rows: Matrix, seeds: Sequence[int] | Array, *, alpha: float = ALPHA
) -> Array:
    """Return g = D^½∇f(D^-½p) for every row p, dense, shape (rows, nodes)."""
    walk = Walk.on(graph)
    found = (
        (1 + alpha) / 2 * rows
        - (1 - alpha) / 2 * (rows @ walk.matrix)
        - alpha * walk.starts(seeds)
    )
    return found.toarray() if sparse.issparse(found) else np.asarray(found)


def objective(
    graph: Any,
    rows: Matrix,
    seeds: Sequence[int] | Array,
    *,
    alpha: float = ALPHA,
    rho: float = RHO,
) -> Array:
    """Return the value of every row p, shape (rows,): ½ Σ p_i (g_i − αs_i)/d_i over its nodes, and ρα Σ p_i.

    f is quadratic with linear term −αs/d, so that f = ½ Σ p_i (g_i/d_i − αs_i/d_i).
    """
    walk = Walk.on(graph)
    dense, starts = (
        m.toarray() if sparse.issparse(m) else m for m in (rows, walk.starts(seeds))
    )
    pull = gradient(graph, rows, seeds, alpha=alpha) - alpha * starts
    return (dense * pull / np.maximum(walk.degrees, 1)).sum(
        axis=1
    ) / 2 + rho * alpha * np.abs(dense).sum(axis=1)


def kkt_residual(
    graph: Any,
    rows: Matrix,
    seeds: Sequence[int] | Array,
    *,
    alpha: float = ALPHA,
    rho: float = RHO,
) -> Array:
    """Return by how much every row violates its optimality conditions, shape (rows,), in units of ραd_i at node i.

    |g_i + ραd_i| where p_i > 0, and what −g_i exceeds ραd_i or g_i exceeds 0 by elsewhere; the largest over all nodes.
    """
    walk = Walk.on(graph)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    scaled = gradient(graph, rows, seeds, alpha=alpha) / (
        rho * alpha * np.maximum(walk.degrees, 1)
    )
    off = np.where(
        dense > 0, np.abs(scaled + 1), np.maximum(np.maximum(-scaled - 1, scaled), 0)
    )
    return np.asarray(off.max(axis=1, initial=0.0))


def power_iteration(
    graph: Any,
    seeds: Sequence[int] | Array,
    *,
    teleport: float,
    accuracy: float = 1e-12,
) -> Array:
    """Return the exact personalised PageRank p = a·s + (1−a)AD⁻¹p of the plain walk, dense, shape (seeds, nodes).

    What ``ista`` approaches as ρ → 0, for a = 2α/(1+α). Iterated until the rest, (1−a)^t, is at most ``accuracy``.
    """
    walk = Walk.on(graph)
    starts = walk.starts(seeds)
    starts = starts.toarray() if sparse.issparse(starts) else starts
    rows, into = teleport * starts, walk.matrix.T
    for _ in range(math.ceil(math.log(accuracy) / math.log1p(-teleport))):
        rows = teleport * starts + (1 - teleport) * (into @ rows.T).T
    return rows


def lazy(teleport: float) -> float:
    """Return the α of the lazy walk for a plain walk that restarts with this probability: a/(2−a).

    >>> lazy(0.4)
    0.25
    """
    return teleport / (2 - teleport)
