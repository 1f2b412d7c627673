"""The utility of a published graph: GCN, GAT and GraphSAGE trained and tested on it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gnn.datasets.splits import Split
from gnn.models import GAT, GCN, GraphSAGE
from gnn.training import Record, Settings, evaluate, fit, higher_score
from gnn.validation import check_choice

MODELS = ("GCN", "GAT", "GraphSAGE")
PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Learned:
    """A network that was trained on a published graph.

    Attributes:
        model: With the weights of the epoch that is kept.
        data: The published graph with features and labels.
        record: The training.
        test_accuracy: Share of test nodes that are classified right on the published graph, in [0, 1].
    """

    model: nn.Module
    data: Data
    record: Record
    test_accuracy: float


def learn(
    data: Data,
    arcs: Tensor,
    model: str,
    *,
    split: Split,
    generator: torch.Generator,
    epochs: int = 200,
    device: str | torch.device = "cpu",
) -> Learned:
    """Train a network on a published graph, keep the epoch of the highest validation accuracy, and test it.

    Source: Xu et al. (2024), arXiv:2403.00030v2, Section 4.1: at most 200 epochs, stopped early, with the parameters of
    each network's own paper. Training ends after 50 epochs without a better one.

    Args:
        data: Features and labels; its edges are not read.
        arcs: The published arcs (sender, receiver), shape (2, arcs).
        model: One of ``MODELS``.
        split: The nodes.
        generator: The randomness, on the CPU.
        epochs: At most so many.
        device: Where to train.

    Raises:
        ConfigurationError: If there is no such network or device.
        DataError: If there is nothing to train on.
        TrainingError: If a loss is no number.
    """
    check_choice("learn", "model", model, MODELS)
    published = Data(x=data.x, y=data.y, edge_index=arcs, num_nodes=data.num_nodes)
    width, classes = int(data.x.shape[1]), int(data.y.max()) + 1
    network: nn.Module
    settings = Settings(
        epochs=epochs, weight_decay=5e-4, decayed="first", patience=PATIENCE
    )
    if model == "GCN":
        network = GCN(
            width, classes, dropout=0.5, input_dropout=0.5, generator=generator
        )
    elif model == "GAT":
        network = GAT(
            width,
            classes,
            dropout=0.6,
            input_dropout=0.6,
            attention_dropout=0.6,
            generator=generator,
        )
        settings = Settings(
            epochs=epochs, learning_rate=0.005, weight_decay=5e-4, patience=PATIENCE
        )
    else:
        network = GraphSAGE(width, classes, dropout=0.5, generator=generator)
    network, record = fit(
        network,
        published,
        split=split,
        generator=generator,
        settings=settings,
        better=higher_score,
        device=device,
    )
    found = evaluate(network, published, split.test, device=device)
    return Learned(network, published, record, found)
