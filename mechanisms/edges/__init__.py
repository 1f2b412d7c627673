"""Mechanisms that release the edges of a graph, in the local and in the central model."""

from mechanisms.edges.dprr import DPRR, NoisyDegree
from mechanisms.edges.edge_rand import EdgeRand
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse
from mechanisms.edges.lap_graph import LapGraph, LapGraphNoisy
from mechanisms.edges.local_laplace import (
    LocalLaplace,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
)
from mechanisms.edges.randomised_response import (
    RandomisedResponse,
    RandomisedResponseGraph,
)
from mechanisms.edges.users import (
    Customised,
    NonPrivFull,
    NonPrivPart,
    PerUser,
    Publish,
    Withhold,
)

__all__ = [
    "DPRR",
    "Customised",
    "EdgeRand",
    "GraphPub",
    "GraphPubList",
    "GraphPubResponse",
    "LapGraph",
    "LapGraphNoisy",
    "LocalLaplace",
    "LocalLaplaceGraph",
    "LocalLaplaceMessage",
    "LocalLaplaceMessages",
    "LocalLaplaceRow",
    "NoisyDegree",
    "NonPrivFull",
    "NonPrivPart",
    "PerUser",
    "Publish",
    "RandomisedResponse",
    "RandomisedResponseGraph",
    "Withhold",
]
