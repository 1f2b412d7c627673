"""Pairs of nodes that a link inference attack scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.cells import pair_count, pairs_at
from mechanisms.validation import check_integer


def all_pairs(nodes: int) -> Array:
    """Return every pair (i, j) with i < j, int64, shape (2, nodes·(nodes−1)/2)."""
    check_integer("all_pairs", "nodes", nodes, 2)
    return np.stack(np.triu_indices(nodes, 1))


def sampled_pairs(
    edge_index: Any, *, nodes: int, size: int, rng: np.random.Generator
) -> Array:
    """Return ``size`` edges and ``size`` other pairs: a balanced test.

    Source: Wu, Long, Zhang & Li (2022), "LinkTeller", arXiv:2108.06504 (balanced sets of edges and non-edges).

    Args:
        edge_index: Pairs of node ids, shape (2, any), each edge in one direction or both.
        nodes: Number of nodes.
        size: How many of each kind.
        rng: The randomness.

    Returns:
        int64, shape (2, 2·size), i < j, edges first.

    Raises:
        MechanismError: If there are not so many edges or other pairs.
    """
    check_integer("sampled_pairs", "size", size, 1)
    keys = _keys(edge_index, nodes)
    keys = keys[keys // nodes < keys % nodes]
    others = pair_count(nodes) - len(keys)
    if size > min(len(keys), others):
        raise MechanismError(
            f"sampled_pairs: size = {size}, but the graph has {len(keys)} edges and {others} other pairs; use at most "
            f"{min(len(keys), others)}"
        )
    edges = rng.choice(keys, size, replace=False)
    found: Array = np.empty(0, np.int64)
    while len(found) < size:
        drawn = pairs_at(rng.integers(pair_count(nodes), size=2 * size), nodes)
        fresh = np.setdiff1d(drawn[0] * nodes + drawn[1], keys)
        found = np.union1d(
            found, fresh
        )  # a union of uniform draws is exchangeable, so a part of it is uniform
    chosen = np.concatenate([edges, rng.choice(found, size, replace=False)])
    return np.stack(np.divmod(chosen, nodes))


def are_edges(pairs: Any, edge_index: Any, *, nodes: int) -> Array:
    """Return True for pairs that are edges in either direction, bool, shape (pairs,).

    Args:
        pairs: Candidates, shape (2, pairs).
        edge_index: Pairs of node ids, shape (2, any), each edge in one direction or both.
        nodes: Number of nodes.
    """
    low, high = np.minimum(*np.asarray(pairs)), np.maximum(*np.asarray(pairs))
    return np.isin(low * nodes + high, _keys(edge_index, nodes))


def _keys(edge_index: Any, nodes: int) -> Array:
    """Each undirected edge once, as low·nodes + high."""
    edges = np.asarray(edge_index, np.int64)
    if (
        edges.ndim != 2
        or len(edges) != 2
        or (edges.size and not 0 <= edges.min() <= edges.max() < nodes)
    ):
        raise MechanismError(
            f"expected pairs of node ids from 0 to {nodes - 1}, shape (2, any), got shape {edges.shape}"
            + (f" with ids {edges.min()} to {edges.max()}" if edges.size else "")
        )
    return np.unique(
        edges.min(axis=0, initial=nodes) * nodes + edges.max(axis=0, initial=0)
    )
