"""KProp: K linear steps of the normalised adjacency, on features and on labels, without a non-linearity between them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import degree, is_undirected

from gnn.sparse import is_sparse, product, rows, transposed
from gnn.validation import DataError

COLUMNS = 512
"""Columns that are propagated at once: 70 MB for 34,493 nodes."""
DENSE_SHARE = 0.25
"""Share of stored entries from which a matrix is kept dense."""


def normalised_adjacency(edge_index: Tensor, nodes: int) -> Tensor:
    """Return D^-½ A D^-½ without self-loops, sparse CSR, float32, shape (nodes, nodes); 0 at isolated nodes.

    Args:
        edge_index: Each edge in both directions, int64, shape (2, arcs).
        nodes: Number of nodes.

    Raises:
        DataError: If some edge has one direction only.
    """
    if not is_undirected(edge_index, num_nodes=nodes):
        raise DataError(
            "KProp: some edge is listed in one direction only; list both, as with torch_geometric.utils.to_undirected"
        )
    scale = degree(edge_index[1], nodes).clamp(min=1).rsqrt()
    values = scale[edge_index[0]] * scale[edge_index[1]]
    return torch.sparse_coo_tensor(
        edge_index, values, (nodes, nodes), check_invariants=False
    ).to_sparse_csr()


def propagated(operator: Tensor, x: Tensor, steps: int) -> Tensor:
    """Return S^K x, differentiable in x.

    Args:
        operator: S, ``normalised_adjacency`` of a graph, symmetric.
        x: Dense, shape (nodes, columns).
        steps: K >= 0.
    """
    for _ in range(steps):
        x = product(operator, operator, x)
    return x


@torch.no_grad()
def k_prop(operator: Tensor, x: Tensor, steps: int) -> Tensor:
    """Return S^K x as a dense matrix, a few columns at a time, so that little more than the result is in memory.

    Source: Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535: "K consecutive linear AGGREGATE functions".

    Args:
        operator: S, as of ``propagated``.
        x: Dense or sparse CSR, shape (nodes, columns).
        steps: K >= 0.
    """
    found = torch.empty(tuple(x.shape), dtype=x.dtype, device=x.device)
    columns = transposed(x) if is_sparse(x) else x.t()
    for start in range(0, x.shape[1], COLUMNS):
        part = torch.arange(start, min(start + COLUMNS, x.shape[1]), device=x.device)
        block = rows(columns, part)
        block = (block.to_dense() if is_sparse(block) else block).t().contiguous()
        found[:, start : start + COLUMNS] = propagated(operator, block, steps)
    return found


class PropagatedFeatures:
    """The input S^K(s E + c) of a first layer, in the cheapest form for products.

    S^K(s E + c)Wᵀ = s S^K(E Wᵀ) + c (S^K 1)(W 1)ᵀ: where E is sparse, as what users send of their features is, a product
    touches the stored entries of E and K times as many numbers as the graph has edges for each row of W, and the dense
    S^K E, which has nodes × features entries, is never made. Where E is dense, S^K(s E + c) is made once.

    Args:
        encoded: E, dense or sparse CSR, float32, shape (nodes, features).
        operator: S, as of ``propagated``.
        steps: K >= 0.
        scale: s.
        shift: c.
    """

    def __init__(
        self,
        encoded: Tensor,
        operator: Tensor,
        steps: int,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        self.operator, self.steps, self.scale, self.shift = (
            operator,
            steps,
            scale,
            shift,
        )
        self.shape = tuple(encoded.shape)
        self._dense: Tensor | None = None
        if is_sparse(encoded) and len(encoded.values()) < DENSE_SHARE * encoded.numel():
            self._encoded, self._transpose = encoded, transposed(encoded)
            self._ones = propagated(
                operator, encoded.values().new_ones(len(encoded), 1), steps
            )
        else:
            full = encoded.to_dense() if is_sparse(encoded) else encoded
            self._dense = k_prop(
                operator,
                full if (scale, shift) == (1, 0) else scale * full + shift,
                steps,
            )

    def product(self, weight: Tensor) -> Tensor:
        """Return S^K(s E + c)Wᵀ, shape (nodes, units), differentiable in W, of shape (units, features)."""
        if self._dense is not None:
            return self._dense @ weight.t()
        narrow = product(self._encoded, self._transpose, weight.t().contiguous())
        found = self.scale * propagated(self.operator, narrow, self.steps)
        return (
            found + self.shift * self._ones * weight.sum(dim=1) if self.shift else found
        )
