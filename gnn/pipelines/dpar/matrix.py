"""DPAR's sparse PageRank matrix: private rows, rows of single nodes, and its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import Array
from gnn.pipelines.dpar.budget import Budget
from gnn.pipelines.dpar.parameters import DPARParameters
from mechanisms.cells import Rng
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    DPApprGM,
    NoisyRows,
    PublicRows,
)
from mechanisms.validation import check_positive


@dataclass(frozen=True, eq=False)
class PageRankMatrix:
    """Rows of few entries each; row i is the training example of node ``owners[i]``.

    Attributes:
        owners: Node ids, int64, shape (rows,).
        ids: Node ids of the entries, int64, shape (rows, K).
        weights: The entries, 0 for a place that is not used, float64, shape (rows, K).
        nodes: Number of ids.
    """

    owners: Array
    ids: Array
    weights: Array
    nodes: int

    @property
    def column_norms(self) -> Array:
        """The ℓ₁ norm of each column, shape (nodes,)."""
        return np.bincount(
            self.ids.ravel(), np.abs(self.weights).ravel(), minlength=self.nodes
        )

    @property
    def rows_of_nodes(self) -> Array:
        """Number of rows with each node, as owner or entry, int64, shape (nodes,)."""
        used = (self.weights != 0) & (self.ids != self.owners[:, None])
        return np.bincount(self.ids[used], minlength=self.nodes) + np.bincount(
            self.owners, minlength=self.nodes
        )


@dataclass(frozen=True)
class _NoisierRows(NoisyRows):
    """Noisy rows with a standard deviation that is given, in units of C₁."""

    multiplier: float = 0.0

    @property
    def sigma(self) -> float:
        """The standard deviation of an entry's noise."""
        return self.multiplier * self.clip


def walk_matrix(data: Data) -> sparse.csr_array:
    """Return the graph with a self-loop at each node, so that a node without edges is there, as zeros and ones."""
    nodes = int(data.num_nodes or 0)
    arcs = data.edge_index.cpu().numpy()
    ends = np.concatenate([arcs, arcs[::-1], np.tile(np.arange(nodes), (2, 1))], axis=1)
    graph = sparse.csr_array(
        (np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(nodes, nodes)
    )
    graph.data[:] = 1.0  # arcs that are listed twice were added up
    return graph


def pagerank_matrix(
    data: Data, parameters: DPARParameters, budget: Budget | None, *, rng: Rng
) -> PageRankMatrix:
    """Return the rows of M random nodes, released by DP-APPR, and those of the others, if there are to be any.

    The ids of all nodes are public: whose rows are released is drawn among them, and every id is a candidate of a row. All M
    rows are held as dense vectors, M × nodes numbers; there is no matrix of nodes × nodes.

    Args:
        data: The drawn subgraph.
        parameters: M, K, clipping, and which method.
        budget: The noise; None for the K largest exact entries.
        rng: The randomness.

    Raises:
        ConfigurationError: If a row has fewer than K candidates.
    """
    nodes, k = int(data.num_nodes or 0), parameters.k
    if k > nodes:
        raise ConfigurationError(
            f"pagerank_matrix: expected k of at most {nodes} nodes, got {k}; use a smaller k"
        )
    seeds = np.sort(rng.permutation(nodes)[: min(parameters.pagerank_rows, nodes)])
    rows = PublicRows(
        nodes, tuple(seeds.tolist()), alpha=parameters.alpha, rho=parameters.rho
    )
    graph = walk_matrix(data)
    if budget is None:
        exact = rows.of(graph, seeds)
        ids = np.sort(np.argpartition(-exact, k - 1, axis=1)[:, :k], axis=1)
        weights = np.take_along_axis(exact, ids, axis=1)
    else:
        ids, weights = _released(graph, rows, parameters, budget, rng)
    if parameters.others == "identity":
        rest = np.setdiff1d(np.arange(nodes), seeds)
        alone = np.zeros((len(rest), k))
        alone[:, 0] = 1.0
        ids = np.concatenate([ids, np.repeat(rest[:, None], k, axis=1)])
        weights = np.concatenate([weights, alone])
        seeds = np.concatenate([seeds, rest])
    return PageRankMatrix(seeds, ids, weights, nodes)


def _released(
    graph: sparse.csr_array,
    rows: PublicRows,
    parameters: DPARParameters,
    budget: Budget,
    rng: Rng,
) -> tuple[Array, Array]:
    """Indices and weights of the private rows, both of shape (M, K)."""
    shape, k = (rows.count, parameters.k), parameters.k
    if parameters.method == "GM":
        noisy = _NoisierRows(
            *budget.pagerank,
            rows,
            clip=parameters.row_clip,
            multiplier=budget.row_sigma,
        )
        ids, weights = np.hsplit(DPApprGM(noisy, k)(graph, 1, rng=rng)[0], 2)
        return ids.astype(np.int64).reshape(shape), weights.reshape(shape)
    selected: Any = (
        rows  # its protocol has settable members, which a frozen class has not
    )
    selection = DPApprEM(budget.entry_epsilon, k, selected, clip=parameters.entry_clip)
    if parameters.method == "EM0":
        return selection(graph, 1, rng=rng)[0].astype(np.int64).reshape(shape), np.full(
            shape, 1 / k
        )
    ids, weights = np.hsplit(
        DPApprEMValues(selection, budget.value_epsilon)(graph, 1, rng=rng)[0], 2
    )
    return ids.astype(np.int64).reshape(shape), weights.reshape(shape)


def normalised(
    matrix: PageRankMatrix, tau: float, how: Literal["clipped", "scaled"]
) -> PageRankMatrix:
    """Return the matrix with columns of ℓ₁ norm at most τ ("clipped"), or exactly τ where they are not 0 ("scaled")."""
    check_positive("normalised", "tau", tau)
    norms = matrix.column_norms
    least = tau if how == "clipped" else np.finfo(float).tiny
    return replace(
        matrix, weights=matrix.weights * (tau / np.maximum(norms, least))[matrix.ids]
    )


def capped(matrix: PageRankMatrix, most_rows: int, *, rng: Rng) -> PageRankMatrix:
    """Return the matrix in which a node is in at most ``most_rows`` rows, its own among them; surplus weights become 0.

    Which of the other rows keep a node is random. The rule reads the released matrix alone, and so costs no privacy.
    """
    used = (matrix.weights != 0) & (matrix.ids != matrix.owners[:, None])
    rows, places = np.nonzero(used)
    ids = matrix.ids[rows, places]
    # Entries of a node in random order, numbered from 0; the same node twice in a row counts twice, which is safe.
    order = np.lexsort((rng.random(len(ids)), ids))
    ascending = ids[order]
    number = np.arange(len(ids)) - np.searchsorted(ascending, ascending)
    owned = np.bincount(matrix.owners, minlength=matrix.nodes)
    dropped = order[number >= np.maximum(most_rows - owned[ascending], 0)]
    weights = matrix.weights.copy()
    weights[rows[dropped], places[dropped]] = 0.0
    return replace(matrix, weights=weights)
