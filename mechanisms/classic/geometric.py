"""The truncated geometric mechanism on a count, in integer arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class TruncatedGeometric:
    """A count c in 0..n plus two-sided geometric noise, truncated to 0..n: P(z) ∝ α^|z−c| inside, the tails at 0 and n.

    α = 1/(1 + 2^-k) is rational, so that a uniform integer and a table of integers sample it exactly; with
    k = ⌈log₂(2/ε)⌉ the noise spends ln(1 + 2^-k) <= ε/2. Input: the count, shape (1,). Output: int16, shape (size,).

    Claimed: ln(1 + 2^-k)-DP where the count changes by one. True: exactly that (Ghosh, Roughgarden & Sundararajan 2009,
    arXiv:0811.2841, for the truncated geometric mechanism). A published implementation takes the natural logarithm in
    k, which at ε = .1 gives k = 3 and a loss of .118 > ε: ``logarithm="natural"``.

    Source: Balcer & Vadhan (2018), "Differential Privacy on Finite Computers", ITCS (arXiv:1709.05396), Algorithm 4.8
    (GeoSample) and Theorem 4.7.

    Args:
        epsilon: The target of the privacy loss in nats, 0 < ε <= 1.
        most: Largest count n, >= 1.
        logarithm: "binary" as in the paper, or "natural" as in that implementation.
    """

    epsilon: float = 0.1
    most: int = 5
    logarithm: Literal["binary", "natural"] = "binary"

    def __post_init__(self) -> None:
        check_positive("TruncatedGeometric", "epsilon", self.epsilon)
        check_integer("TruncatedGeometric", "most", self.most, 1)
        if self.whole >= 2**63:
            raise MechanismError(
                f"{self.name}: its table needs integers up to {self.whole:.3g}, expected at most 2^63; use fewer counts "
                "or a larger epsilon"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        natural = ", natural logarithm" if self.logarithm == "natural" else ""
        return (
            f"TruncatedGeometric(epsilon={self.epsilon:g}, most={self.most}{natural})"
        )

    @cached_property
    def halvings(self) -> int:
        """k: the mechanism spends ln(1 + 2^-k)."""
        log = math.log2 if self.logarithm == "binary" else math.log
        return max(0, math.ceil(log(2 / self.epsilon)))

    @property
    def spent(self) -> float:
        """The privacy loss ln(1 + 2^-k) in nats."""
        return math.log1p(2.0**-self.halvings)

    @cached_property
    def whole(self) -> int:
        """d: how many equally likely integers there are to draw from, (2^(k+1) + 1)(2^k + 1)^(n−1)."""
        return (2 ** (self.halvings + 1) + 1) * (2**self.halvings + 1) ** (
            self.most - 1
        )

    def table(self, data: Any) -> list[int]:
        """Return d·P(Z <= z) for z = 0..n: below c it is a(c−z), from c on d − a(z+1−c), a(i) = 2^ki (2^k+1)^(n−i)."""
        (count,) = answers(self.name, data, length=1)
        if count not in range(self.most + 1):
            raise MechanismError(
                f"{self.name}: expected a count in 0..{self.most}, got {count:g}"
            )
        c, base = int(count), 2**self.halvings
        tail = [base**i * (base + 1) ** (self.most - i) for i in range(self.most + 1)]
        below = [tail[c - z] for z in range(c)]
        return (
            below
            + [self.whole - tail[z + 1 - c] for z in range(c, self.most)]
            + [self.whole]
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy counts, int16, shape (size,)."""
        drawn = rng.integers(1, self.whole, size, endpoint=True)
        noisy = np.zeros(size, np.int16)
        for bound in self.table(data)[:-1]:
            noisy += drawn > bound
        return noisy

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions."""
        steps = np.diff([0, *self.table(data)])
        return FiniteLaw(
            np.arange(self.most + 1, dtype=np.int16),
            [Fraction(int(step), self.whole) for step in steps],
        )
