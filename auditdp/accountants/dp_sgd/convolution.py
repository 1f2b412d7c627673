"""How often independent uses make each sum: a power of one discrete Fourier transform, with a bound on what it loses.

Write x for the masses (>= 0), X for their transform of length n, and u = 2^−53. The T-fold sum has the masses of the inverse
transform of X^T, but for those that wrap around. What floating point does to them is bounded as follows.

- *Transform.* A fast transform of length n = 2^t sends every x_j to every X_k along one path, which in each of t halvings
  meets one multiplication by a root of unity and one addition. A complex product is off by √5 u relatively (Brent, Percival
  & Zimmermann 2007, "Error Bounds on Complex Floating-Point Multiplication", Math. Comp. 76), a root by as much and 2u, as
  pocketfft multiplies it of two rounded ones, a sum by u; 12u covers them. So X_k is off by e = ((1 + 12u)^t − 1) Σ x_j at
  most. (Passes over four or eight at a time do the work of two or three halvings with fewer products.)
- *Power.* By repeated squaring, off by (1 + √5 u)^(T−1) − 1 relatively. With |X_k| <= a_k, the power is off by
  T e a_k^(T−1) + 3Tu·a_k^T at most, if 3Tu is small.
- *Inverse.* Each mass is a mean over the n frequencies, so it is off by the mean of that, and by ((1 + 12u)^t − 1) times the
  mean of |X_k|^T.

For the grids of accountants most a_k^T vanish, and the whole is of the order of 10^−14 T times the largest mass of the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from auditdp.accountants.base import AccountantError
from auditdp.accountants.normal import sum_above
from auditdp.mechanism.protocol import Array

UNIT = 2.0**-53
LOG_OUTSIDE = -48.0
"""Logarithm of how much mass may lie below the window, and above it: 1.4e-21."""
MOST_USES = 10**9
MOST_STEPS = 80
"""Steps of √2 that the order of Chernoff's bound is moved at most, from that of Gaussian noise."""


@dataclass(frozen=True, eq=False)
class Sum:
    """The masses of sums, where nearly all of them lie.

    Attributes:
        first: The sum that has the first mass.
        masses: Mass of each sum from there on, >= 0.
        each: By how much any of them may be off, but for what has wrapped around.
        outside: How much mass lies elsewhere at most, some of which may have wrapped around.
    """

    first: int
    masses: NDArray[np.float64]
    each: float
    outside: float


def repeated(masses: Array, times: int) -> Sum:
    """Return the masses of sums of ``times`` independent indices, each of which has the given masses.

    Args:
        masses: >= 0, of the indices 0, 1, ..; they need not add up to 1.
        times: At least 1.

    Raises:
        AccountantError: If there are more uses than floating point can take.
    """
    if times == 1:
        return Sum(0, masses, 0.0, 0.0)
    if times > MOST_USES:
        raise AccountantError(f"expected at most {MOST_USES:,} uses, got {times:,}")
    last = times * (len(masses) - 1)
    first, end = _window(masses, times)
    first, end = max(0, first), min(last, end)
    outside = (math.exp(LOG_OUTSIDE) if first > 0 else 0.0) + (math.exp(LOG_OUTSIDE) if end < last else 0.0)
    halvings = math.ceil(math.log2(max(end - first + 1, len(masses), 2)))
    n, off = 2**halvings, math.expm1(12.1 * UNIT * halvings)
    transform = fft.rfft(masses, n)
    most = np.abs(transform) * (1 + 4 * UNIT) + off * sum_above(masses)
    # What is rounded here is no more than a relative 1e-3: (T − 1) ln a is off by less than T·8u·(1 + |ln a|).
    with np.errstate(divide="ignore"):
        powers = 1.001 * np.exp((times - 1) * np.log(most))
    lost = powers * (times * off * sum_above(masses) + (3.1 * times * UNIT + off) * most)
    mean = float(lost[0] + 2 * lost[1:-1].sum() + lost[-1]) / n
    found = np.roll(fft.irfft(_power(transform, times), n), -first)[: end - first + 1]
    return Sum(first, np.maximum(found, 0.0), 1.001 * mean, outside)


def _power(values: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """values**times by repeated squaring, of which the error is known."""
    found = None
    while times:
        if times & 1:
            found = values if found is None else found * values
        times >>= 1
        if times:
            values = values * values
    assert found is not None  # times >= 1
    return found


def _window(masses: Array, times: int) -> tuple[int, int]:
    """The sums between which all but e^−48 to either side lies, by Chernoff's bound at the best of some orders.

    P(sum >= b) <= (Σ x_j e^(λj))^T e^(−λb) for every λ > 0; the logarithm of the sum is off by less than 1e-9 + 8u·λj. As a
    function of λ the b that this needs falls and then rises, so steps of √2 from the best λ of Gaussian noise go on
    as long as it falls: far down, where a few sums of little probability are very large.
    """
    kept = np.flatnonzero(masses)
    if not len(kept):
        return 0, 0
    index, mass = kept.astype(np.float64), masses[kept]
    mean = float(np.dot(index, mass) / mass.sum())
    deviation = math.sqrt(max(float(np.dot((index - mean) ** 2, mass) / mass.sum()), 1e-12) * times)

    def reach(order: float, sign: float) -> float:
        """How far beyond the mean an end has to lie."""
        exponents = sign * order * (index - mean)
        largest = float(exponents.max())
        log_moment = largest + math.log(float((mass * np.exp(exponents - largest)).sum()))
        log_moment += 1e-9 + 1e-15 * (abs(largest) + order * abs(mean))
        return (times * log_moment - LOG_OUTSIDE) / order

    def least(sign: float) -> float:
        found = reach(10 / deviation, sign)
        for step in (2**-0.5, 2**0.5):
            for k in range(1, MOST_STEPS):
                if (other := reach(10 / deviation * step**k, sign)) >= found:
                    break
                found = other
        return found

    middle = times * mean
    return (
        math.floor(middle - least(-1.0) - 1 - 1e-12 * middle),
        math.ceil(middle + least(1.0) + 1 + 1e-12 * middle),
    )
