"""Reverse learning: find the adjacency matrix with given predictions, by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from auditdp.errors import MechanismError
from gnn.gcn import GCN, cross_entropy
from gnn.layers import propagation
from mechanisms.validation import check_integer, check_positive


def projected(matrix: Tensor) -> Tensor:
    """Return the nearest symmetric matrices with entries in [0, 1] and a zero diagonal, shape (..., nodes, nodes).

    Nearest in the Frobenius norm: each entry off the diagonal, with its mirror image, contributes (a − m_ij)² + (a − m_ji)²,
    a parabola about (m_ij + m_ji)/2, so the best a in [0, 1] is that mean, cut to the interval.
    """
    mean = (matrix + matrix.mT) / 2
    return mean.clamp(0, 1) * (
        1 - torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    )


@dataclass(frozen=True)
class ReverseLearning:
    """A_s by projected gradient descent, from 0, on α·CE(M's predictions) + (1−α)·CE(labels) + β‖A_s‖_F.

    Source: Xu et al. (2024), "GraphPub: Generation of Differential Privacy Graph with High Availability",
    arXiv:2403.00030.

    Note:
        M's predictions are the classes that it predicts on the private graph, not their probabilities. At A_s = 0, where
        the norm has no gradient, its subgradient 0 is taken.

    Args:
        steps: Gradient steps.
        alpha: α, the weight of agreement with M's predictions.
        beta: β, the weight of the norm.
        eta: η, the step.

    Raises:
        MechanismError: If an argument is out of range.
    """

    steps: int = 200
    alpha: float = 0.5
    beta: float = 1e-4
    eta: float = 0.1

    def __post_init__(self) -> None:
        check_integer("ReverseLearning", "steps", self.steps, 0)
        check_positive("ReverseLearning", "eta", self.eta)
        if not (0 <= self.alpha <= 1 and self.beta >= 0):
            raise MechanismError(
                f"ReverseLearning: expected alpha in [0, 1] and beta >= 0, got {self.alpha!r} and {self.beta!r}"
            )

    def objective(
        self,
        adjacency: Tensor,
        model: GCN,
        features: Tensor,
        predictions: Tensor,
        labels: Tensor,
    ) -> Tensor:
        """Return the objective of each model, shape (size,); arguments as in ``learned``."""
        logits = model.logits(propagation(adjacency), features)
        agreement = self.alpha * cross_entropy(logits, predictions) + (
            1 - self.alpha
        ) * cross_entropy(logits, labels)
        return agreement + self.beta * torch.linalg.matrix_norm(adjacency)

    def learned(
        self, model: GCN, features: Tensor, predictions: Tensor, labels: Tensor
    ) -> Tensor:
        """Return A_s of each model, shape (size, nodes, nodes): symmetric, entries in [0, 1], zeros on the diagonal.

        Args:
            model: M, ``size`` trained models, held fixed.
            features: X, shape (nodes, features).
            predictions: M's classes on the private graph, int64, shape (size, nodes).
            labels: Classes, int64, shape (nodes,).
        """
        size, nodes = len(model.first), len(features)
        adjacency = torch.zeros(
            size, nodes, nodes, dtype=features.dtype, device=features.device
        )
        for _ in range(self.steps):
            adjacency.requires_grad_()
            loss = self.objective(adjacency, model, features, predictions, labels).sum()
            (gradient,) = torch.autograd.grad(loss, adjacency)
            adjacency = projected(adjacency.detach() - self.eta * gradient)
        return adjacency
