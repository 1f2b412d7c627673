"""Graphs as worlds: every node is an example, whose loss reads the whole graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from auditdp.mechanism.protocol import Array
from gnn.ensembles.worlds import World
from gnn.validation import DataError


def node_loss(
    call: object, x: Tensor, arcs: Tensor, node: Tensor, target: Tensor
) -> Tensor:
    """Return the loss of a node of a graph.

    Args:
        call: The model of nodes, of features and arcs.
        x: Features of all nodes, shape (places, features).
        arcs: (source, target), shape (2, arcs).
        node: The node, shape (1,).
        target: Its class, shape (1,).
    """
    assert callable(call)  # the model with its weights
    return functional.cross_entropy(call(x, arcs).index_select(0, node), target)


@dataclass(frozen=True, eq=False)
class GraphWorlds:
    """Makes the world of a graph on public ids: which nodes are there, and their edges, are private.

    An input is the symmetric matrix of zeros and ones of ``auditdp.Nodes(nodes, loops=True)``: a one on the diagonal where
    the node is there. Arcs that are missing to a complete graph are loops at one more place, which no node's messages reach.

    Args:
        x: Features that the node of each id has, shape (nodes, features).
        targets: Its class, int64, shape (nodes,).

    Raises:
        DataError: If these differ in length.
    """

    x: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.targets.shape != (len(self.x),):
            raise DataError(
                f"GraphWorlds: expected a class for each row of features, got {tuple(self.targets.shape)} and "
                f"{tuple(self.x.shape)}"
            )

    def __call__(self, data: Array) -> World:
        """Return the world of a graph.

        Raises:
            DataError: If the graph has other ids.
        """
        matrix, nodes = np.asarray(data), len(self.x)
        if matrix.shape != (nodes, nodes):
            raise DataError(
                f"GraphWorlds: expected a matrix of {nodes} × {nodes} ids, got shape {matrix.shape}"
            )
        found = np.stack((matrix - np.diag(np.diagonal(matrix))).nonzero())
        arcs = torch.full((2, nodes * (nodes - 1)), nodes)
        arcs[:, : found.shape[1]] = torch.from_numpy(found)
        x = torch.cat([self.x, self.x.new_zeros(1, self.x.shape[1])])
        ids = torch.arange(nodes)[:, None]
        inputs = (
            x.expand(nodes, *x.shape),
            arcs.expand(nodes, *arcs.shape),
            ids,
            self.targets[:, None],
        )
        return World(
            inputs,
            present=torch.from_numpy(np.diagonal(matrix) == 1),
            name=f"graph of {nodes} ids",
        )
