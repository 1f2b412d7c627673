"""A GIN that is trained and tested on graphs as the server received them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn.datasets.conversion import to_data, to_graph
from gnn.datasets.splits import Split
from gnn.models import GIN
from gnn.models.blocks import packed
from gnn.pipelines.dprr.release import Release
from gnn.pipelines.parts import numpy_generator
from gnn.training import (
    Record,
    Settings,
    accuracy,
    area_under_roc,
    fit,
    largest_share,
    predict,
)
from gnn.validation import DataError, check_choice
from mechanisms.graphs import DirectedGraph

SUMS = ("own list", "lists of others")
FEATURES = ("constant", "size")
DENSE_FROM = 20
"""Large graphs with more than one arc among this number of pairs are multiplied as
matrices (``gnn.models.blocks``)."""
LARGE = 100
"""Mean nodes of a large graph: below, a matrix product for each graph costs more than its arcs."""


@dataclass(frozen=True)
class GINParameters:
    """The model and its training; by default as the published code.

    Source: Hidano & Murakami (2022), arXiv:2202.10209, Section V-A, which chooses layers, units, learning rate and dropout
    by the validation graphs; and its code, for what the paper leaves open.

    Args:
        layers: As of ``GIN``, the input among them.
        hidden: Units.
        dropout: Of the scores.
        readout: "mean" or "sum".
        sums: Over whom a node sums its messages: "own list", those that the node's own list names, as the adjacency matrix
            of the paper and its code do, or "lists of others", those whose lists name the node.
        features: Of every node: "constant", 1 as in the paper, or "size", the logarithm of the number of users, which the
            server knows under every mechanism.
        epochs: The most epochs.
        patience: Training ends after so many without a lower validation loss; None for never.
        learning_rate: Of Adam, halved every ``halving`` epochs.
        halving: As above; None for never.
        batch: Graphs in a batch.
    """

    layers: int = 5
    hidden: int = 64
    dropout: float = 0.5
    readout: str = "mean"
    sums: str = "own list"
    features: str = "constant"
    epochs: int = 500
    patience: int | None = 100
    learning_rate: float = 0.01
    halving: int | None = 50
    batch: int = 64

    def __post_init__(self) -> None:
        check_choice("GINParameters", "sums", self.sums, SUMS)
        check_choice("GINParameters", "features", self.features, FEATURES)
        _ = self.settings

    @property
    def settings(self) -> Settings:
        """The settings of the trainer."""
        return Settings(
            epochs=self.epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            halving=self.halving,
            batch=self.batch,
        )


@dataclass(frozen=True)
class DPRRRecord:
    """The record of a run.

    Attributes:
        training: The record of the training.
        accuracy: Of the test graphs.
        area: Under the ROC curve of the test graphs; NaN where they are all of one class.
        largest_share: Share of the predictions on test graphs that one class has; 1 of a constant predictor.
        spent: ε of a private user's list.
        arcs: Mean number of ones in the lists of a graph.
        degree_error: Mean of |d̃ − d| over the users of whom the server has a list.
        release_seconds: Processor time of all users together.
    """

    training: Record
    accuracy: float
    area: float
    largest_share: float
    spent: float
    arcs: float
    degree_error: float
    release_seconds: float


def fit_gin(
    graphs: Sequence[Data],
    release: Release,
    parameters: GINParameters | None = None,
    *,
    split: Split,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[GIN, DPRRRecord]:
    """Let all users of all graphs release their lists, train a GIN on the training graphs and test it on the test graphs.

    The result is a function of the arguments and of the state of ``generator``, on one device and
    one number of threads; initial weights and batches do not depend on what is released.

    Source: Hidano & Murakami (2022), arXiv:2202.10209, Sections IV-A and V-A.

    Args:
        graphs: Undirected, each with ``edge_index`` and one label ``y``; features are not read.
        release: What users do.
        parameters: ``GINParameters()`` by default.
        split: Of the graphs.
        generator: All randomness, that of the users too; on the CPU.
        device: Where to train.

    Returns:
        The model of the epoch with the lowest validation loss, and the record.

    Raises:
        ConfigurationError: If the device does not exist, or there is no validation part.
        DataError: If there are no graphs, labels or test graphs, or the model cannot be trained on them.
        TrainingError: If a loss is no number.
    """
    parameters = parameters or GINParameters()
    _check(graphs, split)
    rng = numpy_generator(generator)
    started = time.process_time()
    true = [to_graph(graph) for graph in graphs]
    lists = [release.lists(graph, rng=rng) for graph in true]
    seconds = time.process_time() - started
    errors = np.concatenate(
        [
            abs(found.out_degrees - graph.degrees)
            for graph, found in zip(true, lists, strict=True)
            if found.nodes == graph.nodes
        ]
        or [np.zeros(1)]
    )
    labels = [graph.y for graph in graphs]
    received = as_received(
        lists, labels, sums=parameters.sums, features=parameters.features
    )
    classes = int(max(int(graph.y.max()) for graph in graphs)) + 1
    model = GIN(
        1,
        classes,
        hidden=parameters.hidden,
        layers=parameters.layers,
        dropout=parameters.dropout,
        readout=parameters.readout,
        generator=generator,
    )
    _, training = fit(
        model,
        received,
        split=split,
        generator=generator,
        settings=parameters.settings,
        device=device,
    )
    tested = [received[i] for i in split.test.tolist()]
    logits, targets = (
        predict(model, tested, device=device),
        torch.cat([graph.y for graph in tested]),
    )
    return model, DPRRRecord(
        training,
        accuracy(logits, targets),
        area_under_roc(logits, targets),
        largest_share(logits, targets),
        release.spent,
        arcs=float(np.mean([found.arcs.shape[1] for found in lists])),
        degree_error=float(errors.sum() / max(len(errors), 1)),
        release_seconds=seconds,
    )


def as_received(
    lists: Sequence[DirectedGraph],
    labels: Sequence[Tensor],
    *,
    sums: str = "own list",
    features: str = "constant",
) -> list[Data]:
    """Return lists as data for ``GIN``: features, and arcs in the direction in which messages go.

    Args:
        lists: Of each graph.
        labels: Of each graph, shape (1,).
        sums: As of ``GINParameters``.
        features: As of ``GINParameters``.

    Returns:
        Data with ``x``, ``y`` and ``edge_index``, or ``bits`` and no arcs where lists are long.
    """
    arcs, pairs = (
        sum(count)
        for count in zip(*((g.arcs.shape[1], g.nodes**2) for g in lists), strict=True)
    )
    dense = arcs * DENSE_FROM > pairs and pairs > len(lists) * LARGE**2
    found = []
    for graph, y in zip(lists, labels, strict=True):
        value = 1.0 if features == "constant" else math.log(max(graph.nodes, 1))
        data = to_data(graph, x=torch.full((graph.nodes, 1), value), y=y)
        if (
            sums == "own list"
        ):  # a message goes from the one who is named to the owner of the list
            data.edge_index = data.edge_index.flip(0)
        if dense:
            data.bits = packed(data.edge_index, graph.nodes)
            data.edge_index = data.edge_index[:, :0]
        found.append(data)
    return found


def _check(graphs: Sequence[Data], split: Split) -> None:
    if not graphs:
        raise DataError("fit_gin: expected graphs, got none")
    if not len(split.test):
        raise DataError(
            "fit_gin: the split has no test graph; give one with a test part"
        )
    for number, graph in enumerate(graphs):
        if graph.y is None or graph.y.shape != (1,):
            raise DataError(
                f"fit_gin: graph {number} has no single label y of shape (1,); leave it out"
            )
