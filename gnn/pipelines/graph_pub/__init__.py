"""GraphPub of Xu et al. (2024), arXiv:2403.00030: from the private graph to a network that is trained on the published one.

``embedding`` learns Z, ``published_arcs`` publishes a graph by it or by a mechanism of the comparison, and ``learn`` trains.
"""

from gnn.pipelines.graph_pub.constructors import CONSTRUCTORS, constructor
from gnn.pipelines.graph_pub.learning import MODELS, Learned, learn
from gnn.pipelines.graph_pub.release import (
    METHODS,
    Release,
    published_arcs,
    publishing_weights,
)
from gnn.pipelines.graph_pub.scores import ScoreSettings, embedding, learned_adjacency

__all__ = [
    "CONSTRUCTORS",
    "METHODS",
    "MODELS",
    "Learned",
    "Release",
    "ScoreSettings",
    "constructor",
    "embedding",
    "learn",
    "learned_adjacency",
    "published_arcs",
    "publishing_weights",
]
