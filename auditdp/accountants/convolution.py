"""The law of a sum of independent uses: a power of one discrete Fourier transform.

The error of every mass is bounded.

*Tilt.* The error of a transform is relative to all of the mass, and δ is a small part
of it. So the masses x_j >= 0 are first multiplied by e^(aj), divided by about their
sum. Multiplying by a power of the index commutes with adding indices: with
y_j = x_j e^(a(j−c) − L) the T-fold sums are

    (x∗…∗x)_s = (y∗…∗y)_s e^(E(s)),   E(s) = TL − a(s − Tc),

and for tilted sums with their mean near s, e^E(s) is Chernoff's bound of the mass
beyond s: the error there is relative to that bound. In doubles (v = 2^−53; a and L are
doubles, and so are exact) y_j is off by v(|a(j−c)| + |a(j−c) − L| + 9) relatively: an
exponent by its parts, an exponential function by 4 units in the last place. Masses
whose exponent is below −690 are dropped, which is less than e^−690 each and far below
the errors that are charged next.

Write X for the transform of y of length n, and u for the unit of its arithmetic: 2^−53,
or 2^−64 where the error of doubles matters and the platform has extended precision.

- *Transform.* A fast transform of length n = 2^t sends every y_j to every X_k along one
  path, which in each of t halvings meets one multiplication by a root of unity and one
  addition. A complex product is off by √5 u relatively (Brent, Percival & Zimmermann
  2007, "Error Bounds on Complex Floating-Point Multiplication", Math. Comp. 76), a root
  by as much and 6u, as pocketfft multiplies it of two, each off by a unit of its angle
  and two of its sine and cosine, a sum by u; 12u covers them. Twice that is charged: a
  library may make one transform of n reals of a complex one of n/2, where each X_k is
  half a sum and half a difference of two numbers. So X_k is off by e = ((1 + 24u)^t −
  1) Σ y_j at most. (Passes over four or eight at a time do the work of two or three
  halvings with fewer products. Masses longer than n are first folded; each fold is one
  more addition.)
- *Power.* By repeated squaring, off by (1 + √5 u)^(T−1) − 1 relatively. With |X_k| <=
  a_k, the power is off by T e a_k^(T−1) + 3Tu·a_k^T at most, if 3Tu is small.
- *Inverse.* Each mass is a mean over the n frequencies, so it is off by the mean of
  that, and by ((1 + 24u)^t − 1) times the mean of |X_k|^T.

For the grids of accountants most a_k^T vanish, are taken to be 0, and are charged in
full. The whole is of the order of 100 Tu times the largest tilted mass.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from auditdp.accountants.normal_quantiles import sum_above
from auditdp.accountants.parameter_checks import AccountantError
from auditdp.numerics.arrays import Floats

EXTENDED: type[np.floating[Any]] = np.float64
"""The widest arithmetic that rounds to nearest."""
if np.finfo(np.longdouble).nmant in (63, 112):
    # That of x87 or of IEEE, and not a pair of doubles.
    EXTENDED = np.longdouble

MAX_USES = 10**9
"""More uses are refused, since their relative error is not small."""


class Sum(NamedTuple):
    """The tilted masses of sums in a window that has nearly all of them.

    The mass of s is its tilted mass times e^``exponent(s)``.
    """

    first: int
    """The sum that has the first mass."""
    masses: Floats
    """Tilted mass of each sum from ``first`` on, >= 0."""
    each: float = 0.0
    """Bound on the error of each mass, except for mass that has wrapped around."""
    outside: float = 0.0
    """Bound on the tilted mass elsewhere, some of which may have wrapped around."""
    tilt: float = 0.0
    """a, >= 0, for a step of one."""
    origin: int = 0
    """Tc."""
    log_total: float = 0.0
    """TL."""
    relative: float = 0.0
    """Bound on the relative error of the masses by the tilt."""

    def exponent(self, sums: Floats) -> Floats:
        """Return E(s), at most 700.

        Beyond that masses are taken to be smaller than they are, and errors infinite.
        """
        exponents = self.log_total - self.tilt * (sums - self.origin)
        return np.minimum(exponents, 700.0)


class Tilt(NamedTuple):
    """The tilt and the transform of masses, which affect only tightness."""

    slope: float = 0.0
    """a, >= 0, for a step of one."""
    log_outside: float = -42.0
    """Logarithm of the mass that may lie below the window, and above it: 6e-19."""
    orders: tuple[float, float] | None = None
    """Orders of Chernoff's bound below and above the window; None for the best ones."""
    length: int = 0
    """Approximate number of sums in the window."""
    extended: bool = False
    """True if the transform is in extended precision."""

    def on(self, finer: float) -> Tilt:
        """Return the tilt for a grid whose steps are ``finer`` times as long."""
        tilt = self._replace(slope=self.slope * finer)
        if self.orders is None:
            return tilt
        below, above = self.orders
        return tilt._replace(orders=(below * finer, above * finer))

    @property
    def number_type(self) -> type[np.floating[Any]]:
        """The arithmetic of the transform."""
        return EXTENDED if self.extended else np.float64

    @property
    def unit(self) -> float:
        """The unit u of the transform."""
        return float(np.finfo(self.number_type).eps) / 2

    @classmethod
    def of(cls, masses: Floats, times: int, log_tail: float) -> Tilt:
        """Return the order of Chernoff's bound on sums of a probability, as a tilt.

        It is no more than half as large again as that of Gaussian noise with sums as
        far out, so that smaller sums are not lost if a few losses have all of the mass
        and Chernoff's bound has no best order.
        """
        # A transform without a tilt keeps enough digits of such a probability.
        if log_tail > -5:
            return cls()
        law = Moments(masses, times)
        reach, order = law.reach(1, log_tail)
        largest = float(law.index[-1]) - law.mean
        gaussian = -3 * log_tail / max(reach, 1e-9)
        # Exponents of the tilt stay below 600, since doubles end at e^709.
        return cls(min(order, gaussian, 600 / max(largest, 1.0)))

    def towards(
        self, masses: Floats, times: int, log_tail: float, threshold: float
    ) -> Tilt:
        """Return a tilt for the sums beyond a threshold.

        The result is this tilt or a part of it: if single uses may be as large as the
        sum, an index that is rare and large has most of the mass when it is tilted, and
        the window would have to contain many of them. The cheapest transform whose
        errors remain small is taken.

        Args:
            masses: The law of one use.
            times: The number of uses.
            log_tail: About the logarithm of the probability of the sums beyond the
                threshold.
            threshold: The threshold.
        """
        # The window of Gaussian noise has 20 to 30 standard deviations: 40 are as few
        # as any.
        cheap = 40 * Moments(masses, times).deviation
        best = math.inf, self
        for part in (1.0, 0.5, 0.25, 0.1, 0.03, 0.0):
            slope = self.slope * part
            candidate = self._cheapest(masses, times, log_tail, threshold, slope)
            best = min(best, candidate, key=itemgetter(0))
            if best[0] <= cheap or self.slope == 0:
                break
        return best[1]

    def _cheapest(
        self,
        masses: Floats,
        times: int,
        log_tail: float,
        threshold: float,
        slope: float,
    ) -> tuple[float, Tilt]:
        """Return the approximate cost of the cheaper precision, and its tilt."""
        centre = _centre(masses)
        tilted, log_sum, _ = _tilted(masses, slope, centre)
        exponent = times * log_sum - slope * (threshold - times * centre)
        log_outside = min(max(log_tail - exponent - 20, -100.0), -20.0)
        window = _window(masses, tilted, times, log_outside, None)
        length = window.end - window.first + 1
        tilt = Tilt(slope, log_outside, window.orders, length)
        # About ``Sum.each``, for the sums that are at most e times as likely as the
        # threshold.
        largest = np.maximum(np.abs(_transform(tilted, tilt)[0]), 1e-300)
        each = 500 * times * float(np.mean(np.exp(times * np.log(largest))))
        sums = min(length, 1 / max(slope, 1e-300))
        lost = each * sums * math.exp(min(exponent - log_tail, 600.0))
        costs = []
        # A transform in extended precision takes five times longer.
        for precise, time in ((tilt, 1), (tilt._replace(extended=True), 5)):
            # Errors count from 1e-4 of the wanted probability on, and by their root,
            # since windows that are ten times longer cost more of ε on a grid with a
            # limited number of points.
            penalty = max(1.0, lost * precise.unit / 1e-4) ** 0.5
            costs.append((length * time * penalty, precise))
        return min(costs, key=itemgetter(0))


def repeated(masses: Floats, times: int, tilt: Tilt) -> Sum:
    """Return the masses of sums of ``times`` independent indices.

    The masses are >= 0, of the indices 0, 1, .., and need not add up to 1.

    Raises:
        AccountantError: If there are more uses than floating point can take.
    """
    if times == 1 or not masses.any():
        return Sum(0, masses)
    if times > MAX_USES:
        raise AccountantError(f"expected at most {MAX_USES:,} uses, got {times:,}")
    centre = _centre(masses)
    tilted, log_sum, off = _tilted(masses, tilt.slope, centre)
    window = _window(masses, tilted, times, tilt.log_outside, tilt.orders)
    length = window.end - window.first + 1
    outside = window.open_sides * math.exp(tilt.log_outside) * (1 + 1e-15)
    # The transform has the sums modulo its length; the window says which ones they are.
    wrapped, each = _sums(tilted, times, tilt._replace(length=length))
    unwrapped = np.maximum(np.roll(wrapped, -window.first)[:length], 0.0)
    # E is off by 2^−53 of its parts, below |TL| + 745 where masses are neither cut off
    # nor vanish; sums become doubles.
    relative = 1.02 * times * off + 2.0**-53 * (6 * times * abs(log_sum) + 4000)
    if relative > 1e-3:
        raise AccountantError(
            f"expected uses that floating point can take, got {times:,} of them; use fewer, "
            "or more noise"
        )
    return Sum(
        window.first,
        unwrapped,
        each,
        outside,
        tilt.slope,
        times * centre,
        times * log_sum,
        relative,
    )


def _centre(masses: Floats) -> int:
    """The index that is nearest to the mean."""
    return round(float(np.dot(np.arange(len(masses)), masses) / masses.sum()))


def _tilted(masses: Floats, tilt: float, centre: int) -> tuple[Floats, float, float]:
    """Return the tilted masses, the logarithm L, and their relative error."""
    exponents = tilt * (np.arange(len(masses)) - float(centre))
    # The largest exponent is factored out, so that no term overflows.
    largest = float(exponents[np.flatnonzero(masses)].max())
    total = (masses * np.exp(np.minimum(exponents - largest, 0.0))).sum()
    log_sum = largest + math.log(float(total))
    scaled = exponents - log_sum
    # Doubles end at e^−745.
    significant = (masses > 0) & (scaled > -690)
    tilted = np.zeros(len(masses))
    tilted[significant] = masses[significant] * np.exp(scaled[significant])
    parts = float((np.abs(exponents[significant]) + np.abs(scaled[significant])).max())
    return tilted, log_sum, 2.0**-53 * (parts + 9)


def _transform(masses: Floats, tilt: Tilt) -> tuple[Any, int, int]:
    """Return the transform of folded masses, its length and the number of folds.

    The length is a power of two.
    """
    n = 2 ** math.ceil(math.log2(max(tilt.length, 2)))
    folds = -(-len(masses) // n)
    folded = np.zeros(folds * n, tilt.number_type)
    folded[: len(masses)] = masses
    return fft.rfft(folded.reshape(folds, n).sum(axis=0)), n, folds


def _sums(masses: Floats, times: int, tilt: Tilt) -> tuple[Floats, float]:
    """Return the masses of sums modulo a power of two, and the error of each."""
    transform, n, folds = _transform(masses, tilt)
    off = math.expm1(24.2 * tilt.unit * (math.log2(n) + folds))
    total = sum_above(masses)
    largest = np.abs(transform).astype(np.float64) * (1 + 2.0**-50) + off * total
    relative = 3.1 * times * tilt.unit + off + times * off * total / largest
    # The powers are rounded by no more than a relative 1e-3: T ln a is off by less than
    # T·8·2^−53 (1 + |ln a|).
    powers = 1.001 * np.exp(times * np.log(largest))
    # Smaller powers are not computed.
    significant = powers > 1e-40
    lost = np.where(significant, powers * relative, powers)
    mean = float(lost[0] + 2 * lost[1:-1].sum() + lost[-1]) / n
    product = np.zeros_like(transform)
    product[significant] = _power(transform[significant], times)
    return np.asarray(fft.irfft(product, n), np.float64), 1.001 * mean


def _power(values: Any, times: int) -> Any:
    """Return ``values**times`` for times >= 1, by repeated squaring."""
    product: Any = 1
    while times > 1:
        if times & 1:
            product = product * values
        times >>= 1
        values = values * values
    return product * values


class Window(NamedTuple):
    """The sums between which nearly all of the tilted mass lies."""

    first: int
    end: int
    open_sides: int
    """The number of sides on which any sums lie outside."""
    orders: tuple[float, float]
    """The orders of Chernoff's bound below and above."""


def _window(
    masses: Floats,
    tilted: Floats,
    times: int,
    log_outside: float,
    orders: tuple[float, float] | None,
) -> Window:
    """Return the window, by Chernoff's bound at the given or at the best orders.

    No sum is below the smallest or above the largest.
    """
    law = Moments(tilted, times)
    order_below, order_above = orders or (None, None)
    below, order_below = law.reach(-1, log_outside, order_below)
    above, order_above = law.reach(1, log_outside, order_above)
    possible = np.flatnonzero(masses)
    smallest, largest = times * int(possible[0]), times * int(possible[-1])
    middle = times * law.mean
    first = max(smallest, math.floor(middle - below - 1 - 1e-12 * middle))
    end = min(largest, math.ceil(middle + above + 1 + 1e-12 * middle))
    open_sides = (first > smallest) + (end < largest)
    return Window(first, end, open_sides, (order_below, order_above))


class Moments:
    """A law of one use, and the mean and standard deviation of its sum.

    Attributes:
        index: The indices that have a mass.
        mass: Their masses.
        mean: The mean of one use.
        deviation: The standard deviation of the sum.
    """

    def __init__(self, masses: Floats, times: int) -> None:
        support = np.flatnonzero(masses)
        self.times = times
        self.index, self.mass = support.astype(np.float64), masses[support]
        total = self.mass.sum()
        self.mean = float(np.dot(self.index, self.mass) / total)
        variance = float(np.dot((self.index - self.mean) ** 2, self.mass) / total)
        self.deviation = math.sqrt(max(variance, 1e-12) * times)

    def reach(
        self, side: int, log_tail: float, order: float | None = None
    ) -> tuple[float, float]:
        """Return a distance that the sum exceeds with probability <= e^``log_tail``.

        P(sum >= b) <= (Σ x_j e^(λj))^T e^(−λb) for every λ > 0; the logarithm of the
        sum is off by less than 1e-9 + 8v·λj. As a function of λ the b that this needs
        falls, rises and is flat in the end, so steps of √2 from the best λ of Gaussian
        noise go down until it rises, far down where a few sums of little probability
        are very large, or up while it falls.

        Args:
            side: 1 for sums above the mean, −1 for sums below it.
            log_tail: The logarithm of the probability.
            order: λ; None to search for the best one.

        Returns:
            b, beyond the mean, and λ.
        """
        beyond = float(side) * (self.index - self.mean)
        farthest, nearest = float(beyond.max()), float(beyond.min())
        largest = max(farthest, -nearest)

        def reach(order: float) -> float:
            # The largest exponential is factored out, so that no term overflows.
            moment = np.dot(self.mass, np.exp(order * (beyond - farthest)))
            log_moment = order * farthest + math.log(float(moment))
            log_moment = log_moment + 1e-9 + 1e-15 * order * largest
            return (self.times * log_moment - log_tail) / order

        if order is not None:
            return reach(order), order
        start = max(math.sqrt(-2 * log_tail), 1.0) / self.deviation
        best = reach(start), start
        for step, slack in ((2**-0.5, 1e-3), (2**0.5, -1e-3)):
            for k in range(1, 80):
                candidate = start * step**k
                distance = reach(candidate)
                if distance > best[0] + slack * abs(best[0]):
                    break
                best = min(best, (distance, candidate), key=itemgetter(0))
        return best
