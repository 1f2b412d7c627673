"""A network of features whose outputs are mixed by given PageRank weights in training, by power iteration afterwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv

from gnn.models.mlp import MLP
from gnn.validation import check_count, check_number


class DecoupledPageRank(nn.Module):
    """h_j = Σ_k Π_jk f(x_k) over a few nodes k for each node j, with f an MLP and Π given.

    Source: Bojchevski et al. (2020), "Scaling Graph Neural Networks with Approximate PageRank", arXiv:2007.01570, Equation 1
    and Section 3.3; as used by Zhang et al. (2024), arXiv:2210.04442, Section 3.2.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of a hidden layer of f.
        layers: Layers of f.
        alpha: α of the power iteration, in [0, 1).
        steps: Its steps.
        dropout: Of hidden layers.
        activation: σ of f.
        generator: Of the initial weights, on the CPU.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    hops = 0

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 32,
        layers: int = 2,
        alpha: float = 0.25,
        steps: int = 2,
        dropout: float = 0.0,
        activation: str = "relu",
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        check_count("DecoupledPageRank", "steps", steps)
        check_number("DecoupledPageRank", "alpha", alpha, below=1)
        self.mlp = MLP(
            features,
            classes,
            hidden=hidden,
            layers=layers,
            dropout=dropout,
            activation=activation,
            generator=generator,
        )
        self.alpha, self.steps = alpha, steps
        self.mean = SimpleConv(aggr="mean")

    @property
    def layers(self) -> nn.ModuleList:
        """The layers of f."""
        return self.mlp.layers

    def mixed(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return h of each node.

        Args:
            x: Features of the nodes k, shape (..., count, features).
            weights: Π_jk, shape (..., count).

        Returns:
            Shape (..., classes).
        """
        outputs: Tensor = self.mlp(x)
        return (weights.unsqueeze(-1) * outputs).sum(dim=-2)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Return Q after ``steps`` times Q ← (1 − α) D⁻¹A Q + α f(X) from Q = f(X), shape (nodes, classes).

        Arguments as of ``Stack``; weights are not read. At a node without neighbours D⁻¹A is 0.
        """
        start: Tensor = self.mlp(x)
        found = start
        for _ in range(self.steps):
            found = (1 - self.alpha) * self.mean(found, edge_index) + self.alpha * start
        return found
