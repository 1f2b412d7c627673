"""The settings of LPGNN's experiments, as its authors publish them with their code (github.com/sisaman/LPGNN, hparams).

All are for GraphSAGE; the same are used for GCN and GAT here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

INF = math.inf
EPSILON_FEATURES = (0.01, 0.1, 1.0, 2.0, 3.0, INF)
EPSILON_LABELS = (0.5, 1.0, 2.0, 3.0, INF)

STEPS = {
    "Cora": (
        ((4, 4), (8, 8), (8, 8), (8, 8), (8, 0)),
        ((0, 8), (2, 4), (16, 4), (8, 4), (16, 0)),
        ((2, 8), (2, 8), (8, 4), (16, 4), (16, 0)),
        ((8, 8), (4, 8), (8, 4), (16, 2), (16, 0)),
        ((2, 8), (16, 8), (8, 4), (16, 2), (16, 0)),
        ((4, 8), (0, 4), (0, 4), (0, 2), (0, 0)),
    ),
    "PubMed": (
        ((16, 2), (16, 2), (16, 2), (16, 2), (16, 0)),
        ((4, 4), (8, 2), (8, 2), (16, 0), (16, 0)),
        ((0, 4), (4, 2), (16, 0), (16, 0), (16, 0)),
        ((0, 4), (4, 2), (16, 0), (16, 0), (16, 0)),
        ((0, 4), (4, 2), (16, 0), (16, 0), (16, 0)),
        ((0, 2), (0, 2), (0, 0), (0, 0), (0, 0)),
    ),
    "Facebook": (
        ((2, 4), (4, 2), (4, 2), (4, 2), (8, 0)),
        ((8, 4), (2, 4), (4, 2), (4, 2), (8, 0)),
        ((8, 4), (2, 4), (4, 2), (16, 0), (8, 0)),
        ((8, 4), (2, 4), (4, 2), (8, 0), (8, 0)),
        ((8, 4), (2, 4), (4, 2), (4, 2), (8, 0)),
        ((2, 2), (0, 2), (0, 2), (2, 0), (0, 0)),
    ),
    "LastFM": (
        ((4, 4), (4, 4), (2, 4), (4, 2), (4, 0)),
        ((8, 4), (2, 4), (8, 2), (8, 4), (2, 0)),
        ((8, 8), (4, 4), (4, 4), (4, 2), (8, 0)),
        ((4, 8), (2, 4), (4, 4), (16, 0), (16, 0)),
        ((16, 8), (2, 4), (2, 4), (16, 0), (16, 0)),
        ((0, 4), (0, 2), (0, 2), (4, 0), (0, 0)),
    ),
}
"""(K_x, K_y) by data set, ε_x (outer) and ε_y (inner)."""


class Fitting(NamedTuple):
    """Hyperparameters for fitting a model."""

    learning_rate: float
    weight_decay: float
    dropout: float


_ORDER = ("Cora", "PubMed", "Facebook", "LastFM")
_FITTING = {
    ("MBM", False, False): (
        (0.01, 1e-3, 0.5),
        (0.01, 1e-4, 0.25),
        (0.001, 0.01, 0.5),
        (0.001, 1e-4, 0.75),
    ),
    ("MBM", False, True): ((0.01, 0.01, 0.75),) * 4,
    ("MBM", True, False): (
        (0.01, 1e-4, 0.75),
        (0.01, 1e-4, 0.0),
        (0.01, 1e-4, 0.25),
        (0.01, 1e-4, 0.75),
    ),
    ("MBM", True, True): (
        (0.01, 0.01, 0.5),
        (0.01, 1e-3, 0.25),
        (0.001, 1e-4, 0.75),
        (0.001, 0.01, 0.25),
    ),
    ("OHD", True, False): (
        (0.01, 0.0, 0.0),
        (0.01, 0.0, 0.0),
        (0.01, 0.0, 0.0),
        (0.01, 0.0, 0.5),
    ),
    ("Ones", True, False): (
        (1e-4, 0.01, 0.75),
        (1e-4, 1e-4, 0.0),
        (1e-4, 0.01, 0.75),
        (1e-4, 0.01, 0.75),
    ),
    ("RND", True, False): (
        (1e-4, 0.01, 0.25),
        (0.001, 0.001, 0.5),
        (1e-4, 0.001, 0.0),
        (1e-4, 1e-4, 0.5),
    ),
}
"""Hyperparameters by features, whether ε_x and ε_y are infinite, and data set. They were
found at ε = 1 and are used for every finite ε."""


def steps(data: str, epsilon_features: float, epsilon_labels: float) -> tuple[int, int]:
    """Return (K_x, K_y) of a data set at a point of the grid; ad-hoc features have ε_x = ∞.

    A finite ε above the grid has the steps of the largest finite one in it.
    """
    row = STEPS[data][_place(EPSILON_FEATURES, epsilon_features)]
    return row[_place(EPSILON_LABELS, epsilon_labels)]


def _place(grid: tuple[float, ...], epsilon: float) -> int:
    return grid.index(epsilon if math.isinf(epsilon) else min(epsilon, grid[-2]))


def fitting(
    data: str, features: str, epsilon_features: float, epsilon_labels: float
) -> Fitting:
    """Return the hyperparameters of a data set at a point of the grid."""
    found = _FITTING[features, math.isinf(epsilon_features), math.isinf(epsilon_labels)]
    return Fitting(*found[_ORDER.index(data)])
