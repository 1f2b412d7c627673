"""The graphs on which audits of hierarchical random graphs play."""

import numpy as np

from auditdp import Pair
from mechanisms.graphs import Graph


def graph(nodes, *edges):
    """The matrix of a graph."""
    return Graph.of(nodes, np.reshape(edges, (-1, 2)).T).to_matrix()


def telling(nodes):
    """The pairs on which the weight of the likelihood and faults of drawing from its law show most."""
    triangle = [(0, 2), (0, 3), (2, 3)]
    return [
        Pair(graph(nodes, (0, 1), (0, 2)), graph(nodes, (0, 1)), "a wedge | an edge"),
        Pair(graph(nodes, (0, 1), *triangle), graph(nodes, *triangle), "a triangle and an edge | a triangle"),
    ]


WEDGE = ((0, 1), (0, 2))
"""Two public edges."""
BESIDE = Pair(graph(4, (0, 3), (1, 3)), graph(4, (0, 3)), "two private edges beside the public ones | one")
"""Of the pairs with these public edges, the one on which 4 nodes lose most."""
SQUARE = Pair(graph(4, (0, 2), (0, 3), (1, 2), (1, 3)), graph(4, (0, 3), (1, 2), (1, 3)), "a square | a path")
"""A pair on which the same random numbers lead to different dendrograms."""
