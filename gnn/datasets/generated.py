"""Random graphs with labels, for what no file has: communities, preferential attachment, and threads of a forum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError
from gnn.datasets.conversion import to_data
from gnn.validation import check_count, check_number
from mechanisms import graphs
from mechanisms.cells import Rng, bernoulli_cells, pair_count, pairs_at
from mechanisms.graphs import Graph


def stochastic_block_model(
    sizes: Sequence[int],
    *,
    inside: float,
    across: float,
    features: int,
    signal: float,
    rng: Rng,
) -> Data:
    """Return a graph of communities, with shuffled nodes and features that depend on them.

    Two nodes are an edge independently with a probability that depends on whether their communities are the same; in
    time O(nodes + edges). The features of a node are N(signal · u_c, I), u_c a random unit vector of its community c.

    Args:
        sizes: Nodes of each community, which is their label.
        inside: Probability of an edge inside a community, in [0, 1].
        across: Probability of an edge between two, in [0, 1].
        features: Number of features.
        signal: Distance of the mean of the features from 0, in standard deviations, >= 0.
        rng: The randomness.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """
    owner = "stochastic_block_model"
    for size in sizes:
        check_count(owner, "sizes", size)
    check_count(owner, "communities", len(sizes))
    check_count(owner, "features", features)
    check_number(owner, "signal", signal)
    for name, value in (("inside", inside), ("across", across)):
        if not 0 <= value <= 1:
            raise ConfigurationError(
                f"{owner}: expected {name}, a probability in [0, 1], got {value!r}"
            )
    nodes = sum(sizes)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    # A pair is drawn with the larger probability, and kept with what is left of the smaller.
    pairs = pairs_at(
        bernoulli_cells(pair_count(nodes), max(inside, across), rng), nodes
    )
    wanted = np.where(labels[pairs[0]] == labels[pairs[1]], inside, across)
    kept = rng.random(pairs.shape[1]) * max(inside, across) < wanted
    means = rng.normal(size=(len(sizes), features))
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    x = means[labels] + rng.normal(size=(nodes, features))
    data = to_data(
        Graph(nodes, pairs[:, kept]),
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(labels),
    )
    data.num_classes = len(sizes)
    return data


def barabasi_albert(count: int, nodes: int, m: int, *, rng: Rng) -> list[Data]:
    """Return preferential attachment graphs, each new node with ``m`` edges, with labels 0 and 1 by turns.

    The label tells nothing of the graph: these are for run times. Hidano & Murakami (2022), arXiv:2202.10209, Figure 9.

    Args:
        count: Number of graphs.
        nodes: Nodes of each.
        m: Edges of a new node, < nodes.
        rng: The randomness.
    """
    check_count("barabasi_albert", "count", count)
    return [
        to_data(graphs.barabasi_albert(nodes, m, rng), y=torch.tensor([i % 2]))
        for i in range(count)
    ]


def threads(
    count: int, *, mean_nodes: float = 429.6, cycles: float = 0.16, rng: Rng
) -> list[Data]:
    """Return graphs like REDDIT-BINARY's: users are nodes, replies are edges, and the kind of thread is the label.

    Label 0, questions and answers: most users reply to one of a few experts. Label 1, discussion: most reply to the one
    who opened it, others to anybody before them. In both a share of further edges closes cycles; the average degree is
    2(1 + cycles), 2.32 as in the data set (Hidano & Murakami 2022, arXiv:2202.10209, Table III). Sizes are log-normal.

    Args:
        count: Number of graphs; labels 0 and 1 by turns.
        mean_nodes: Mean number of nodes, > 6.
        cycles: Further edges per node, in [0, 1).
        rng: The randomness.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """
    check_count("threads", "count", count)
    check_number("threads", "mean_nodes", mean_nodes, least=6)
    check_number("threads", "cycles", cycles, below=1)
    spread = 0.9
    found = []
    for i in range(count):
        nodes = max(6, round(rng.lognormal(np.log(mean_nodes) - spread**2 / 2, spread)))
        centres = int(rng.integers(2, 6)) if i % 2 == 0 else 1
        to_centre = rng.random(nodes) < (0.9 if i % 2 == 0 else 0.6)
        order = np.arange(nodes)
        earlier = (rng.random(nodes) * np.maximum(order, 1)).astype(np.int64)
        parent = np.where(to_centre, rng.integers(centres, size=nodes), earlier)
        parent[:centres] = np.maximum(order[:centres] - 1, 0)
        extra = rng.integers(nodes, size=(2, round(cycles * nodes)))
        pairs = np.concatenate(
            [
                np.stack([order[1:], np.minimum(parent, np.maximum(order - 1, 0))[1:]]),
                extra,
            ],
            axis=1,
        )
        found.append(to_data(Graph.of(nodes, pairs), y=torch.tensor([i % 2])))
    return found
