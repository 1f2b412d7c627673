"""Two-layer graph convolutional networks, a batch of independent models at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gnn.layers import graph_convolution

UNLABELLED = -1


@dataclass(frozen=True)
class GCN:
    """``size`` models softmax(S ReLU(S X W₁) W₂), each with its own weights.

    Source: Kipf & Welling (2017), arXiv:1609.02907v4, Equation 9.

    Args:
        first: W₁, shape (size, features, hidden).
        second: W₂, shape (size, hidden, classes).
    """

    first: Tensor
    second: Tensor

    @classmethod
    def initial(
        cls,
        size: int,
        *,
        features: Tensor,
        hidden: int,
        classes: int,
        generator: torch.Generator,
    ) -> GCN:
        """Return models with Glorot's weights, uniform on ±√(6/(in+out)), of the features' type and on their device.

        Args:
            size: Number of models.
            features: X, shape (nodes, in).
            hidden: Units of the hidden layer.
            classes: Units of the output layer.
            generator: The randomness, on the CPU, so that every device starts from the same weights.
        """

        def glorot(fan_in: int, fan_out: int) -> Tensor:
            uniform = torch.rand(
                size, fan_in, fan_out, dtype=features.dtype, generator=generator
            )
            return ((2 * uniform - 1) * (6 / (fan_in + fan_out)) ** 0.5).to(
                features.device
            )

        return cls(glorot(features.shape[-1], hidden), glorot(hidden, classes))

    def hidden(self, operator: Tensor, features: Tensor) -> Tensor:
        """Return the hidden layer ReLU(S X W₁), shape (size, nodes, hidden)."""
        return graph_convolution(operator, features, self.first).relu()

    def logits(self, operator: Tensor, features: Tensor) -> Tensor:
        """Return the output before the softmax, shape (size, nodes, classes)."""
        return graph_convolution(operator, self.hidden(operator, features), self.second)

    def fitted(
        self,
        operator: Tensor,
        features: Tensor,
        labels: Tensor,
        *,
        epochs: int,
        learning_rate: float,
    ) -> GCN:
        """Return the models after ``epochs`` full-batch steps of Adam on their cross-entropies.

        Adam works entry by entry and no weight has part in two models' losses, so the gradient of the sum trains each
        model as if it were alone.

        Args:
            operator: S, shape (nodes, nodes), or one for each model.
            features: X, shape (nodes, features).
            labels: Classes, int64, shape (nodes,); UNLABELLED where there is none.
            epochs: Steps.
            learning_rate: Adam's.
        """
        weights = [
            weight.clone().requires_grad_() for weight in (self.first, self.second)
        ]
        optimiser = torch.optim.Adam(weights, lr=learning_rate)
        for _ in range(epochs):
            optimiser.zero_grad()
            cross_entropy(
                GCN(*weights).logits(operator, features), labels
            ).sum().backward()
            optimiser.step()
        return GCN(*(weight.detach() for weight in weights))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of each model over the labelled nodes, in nats, shape (size,).

    Args:
        logits: Shape (size, nodes, classes).
        labels: Classes, int64, shape (nodes,) or (size, nodes); UNLABELLED where there is none, not everywhere.
    """
    target = labels.expand(logits.shape[:-1])
    losses = functional.cross_entropy(
        logits.mT, target, ignore_index=UNLABELLED, reduction="none"
    )
    return losses.sum(dim=-1) / (target != UNLABELLED).sum(dim=-1)
