"""Predictions that are propagated by personalised PageRank."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import APPNP as Propagation  # noqa: N811 - the model is called so as well

from gnn.models.mlp import MLP
from gnn.models.propagation import propagation_edges
from gnn.models.stack import LayerEdges
from gnn.validation import check_count, check_number


class APPNP(nn.Module):
    """Z ← (1 − α) S Z + α f(X), ``steps`` times from Z = f(X), with f an MLP and S as in GCN.

    Source: Gasteiger et al. (2019), arXiv:1810.05997v6, Equation 4; by torch-geometric's ``APPNP``.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of a hidden layer of f.
        layers: Layers of f.
        steps: Steps of power iteration.
        alpha: α, the probability to return, in [0, 1).
        dropout: Of hidden layers.
        input_dropout: Of x.
        activation: σ of f.
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
        layers: int = 2,
        steps: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        activation: str = "relu",
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        check_count("APPNP", "steps", steps)
        check_number("APPNP", "alpha", alpha, below=1)
        self.mlp = MLP(
            features,
            classes,
            hidden=hidden,
            layers=layers,
            dropout=dropout,
            input_dropout=input_dropout,
            activation=activation,
            generator=generator,
        )
        self.propagation = Propagation(K=steps, alpha=alpha, normalize=False)
        self.hops = steps

    @property
    def layers(self) -> nn.ModuleList:
        """The layers of f."""
        return self.mlp.layers

    def edges(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> LayerEdges:
        """Return the entries of S, as of ``GCN``."""
        return LayerEdges(*propagation_edges(x, edge_index, edge_weight))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | LayerEdges,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the logits Z, shape (nodes, classes); arguments as of ``Stack``."""
        edges = (
            edge_index
            if isinstance(edge_index, LayerEdges)
            else self.edges(x, edge_index, edge_weight)
        )
        found: Tensor = self.propagation(self.mlp(x), edges.arcs, edges.weights)
        return found
