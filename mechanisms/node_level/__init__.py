"""Parts of training with node-level privacy: noise, clipping thresholds, and batches, as published code has them."""

from mechanisms.node_level.replacement import DrawnWithReplacementLower
from mechanisms.node_level.symmetric_laplace import SymmetricLaplace, WithinBall
from mechanisms.node_level.thresholds import Beyond, ClippedAtPercentile

__all__ = [
    "Beyond",
    "ClippedAtPercentile",
    "DrawnWithReplacementLower",
    "SymmetricLaplace",
    "WithinBall",
]
