"""Independent examples, of which DP-SGD takes one gradient each: rows, mixed rows, and the surroundings of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn.sparse import is_sparse, rows
from gnn.validation import DataError, check_count


class Examples(Protocol):
    """Inputs of a model, one example at a time under ``torch.func.vmap``."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def batch(self, index: Tensor, device: torch.device) -> tuple[Tensor, ...]:
        """Return the inputs of some examples on a device, each with the examples as first axis."""

    def logits(self, call: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Return the logits of one example, shape (classes,), given its inputs and how to call the model."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Examples that are rows of features: for an MLP, on features or on propagated ones.

    Args:
        x: Dense or sparse, shape (examples, features).
    """

    x: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, index: Tensor, device: torch.device) -> tuple[Tensor]:
        """Return the rows, dense, shape (count, features)."""
        return (_dense(rows(self.x, index.to(self.x.device))).to(device),)

    def logits(self, call: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Return the model's logits of a row."""
        return call(inputs[0].unsqueeze(0)).squeeze(0)


@dataclass(frozen=True, eq=False)
class PageRankRows:
    """Each example mixes a model's outputs on a few rows: Σ_k w_k f(x_k), for the ``mlp`` of ``DecoupledPageRank``.

    Source: Zhang et al. (2024), arXiv:2210.04442, Section 3.2.

    Args:
        x: Features of all nodes, dense or sparse, shape (nodes, features).
        neighbours: Ids of the nodes that are mixed, int64, shape (examples, count).
        weights: Their weights, 0 for a place that is not used, shape (examples, count).

    Raises:
        DataError: If the shapes of neighbours and weights differ.
    """

    x: Tensor
    neighbours: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        if self.neighbours.ndim != 2 or self.neighbours.shape != self.weights.shape:
            raise DataError(
                "PageRankRows: expected neighbours and weights of one shape (examples, count), got "
                f"{tuple(self.neighbours.shape)} and {tuple(self.weights.shape)}"
            )

    def __len__(self) -> int:
        return len(self.neighbours)

    def batch(self, index: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return features, shape (batch, count, features), and weights, shape (batch, count)."""
        at = index.to(self.x.device)
        ids = self.neighbours[at]
        x = _dense(rows(self.x, ids.flatten())).reshape(*ids.shape, -1)
        return x.to(device), self.weights[at].to(device)

    def logits(self, call: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Return the weighted sum of the model's outputs."""
        x, weights = inputs
        return (weights.unsqueeze(-1) * call(x)).sum(dim=-2)


@dataclass(frozen=True, eq=False)
class EgoGraphs:
    """Each example is a node with its surroundings, of which a model of nodes predicts the node; made by ``ego_graphs``.

    Args:
        x: Features of all nodes, dense or sparse, shape (nodes, features).
        members: Ids of the nodes around each example, itself the first, int64, shape (examples, places); the number of nodes
            fills what is left, of which each example has at least one place.
        arcs: (source, target) among the places, int64, shape (examples, 2, most arcs); loops at the last place fill.
    """

    x: Tensor
    members: Tensor
    arcs: Tensor

    def __len__(self) -> int:
        return len(self.members)

    def batch(self, index: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return features, zeros at places that are not used, shape (batch, places, features), and arcs."""
        at = index.to(self.x.device)
        ids = self.members[at]
        used = ids < len(self.x)
        x = _dense(rows(self.x, torch.where(used, ids, 0).flatten())).reshape(
            *ids.shape, -1
        )
        return (x * used.unsqueeze(-1)).to(device), self.arcs[at].to(device)

    def logits(self, call: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Return the model's logits of the node itself."""
        x, arcs = inputs
        return call(x, arcs).index_select(0, arcs.new_zeros(1)).squeeze(0)


def ego_graphs(data: Data, nodes: Tensor, *, hops: int) -> EgoGraphs:
    """Return each node with everything from which messages reach it in ``hops`` steps.

    The arcs are those into nodes less than ``hops`` steps away. For GraphSAGE and GAT of ``hops`` layers the logits of a
    node are those on the whole graph; GCN needs a step more, since its weights depend on the degrees at both ends.

    Note:
        A node is in many such examples: the guarantee of a node is that of ``auditdp.accountants.dp_sgd_node_level``,
        on a graph of bounded out-degree, and not that of an example.

    Args:
        data: One graph with features; arcs may have one direction only.
        nodes: Ids, int64.
        hops: Steps, >= 1.
    """
    check_count("ego_graphs", "hops", hops)
    source, target = data.edge_index.cpu().numpy()
    total = int(data.num_nodes or 0)
    order = np.argsort(target, kind="stable")
    source = source[order]
    ends = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=total))])
    members, arcs = [], []
    for node in nodes.tolist():
        places, frontier, found = {node: 0}, [node], []
        for _ in range(hops):
            reached = []
            for each in frontier:
                for other in source[ends[each] : ends[each + 1]].tolist():
                    if other not in places:
                        places[other] = len(places)
                        reached.append(other)
                    found.append((places[other], places[each]))
            frontier = reached
        members.append(list(places))
        arcs.append(found)
    width = max(map(len, members), default=0) + 1
    ids = np.full((len(members), width), total)
    ends_of = np.full((len(arcs), max(map(len, arcs), default=0), 2), width - 1)
    for row, (around, among) in enumerate(zip(members, arcs, strict=True)):
        ids[row, : len(around)] = around
        if among:
            ends_of[row, : len(among)] = among
    at = data.x.device
    return EgoGraphs(
        data.x,
        torch.from_numpy(ids).to(at),
        torch.from_numpy(ends_of).transpose(1, 2).contiguous().to(at),
    )


def _dense(x: Tensor) -> Tensor:
    return x.to_dense() if is_sparse(x) else x
