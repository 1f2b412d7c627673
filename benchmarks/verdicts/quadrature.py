"""True losses of classes of mechanisms: trainings by quadrature, and bounded classes.

A quadrature is in floats, sums one step after the other, and shares no code with the accountants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from flint import arb
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from benchmarks.verdicts.truth import INFINITE, Limits, floating, inverse


@dataclass(frozen=True)
class Concentrated:
    """Bounds of ρ-zCDP for all its mechanisms, by the conversion at many orders."""

    value: float

    def delta(self, epsilon: arb) -> Limits:
        """Return Proposition 12 of Canonne, Kamath & Steinke (2020) at the best of many orders, up to 1 %."""
        orders = 1 + np.geomspace(1e-3, 1e4, 4_000)
        logs = (
            (orders - 1) * (orders * self.value - float(epsilon))
            + orders * np.log1p(-1 / orders)
            - np.log(orders - 1)
        )
        return arb(0), arb(min(1.0, math.exp(min(0.0, float(logs.min()))) * 1.0))

    def epsilon(self, delta: arb) -> Limits:
        """Return the inverse."""
        return arb(0), inverse(lambda e: self.delta(e)[1], delta)[1]

    def mu(self) -> Limits:
        """Return no bound: zCDP implies no Gaussian curve."""
        return arb(0), INFINITE

    def renyi(self, order: arb) -> Limits:
        """Return αρ."""
        return arb(0), order * arb(self.value)

    def rho(self) -> Limits:
        """Return ρ."""
        return arb(0), arb(self.value)


@dataclass(frozen=True)
class CurveOf:
    """The curve of a pair's worse order is exact, and all else only a lower bound."""

    pair: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        of = getattr(self.pair, name)
        return (
            of
            if name in ("delta", "epsilon")
            else lambda *given: (of(*given)[0], INFINITE)
        )


@dataclass(frozen=True)
class Nothing:
    """No lower bound."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_: (arb(0), INFINITE)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PIECES, REACH = 64, 11.0


@dataclass(frozen=True)
class Mixture:
    """Repeated steps with a mixture of N(m_i, σ²) on one input and N(0, σ²) on the other.

    Attributes:
        sigma: σ.
        means: m_i >= 0.
        shares: Their probabilities.
        steps: How many, one or two.
        error: Relative error that is granted.
    """

    sigma: float
    means: tuple[float, ...]
    shares: tuple[float, ...]
    steps: int
    error: float = 1e-6

    @cached_property
    def _points(self) -> tuple[Any, Any, Any]:
        """Abscissas with the weights of both laws there, and the loss."""
        low, high = -REACH * self.sigma, max(self.means) + REACH * self.sigma
        ends = np.linspace(
            low, high, PIECES * math.ceil((high - low) / (24 * self.sigma)) + 1
        )
        half = np.diff(ends) / 2
        x = (ends[:-1] + half)[:, None] + half[:, None] * NODES
        weight = (half[:, None] * WEIGHTS).ravel()
        x = x.ravel()
        without = (
            weight
            * np.exp(-((x / self.sigma) ** 2) / 2)
            / (self.sigma * math.sqrt(2 * math.pi))
        )
        loss = self._loss(x)
        return without * np.exp(loss), without, loss

    def _loss(self, x: Any) -> Any:
        """The log ratio of the mixture to the other law, which rises with x."""
        terms = [
            math.log(share) + (x - m / 2) * m / self.sigma**2
            for m, share in zip(self.means, self.shares, strict=True)
            if share > 0
        ]
        return logsumexp(np.array(terms), axis=0)

    @cached_property
    def _table(self) -> tuple[Any, Any]:
        x = np.linspace(
            -12 * self.sigma - 40, max(self.means) + 12 * self.sigma, 40_001
        )
        return x, np.maximum.accumulate(self._loss(x))

    def _one(self, epsilon: Any, *, removed: bool) -> Any:
        """δ of one step at any ε, in one order: the loss rises, so the event is a half-line."""
        epsilon = np.asarray(epsilon, float)
        # No event is better, so an error of the threshold costs its square.
        x, losses = self._table
        at, sign = (
            np.interp(epsilon if removed else -epsilon, losses, x),
            -1.0 if removed else 1.0,
        )
        mixed = sum(
            s * ndtr(sign * (at - m) / self.sigma)
            for m, s in zip(self.means, self.shares, strict=True)
        )
        plain_log = log_ndtr(sign * at / self.sigma)
        if removed:
            return np.maximum(mixed - np.exp(np.minimum(epsilon + plain_log, 700)), 0.0)
        with np.errstate(divide="ignore"):
            return np.maximum(
                np.exp(plain_log) - np.exp(np.minimum(epsilon + np.log(mixed), 700)),
                0.0,
            )

    def _of(self, epsilon: Any, steps: int, *, removed: bool) -> Any:
        if steps == 1:
            return self._one(epsilon, removed=removed)
        mixed, plain, loss = self._points
        weight, moved = (mixed, loss) if removed else (plain, -loss)
        kept = weight > 1e-18
        inner = self._of(
            np.asarray(epsilon)[..., None] - moved[kept], steps - 1, removed=removed
        )
        return (weight[kept] * inner).sum(axis=-1)

    @cache  # noqa: B019  # a pair lives as long as its case
    def _delta(self, epsilon: float) -> float:
        return max(
            float(self._of(epsilon, self.steps, removed=removed))
            for removed in (True, False)
        )

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε), with an absolute error beside the relative one."""
        found = self._delta(float(epsilon))
        low, high = floating(found, self.error)
        return (low - 1e-13).max(arb(0)), high + 1e-13

    def epsilon(self, delta: arb) -> Limits:
        """Return the inverse; infinite for δ = 0."""
        if not delta > 0:
            return INFINITE, INFINITE
        if not delta > 1e-10:
            return arb(0), INFINITE
        low, high = 0.0, 1.0
        while self._delta(high) > float(delta) and high < 200:
            low, high = high, 2 * high
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self._delta(middle) <= float(delta) else (middle, high)
            )
        return (arb(low) * (1 - arb(1e-5)) - 1e-6).max(arb(0)), arb(high) * (
            1 + arb(1e-5)
        ) + 1e-6

    def mu(self) -> Limits:
        """Return a lower bound from a grid of thresholds of one step, which all steps lose at least."""
        worst = 0.0
        for x in np.linspace(-3 * self.sigma, max(self.means) + 4 * self.sigma, 200):
            tails = [ndtr(-(x - m) / self.sigma) for m in self.means]
            p, q = float(np.dot(self.shares, tails)), float(ndtr(-x / self.sigma))
            worst = (
                max(worst, abs(float(ndtri(p) - ndtri(q))))
                if 1e-12 < p < 1 - 1e-12 and q > 1e-12
                else worst
            )
        return floating(worst)[0], INFINITE

    def renyi(self, order: arb) -> Limits:
        """Return the divergence in the worse order, times the steps."""
        mixed, plain, loss = self._points
        a = float(order)
        if a > 20:  # the integrand lies beyond the points
            return arb(0), INFINITE
        with np.errstate(divide="ignore", over="ignore"):
            both = [
                self.steps * float(logsumexp((a - 1) * part, b=weight)) / (a - 1)
                for weight, part in ((mixed, loss), (plain, -loss))
            ]
        reach = (a * max(self.means)) > REACH * self.sigma + max(
            self.means
        ) - 6 * self.sigma
        low = floating(max(both), 1e-6)[0]
        return low, INFINITE if reach else floating(max(both), 1e-6)[1]

    def rho(self) -> Limits:
        """Return the largest of a few orders as a lower bound."""
        found = [
            self.renyi(arb(a))[0] / arb(a) for a in (1.01, 1.5, 2.0, 3.0, 6.0, 12.0)
        ]
        worst = found[0]
        for each in found[1:]:
            worst = worst.max(each)
        return worst, INFINITE


@dataclass(frozen=True)
class Permuted:
    """One epoch of two or three batches: the likelihood ratio of the pair in which all other gradients are −C.

    The batch with the record sums to 2 against 1, all others to 0, and each batch is as likely to be that one.
    """

    sigma: float
    batches: int

    @cached_property
    def _cells(self) -> tuple[Any, Any, Any]:
        """Weights of both laws on a lattice of outputs, and the log ratio; sums over a lattice are next to exact."""
        step = (
            min(self.sigma, self.sigma**2) / 16 if self.batches == 2 else self.sigma / 5
        )
        x = np.arange(-8.5 * self.sigma, 2 + 8.5 * self.sigma, step)
        density = (
            np.exp(-((x / self.sigma) ** 2) / 2)
            * step
            / (self.sigma * math.sqrt(2 * math.pi))
        )
        grid = np.stack(np.meshgrid(*[x] * self.batches, indexing="ij"))
        base = np.prod(
            np.stack(np.meshgrid(*[density] * self.batches, indexing="ij")), axis=0
        )
        ratios = [
            np.exp((grid - m / 2) * m / self.sigma**2).mean(axis=0) for m in (2.0, 1.0)
        ]
        return base * ratios[0], base * ratios[1], np.log(ratios[0] / ratios[1])

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε) from below: positive parts have a kink, so that a lattice is right to 0.5 %, a coarse one to 5 %."""
        p, q, _ = self._cells
        factor = math.exp(min(float(epsilon), 700.0))
        found = max(
            float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p))
        )
        return arb(
            max(0.0, found * (1 - (5e-3 if self.batches == 2 else 5e-2)) - 1e-9)
        ), arb(1)

    def epsilon(self, delta: arb) -> Limits:
        """Return the inverse, from below."""
        if not delta > 1e-8:
            return arb(0), INFINITE
        return inverse(lambda e: self.delta(e)[0], delta)[0], INFINITE

    def mu(self) -> Limits:
        """Return no bound."""
        return arb(0), INFINITE

    def renyi(self, order: arb) -> Limits:
        """Return the divergence from below, of the orders whose integrand lies on the lattice."""
        p, q, loss = self._cells
        a = float(order)
        if a > 2.5:
            return arb(0), INFINITE
        both = [
            float(logsumexp((a - 1) * part, b=weight)) / (a - 1)
            for weight, part in ((p, loss), (q, -loss))
        ]
        return arb(max(0.0, max(both) * (1 - 1e-3))), INFINITE

    def rho(self) -> Limits:
        """Return the divergence of order 1.1 by its order."""
        return self.renyi(arb(1.1))[0] / arb(1.1), INFINITE
