"""GraphSAGE with the mean of all neighbours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

from gnn.models.stack import Stack, widths
from gnn.randomness import seeded
from gnn.sparse import is_sparse


class NarrowSAGEConv(SAGEConv):  # type: ignore[misc]
    """torch-geometric's ``SAGEConv``, which takes means on the narrower side of its weights.

    The mean is linear, so W₁ mean(x_j) = mean(W₁ x_j): the same function of the same weights. Where x is sparse or wider
    than the output, the right-hand side is taken, which moves fewer numbers along the edges.
    """

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        """Return W₁ mean(x_j) + b + W₂ x_i, shape (nodes, out)."""
        if not isinstance(x, Tensor) or (
            x.shape[-1] <= self.out_channels and not is_sparse(x)
        ):
            found: Tensor = super().forward(x, edge_index, size)
            return found
        narrow = x @ self.lin_l.weight.t()
        out: Tensor = self.propagate(edge_index, x=(narrow, narrow), size=size)
        out = out + self.lin_r(x)
        return out if self.lin_l.bias is None else out + self.lin_l.bias


class GraphSAGE(Stack):
    """x_i ← W₁ mean_{j ∈ N(i)} x_j + b + W₂ x_i, of all neighbours; a node without neighbours has mean 0.

    Source: Hamilton et al. (2017), arXiv:1706.02216v4, Algorithm 1 with the mean aggregator; by torch-geometric's
    ``SAGEConv``.

    Note:
        Rows are not normalised between layers, as in LPGNN's experiments (arXiv:2006.05535), and neighbours are not sampled.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of a hidden layer.
        layers: Number of layers.
        dropout: Of hidden layers.
        input_dropout: Of x.
        activation: σ.
        generator: Of the initial weights, on the CPU.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 16,
        layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        activation: str = "relu",
        generator: torch.Generator,
    ) -> None:
        with seeded(generator):
            convolutions = [
                NarrowSAGEConv(*each)
                for each in widths("GraphSAGE", features, hidden, classes, layers)
            ]
        super().__init__(
            convolutions,
            hops=layers,
            dropout=dropout,
            input_dropout=input_dropout,
            activation=activation,
        )
