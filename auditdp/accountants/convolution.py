"""How often independent uses make each sum: a power of one discrete Fourier transform, with a bound on what it loses.

*Tilt.* What a transform loses is relative to all of the mass, and δ is a small part of it. So the masses x_j >= 0 are first
multiplied by e^(aj), divided by about their sum. Multiplying by a power of the index commutes with adding indices: with
y_j = x_j e^(a(j−c) − L) the T-fold sums are

    (x∗…∗x)_s = (y∗…∗y)_s e^(E(s)),   E(s) = TL − a(s − Tc),

and where the tilted sums have their mean near s, e^E(s) is Chernoff's bound of the mass beyond s: what is lost there is
relative to that. In doubles (v = 2^−53; a and L are doubles, so that nothing is rounded but what follows) y_j is off by
v(|a(j−c)| + |a(j−c) − L| + 9) relatively: an exponent by its parts, an exponential function by 4 units in the last place.
Masses whose exponent is below −690 are dropped, which is less than e^−690 each and far below what is charged next.

Write X for the transform of y of length n, and u for the unit of its arithmetic: 2^−53, or 2^−64 where what doubles lose
matters and the platform has extended precision.

- *Transform.* A fast transform of length n = 2^t sends every y_j to every X_k along one path, which in each of t halvings
  meets one multiplication by a root of unity and one addition. A complex product is off by √5 u relatively (Brent, Percival
  & Zimmermann 2007, "Error Bounds on Complex Floating-Point Multiplication", Math. Comp. 76), a root by as much and 6u, as
  pocketfft multiplies it of two, each off by a unit of its angle and two of its sine and cosine, a sum by u; 12u covers
  them. Twice that is charged: a library may make one transform of n reals of a complex one of n/2, where each X_k is half
  a sum and half a difference of two numbers. So X_k is off by e = ((1 + 24u)^t − 1) Σ y_j at most. (Passes over four or
  eight at a time do the work of two or three halvings with fewer products. What is longer than n is first folded; each
  fold is one more addition.)
- *Power.* By repeated squaring, off by (1 + √5 u)^(T−1) − 1 relatively. With |X_k| <= a_k, the power is off by
  T e a_k^(T−1) + 3Tu·a_k^T at most, if 3Tu is small.
- *Inverse.* Each mass is a mean over the n frequencies, so it is off by the mean of that, and by ((1 + 24u)^t − 1) times the
  mean of |X_k|^T.

For the grids of accountants most a_k^T vanish, are taken to be 0, and are charged in full. The whole is of the order of
100 Tu times the largest tilted mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from auditdp.accountants.accountant import AccountantError
from auditdp.accountants.normal_quantiles import sum_above
from auditdp.mechanism.protocol import Array

EXTENDED: type[np.floating] = (
    np.longdouble if np.finfo(np.longdouble).nmant in (63, 112) else np.float64
)
"""The widest arithmetic that rounds to nearest: x87's or IEEE's, but no pair of doubles."""
LOG_OUTSIDE = -42.0
"""Logarithm of how much tilted mass may lie below the window, and above it, where nothing else is asked for: 6e-19."""
MOST_USES = 10**9
MOST_STEPS = 80
"""Steps of √2 that the order of Chernoff's bound is moved at most, from that of Gaussian noise."""
LOG_UNTILTED = -5.0
"""Logarithm of a probability of which a transform without a tilt keeps enough digits."""
EXPONENTS = -690.0, 600.0
"""Between which what is tilted is kept: far from where doubles end."""
NEGLIGIBLE = 1e-40
"""Powers of a transform that are not computed."""
PARTS = 1.0, 0.5, 0.25, 0.1, 0.03, 0.0
"""The parts of Chernoff's order that are tried."""
FEW_DEVIATIONS = 40
"""A window of no more standard deviations is as short as any: Gaussian noise has one of 20 to 30."""
SLOWER = 5
"""How many times longer a transform takes in extended precision."""
LOST = 1e-4
"""The part of the sought probability that a transform may lose, about."""


@dataclass(frozen=True, eq=False)
class Sum:
    """The tilted masses of sums, where nearly all of them lie; the mass of s is that of s here times e^``exponent(s)``."""

    first: int
    """The sum that has the first mass."""
    masses: NDArray[np.float64]
    """Tilted mass of each sum from there on, >= 0."""
    each: float
    """By how much any of them may be off, but for what has wrapped around."""
    outside: float
    """How much tilted mass lies elsewhere at most, some of which may have wrapped around."""
    tilt: float
    """a, >= 0, for a step of one."""
    origin: int
    """Tc."""
    log_total: float
    """TL."""
    relative: float
    """By how much the tilt may have put masses off, relatively."""

    def exponent(self, sums: Array) -> NDArray[np.float64]:
        """Return E(s), cut off at 700: beyond that masses are taken to be smaller than they are, and errors infinite."""
        return np.asarray(
            np.minimum(self.log_total - self.tilt * (sums - self.origin), 700.0)
        )


class Tilt(NamedTuple):
    """How masses are tilted and transformed, and what may lie outside the window: only how near bounds are depends on it."""

    slope: float = 0.0
    """a, >= 0, for a step of one."""
    log_outside: float = LOG_OUTSIDE
    """Logarithm of how much tilted mass may lie below the window, and above it."""
    orders: tuple[float, float] | None = None
    """At which Chernoff's bound is looked at below and above the window; without them the best ones are sought."""
    length: int = 0
    """About how many sums the window has."""
    extended: bool = False
    """Whether the transform is in extended precision."""

    def on(self, finer: float) -> Tilt:
        """Return the tilt for a grid whose steps are so many times as long."""
        orders = (
            None
            if self.orders is None
            else (self.orders[0] * finer, self.orders[1] * finer)
        )
        return self._replace(slope=self.slope * finer, orders=orders)

    @property
    def unit(self) -> float:
        """The unit u of the transform."""
        return float(np.finfo(EXTENDED if self.extended else np.float64).eps) / 2

    @classmethod
    def of(cls, masses: Array, times: int, log_tail: float) -> Tilt:
        """Return the slope that is the order of Chernoff's bound on sums of a probability.

        It is no more than half as large again as that of Gaussian noise with sums as far out, so that smaller sums are not
        lost, where a few losses have all of the mass and Chernoff's bound has no best order.
        """
        if log_tail > LOG_UNTILTED:
            return cls()
        index, mass, mean, deviation = _moments(masses, times)
        reach, order = _least_reach(index - mean, mass, times, log_tail, deviation)
        return cls(
            min(
                order,
                -3 * log_tail / max(reach, 1e-9),
                EXPONENTS[1] / max(float(index[-1]) - mean, 1.0),
            )
        )

    def towards(
        self, masses: Array, times: int, log_tail: float, threshold: float
    ) -> Tilt:
        """Return a tilt for the sums beyond a threshold, which have about a given probability.

        This one, or a part of it: where single uses may be as large as the sum, an index that is rare and large has most of
        the mass when it is tilted, and the window would have to have many of them. The cheapest transform is taken of which
        the losses remain small.
        """
        few = FEW_DEVIATIONS * _moments(masses, times)[3]
        best = math.inf, self
        for part in PARTS:
            best = min(
                best,
                self._cheapest(masses, times, log_tail, threshold, self.slope * part),
                key=itemgetter(0),
            )
            if best[0] <= few or self.slope == 0:
                break
        return best[1]

    def _cheapest(
        self, masses: Array, times: int, log_tail: float, threshold: float, slope: float
    ) -> tuple[float, Tilt]:
        """A transform in either precision, and about what it costs."""
        centre = _centre(masses)
        tilted, log_sum, _ = _tilted(masses, slope, centre)
        exponent = times * log_sum - slope * (threshold - times * centre)
        log_outside = min(max(log_tail - exponent - 20, -100.0), -20.0)
        first, end, _, orders = _window(masses, tilted, times, log_outside, None)
        tilt = Tilt(slope, log_outside, orders, end - first + 1)
        # What ``Sum.each`` is, about, for each of the sums that are as likely as the threshold or less by a factor e.
        largest = np.abs(_transform(tilted, tilt)[0])
        each = (
            500
            * times
            * float(np.mean(np.exp(times * np.log(np.maximum(largest, 1e-300)))))
        )
        lost = (
            each
            * min(tilt.length, 1 / max(slope, 1e-300))
            * math.exp(min(exponent - log_tail, 600.0))
        )
        # By its root, since windows that are ten times longer cost more of ε on a grid of so many points at most.
        return min(
            (
                (
                    tilt.length * time * max(1.0, lost * precise.unit / LOST) ** 0.5,
                    precise,
                )
                for precise, time in ((tilt, 1), (tilt._replace(extended=True), SLOWER))
            ),
            key=itemgetter(0),
        )


def repeated(masses: Array, times: int, tilt: Tilt) -> Sum:
    """Return the masses of sums of ``times`` independent indices, each of which has the given masses.

    The masses are >= 0, of the indices 0, 1, .., and need not add up to 1.

    Raises:
        AccountantError: If there are more uses than floating point can take.
    """
    if times == 1 or not masses.any():
        return Sum(0, masses, 0.0, 0.0, 0.0, 0, 0.0, 0.0)
    if times > MOST_USES:
        raise AccountantError(f"expected at most {MOST_USES:,} uses, got {times:,}")
    centre = _centre(masses)
    tilted, log_sum, off = _tilted(masses, tilt.slope, centre)
    first, end, cut, _ = _window(masses, tilted, times, tilt.log_outside, tilt.orders)
    outside = cut * math.exp(tilt.log_outside) * (1 + 1e-15)
    found, each = _sums(tilted, times, tilt._replace(length=end - first + 1))
    found = np.maximum(np.roll(found, -first)[: end - first + 1], 0.0)
    # E is off by 2^−53 of its parts, below |TL| + 745 where masses are neither cut off nor vanish; sums become doubles.
    relative = 1.02 * times * off + 2.0**-53 * (6 * times * abs(log_sum) + 4000)
    if relative > 1e-3:
        raise AccountantError(
            f"expected uses that floating point can take, got {times:,} of them; use fewer, or more noise"
        )
    return Sum(
        first,
        found,
        each,
        outside,
        tilt.slope,
        times * centre,
        times * log_sum,
        relative,
    )


def _centre(masses: Array) -> int:
    """The index that is nearest to the mean."""
    return round(float(np.dot(np.arange(len(masses)), masses) / masses.sum()))


def _tilted(
    masses: Array, tilt: float, centre: int
) -> tuple[NDArray[np.float64], float, float]:
    """The tilted masses, the logarithm L, and by how much they are off relatively."""
    exponents = tilt * (np.arange(len(masses)) - float(centre))
    largest = float(exponents[np.flatnonzero(masses)].max())
    log_sum = largest + math.log(
        float((masses * np.exp(np.minimum(exponents - largest, 0.0))).sum())
    )
    scaled = exponents - log_sum
    kept = (masses > 0) & (scaled > EXPONENTS[0])
    tilted = np.zeros(len(masses))
    tilted[kept] = masses[kept] * np.exp(scaled[kept])
    off = 2.0**-53 * (float((np.abs(exponents[kept]) + np.abs(scaled[kept])).max()) + 9)
    return tilted, log_sum, off


def _transform(
    masses: Array, tilt: Tilt
) -> tuple[NDArray[np.complexfloating], int, int]:
    """The transform of masses that are folded to a power of two, that length, and how often they are folded."""
    n = 2 ** math.ceil(math.log2(max(tilt.length, 2)))
    folds = -(-len(masses) // n)
    folded = np.zeros(folds * n, EXTENDED if tilt.extended else np.float64)
    folded[: len(masses)] = masses
    return fft.rfft(folded.reshape(folds, n).sum(axis=0)), n, folds


def _sums(masses: Array, times: int, tilt: Tilt) -> tuple[NDArray[np.float64], float]:
    """The masses of all sums that are equal modulo a power of two, and by how much each may be off."""
    transform, n, folds = _transform(masses, tilt)
    off = math.expm1(24.2 * tilt.unit * (math.log2(n) + folds))
    total = sum_above(masses)
    most = np.abs(transform).astype(np.float64) * (1 + 2.0**-50) + off * total
    relative = 3.1 * times * tilt.unit + off + times * off * total / most
    # What is rounded here is no more than a relative 1e-3: T ln a is off by less than T·8·2^−53 (1 + |ln a|).
    powers = 1.001 * np.exp(times * np.log(most))
    kept = powers > NEGLIGIBLE
    lost = np.where(kept, powers * relative, powers)
    mean = float(lost[0] + 2 * lost[1:-1].sum() + lost[-1]) / n
    product = np.zeros_like(transform)
    product[kept] = _power(transform[kept], times)
    return np.asarray(fft.irfft(product, n), np.float64), 1.001 * mean


def _power(
    values: NDArray[np.complexfloating], times: int
) -> NDArray[np.complexfloating]:
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


def _window(
    masses: Array,
    tilted: Array,
    times: int,
    log_outside: float,
    orders: tuple[float, float] | None,
) -> tuple[int, int, int, tuple[float, float]]:
    """The sums between which all but so much to either side lies when tilted, and at how many sides there is any such.

    By Chernoff's bound at the given or at the best orders, which come along; no sum is below the smallest or above the
    largest.
    """
    index, mass, mean, deviation = _moments(tilted, times)
    (below, under), (above, over) = (
        _least_reach(
            s * (index - mean),
            mass,
            times,
            log_outside,
            deviation,
            order=None if orders is None else orders[k],
        )
        for k, s in enumerate((-1.0, 1.0))
    )
    middle, (smallest, largest) = (
        times * mean,
        (times * int(k) for k in np.flatnonzero(masses)[[0, -1]]),
    )
    first = max(smallest, math.floor(middle - below - 1 - 1e-12 * middle))
    end = min(largest, math.ceil(middle + above + 1 + 1e-12 * middle))
    return first, end, (first > smallest) + (end < largest), (under, over)


def _moments(
    masses: Array, times: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """The indices that have a mass, their masses, the mean, and the standard deviation of the sum."""
    kept = np.flatnonzero(masses)
    index, mass = kept.astype(np.float64), masses[kept]
    mean = float(np.dot(index, mass) / mass.sum())
    return (
        index,
        mass,
        mean,
        math.sqrt(
            max(float(np.dot((index - mean) ** 2, mass) / mass.sum()), 1e-12) * times
        ),
    )


def _least_reach(
    beyond: Array,
    mass: Array,
    times: int,
    log_tail: float,
    deviation: float,
    *,
    order: float | None = None,
) -> tuple[float, float]:
    """How far beyond its mean a sum lies with a probability of e^``log_tail`` at most, and the order that shows it.

    P(sum >= b) <= (Σ x_j e^(λj))^T e^(−λb) for every λ > 0; the logarithm of the sum is off by less than 1e-9 + 8v·λj. As a
    function of λ the b that this needs falls, rises and is flat in the end, so steps of √2 from the best λ of Gaussian noise
    go down until it rises, far down where a few sums of little probability are very large, or up while it falls.
    """
    farthest, nearest = float(beyond.max()), float(beyond.min())
    largest = max(farthest, -nearest)

    def reach(order: float) -> float:
        log_moment = order * farthest + math.log(
            float(np.dot(mass, np.exp(order * (beyond - farthest))))
        )
        return (
            times * (log_moment + 1e-9 + 1e-15 * order * largest) - log_tail
        ) / order

    if order is not None:
        return reach(order), order
    start = max(math.sqrt(-2 * log_tail), 1.0) / deviation
    best = start, reach(start)
    for step, slack in ((2**-0.5, 1e-3), (2**0.5, -1e-3)):
        for k in range(1, MOST_STEPS):
            other = start * step**k
            found = reach(other)
            if found > best[1] + slack * abs(best[1]):
                break
            best = min(best, (other, found), key=itemgetter(1))
    return best[1], best[0]
