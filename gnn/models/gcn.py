"""The graph convolutional network of Kipf & Welling."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from gnn.models.propagation import propagation_edges
from gnn.models.stack import LayerEdges, Stack, widths
from gnn.randomness import seeded


class GCN(Stack):
    """softmax(S σ(S X W₁ + b₁) W₂ + b₂) with S = D^-½(A+I)D^-½, D the row sums of A + I; here without the softmax.

    Source: Kipf & Welling (2017), arXiv:1609.02907v4, Equations 2 and 9; by torch-geometric's ``GCNConv``.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of a hidden layer.
        layers: Number of layers.
        dropout: Of hidden layers.
        input_dropout: Of x; Kipf & Welling drop both with .5.
        activation: σ.
        generator: Of the initial weights, on the CPU.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    weighted = True

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
                GCNConv(*each, normalize=False)
                for each in widths("GCN", features, hidden, classes, layers)
            ]
        super().__init__(
            convolutions,
            hops=layers,
            dropout=dropout,
            input_dropout=input_dropout,
            activation=activation,
        )

    def edges(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> LayerEdges:
        """Return the entries of S: its edges, self-loops among them, and its weights."""
        return LayerEdges(*propagation_edges(x, edge_index, edge_weight))

    def apply_layer(self, layer: nn.Module, x: Tensor, edges: LayerEdges) -> Tensor:
        """Return S x W + b."""
        found: Tensor = layer(x, edges.arcs, edges.weights)
        return found
