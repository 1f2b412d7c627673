"""The graph attention network."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.utils import add_self_loops

from gnn.models.stack import LayerEdges, Stack
from gnn.randomness import seeded
from gnn.validation import check_count, check_number


class GAT(Stack):
    """Layers of attention: heads side by side in the hidden layers, one head in the last.

    Source: Veličković et al. (2018), arXiv:1710.10903v3, Section 3.3; by torch-geometric's ``GATConv``.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of each head.
        heads: Heads of a hidden layer.
        layers: Number of layers.
        dropout: Of hidden layers; Veličković et al. drop everything with .6.
        input_dropout: Of x.
        attention_dropout: Of the attention coefficients, in [0, 1).
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
        hidden: int = 8,
        heads: int = 8,
        layers: int = 2,
        dropout: float = 0.6,
        input_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: str = "elu",
        generator: torch.Generator,
    ) -> None:
        sizes = (
            ("features", features),
            ("classes", classes),
            ("hidden", hidden),
            ("heads", heads),
            ("layers", layers),
        )
        for name, value in sizes:
            check_count("GAT", name, value)
        check_number("GAT", "attention_dropout", attention_dropout, below=1)
        inputs = [features, *[hidden * heads] * (layers - 1)]
        with seeded(generator):
            convolutions = [
                GATConv(
                    width,
                    hidden,
                    heads,
                    dropout=attention_dropout,
                    add_self_loops=False,
                )
                for width in inputs[:-1]
            ]
            convolutions.append(
                GATConv(
                    inputs[-1], classes, dropout=attention_dropout, add_self_loops=False
                )
            )
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
        """Return the edges with a self-loop at every node: a node attends to itself too."""
        given = super().edges(x, edge_index, edge_weight)
        looped, _ = add_self_loops(given.arcs, num_nodes=x.shape[0])
        return LayerEdges(looped, None)
