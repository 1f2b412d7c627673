"""A graph with private and public edges, as it is released: EdgeRR, and the mechanisms that the source compares it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from auditdp.errors import ConfigurationError
from gnn.validation import check_choice, check_count, check_positive
from mechanisms.cells import Rng
from mechanisms.edges import EdgeRand, LapGraph
from mechanisms.graphs import Graph
from mechanisms.hierarchy import EdgeRR, HierarchicalRelease, PrivHRG

METHODS = ("EdgeRR", "privHRG", "EdgeRand", "LapGraph", "clean", "public edges alone")
PROTECTED = ("private", "all")


@dataclass(frozen=True, eq=False)
class DividedGraph:
    """A graph, of whose edges some are private.

    Attributes:
        private: The graph of the private edges.
        public: The graph of the others, which everybody knows.
    """

    private: Graph
    public: Graph

    @property
    def whole(self) -> Graph:
        """All edges."""
        return united(self.private, self.public)


def divided(graph: Graph, share: float, *, rng: Rng) -> DividedGraph:
    """Return a graph of whose edges a random share ρ, rounded to whole edges, is private.

    Raises:
        ConfigurationError: If the share is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise ConfigurationError(
            f"divided: expected a share of private edges in (0, 1], got {share!r}"
        )
    count = graph.edges.shape[1]
    private = np.zeros(count, bool)
    private[rng.choice(count, round(share * count), replace=False)] = True
    return DividedGraph(
        Graph(graph.nodes, graph.edges[:, private]),
        Graph(graph.nodes, graph.edges[:, ~private]),
    )


def united(first: Graph, second: Graph) -> Graph:
    """Return the edges of both."""
    return Graph.of(first.nodes, np.concatenate([first.edges, second.edges], axis=1))


@dataclass(frozen=True)
class EdgeRelease:
    """The release of a graph.

    Args:
        method: "EdgeRR", "privHRG", "EdgeRand", "LapGraph", "clean" (every edge), or "public edges alone".
        epsilon: ε_e in nats, half of which is for dendrograms where there are any.
        form: Of EdgeRR: "published", with all that the source prints, or "repaired", as the audits certify it: the 2 and
            Equation 19 in the exponent, joint moves, V_pri declared to be all nodes, one draw for a pooled subtree.
        protected: Of the others: "private" edges are perturbed, and united with the public ones; or "all" edges, as
            where these mechanisms come from.
        steps: Of the chain, for each node.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    method: str = "EdgeRR"
    epsilon: float = 1.0
    form: Literal["published", "repaired"] = "published"
    protected: Literal["private", "all"] = "private"
    steps: int = 50

    def __post_init__(self) -> None:
        owner = "EdgeRelease"
        check_choice(owner, "method", self.method, METHODS)
        check_choice(owner, "form", self.form, ("published", "repaired"))
        check_choice(owner, "protected", self.protected, PROTECTED)
        check_count(owner, "steps", self.steps)
        if self.method not in ("clean", "public edges alone"):
            check_positive(owner, "epsilon", self.epsilon)


def released_graph(graph: DividedGraph, release: EdgeRelease, *, rng: Rng) -> Graph:
    """Return the released graph.

    Source: Tran et al. (2022), arXiv:2211.05766, Sections III-B and V.

    Note:
        Public edges are in every released graph: G̃ = G_pub ∪ G̃_pri as in Section III-B, where Algorithm 2 draws public
        edges between private nodes anew. The chain starts at a random dendrogram; the source does not state its steps.

    Args:
        graph: The graph.
        release: How it is released.
        rng: The randomness of the mechanism.

    Raises:
        MechanismError: If the mechanism refuses the budget.
    """
    if release.method == "clean":
        return graph.whole
    if release.method == "public edges alone":
        return graph.public
    if release.method == "EdgeRR":
        return united(
            _edge_rr(graph, release).whole_graph(graph.private, rng=rng), graph.public
        )
    secret = graph.whole if release.protected == "all" else graph.private
    found = _other(secret, release).whole_graph(secret, rng=rng)
    return found if release.protected == "all" else united(found, graph.public)


def _edge_rr(graph: DividedGraph, release: EdgeRelease) -> HierarchicalRelease:
    public = tuple(map(tuple, graph.public.edges.T.tolist()))
    half = release.epsilon / 2
    options: dict[str, Any] = {
        "steps": release.steps * graph.private.nodes,
        "start": "uniform",
        "public": public,
    }
    if release.form == "published":
        return EdgeRR(half, half, graph.private.nodes, **options)
    return PrivHRG(
        half, half, graph.private.nodes, moves="joint", private_nodes="all", **options
    )


def _other(
    secret: Graph, release: EdgeRelease
) -> HierarchicalRelease | EdgeRand | LapGraph:
    if release.method == "privHRG":
        half, steps = release.epsilon / 2, release.steps * secret.nodes
        return PrivHRG(half, half, secret.nodes, steps=steps, start="uniform")
    return (EdgeRand if release.method == "EdgeRand" else LapGraph)(
        release.epsilon, secret.nodes
    )
