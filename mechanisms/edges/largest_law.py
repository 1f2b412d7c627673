"""The exact law of "the T largest noisy cells become ones", which Laplace graphs release.

Cells carry a bit plus Lap(s), T is a noisy count rounded and clipped to [0, m], independent of the cells' noise. Given
T = t with 0 < t < m, a set S of t cells, a of them true ones and b true zeros, is the top with probability

    ∫ -d/dτ[(1-F₁)^a (1-F₀)^b] F₁^(k-a) F₀^(m-k-b) dτ,

where the smallest value inside S lies at τ, all others outside below it, k of the m cells are true ones, and F₁ and
F₀ are the distribution functions of a noisy one and a noisy zero. Below 0, between 0 and 1 and above 1 both are
rational in u = e^(τ/s), w = e^(-τ/s) or v = e^(-(τ-1)/s), so that each piece is the integral of a rational function over
an interval without poles, which ball arithmetic encloses rigorously. The law of T comes from the distribution function of
a sum of Laplace variables, a polynomial with rational coefficients times an exponential. All numbers are those of
real-valued Laplace noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import factorial
from typing import Any

from flint import acb, arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.validation import all_bits

MAX_CELLS = 10


def check_cells(name: str, cells: int) -> None:
    """Raise unless the law of this number of cells can be enumerated."""
    if cells > MAX_CELLS:
        raise MechanismError(
            f"{name}: the law of {cells} cells has 2^{cells} outcomes; use at most {MAX_CELLS} cells, or play the game"
        )


def largest_law(bits: Array, totals: Sequence[arb], scale: float) -> FiniteLaw:
    """Return the law of the released bits, rigorously enclosed.

    Args:
        bits: The true cells, shape (m,), at most 10.
        totals: P(T = t) for t = 0..m.
        scale: Laplace scale of a cell.
    """
    outcomes = all_bits(len(bits))
    ones, zeros = outcomes[:, bits == 1].sum(axis=1), outcomes[:, bits == 0].sum(axis=1)
    k, m = int(bits.sum()), len(bits)
    with precision():
        return FiniteLaw(
            outcomes,
            [
                totals[a + b] * top_probability(m, k, int(a), int(b), scale)
                for a, b in zip(ones, zeros, strict=True)
            ],
        )


@lru_cache(maxsize=4096)
def top_probability(m: int, k: int, a: int, b: int, scale: float) -> arb:
    """Return P(these a of k noisy ones and b of m-k noisy zeros are the a+b largest of all m), enclosed."""
    if a + b in (0, m):
        return arb(1)
    with precision():
        c = (-1 / ball(Fraction(scale))).exp()
        half = arb(1) / 2

        def piece(one: _Line, zero: _Line, sign: int, low: arb, high: arb) -> arb:
            """Integrate sign · d/dx[(1-F₁)^a (1-F₀)^b] F₁^(k-a) F₀^(m-k-b) for F₁ and F₀ as functions of x."""

            def integrand(x: acb, _: Any) -> acb:
                f1, d1 = one(x)
                f0, d0 = zero(x)
                slope = acb(0)
                if a:
                    slope -= a * d1 * (1 - f1) ** (a - 1) * (1 - f0) ** b
                if b:
                    slope -= b * d0 * (1 - f0) ** (b - 1) * (1 - f1) ** a
                return sign * slope * f1 ** (k - a) * f0 ** (m - k - b)

            return acb.integral(integrand, low, high).real

        zero_to_one = (arb(0), arb(1))
        below = piece(
            lambda u: (c * u * half, c * half),
            lambda u: (u * half, half),
            -1,
            *zero_to_one,
        )
        # Between the centres x = w = e^(-τ/s) falls from 1 to c as τ rises, which turns the sign.
        between = piece(
            lambda w: (c / w * half, -c / (w * w) * half),
            lambda w: (1 - w * half, -half),
            1,
            c,
            arb(1),
        )
        above = piece(
            lambda v: (1 - v * half, -half),
            lambda v: (1 - c * v * half, -c * half),
            1,
            *zero_to_one,
        )
        return below + between + above


_Line = Callable[[acb], tuple[Any, Any]]
"""A distribution function and its derivative in x."""


def rounded_total_law(
    centre: int, scale: Fraction, most: int, *, terms: int = 1
) -> list[arb]:
    """Return P(T = t), t = 0..most, for T = centre + ``terms`` times Lap(scale), rounded and clipped to [0, most]."""
    with precision():
        below = [arb(0)]
        for t in range(most):
            x = (Fraction(2 * t + 1, 2) - centre) / scale
            tail = laplace_sum_tail(abs(x), terms)
            below.append(1 - tail if x >= 0 else tail)
        below.append(arb(1))
        return [high - low for low, high in pairwise(below)]


def laplace_sum_tail(x: Fraction, terms: int) -> arb:
    """Return P(sum of n standard Laplace variables > x) for x >= 0, enclosed.

    The density for x >= 0 is e^-x Σ_k (n-1+k)! / ((n-1)! k! (n-1-k)! 2^(n+k)) x^(n-1-k), and each power integrates to
    ∫_x^∞ e^-t t^j dt = e^-x j! Σ_{i<=j} x^i/i!.

    Source: Kotz, Kozubowski & Podgórski (2001), "The Laplace Distribution and Generalizations", Section 2.3.
    """
    n, total = terms, Fraction(0)
    for k in range(n):
        weight = Fraction(
            factorial(n - 1 + k),
            factorial(n - 1) * factorial(k) * factorial(n - 1 - k) * 2 ** (n + k),
        )
        j = n - 1 - k
        total += (
            weight
            * factorial(j)
            * sum(Fraction(x) ** i / factorial(i) for i in range(j + 1))
        )
    return ball(total) * (-ball(Fraction(x))).exp()
