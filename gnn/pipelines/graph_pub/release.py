"""The published graph: GraphPub with its ablations and its repair, and the mechanisms that the source compares it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import Array
from gnn.validation import check_choice, check_positive
from mechanisms.cells import Rng
from mechanisms.edges import DPRR, EdgeRand, GraphPub, GraphPubResponse, LapGraph
from mechanisms.edges.graph_pub import score_matrix
from mechanisms.graphs import Graph

METHODS = ("RR", "DPRR", "LAPGRAPH", "GraphPub")
SELECTIONS = ("largest", "uniformly")


@dataclass(frozen=True)
class Release:
    """The way in which a graph is published.

    Args:
        method: "GraphPub"; "RR", each pair flipped once for both ends; "DPRR", a list of each node, with the published
            split of the budget; or "LAPGRAPH". Or "none": the private graph.
        epsilon: ε in nats.
        form: "published", or "repaired" for a mechanism that keeps ε for an edge: ``GraphPubResponse`` with an L that
            knows no edge, or DPRR with ε/2 for each of the two lists that an edge is in. RR and LAPGRAPH need no repair.
        selection: Of GraphPub: neighbours with the "largest" L, or "uniformly", the ablation with a random matrix.
        degree_share: Of GraphPub: the share of ε for noisy degrees (Section 3.6); 0 for true degrees.
        arcs: Of GraphPub: "lists", each node receives from those that it publishes, the rows of Ã; or "union", both ends
            of every published pair.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    method: Literal["RR", "DPRR", "LAPGRAPH", "GraphPub", "none"] = "GraphPub"
    epsilon: float = 1.0
    form: Literal["published", "repaired"] = "published"
    selection: Literal["largest", "uniformly"] = "largest"
    degree_share: float = 0.0
    arcs: Literal["lists", "union"] = "lists"

    def __post_init__(self) -> None:
        owner = "Release"
        check_choice(owner, "method", self.method, (*METHODS, "none"))
        check_choice(owner, "form", self.form, ("published", "repaired"))
        check_choice(owner, "selection", self.selection, SELECTIONS)
        check_choice(owner, "arcs", self.arcs, ("lists", "union"))
        check_positive(owner, "epsilon", self.epsilon)
        if not 0 <= self.degree_share < 1:
            raise ConfigurationError(
                f"{owner}: expected degree_share in [0, 1), got {self.degree_share!r}"
            )


def published_arcs(
    graph: Graph, release: Release, *, rng: Rng, embedding: Tensor | None = None
) -> Tensor:
    """Return the arcs of the published graph as (sender, receiver), int64, shape (2, arcs).

    Args:
        graph: The private graph.
        release: How it is published.
        rng: The randomness of the mechanism.
        embedding: Z of GraphPub, shape (nodes, k). For the repaired form it must not depend on private edges.

    Raises:
        ConfigurationError: If GraphPub is given no embedding.
        MechanismError: If the mechanism refuses the graph or the budget.
    """
    if release.method == "none":
        return _tensor(graph.arcs)
    if release.method == "RR":
        return _tensor(
            EdgeRand(release.epsilon, graph.nodes).whole_graph(graph, rng=rng).arcs
        )
    if release.method == "LAPGRAPH":
        return _tensor(
            LapGraph(release.epsilon, graph.nodes).whole_graph(graph, rng=rng).arcs
        )
    if release.method == "DPRR":
        if release.form == "repaired":
            lists = DPRR.allocated_within(release.epsilon / 2, graph.nodes)
        else:
            lists = DPRR.allocated(release.epsilon, graph.nodes)
        return _tensor(lists.whole_graph(graph, rng=rng).arcs[::-1])
    if embedding is None:
        raise ConfigurationError(
            "published_arcs: GraphPub selects by an embedding Z; give one, such as of embedding(...)"
        )
    z = embedding.double().numpy()
    return (
        _response(graph, release, z, rng)
        if release.form == "repaired"
        else _selection(graph, release, z, rng)
    )


def _selection(graph: Graph, release: Release, z: Array, rng: Rng) -> Tensor:
    share, nodes = release.degree_share, graph.nodes
    mechanism = GraphPub(
        release.epsilon * (1 - share),
        nodes,
        score_matrix(z),
        choice="uniformly" if release.selection == "uniformly" else "largest",
        degree_epsilon=release.epsilon * share if share else None,
    )
    lists = mechanism(graph.to_matrix(), 1, rng=rng)[0].reshape(nodes, nodes - 1)
    owner, place = np.nonzero(lists)
    neighbour = place + (place >= owner)
    if release.arcs == "union":
        return _tensor(Graph.of(nodes, np.stack([owner, neighbour])).arcs)
    return _tensor(np.stack([neighbour, owner]))


def _response(graph: Graph, release: Release, z: Array, rng: Rng) -> Tensor:
    nodes, degree = graph.nodes, 2 * graph.edges.shape[1] / graph.nodes
    scores = publishing_weights(z, release.epsilon, degree)
    if release.selection == "uniformly":
        scores = np.ones((nodes, nodes))
    mechanism = GraphPubResponse(release.epsilon, nodes, scores, degree)
    bits = mechanism(graph.to_matrix(), 1, rng=rng)[0]
    upper = np.stack(np.triu_indices(nodes, 1))
    return _tensor(Graph(nodes, upper[:, bits == 1]).arcs)


def publishing_weights(z: Array, epsilon: float, degree: float) -> Array:
    """Return weights of pairs for ``GraphPubResponse``: the odds L/(1−L) = exp(z_i·z_j), cut where they would lose pairs.

    A pair without an edge is published with probability at most 1/(E+1). Weights beyond that are cut by the mechanism, and
    fewer pairs than m nodes' worth would be published; here the others are raised in their place, all by one factor, until
    the expected number of published others is that of GraphPub. All of it is a function of Z, ε and the public degree m.

    Args:
        z: Z, shape (nodes, k).
        epsilon: ε in nats.
        degree: m.

    Returns:
        Positive and symmetric, shape (nodes, nodes).
    """
    nodes = len(z)
    logs = z @ z.T
    upper = logs[np.triu_indices(nodes, 1)]
    growth = np.exp(epsilon)
    share, most = degree / (growth * degree + nodes - degree), 1 / (growth + 1)
    low, high = np.log(most) - upper.max() - 1, np.log(most) - upper.min()
    for _ in range(60):
        middle = (low + high) / 2
        mean = np.exp(np.minimum(upper + middle, np.log(most))).mean()
        low, high = (middle, high) if mean < share else (low, middle)
    weights = np.exp(
        np.maximum(np.minimum(logs + low, np.log(most)), np.log(most) - LEAST)
    )
    return np.asarray((weights + weights.T) / 2)


LEAST = 60.0
"""Weights are at least e^-60 of the largest, so that none is 0."""


def _tensor(arcs: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(arcs).astype(np.int64))
