"""RAPPOR: randomised response on the Bloom filter of a value, once for all and again for each report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from sklearn.utils import murmurhash3_32

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.rounding import GRID
from mechanisms.validation import all_bits, check_integer

MAX_BITS = 12


@dataclass(frozen=True)
class Rappor:
    """The Bloom filter of a value, each bit through a permanent and an instantaneous randomised response.

    Of the filter B each bit becomes 1 with probability f/2, 0 with f/2, and stays with 1−f; then a 1 is reported as 1
    with probability q and a 0 with p. So a bit is reported as 1 with probability q* = f(p+q)/2 + (1−f)q where B has a
    1, and p* = f(p+q)/2 + (1−f)p where it has none. Input: an integer, shape (1,). Output: int8, shape (size, bits).

    Claimed: h ln(q*(1−p*)/(p*(1−q*))) for one report and h hashes (Erlingsson et al., Theorem 2). True: with m bits that
    only the first filter has and n that only the second has, exactly the larger of m ln(q*/p*) + n ln((1−p*)/(1−q*)) and
    the same with m and n exchanged: the claim where both have h ones and share none, less where hashes collide.

    Source: Erlingsson, Pihur & Korolova (2014), "RAPPOR", CCS (arXiv:1407.6981), Section 2, steps 1 to 3; parameters
    and hashes (MurmurHash3 of the decimal digits, seeds 0..h−1, modulo the number of bits) as in DP-Sniper.

    Args:
        hashes: Number of hash functions h, >= 1.
        bits: Size of the filter, >= 1.
        f: Share of bits that the permanent response replaces by a coin, 0 <= f < 1.
        p: Probability of reporting 1 where the permanent bit is 0.
        q: Probability of reporting 1 where the permanent bit is 1, > p.
    """

    hashes: int = 4
    bits: int = 20
    f: float = 0.75
    p: float = 0.45
    q: float = 0.55

    def __post_init__(self) -> None:
        check_integer("Rappor", "hashes", self.hashes, 1)
        check_integer("Rappor", "bits", self.bits, 1)
        if not (0 <= self.f < 1 and 0 <= self.p < self.q <= 1):
            raise MechanismError(
                f"Rappor: expected 0 <= f < 1 and 0 <= p < q <= 1, got f={self.f!r}, p={self.p!r}, q={self.q!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        once = (self.p, self.q) == (0, 1)
        reported = "" if once else f", p={self.p:g}, q={self.q:g}"
        return f"{'OneTimeRappor' if once else 'Rappor'}(hashes={self.hashes}, bits={self.bits}, f={self.f:g}{reported})"

    @cached_property
    def ones(self) -> tuple[float, float]:
        """p* and q*, multiples of 2^-53: p* rounded up and q* down, so that the two come no further apart."""
        f, p, q = Fraction(self.f), Fraction(self.p), Fraction(self.q)
        low, high = (f * (p + q) / 2 + (1 - f) * reported for reported in (p, q))
        return math.ceil(low * GRID) / GRID, math.floor(high * GRID) / GRID

    def bloom(self, data: Array) -> Array:
        """Return the Bloom filter of the value, bool, shape (bits,)."""
        (value,) = answers(self.name, data, length=1)
        if value != int(value):
            raise MechanismError(
                f"{self.name}: expected an integer value, got {value!r}"
            )
        filled = np.zeros(self.bits, bool)
        filled[
            [
                murmurhash3_32(str(int(value)), seed=i) % self.bits
                for i in range(self.hashes)
            ]
        ] = True
        return filled

    def reported(self, data: Array) -> Array:
        """Return the probability of each bit to be reported as 1, shape (bits,)."""
        return np.where(self.bloom(data), self.ones[1], self.ones[0])

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent reports, each with a permanent response of its own, int8, shape (size, bits)."""
        return (rng.random((size, self.bits)) < self.reported(data)).view(np.int8)

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each report, shape (size,)."""
        ones = self.reported(data)
        return (
            np.asarray(outputs) @ (np.log(ones) - np.log1p(-ones))
            + np.log1p(-ones).sum()
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, for at most 12 bits.

        Raises:
            MechanismError: If there are more.
        """
        if self.bits > MAX_BITS:
            raise MechanismError(
                f"{self.name}: the law has 2^{self.bits} outcomes; use at most {MAX_BITS} bits, or log_prob"
            )
        filled = self.bloom(data)
        low, high = map(Fraction, self.ones)
        outcomes = all_bits(self.bits)
        a, b = outcomes[:, filled].sum(axis=1), outcomes[:, ~filled].sum(axis=1)
        m, n = int(filled.sum()), int((~filled).sum())
        by_ones = [
            [
                high**i * (1 - high) ** (m - i) * low**j * (1 - low) ** (n - j)
                for j in range(n + 1)
            ]
            for i in range(m + 1)
        ]
        return FiniteLaw(outcomes, [by_ones[i][j] for i, j in zip(a, b, strict=True)])


def OneTimeRappor(hashes: int = 4, bits: int = 20, f: float = 0.95) -> Rappor:  # noqa: N802 - reads as the mechanism
    """Return RAPPOR with the permanent response only: steps 1 and 2, p = 0 and q = 1.

    Claimed: 2h ln((1−f/2)/(f/2))-DP (Erlingsson et al., Theorem 1). True: ln((1−f/2)/(f/2)) for each bit in which the
    filters of two values differ, of which there are at most 2h.
    """
    return Rappor(hashes, bits, f, 0.0, 1.0)
