"""Estimates of features in their own units, made with the least and the greatest value of the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Rng
from mechanisms.features.min_max import MinMaxScaled


@dataclass(frozen=True)
class RangeEstimates:
    """Estimates after undoing min–max scaling: min + (max − min)·(rectified feature).

    Claimed, implicitly: the encoder's ε for one user's record. False for every ε: the estimates are numbers that only the
    population's exact range can give. One user alone has min = max = their own number, and it is released as it is.

    Input: raw features, shape (users, dimension). Output: float64, shape (size, users, dimension).

    Source: an early version of the published code of Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535, estimates
    features so (``one_bit``: range of the data, and bits without a range are 0).

    Args:
        scaled: The scaling and the encoder; features without a range are scaled to 0, not dropped.
    """

    scaled: MinMaxScaled

    @property
    def name(self) -> str:
        """The estimated quantity and its source."""
        return f"estimates in the range of the population, from {self.scaled.name}"

    def _estimates(self, sent: Array, data: Any) -> Array:
        matrix = np.asarray(data, np.float64)
        least = matrix.min(axis=0)
        return least + (matrix.max(axis=0) - least) * self.scaled.encoder.rectify(sent)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases."""
        return self._estimates(self.scaled(data, size, rng=rng), data)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions; outputs that agree are added up."""
        law = self.scaled.distribution(data)
        outcomes, owner = np.unique(
            self._estimates(law.outcomes, data), axis=0, return_inverse=True
        )
        probabilities = [
            sum(
                p
                for p, here in zip(law.probabilities, owner.ravel(), strict=True)
                if here == i
            )
            for i in range(len(outcomes))
        ]
        return FiniteLaw(outcomes, probabilities)
