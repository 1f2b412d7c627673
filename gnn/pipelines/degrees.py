"""Graphs of bounded out-degree, by dropping arcs at random."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gnn.validation import check_count


def bounded_out_degree(
    edge_index: Tensor, nodes: int, most: int, *, generator: torch.Generator
) -> Tensor:
    """Return arcs of which each node sends at most ``most``: a uniformly random subset of those of a node with more.

    Note:
        Accounting for a graph of bounded degrees assumes that another node changes nothing in the arcs of the rest.
        Here, as in the samplers of GAP and SAGE-DP, a new neighbour can displace one other arc of a node that had
        ``most`` already. That is outside what ``auditdp.accountants.dp_sgd_node_level`` certifies.

    Args:
        edge_index: Arcs (source, target), int64, shape (2, arcs).
        nodes: Number of nodes.
        most: D, >= 1.
        generator: The randomness, on the CPU.

    Returns:
        Arcs in the order of their sources, shape (2, kept).
    """
    check_count("bounded_out_degree", "most", most)
    source, target = edge_index.cpu().numpy()
    priority = torch.rand(len(source), dtype=torch.float64, generator=generator).numpy()
    order = np.lexsort((priority, source))
    ends = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))])
    number = np.arange(len(source)) - ends[source[order]]
    kept = order[number < most]
    return torch.from_numpy(np.stack([source[kept], target[kept]])).to(
        edge_index.device
    )
