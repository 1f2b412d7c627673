"""The multilayer perceptron, which reads features alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnn.models.stack import LayerEdges, Stack, widths
from gnn.randomness import seeded


class MLP(Stack):
    """W₂ σ(W₁ x + b₁) + b₂, row by row; edges are taken and not read.

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
        hidden: int = 32,
        layers: int = 2,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        activation: str = "relu",
        generator: torch.Generator,
    ) -> None:
        with seeded(generator):
            linear = [
                nn.Linear(*each)
                for each in widths("MLP", features, hidden, classes, layers)
            ]
        super().__init__(
            linear,
            hops=0,
            dropout=dropout,
            input_dropout=input_dropout,
            activation=activation,
        )

    def apply_layer(self, layer: nn.Module, x: Tensor, edges: LayerEdges) -> Tensor:
        """Return W x + b."""
        found: Tensor = layer(x)
        return found
