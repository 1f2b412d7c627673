"""Locally private graph neural networks of Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535.

Users randomise features (multi-bit mechanism) and labels (randomised response), and the server, which knows the graph,
denoises both with KProp and learns by Drop.
"""

from gnn.pipelines.lpgnn.features import Reports, reports
from gnn.pipelines.lpgnn.labels import (
    below_ceiling,
    denoised_labels,
    log_corrected,
    log_denoised,
    noisy_labels,
    transition,
)
from gnn.pipelines.lpgnn.model import LocallyPrivateGNN
from gnn.pipelines.lpgnn.parameters import Parameters
from gnn.pipelines.lpgnn.pipeline import LPGNNRecord, lpgnn
from gnn.pipelines.lpgnn.propagation import (
    PropagatedFeatures,
    k_prop,
    normalised_adjacency,
    propagated,
)

__all__ = [
    "LPGNNRecord",
    "LocallyPrivateGNN",
    "Parameters",
    "PropagatedFeatures",
    "Reports",
    "below_ceiling",
    "denoised_labels",
    "k_prop",
    "log_corrected",
    "log_denoised",
    "lpgnn",
    "noisy_labels",
    "normalised_adjacency",
    "propagated",
    "reports",
    "transition",
]
