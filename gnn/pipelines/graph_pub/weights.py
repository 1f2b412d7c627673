"""Edge weights of a graph as operations of a layer: products and sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gnn.sparse import csr, product


class EdgeWeights(ABC):
    """A symmetric matrix A of edge weights in [0, 1] with zeros on the diagonal, shape (nodes, nodes)."""

    @abstractmethod
    def product(self, values: Tensor) -> Tensor:
        """Return A times values of shape (nodes, k)."""

    @property
    @abstractmethod
    def totals(self) -> Tensor:
        """The row sums, shape (nodes, 1)."""

    @property
    @abstractmethod
    def dense(self) -> Tensor:
        """A itself."""


class ListedEdges(EdgeWeights):
    """Edges of weight 1.

    Args:
        edge_index: Each edge in both directions, shape (2, arcs).
        nodes: Number of nodes.
    """

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        ones = np.ones(edge_index.shape[1])
        found = sparse.csr_array(
            (ones, tuple(edge_index.cpu().numpy())), shape=(nodes, nodes)
        )
        self.matrix = csr(found.data, found.indices, found.indptr, (nodes, nodes)).to(
            edge_index.device
        )

    def product(self, values: Tensor) -> Tensor:
        """Return A times the values."""
        return product(self.matrix, self.matrix, values)

    @cached_property
    def totals(self) -> Tensor:
        """The degrees."""
        return self.matrix.crow_indices().diff().unsqueeze(1).to(self.matrix.dtype)

    @cached_property
    def dense(self) -> Tensor:
        """The adjacency matrix."""
        return self.matrix.to_dense()


class FixedWeights(EdgeWeights):
    """A dense matrix that is not differentiated in."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def product(self, values: Tensor) -> Tensor:
        """Return A times the values."""
        return self.matrix @ values

    @cached_property
    def totals(self) -> Tensor:
        """The row sums."""
        return self.matrix.sum(dim=1, keepdim=True)

    @property
    def dense(self) -> Tensor:
        """A."""
        return self.matrix


class LearnedWeights(EdgeWeights):
    """A dense matrix that is differentiated in.

    The gradient of a function of products A V_1, A V_2, ... is Σ_i U_i V_iᵀ, U_i the gradient in the i-th product. These
    few columns are kept in place of a matrix for each product: ``columns`` after a backward pass. Functions of ``dense``
    have their gradient in ``dense.grad``.
    """

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self.anchor = torch.zeros(
            (), dtype=matrix.dtype, device=matrix.device, requires_grad=True
        )
        self.left: list[Tensor] = []
        self.right: list[Tensor] = []

    def product(self, values: Tensor) -> Tensor:
        """Return A times the values."""
        found: Tensor = _Product.apply(values, self.anchor, self)  # type: ignore[no-untyped-call]
        return found

    @cached_property
    def totals(self) -> Tensor:
        """The row sums, as a product."""
        return self.product(self.matrix.new_ones(len(self.matrix), 1))

    @cached_property
    def dense(self) -> Tensor:
        """A as a leaf of its own."""
        return self.matrix.detach().requires_grad_()

    @property
    def columns(self) -> tuple[Tensor, Tensor]:
        """U and V, both of shape (nodes, any); the gradient is U Vᵀ."""
        empty = self.matrix.new_empty(len(self.matrix), 0)
        return torch.cat([empty, *self.left], dim=1), torch.cat(
            [empty, *self.right], dim=1
        )


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, anchor: Tensor, owner: LearnedWeights
    ) -> Tensor:
        ctx.owner = owner
        ctx.save_for_backward(values)
        return owner.matrix @ values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        (values,) = ctx.saved_tensors
        ctx.owner.left.append(gradient)
        ctx.owner.right.append(values)
        # A is symmetric.
        back = ctx.owner.matrix @ gradient if ctx.needs_input_grad[0] else None
        return back, gradient.new_zeros(()), None
