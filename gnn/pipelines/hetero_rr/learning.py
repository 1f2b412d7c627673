"""The network of HeteroRR: graph convolutions that take means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Data

from gnn.datasets.conversion import to_data
from gnn.datasets.splits import Split
from gnn.models.stack import LayerEdges, Stack, widths
from gnn.randomness import seeded
from gnn.sparse import csr, product, transposed
from gnn.training import (
    Record,
    Settings,
    area_under_roc,
    evaluate,
    fit,
    macro_f1,
    micro_f1,
)
from mechanisms.graphs import Graph


class MeanGCN(Stack):
    """D^-1(A+I) σ(D^-1(A+I) X W₁ + b₁) W₂ + b₂, D the row sums of A + I: the mean of the neighbours and the node itself.

    Source: Tran et al. (2022), arXiv:2211.05766, Equations 1 and 2 with the mean as aggregation.

    Args:
        features: Width of x.
        classes: Width of the output.
        hidden: Units of the hidden layer.
        dropout: Of the hidden layer.
        generator: Of the initial weights, on the CPU.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 128,
        dropout: float = 0.5,
        generator: torch.Generator,
    ) -> None:
        with seeded(generator):
            layers = [
                nn.Linear(*each)
                for each in widths("MeanGCN", features, hidden, classes, 2)
            ]
        super().__init__(
            layers, hops=2, dropout=dropout, input_dropout=0.0, activation="relu"
        )

    def edges(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> LayerEdges:
        """Return D^-1(A+I) and its transpose, both sparse CSR, in place of arcs and weights."""
        sender, receiver = super().edges(x, edge_index, edge_weight).arcs.cpu().numpy()
        shape = (len(x), len(x))
        looped = sparse.csr_array(
            (np.ones(len(sender)), (receiver, sender)), shape=shape
        ) + sparse.eye_array(len(x))
        found = sparse.csr_array(looped / looped.sum(axis=1)[:, None])
        mean = csr(found.data, found.indices, found.indptr, shape).to(x.device)
        return LayerEdges(mean, transposed(mean))

    def apply_layer(self, layer: nn.Module, x: Tensor, edges: LayerEdges) -> Tensor:
        """Return the mean of the mapped inputs."""
        assert edges.weights is not None  # the transpose
        return product(edges.arcs, edges.weights, layer(x))


@dataclass(frozen=True, eq=False)
class Learned:
    """A network that was trained on released features and edges.

    Attributes:
        model: With the weights of the epoch that is kept.
        data: What was released, with the labels.
        record: The training.
        scores: Of test nodes: "F1" (micro, the accuracy of one class each), "macro F1" and "AUC".
    """

    model: MeanGCN
    data: Data
    record: Record
    scores: dict[str, float]


def learn(
    x: Tensor,
    graph: Graph,
    labels: Tensor,
    *,
    split: Split,
    generator: torch.Generator,
    epochs: int = 500,
    hidden: int = 128,
    learning_rate: float = 0.001,
    patience: int = 50,
    device: str | torch.device = "cpu",
) -> Learned:
    """Train a network on the release, keep the best epoch, and test it.

    Args:
        x: Released features, shape (nodes, width).
        graph: The released graph.
        labels: Classes, shape (nodes,).
        split: The nodes.
        generator: The randomness, on the CPU.
        epochs: At most so many.
        hidden: Units of the hidden layer.
        learning_rate: Of Adam.
        patience: Training ends after so many epochs without a better one.
        device: Where to train.

    Raises:
        ConfigurationError: If the device does not exist.
        DataError: If there is nothing to train on.
        TrainingError: If a loss is no number.
    """
    data = to_data(graph, x=x, y=labels)
    model = MeanGCN(
        x.shape[1], int(labels.max()) + 1, hidden=hidden, generator=generator
    )
    settings = Settings(epochs=epochs, learning_rate=learning_rate, patience=patience)
    _, record = fit(
        model, data, split=split, generator=generator, settings=settings, device=device
    )
    kinds = {"F1": micro_f1, "macro F1": macro_f1, "AUC": area_under_roc}
    scores = {
        name: evaluate(model, data, split.test, score=score, device=device)
        for name, score in kinds.items()
    }
    return Learned(model, data, record, scores)
