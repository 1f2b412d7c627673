"""Checks before a training begins; each error has the remedy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn.datasets.splits import Split
from gnn.validation import DataError


def check_data(data: Data | Sequence[Data], split: Split) -> None:
    """Raise unless a model can be trained on the data with this split.

    Isolated nodes are fine, and so are graphs without nodes among several.

    Raises:
        DataError: With what is wrong and what to do.
    """
    graphs = [data] if isinstance(data, Data) else list(data)
    if not graphs or not any(graph.num_nodes for graph in graphs):
        raise DataError("no nodes to train on: the data is empty")
    items = int(data.num_nodes or 0) if isinstance(data, Data) else len(graphs)
    ids = torch.cat([split.training, split.validation, split.test])
    if int(ids.min()) < 0 or int(ids.max()) >= items:
        raise DataError(
            f"the split has ids from {int(ids.min())} to {int(ids.max())}, the data only 0 to {items - 1}"
        )
    for number, graph in enumerate(graphs):
        _check_graph(graph, "the data" if isinstance(data, Data) else f"graph {number}")
    _check_labels(labels_of(data), split)


def labels_of(data: Data | Sequence[Data]) -> Tensor:
    """Return the labels of the nodes, or of the graphs, on the CPU."""
    return (
        data.y.cpu()
        if isinstance(data, Data)
        else torch.cat([graph.y.cpu() for graph in data])
    )


def untrained_classes(data: Data | Sequence[Data], split: Split) -> tuple[int, ...]:
    """Return the classes that some items have and no training item; none for labels of several classes each."""
    labels = labels_of(data)
    if labels.ndim > 1:
        return ()
    missing = set(labels[labels >= 0].tolist()) - set(labels[split.training].tolist())
    return tuple(sorted(missing))


def check_logits(logits: Tensor, targets: Tensor, items: int) -> None:
    """Raise unless the logits have a row for each item and a column for each class.

    Raises:
        DataError: With the numbers.
    """
    if logits.ndim != 2 or len(logits) != items:
        raise DataError(
            f"the model returned logits of shape {tuple(logits.shape)}, expected ({items}, classes)"
        )
    if targets.ndim == 1 and int(targets.max()) >= logits.shape[1]:
        raise DataError(
            f"the labels go up to {int(targets.max())}, the model has {logits.shape[1]} classes; make it with "
            f"{int(targets.max()) + 1}"
        )
    if targets.ndim == 2 and targets.shape[1] != logits.shape[1]:
        raise DataError(
            f"the labels have {targets.shape[1]} columns, the model {logits.shape[1]} classes"
        )


def _check_graph(graph: Data, what: str) -> None:
    if graph.x is None:
        raise DataError(
            f"{what} has no features x; make some, as with gnn.datasets.features.constant"
        )
    if len(graph.x) != graph.num_nodes:
        raise DataError(
            f"{what} has {graph.num_nodes} nodes, and features x of {len(graph.x)}"
        )
    values = graph.x if graph.x.layout == torch.strided else graph.x.values()
    if not values.is_floating_point():
        raise DataError(
            f"{what} has features x of {values.dtype}; expected floating point, x.float()"
        )
    if not bool(torch.isfinite(values).all()):
        raise DataError(
            f"{what} has features x that are NaN or infinite; clean them, such as with torch.nan_to_num"
        )
    if graph.y is None:
        raise DataError(f"{what} has no labels y")
    edges = graph.edge_index
    if edges.numel() and (
        int(edges.min()) < 0 or int(edges.max()) >= (graph.num_nodes or 0)
    ):
        raise DataError(
            f"{what} has edges between nodes {int(edges.min())} to {int(edges.max())}, and {graph.num_nodes} nodes"
        )
    if bool((edges[0] == edges[1]).any()):
        raise DataError(
            f"{what} has self-loops, which models add themselves; drop them with torch_geometric.utils.remove_self_loops"
        )


def _check_labels(labels: Tensor, split: Split) -> None:
    if labels.ndim > 1:
        return
    for name, ids in (("training", split.training), ("validation", split.validation)):
        missing = int((labels[ids] < 0).sum())
        if missing:
            raise DataError(
                f"{missing} of {len(ids)} {name} items have no label (-1); leave them out of the split"
            )
    if len(torch.unique(labels[split.training])) < 2:
        raise DataError(
            f"all training items are of class {int(labels[split.training[0]])}: there is nothing to learn; use a larger "
            "training fraction, or a stratified split"
        )
