"""The exponential mechanism over the answers themselves as utilities, for a stated sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.validation import check_positive


@dataclass(frozen=True)
class ExponentialMechanism:
    """Selects index i with probability proportional to exp(ε u_i/(2Δ)). Input: utilities u, shape (k,).

    Output: int16, shape (size,). Claimed: ε-DP where every utility may change by at most Δ. True: at most ε, and less
    for finitely many utilities; if every utility in fact changes by sΔ, sε. A sensitivity that is stated too small is
    the usual mistake.

    Source: McSherry & Talwar (2007), "Mechanism Design via Differential Privacy", FOCS, Theorem 6.

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
        sensitivity: The Δ that the weights are calibrated to, finite and > 0.
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_positive("ExponentialMechanism", "epsilon", self.epsilon)
        check_positive("ExponentialMechanism", "sensitivity", self.sensitivity)

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"ExponentialMechanism(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent selections, int16, shape (size,)."""
        bounds = np.cumsum(self.distribution(data).floats)[:-1]
        uniform, selected = rng.random(size), np.zeros(size, np.int16)
        for bound in bounds:
            selected += uniform >= bound
        return selected

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law, rigorously enclosed."""
        utilities = answers(self.name, data)
        rate = Fraction(self.epsilon) / (2 * Fraction(self.sensitivity))
        with precision():
            weights = [ball(rate * Fraction(float(u))).exp() for u in utilities]
            total = sum(weights, arb(0))
            return FiniteLaw(
                np.arange(len(utilities), dtype=np.int16),
                [weight / total for weight in weights],
            )
