"""Conversion between the mechanisms' graphs, each edge once, and torch-geometric."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from gnn.sparse import rows
from gnn.validation import DataError
from mechanisms.graphs import DirectedGraph, Graph


def to_data(
    graph: Graph | DirectedGraph, *, x: Tensor | None = None, y: Tensor | None = None
) -> Data:
    """Return a graph as data.

    Args:
        graph: An undirected graph, whose edges are listed in both directions, or the lists that users release.
        x: Features, shape (nodes, features).
        y: Labels: one for each node, shape (nodes,), or one for the graph, shape (1,).
    """
    data = Data(edge_index=torch.from_numpy(graph.arcs.copy()), num_nodes=graph.nodes)
    if x is not None:
        data.x = x
    if y is not None:
        data.y = y
    return data


def to_graph(data: Data) -> Graph:
    """Return the undirected graph of ``data``: the arcs count in either direction, self-loops and weights do not."""
    return Graph.of(int(data.num_nodes or 0), data.edge_index.cpu().numpy())


def restricted(data: Data, mask: Tensor) -> Data:
    """Return the subgraph on some nodes, with classes renumbered from 0 in their order; nodes keep theirs.

    Args:
        data: With ``edge_index`` and ``y``; features are kept, if there are any.
        mask: Bool, shape (nodes,).

    Raises:
        DataError: If no node is left.
    """
    if not mask.any():
        raise DataError("restricted: the mask has no node; expected at least one True")
    edge_index, _ = subgraph(
        mask, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
    )
    kept = data.y[mask]
    classes, renumbered = torch.unique(kept[kept >= 0], return_inverse=True)
    y = torch.full_like(kept, -1)
    y[kept >= 0] = renumbered
    found = Data(edge_index=edge_index, y=y, num_nodes=int(mask.sum()))
    found.num_classes = len(classes)
    if data.x is not None:
        found.x = rows(data.x, mask.nonzero().squeeze(1))
    return found
