"""The hybrid mechanism: Piecewise or Duchi, by a coin that nobody sees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from auditdp.mechanism.laws import Envelope, StepLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Backend, Values
from mechanisms.numeric.duchi import Duchi
from mechanisms.numeric.piecewise import Piecewise
from mechanisms.numeric.scalar import Scalar
from mechanisms.rounding import GRID

THRESHOLD = 0.61
"""Up to this ε the hybrid is Duchi's mechanism."""


@dataclass(frozen=True)
class Hybrid(Scalar):
    """Piecewise with probability 1 − e^(−ε/2) for ε > .61, and Duchi otherwise.

    Claimed: ε-LDP and unbiased. True: the coin does not depend on the input, both mechanisms are ε-LDP and unbiased, and
    their outputs are told apart for sure (one has a density, the other two atoms), so the loss is the larger of the two.
    With that probability the variance does not depend on the input.

    Source: Wang et al. (2019), arXiv:1907.00782, Section III-C.

    Note:
        The coin's probability is rounded to a multiple of 2^-53, which costs no privacy.

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    epsilon: float

    @property
    def atoms(self) -> tuple[float, ...]:
        """Duchi's two values."""
        return self.duchi.atoms

    @cached_property
    def piecewise(self) -> Piecewise:
        """The mechanism that is chosen with probability ``share``."""
        return Piecewise(self.epsilon)

    @cached_property
    def duchi(self) -> Duchi:
        """The other mechanism."""
        return Duchi(self.epsilon)

    @cached_property
    def share(self) -> float:
        """The probability of Piecewise, a multiple of 2^-53."""
        return (
            round(-math.expm1(-self.epsilon / 2) * GRID) / GRID
            if self.epsilon > THRESHOLD
            else 0.0
        )

    def output_range(self, data: Any) -> tuple[float, float]:
        """Return those of the wider of the mechanisms that are used."""
        widest = max(self.duchi.size, self.piecewise.size if self.share else 0.0)
        return -widest, widest

    def draw(self, x: Values, backend: Backend) -> Values:
        """Return the output of either mechanism for each number."""
        coin = backend.uniform(*x.shape) < self.share
        return backend.xp.where(
            coin, self.piecewise.draw(x, backend), self.duchi.draw(x, backend)
        )

    def distribution(self, data: Any) -> StepLaw:
        """Return the exact law, as Fractions."""
        share, duchi = Fraction(self.share), self.duchi.distribution(data)
        atoms = {
            "atoms": duchi.outcomes,
            "probabilities": [(1 - share) * p for p in duchi.probabilities],
        }
        if not share:
            return StepLaw(**atoms)
        steps = self.piecewise.distribution(data)
        return StepLaw(
            steps.breaks, [share * density for density in steps.densities], **atoms
        )

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of each output that is an atom, else its log density, shape (size,)."""
        return self.distribution(data).log_prob(outputs)

    def envelope(self) -> Envelope:
        """Return the densities of Piecewise and the probabilities of Duchi, each times its share."""
        share, parts = Fraction(self.share), [self.duchi.envelope()]
        weights = [1 - share]
        if share:
            parts, weights = [*parts, self.piecewise.envelope()], [*weights, share]
        return Envelope(
            outputs=[output for part in parts for output in part.outputs],
            least=[
                weight * low
                for part, weight in zip(parts, weights, strict=True)
                for low in part.least
            ],
            most=[
                weight * high
                for part, weight in zip(parts, weights, strict=True)
                for high in part.most
            ],
            inputs=[pair for part in parts for pair in part.inputs],
        )

    def variance(self, x: Any) -> Any:
        """Return the variances of both mechanisms, weighted: the same for every input where ε > .61."""
        return self.share * self.piecewise.variance(x) + (
            1 - self.share
        ) * self.duchi.variance(x)

    @property
    def largest_variance(self) -> float:
        """(t+3)/(3t(t−1)) + (E+1)²/(t(E−1)²) with t = e^(ε/2) where ε > .61, else ((E+1)/(E−1))²."""
        return float(self.variance(0.0))
