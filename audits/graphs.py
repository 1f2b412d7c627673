"""Graphs on which audits play."""

import numpy as np

from auditdp import Nodes, Pair
from mechanisms.graphs import Graph


def graph(nodes, *edges):
    """The matrix of a graph."""
    return Graph.of(nodes, np.reshape(edges, (-1, 2)).T).to_matrix()


def hub_changed(nodes):
    """Return the pair in which node 0 leaves one hub for another that has fewer leaves."""
    return [
        pair
        for pair in Nodes(nodes).pairs()
        if pair.name == "leaf of one hub | of another"
    ]


def telling(nodes):
    """Pairs on which the weight of the likelihood and faults of drawing from the law of a hierarchy show most."""
    triangle = [(0, 2), (0, 3), (2, 3)]
    return [
        Pair(graph(nodes, (0, 1), (0, 2)), graph(nodes, (0, 1)), "a wedge | an edge"),
        Pair(
            graph(nodes, (0, 1), *triangle),
            graph(nodes, *triangle),
            "a triangle and an edge | a triangle",
        ),
    ]


WEDGE = ((0, 1), (0, 2))
"""Two public edges."""
BESIDE = Pair(
    graph(4, (0, 3), (1, 3)),
    graph(4, (0, 3)),
    "two private edges beside the public ones | one",
)
"""The pair, among those with these public edges, on which 4 nodes lose most."""
SQUARE = Pair(
    graph(4, (0, 2), (0, 3), (1, 2), (1, 3)),
    graph(4, (0, 3), (1, 2), (1, 3)),
    "a square | a path",
)
"""A pair on which the same random numbers lead to different dendrograms."""
