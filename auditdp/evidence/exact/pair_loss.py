"""What the privacy loss of one pair of laws is known to lie between, and the ε that a δ needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from auditdp.mechanism.laws.balls import above, below
from auditdp.numerics.rounding import outwards

ROUNDING_TOLERANCE = 1e-12
"""Two levels that agree to this relative difference are the same claim written in doubles."""


@dataclass(frozen=True)
class PairLoss:
    """The privacy loss of one pair of laws, enclosed."""

    low: arb
    """Lower bound on the exact pure epsilon, max over outputs of |ln P/Q|; may be infinite."""
    high: arb
    """Upper bound on it; infinite as soon as one probability may be zero where the other may not."""
    source: str
    """What the bounds are computed from, and why an end is open where the laws leave it so, in words that can follow
    "computed from".
    """
    delta: arb | None = None
    """Enclosure of δ at the claim's epsilon, the larger of the two orders; None where it is not known."""
    delta_beyond: arb | None = None
    """That δ at an epsilon that is larger by the rounding tolerance."""
    mu: arb | None = None
    """Enclosure of the exact μ of Gaussian DP, where the pair is Gaussian."""
    needed: tuple[float, float] | None = None
    """A lower and an upper bound on the smallest epsilon at which the claim's δ holds, the exact epsilon of an (ε, δ)
    claim; None where δ(ε) is not known.
    """
    assumed: tuple[str, ...] = ()
    """What the bounds rest on beside the laws as they are stated."""
    least_mu: arb | None = None
    """That μ less what the rounding of the locations explains, which refutes nothing."""

    @property
    def lower(self) -> float:
        """A double that is at most the exact epsilon."""
        return max(0.0, below(self.low))

    @property
    def upper(self) -> float:
        """A double that is at least the exact epsilon."""
        return above(self.high)

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        if low == math.inf:
            return "∞"
        width = (high - low) / max(high, 1.0) if high < math.inf else math.inf
        if width <= 1e-7:
            return f"{low:.{min(12, int(-math.log10(max(width, 1e-12))))}g}"
        return f"between {outwards(low, up=False, digits=6)} and {outwards(high, up=True, digits=6)}"


def verified_epsilon(delta_at: Callable[[arb], arb], delta: float, guess: float) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest ε >= 0 with ``delta_at(ε) <= delta``, near a guess.

    Each is verified by the enclosure of δ there, and moved away from the guess until it is.
    """
    lower, upper = 0.0, math.inf
    for slack in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        below_it, above_it = max(0.0, guess - slack * (1 + guess)), guess + slack * (1 + guess)
        if lower == 0.0 and below_it > 0 and delta_at(arb(below_it)) > arb(delta):
            lower = below_it
        if upper == math.inf and delta_at(arb(above_it)) <= arb(delta):
            upper = above_it
        if upper < math.inf and (lower > 0 or below_it == 0):
            break
    return lower, upper
