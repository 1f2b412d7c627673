"""Mechanisms for numbers of [−1, 1] in the local model, one number or a record of them.

All release an estimate of the number. ``perturb(values, rng=rng)`` gives one output per record, as a numpy array with a
``numpy.random.Generator``, as a tensor on the generator's device with a ``torch.Generator``.
"""

from mechanisms.numeric.additive import GaussianFeatures, LaplaceFeature
from mechanisms.numeric.duchi import Duchi
from mechanisms.numeric.hybrid import Hybrid
from mechanisms.numeric.piecewise import Piecewise, PMSub
from mechanisms.numeric.scalar import Scalar
from mechanisms.numeric.three_output import ThreeOutput, probability_of_zero
from mechanisms.numeric.vectors import (
    Feature,
    NumericVector,
    every_feature,
    sampled_features,
)

__all__ = [
    "Duchi",
    "Feature",
    "GaussianFeatures",
    "Hybrid",
    "LaplaceFeature",
    "NumericVector",
    "PMSub",
    "Piecewise",
    "Scalar",
    "ThreeOutput",
    "every_feature",
    "probability_of_zero",
    "sampled_features",
]
