"""DPAR: private PageRank rows, DP-SGD on the rows, inference by power iteration, as published and repaired."""

from gnn.pipelines.dpar.budget import Budget, budget_of, supported_epsilon
from gnn.pipelines.dpar.matrix import (
    PageRankMatrix,
    capped,
    normalised,
    pagerank_matrix,
)
from gnn.pipelines.dpar.parameters import DPARParameters
from gnn.pipelines.dpar.train import fit_dpar

__all__ = [
    "Budget",
    "DPARParameters",
    "PageRankMatrix",
    "budget_of",
    "capped",
    "fit_dpar",
    "normalised",
    "pagerank_matrix",
    "supported_epsilon",
]
