"""Predictions of a model: the one place that calls models on data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from gnn.models.blocks import Blocks
from gnn.randomness import device_of
from gnn.training.metrics import accuracy
from gnn.training.record import Score
from gnn.validation import DataError

GRAPHS_AT_ONCE = 64


def logits_of(model: nn.Module, data: Data) -> Tensor:
    """Return the logits of the nodes of a graph, or of the graphs of a batch; both on the model's device.

    Graphs with ``bits``, as ``gnn.models.blocks.packed`` makes them, are given to the model as matrices.
    """
    if isinstance(data, Batch):
        edges = (
            Blocks(data.bits, data.ptr.diff().tolist())
            if "bits" in data
            else data.edge_index
        )
        found: Tensor = model(data.x, edges, data.batch, data.num_graphs)
    else:
        found = model(data.x, data.edge_index, data.edge_weight)
    return found


def batches(graphs: Sequence[Data], size: int, device: torch.device) -> Iterator[Data]:
    """Yield the graphs in order, ``size`` at a time, on the device."""
    for batch in DataLoader(list(graphs), batch_size=size):
        yield batch.to(device)


@torch.no_grad()
def predict(
    model: nn.Module, data: Data | Sequence[Data], *, device: str | torch.device = "cpu"
) -> Tensor:
    """Return the logits of all nodes of a graph, or of all graphs, on the CPU, shape (items, classes), without dropout.

    Args:
        model: It is moved to the device.
        data: One graph, or several.
        device: Where to compute.
    """
    place = device_of(device)
    was_training = model.training
    model.to(place).eval()
    if isinstance(data, Data):
        found = logits_of(
            model, data.to(place, non_blocking=True) if place.type != "cpu" else data
        ).cpu()
    else:
        found = torch.cat(
            [
                logits_of(model, batch).cpu()
                for batch in batches(data, GRAPHS_AT_ONCE, place)
            ]
        )
    model.train(was_training)
    return found


def evaluate(
    model: nn.Module,
    data: Data | Sequence[Data],
    items: Tensor,
    *,
    score: Score = accuracy,
    device: str | torch.device = "cpu",
) -> float:
    """Return the score of a model on some nodes of a graph, or on some of several graphs.

    Args:
        model: As of ``predict``.
        data: One graph with ``y``, or several.
        items: Ids of nodes or graphs that have labels, int64.
        score: Of logits and targets.
        device: Where to compute.

    Raises:
        DataError: If there is no item.
    """
    if not len(items):
        raise DataError(
            "evaluate: expected at least one node or graph to score, got none"
        )
    if isinstance(data, Data):
        return score(
            predict(model, data, device=device)[items.cpu()], data.y.cpu()[items.cpu()]
        )
    chosen = [data[i] for i in items.tolist()]
    return score(
        predict(model, chosen, device=device), torch.cat([graph.y for graph in chosen])
    )
