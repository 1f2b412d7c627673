"""A record's encoded features and its noisy label, released together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Rng, Values
from mechanisms.features.multi_bit import MultiBit
from mechanisms.labels.label_rr import LabelRR


@dataclass(frozen=True)
class FeaturesAndLabel:
    """A record's features through an encoder and its label through randomised response, independently.

    Input: features, then the label: float64, shape (dimension + 1,). Output: int16, the same shape per row.

    Claimed: ε_x + ε_y for the whole record, and by itself ε_x for the features and ε_y for the label. All true: the two
    draws are independent, and both reach their worst case at once.

    Args:
        encoder: What happens to the features.
        response: What happens to the label.
    """

    encoder: MultiBit
    response: LabelRR

    @property
    def name(self) -> str:
        """Both parts."""
        return f"{self.encoder.name} and {self.response.name}"

    def perturb(
        self, features: Values, labels: Values, *, rng: Rng
    ) -> tuple[Values, Values]:
        """Return encoded features, int8, shape (n, dimension), and noisy labels, int16, shape (n,)."""
        return self.encoder.perturb(features, rng=rng), self.response.perturb(
            labels, rng=rng
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases of one record."""
        features, label = data[:-1], data[-1]
        encoded, noisy = (
            self.encoder(features, size, rng=rng),
            self.response(label, size, rng=rng),
        )
        return np.concatenate([encoded, noisy[:, None]], axis=1)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions: the product of both."""
        encoder, response = (
            self.encoder.distribution(data[:-1]),
            self.response.distribution(data[-1]),
        )
        outcomes = [
            [*features, label]
            for features in encoder.outcomes
            for label in response.outcomes
        ]
        probabilities = [
            p * q for p in encoder.probabilities for q in response.probabilities
        ]
        return FiniteLaw(np.array(outcomes, np.int16), probabilities)

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,)."""
        features, labels = outputs[:, :-1], outputs[:, -1]
        return self.encoder.log_prob(features, data[:-1]) + self.response.log_prob(
            labels, data[-1]
        )
