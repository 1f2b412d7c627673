"""Hierarchical random graphs: dendrograms by Markov chain Monte Carlo, privHRG, and EdgeRR (pHRG)."""

from mechanisms.hierarchy.dendrogram_step import DendrogramStep
from mechanisms.hierarchy.neighbours import PrivateEdgeDP
from mechanisms.hierarchy.noisy_probabilities import Thresholds
from mechanisms.hierarchy.release import (
    EdgeRR,
    HierarchicalRelease,
    NoisyCounts,
    PrivHRG,
)

__all__ = [
    "DendrogramStep",
    "EdgeRR",
    "HierarchicalRelease",
    "NoisyCounts",
    "PrivHRG",
    "PrivateEdgeDP",
    "Thresholds",
]
