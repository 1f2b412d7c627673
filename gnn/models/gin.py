"""The graph isomorphism network, for classes of whole graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool

from gnn.models.blocks import Blocks
from gnn.randomness import seeded
from gnn.sparse import dropout as dropped
from gnn.validation import check_choice, check_count, check_number

READOUTS = {"mean": global_mean_pool, "sum": global_add_pool}


def perceptron(inputs: int, hidden: int) -> nn.Sequential:
    """Return a perceptron of two layers, with batch normalisation and a ReLU after each."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
    )


class GIN(nn.Module):
    """GIN-0: x_i ← MLP(x_i + Σ_{j ∈ N(i)} x_j); logits Σ_l dropout(W_l readout(x^(l)) + b_l), l = 0 for the input.

    Source: Xu et al. (2019), arXiv:1810.00826v3, Equation 4.1 with ε = 0 and Section 4.2, as in their code: dropout on the
    scores of each layer. The readout is the mean, batches are normalised after each hidden layer, and perceptrons have two
    layers: Hidano & Murakami (2022), arXiv:2202.10209, Section V-A. By torch-geometric's ``GINConv``.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of every layer.
        layers: Layers, the input among them: messages pass ``layers`` − 1 times, >= 2.
        dropout: Of the scores, in [0, 1).
        readout: "mean" or "sum" over the nodes of a graph.
        generator: Of the initial weights, on the CPU.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 64,
        layers: int = 5,
        dropout: float = 0.5,
        readout: str = "mean",
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("features", features, 1),
            ("classes", classes, 1),
            ("hidden", hidden, 1),
        ):
            check_count("GIN", name, value, least)
        check_count("GIN", "layers", layers, 2)
        check_number("GIN", "dropout", dropout, below=1)
        check_choice("GIN", "readout", readout, tuple(READOUTS))
        inputs = [features, *[hidden] * (layers - 1)]
        with seeded(generator):
            self.layers = nn.ModuleList(
                GINConv(perceptron(width, hidden)) for width in inputs[:-1]
            )
            self.scores = nn.ModuleList(nn.Linear(width, classes) for width in inputs)
        self.dropout, self.readout = dropout, readout

    def forward(
        self, x: Tensor, edge_index: Tensor | Blocks, batch: Tensor, size: int
    ) -> Tensor:
        """Return the logits of each graph.

        Args:
            x: Features of all nodes, shape (nodes, features).
            edge_index: Arcs, int64, shape (2, arcs), or the matrices of the graphs.
            batch: The graph of each node, int64, shape (nodes,).
            size: Number of graphs; one without nodes has readout 0.

        Returns:
            Shape (size, classes).
        """
        readout = READOUTS[self.readout]
        logits = torch.zeros((), dtype=x.dtype, device=x.device)
        for number, score in enumerate(self.scores):
            if number:
                layer = self.layers[number - 1]
                if isinstance(edge_index, Blocks):
                    assert isinstance(layer, GINConv)
                    x = layer.nn(x + edge_index.sums(x))
                else:
                    x = layer(x, edge_index)
            logits = logits + dropped(
                score(readout(x, batch, size)), self.dropout, training=self.training
            )
        return logits
