"""The output law of DPRR on one neighbour list: by quadrature in floating point, and enclosed in ball arithmetic.

Given the noisy degree t, the output bits are independent: a true one is released as one with probability p·q(t), a true
zero with (1−p)·q(t). So all outputs that keep k₁ of the d ones and set k₀ of the bits−d zeros (a *class*) have the same
probability, an integral over t. q is 0 for t <= 0, t/D(t) with D(t) = t(2p−1) + bits(1−p) for 0 < t < bits/2, and 1
from bits/2 on; without clipping it is also 1 for t below −bits(1−p)/(2p−1), where D is negative. Between 0 and bits/2
the four probabilities are quotients of linear functions with positive values,

    p·q = p·t/D,   1−p·q = (1−p)(bits−t)/D,   (1−p)q = (1−p)t/D,   1−(1−p)q = (t(2p−1) + (1−p)(bits−t))/D,

which loses no digits in floating point. The enclosures integrate over q instead: t = bits(1−p)q/(1−(2p−1)q) and
dt = bits(1−p)/(1−(2p−1)q)² dq, so a class is a polynomial in q times the density, smooth on each side of t = d.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from flint import acb, arb, ctx
from scipy.special import logsumexp

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import ball, precision
from auditdp.mechanism.protocol import Array

ORDER = 20  # Gauss-Legendre nodes on a panel
CHUNK = 2**21  # numbers held at once while integrating many classes


class Grid(NamedTuple):
    """Quadrature nodes with their log weights (density included) and the log probabilities of the four bit outcomes."""

    log_weight: Array
    rate: Array
    one_kept: Array
    one_lost: Array
    zero_set: Array
    zero_left: Array


@dataclass(frozen=True)
class RowLaw:
    """The law of DPRR's output on a list of ``bits`` bits of which ``degree`` are one; make it with ``row_law``.

    Args:
        scale: Laplace scale b of the noisy degree; read as the exact rational.
        keep: Probability p of keeping a bit, 1/2 <= p < 1; read as the exact rational.
        clip: Whether a negative noisy degree counts as 0.
        bits: Length of the list.
        degree: Ones in the list.
    """

    scale: float
    keep: float
    clip: bool
    bits: int
    degree: int

    def __post_init__(self) -> None:
        if not 0 <= self.degree <= self.bits:
            raise MechanismError(
                f"RowLaw: expected a degree from 0 to {self.bits}, got {self.degree}"
            )

    @cached_property
    def log_at_zero(self) -> float:
        """Log probability of q = 0."""
        log_negative = -self.degree / self.scale - np.log(2)
        return float(log_negative + np.log(-np.expm1(-self._turn / self.scale)))

    @cached_property
    def log_at_one(self) -> float:
        """Log probability of q = 1."""
        gap = (self.bits / 2 - self.degree) / self.scale
        log_above = -gap - np.log(2) if gap >= 0 else np.log1p(-np.exp(gap) / 2)
        return float(
            np.logaddexp(
                log_above, -(self.degree + self._turn) / self.scale - np.log(2)
            )
        )

    @cached_property
    def _turn(self) -> float:
        """Distance below 0 at which the unclipped denominator becomes negative.

        It is infinite if it never does.
        """
        if self.clip or self.keep == 0.5:
            return np.inf
        return self.bits * (1 - self.keep) / (2 * self.keep - 1)

    @cached_property
    def _breaks(self) -> Array:
        """Ends of the panels: fine where the integrand of some class can change fast, none wider than its peak.

        A peak in q has relative width at least 1/sqrt(bits); a decay away from 0, d or bits/2 has a rate of at most
        1/b + odds + bits/d.
        """
        end, d, bits = self.bits / 2, float(self.degree), self.bits
        odds = self.keep / (1 - self.keep)
        step = 1 / (1 / self.scale + odds + bits / max(d, 1.0) + 1)
        doublings = step * 2.0 ** np.arange(max(2, int(np.log2(bits / step)) + 2))
        ratio = 1 + min(1.0, 6 / np.sqrt(bits))
        graded = step * ratio ** np.arange(int(np.log(bits / step) / np.log(ratio)) + 2)
        even = np.linspace(0, end, max(8, int(np.sqrt(bits)) + 1))
        points = np.concatenate(
            [even, graded, [d], d - doublings, d + doublings, end - doublings]
        )
        return np.unique(points[(points >= 0) & (points <= end)])

    @cached_property
    def _grid(self) -> Grid:
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        low, high = self._breaks[:-1, None], self._breaks[1:, None]
        t = ((low + high) / 2 + (high - low) / 2 * nodes).ravel()
        weight = ((high - low) / 2 * weights).ravel()
        p, lose, bits = self.keep, 1 - self.keep, self.bits
        bottom = t * (2 * p - 1) + bits * lose
        log_density = -np.abs(t - self.degree) / self.scale - np.log(2 * self.scale)
        return Grid(
            np.log(weight) + log_density,
            t / bottom,
            np.log(p * t / bottom),
            np.log(lose * (bits - t) / bottom),
            np.log(lose * t / bottom),
            np.log((t * (2 * p - 1) + lose * (bits - t)) / bottom),
        )

    @cached_property
    def _known(self) -> dict[tuple[int, int], float]:
        return {}

    def log_prob(self, ones_kept: Array, zeros_set: Array) -> Array:
        """Return the log probability of one output of each class (k₁, k₀), relative error about 1e-11.

        Composite Gauss-Legendre quadrature, all new classes at once; what was computed once is remembered.
        """
        classes = list(
            zip(
                np.asarray(ones_kept).tolist(),
                np.asarray(zeros_set).tolist(),
                strict=True,
            )
        )
        if new := sorted(set(classes) - self._known.keys()):
            width = max(1, CHUNK // len(self._grid.rate))
            for start in range(0, len(new), width):
                part = new[start : start + width]
                self._known.update(
                    zip(part, self._integrate(np.array(part)).tolist(), strict=True)
                )
        return np.array([self._known[c] for c in classes])

    def _integrate(self, classes: Array) -> Array:
        k1, k0 = classes.T
        lost, left = self.degree - k1, self.bits - self.degree - k0
        if (np.stack([k1, k0, lost, left]) < 0).any():
            raise MechanismError(
                f"RowLaw: a class is impossible for degree {self.degree} of {self.bits} bits"
            )
        g = self._grid
        logs = np.stack([g.one_kept, g.one_lost, g.zero_set, g.zero_left]).T @ np.stack(
            [k1, lost, k0, left]
        )
        between = logsumexp(logs + g.log_weight[:, None], axis=0)
        log_keep, log_lose = np.log(self.keep), np.log(1 - self.keep)
        at_one = self.log_at_one + (k1 + left) * log_keep + (lost + k0) * log_lose
        at_zero = np.where(k1 + k0 == 0, self.log_at_zero, -np.inf)
        return np.logaddexp(np.logaddexp(between, at_one), at_zero)

    @cached_property
    def rate_moments(self) -> tuple[float, float]:
        """E[q] and E[q²]."""
        weight, at_one = np.exp(self._grid.log_weight), np.exp(self.log_at_one)
        return tuple(
            float(weight @ self._grid.rate**power + at_one) for power in (1, 2)
        )  # type: ignore[return-value]

    @cached_property
    def _balls(self) -> dict[tuple[int, int, int], arb]:
        return {}

    def enclosure(self, ones_kept: int, zeros_set: int) -> arb:
        """Return a ball that contains the probability of one output of the class, rigorously.

        The atoms at q = 0 and q = 1 are exact exponentials. The pieces between are enclosed by ``acb.integral`` on each
        side of t = d, where the integrand is analytic but at q = 1/(2p−1) > 1; there ball division is not finite, which
        is how the integrator is told. The point that splits them is itself a ball: any point of it gives the same sum.
        The float estimate only sets the tolerance, so it cannot make the ball wrong.
        """
        key = (ones_kept, zeros_set, max(ctx.prec, 64))
        if key not in self._balls:
            estimate = float(self.log_prob([ones_kept], [zeros_set])[0])
            with precision(key[2]):
                self._balls[key] = self._enclose(ones_kept, zeros_set, estimate)
        return self._balls[key]

    def _enclose(self, k1: int, k0: int, estimate: float) -> arb:
        p, b, d, bits = (
            ball(Fraction(self.keep)),
            ball(Fraction(self.scale)),
            self.degree,
            self.bits,
        )
        lose, end = 1 - p, ball(Fraction(bits, 2))
        lost, left = d - k1, bits - d - k0
        constant = p**k1 * lose**k0 * bits * lose / (2 * b)

        def integrand(sign: int) -> Any:
            def value(q: acb, _: bool) -> acb:
                bottom = 1 - (2 * p - 1) * q
                density = ((bits * lose * q / bottom - d) * sign / b).exp() / bottom**2
                return (
                    q ** (k1 + k0)
                    * (1 - p * q) ** lost
                    * (1 - lose * q) ** left
                    * density
                )

            return value

        tolerance = arb(2) ** -ctx.prec * (arb(estimate).exp() / constant).mid()
        kink = d / (d * (2 * p - 1) + bits * lose)
        pieces = (
            [(arb(0), kink, 1), (kink, arb(1), -1)]
            if 2 * d < bits
            else [(arb(0), arb(1), 1)]
        )
        between = sum(
            (
                acb.integral(
                    integrand(sign), acb(low), acb(high), abs_tol=tolerance
                ).real
                for low, high, sign in pieces
            ),
            arb(0),
        )
        far = arb(0)
        if not self.clip and self.keep > 0.5:
            far = (-(d + bits * lose / (2 * p - 1)) / b).exp() / 2
        above = (
            (-(end - d) / b).exp() / 2
            if 2 * d <= bits
            else 1 - ((end - d) / b).exp() / 2
        )
        total = constant * between + (above + far) * p ** (k1 + left) * lose ** (
            lost + k0
        )
        return total + (-d / b).exp() / 2 - far if k1 + k0 == 0 else total


@lru_cache(maxsize=256)
def row_law(scale: float, keep: float, clip: bool, bits: int, degree: int) -> RowLaw:
    """Return the law of a row, with its cached results."""
    return RowLaw(scale, keep, clip, bits, degree)
