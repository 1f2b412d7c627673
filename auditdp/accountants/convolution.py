"""The law of a sum of T independent copies, as a power of a discrete Fourier transform.

One copy is the privacy loss of one use of the data, as an index of a grid. The error of
every mass of the sum is bounded.

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
  2007, "Error Bounds on Complex Floating-Point Multiplication", Math. Comp. 76). A root
  is off by √5 u + 6u, since pocketfft computes it as a product of two roots, each off
  by a unit of its angle and two units of its sine and cosine. A sum is off by u. 12u
  covers these three. Twice that is charged, since a library may compute the transform
  of n reals by a complex one of length n/2, where each X_k is half a sum and half a
  difference of two numbers. So X_k is off by e = ((1 + 24u)^t − 1) Σ y_j at most.
  (Passes over four or eight at a time do the work of two or three halvings with fewer
  products. Masses longer than n are first folded; each fold is one more addition.)
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
    # This is extended precision of x87 or IEEE. A pair of doubles has another mantissa,
    # and does not round to nearest.
    EXTENDED = np.longdouble

MAX_USES = 10**9
"""Largest number of uses; with more uses the bound on the relative error is useless."""


class Sum(NamedTuple):
    """The tilted masses of the sums s in a window that has nearly all of the mass.

    The mass of s is its tilted mass times e^``exponent(s)``. The symbols are those of
    the module.
    """

    first: int
    """The sum to which ``masses[0]`` belongs."""
    masses: Floats
    """Tilted mass of each sum from ``first`` on, >= 0."""
    each: float = 0.0
    """Bound on the error of each tilted mass, apart from mass that wrapped around."""
    outside: float = 0.0
    """Bound on the tilted mass of sums outside the window.

    The transform may have added some of this mass to sums in the window ("wrapped
    around").
    """
    tilt: float = 0.0
    """Rate a >= 0 of the tilt: each step of the index multiplies masses by e^a."""
    origin: int = 0
    """Tc, the sum s at which the exponent E(s) is ``log_total``."""
    log_total: float = 0.0
    """TL, the exponent E(s) at ``origin``."""
    relative: float = 0.0
    """Bound on the relative error that the tilt adds to each mass."""

    def exponent(self, sums: Floats) -> Floats:
        """Return E(s) for each sum s: the logarithm of its mass over its tilted mass.

        It is at most 700, so that e^E(s) does not overflow. At 700 a mass is taken to
        be smaller than it is. The error of a mass is then larger than 1, so that a
        bound from it stays valid.
        """
        exponents = self.log_total - self.tilt * (sums - self.origin)
        return np.minimum(exponents, 700.0)


class Tilt(NamedTuple):
    """Options of the tilt and of the transform; they affect only the tightness."""

    slope: float = 0.0
    """Rate a >= 0 of the tilt: each step of the index multiplies masses by e^a."""
    log_outside: float = -42.0
    """Natural logarithm of the largest tilted mass on each side of the window.

    The default stands for 6e-19.
    """
    orders: tuple[float, float] | None = None
    """Orders λ of Chernoff's bound below and above the window; None for the best."""
    length: int = 0
    """Approximate number of sums in the window."""
    extended: bool = False
    """True if the transform is in extended precision."""

    def on(self, finer: float) -> Tilt:
        """Return the same tilt for a finer grid.

        Args:
            finer: The new length of a step, divided by the old one, <= 1.
        """
        tilt = self._replace(slope=self.slope * finer)
        if self.orders is None:
            return tilt
        below, above = self.orders
        return tilt._replace(orders=(below * finer, above * finer))

    @property
    def number_type(self) -> type[np.floating[Any]]:
        """The floating-point type of the transform."""
        return EXTENDED if self.extended else np.float64

    @property
    def unit(self) -> float:
        """u, the relative error of one operation of the transform."""
        return float(np.finfo(self.number_type).eps) / 2

    @classmethod
    def of(cls, masses: Floats, times: int, log_tail: float) -> Tilt:
        """Return the tilt for sums whose upper tail has probability e^``log_tail``.

        ``masses`` is the law of one use, and ``times`` the number of uses. There is no
        tilt for ``log_tail`` > −5. Otherwise its slope is the best order λ of
        Chernoff's bound on this tail. It is limited to 1.5 times the order of a
        Gaussian law whose tail begins at the same distance. If a few losses have all of
        the mass, Chernoff's bound has no best order, and without the limit the smaller
        sums would be lost.
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
        """Return a cheap tilt that is precise for the sums above a threshold.

        Its slope is this slope or a fraction of it. If one use may be as large as the
        sum, then a rare and large index has most of the tilted mass, and the window
        would have to contain many copies of it. The cheapest transform whose errors
        remain small is chosen.

        Args:
            masses: The law of one use.
            times: The number of uses.
            log_tail: Approximate logarithm of the probability of the sums above the
                threshold.
            threshold: The index above which sums should be precise.
        """
        # The window of a Gaussian law has 20 to 30 standard deviations, so a window of
        # 40 is short enough to stop the search.
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
        """Return the relative cost and the tilt for a slope, in the cheaper precision.

        The other arguments are those of ``towards``.
        """
        centre = _centre(masses)
        tilted, log_sum, _ = _tilted(masses, slope, centre)
        exponent = times * log_sum - slope * (threshold - times * centre)
        log_outside = min(max(log_tail - exponent - 20, -100.0), -20.0)
        window = _window(masses, tilted, times, log_outside, None)
        length = window.end - window.first + 1
        tilt = Tilt(slope, log_outside, window.orders, length)
        # ``each`` is about ``Sum.each``. It is added up over the sums that are at most
        # e times as likely as the threshold.
        largest = np.maximum(np.abs(_transform(tilted, tilt)[0]), 1e-300)
        each = 500 * times * float(np.mean(np.exp(times * np.log(largest))))
        sums = min(length, 1 / max(slope, 1e-300))
        lost = each * sums * math.exp(min(exponent - log_tail, 600.0))
        costs = []
        # A transform in extended precision takes five times longer.
        for precise, time in ((tilt, 1), (tilt._replace(extended=True), 5)):
            # An error beyond 1e-4 of the wanted probability is penalised by its root
            # only: a window that is ten times longer would cost more of ε on a grid
            # with a limited number of points.
            penalty = max(1.0, lost * precise.unit / 1e-4) ** 0.5
            costs.append((length * time * penalty, precise))
        return min(costs, key=itemgetter(0))


def repeated(masses: Floats, times: int, tilt: Tilt) -> Sum:
    """Return the tilted masses of the sum of ``times`` independent indices.

    For ``times`` = 1 the masses are returned without a tilt.

    Args:
        masses: Masses >= 0 of the indices 0, 1, ...; they need not add up to 1.
        times: T, the number of indices that are added.
        tilt: The options of the tilt and of the transform.

    Raises:
        AccountantError: If T is so large that the relative error is not small.
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
    # E is off by 2^−53 of its parts, and by the conversion of sums to doubles. The parts
    # are below |TL| + 745 for masses that are neither cut off nor zero.
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
    """Return the index that is nearest to the mean."""
    return round(float(np.dot(np.arange(len(masses)), masses) / masses.sum()))


def _tilted(masses: Floats, tilt: float, centre: int) -> tuple[Floats, float, float]:
    """Return the tilted masses, L, and a bound on the masses' relative error.

    ``tilt`` is a, and ``centre`` is c of the module's formulas.
    """
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

    The length is a power of two. Folded masses are summed over equal indices modulo
    this length.
    """
    n = 2 ** math.ceil(math.log2(max(tilt.length, 2)))
    folds = -(-len(masses) // n)
    folded = np.zeros(folds * n, tilt.number_type)
    folded[: len(masses)] = masses
    return fft.rfft(folded.reshape(folds, n).sum(axis=0)), n, folds


def _sums(masses: Floats, times: int, tilt: Tilt) -> tuple[Floats, float]:
    """Return the masses of sums modulo a power of two, and a bound on their errors."""
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
    # All coefficients but the first and the last stand for a conjugate one as well.
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
    """The range of sums that has nearly all of the tilted mass.

    ``first`` and ``end`` are the smallest and the largest sum in the range.
    """

    first: int
    end: int
    open_sides: int
    """The number of sides, 0 to 2, on which possible sums lie outside the range."""
    orders: tuple[float, float]
    """The orders λ of Chernoff's bounds by which the two ends were chosen."""


def _window(
    masses: Floats,
    tilted: Floats,
    times: int,
    log_outside: float,
    orders: tuple[float, float] | None,
) -> Window:
    """Return the window by Chernoff's bound, with the given or the best orders.

    It never extends beyond the smallest and the largest possible sum. ``log_outside``
    and ``orders`` are explained by ``Tilt``.
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
    """A law of one use, and tail bounds on the sum of ``times`` independent uses.

    Attributes:
        times: The number of uses.
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
        """Return a distance from the mean that the sum exceeds with small probability.

        The probability is at most e^``log_tail``, by Chernoff's bound for an order λ:
        P(sum >= b) <= (Σ x_j e^(λj))^T e^(−λb) for every λ > 0; the logarithm of the
        sum is off by less than 1e-9 + 8v·λj. The smallest b that this bound gives
        first falls in λ, then rises, and is flat in the end. The search begins at the
        best λ of a Gaussian law. It goes down in steps of √2 until b rises, and then up
        while b falls. The best λ is far below if a few improbable indices are very
        large.

        Args:
            side: 1 for sums above the mean, −1 for sums below it.
            log_tail: The logarithm of the probability.
            order: λ; None to search for the best one.

        Returns:
            The distance of b from the mean of the sum, and λ.
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
