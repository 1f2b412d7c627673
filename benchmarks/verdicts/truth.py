"""True losses of pairs of laws, by brute force in balls of 100 digits.

Of the auditor only claims are used, for what they state.

A truth is what neighbours lose to each other in both orders. ``holds`` says whether a claim is true, None where the balls
or the bounds do not decide it; ``level`` encloses the true value of the claim's own parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from flint import arb
from scipy.special import logsumexp, ndtri

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.claims.claim import Claim
from auditdp.mechanism.laws import precision

BITS = 340
FLOATS = 1e-7
"""Relative error that is granted to truths in floats: μ of finite laws, and quadratures."""
ORDERS = 1 + np.geomspace(1e-4, 1e4, 1_000)
INFINITE = arb("inf")
Limits = tuple[arb, arb]


class Truth(Protocol):
    """The losses of neighbours, each between two balls."""

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε)."""

    def epsilon(self, delta: arb) -> Limits:
        """Return the smallest ε >= 0 for δ."""

    def mu(self) -> Limits:
        """Return the smallest μ of a Gaussian curve that covers the loss."""

    def renyi(self, order: arb) -> Limits:
        """Return the Rényi divergence."""

    def rho(self) -> Limits:
        """Return the supremum over orders of the Rényi divergence by its order."""


def holds(truth: Truth, claim: Claim) -> bool | None:
    """Return True if a claim is true; None if this is not decided."""
    with precision(BITS):
        if isinstance(claim, AccountedDP):
            said = [
                _at_most(truth.delta(arb(float(e))), float(d))
                for e, d in claim.statements()
            ]
            return False if False in said else None if None in said else True
        if isinstance(claim, ApproxDP) and claim.delta > 0:
            return _at_most(truth.delta(arb(float(claim.epsilon))), float(claim.delta))
        return _at_most(_parameter(truth, claim), claim.level)


def level(truth: Truth, claim: Claim) -> Limits:
    """Return the true value of a claim's parameter, at the claim's δ, order or quoted δ."""
    with precision(BITS):
        return _parameter(truth, claim)


def _parameter(truth: Truth, claim: Claim) -> Limits:
    if isinstance(claim, GaussianDP):
        return truth.mu()
    if isinstance(claim, RenyiDP):
        return truth.renyi(arb(float(claim.order)))
    if isinstance(claim, ZeroConcentratedDP):
        return truth.rho()
    if isinstance(claim, AccountedDP):
        return truth.epsilon(arb(claim.quoted))
    return truth.epsilon(arb(0 if isinstance(claim, PureDP) else float(claim.delta)))


def _at_most(value: Limits, bound: float) -> bool | None:
    if bool(value[1] <= arb(bound)):
        return True
    return False if bool(value[0] > arb(bound)) else None


def larger(one: Limits, other: Limits) -> Limits:
    """Return the larger of two numbers."""
    return one[0].max(other[0]), one[1].max(other[1])


def floating(value: float, error: float = FLOATS) -> Limits:
    """Return a number in floats with its error."""
    if not math.isfinite(value):
        return INFINITE, INFINITE
    return arb(value) * (1 - arb(error)), arb(value) * (1 + arb(error))


@dataclass(frozen=True)
class Finite:
    """Two laws on numbered outputs.

    Args:
        p: Probabilities on one input.
        q: On the other.
    """

    p: Sequence[arb]
    q: Sequence[arb]

    @cached_property
    def _events(self) -> list[tuple[list[arb], list[arb]]]:
        """P(S) and Q(S) of the most telling events S, by falling ratio, in both orders."""
        with precision(BITS):
            return [_telling(self.p, self.q), _telling(self.q, self.p)]

    def delta(self, epsilon: arb) -> Limits:
        """Return the sum of (p - e^ε q)₊, in the worse order."""
        factor, zero = epsilon.exp(), arb(0)
        both = [
            sum(
                ((a - factor * b).max(zero) for a, b in zip(one, other, strict=True)),
                zero,
            )
            for one, other in ((self.p, self.q), (self.q, self.p))
        ]
        worst = both[0].max(both[1])
        return worst, worst

    def epsilon(self, delta: arb) -> Limits:
        """Return the largest ln((P(S) - δ)/Q(S)) over events S."""
        worst = arb(0)
        for first, second in self._events:
            for a, b in zip(first, second, strict=True):
                if not a > delta:
                    continue
                if b == 0:
                    return INFINITE, INFINITE
                worst = worst.max(((a - delta) / b).log())
        return worst, worst

    def mu(self) -> Limits:
        """Return the largest Φ⁻¹(P(S)) - Φ⁻¹(Q(S)): the trade-off curve is linear between these events."""
        worst = 0.0
        for first, second in self._events:
            for a, b in zip(first, second, strict=True):
                apart = _quantile(a) - _quantile(b)
                worst = max(worst, apart) if not math.isnan(apart) else worst
        return floating(worst)

    def renyi(self, order: arb) -> Limits:
        """Return ln(Σ p^α q^(1-α))/(α-1), in the worse order."""
        worst = arb(0)
        for one, other in ((self.p, self.q), (self.q, self.p)):
            if any(b == 0 and a > 0 for a, b in zip(one, other, strict=True)):
                return INFINITE, INFINITE
            terms = (
                b * (a / b) ** order for a, b in zip(one, other, strict=True) if a > 0
            )
            worst = worst.max(sum(terms, arb(0)).log() / (order - 1))
        return worst, worst

    def rho(self) -> Limits:
        """Return bounds from a grid of orders: D_α rises, so between two D_α/α is at most the later D by the first α."""
        low = high = 0.0
        for one, other in ((self.p, self.q), (self.q, self.p)):
            logs = [
                (float(a.log()), float(b.log()) if b > 0 else -math.inf)
                for a, b in zip(one, other, strict=True)
                if a > 0
            ]
            a, b = np.array(logs).T
            if np.isneginf(b).any():
                return INFINITE, INFINITE
            found = logsumexp(a + np.outer(ORDERS - 1, a - b), axis=1) / (ORDERS - 1)
            most = float(np.max(a - b)) / ORDERS[-1]
            low = max(low, float(np.max(found / ORDERS)))
            high = max(high, float(np.max(found / np.append(1.0, ORDERS[:-1]))), most)
        return floating(low)[0], floating(high)[1]


def _telling(p: Sequence[arb], q: Sequence[arb]) -> tuple[list[arb], list[arb]]:
    rows = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    certain = [row for row in rows if row[1] == 0]
    others = sorted(
        (row for row in rows if row[1] > 0),
        key=lambda row: (row[0] / row[1]).mid(),
        reverse=True,
    )
    first, second, a, b = [], [], arb(0), arb(0)
    for x, y in [*certain, *others]:
        a, b = a + x, b + y
        first.append(a)
        second.append(b)
    return first, second


def _quantile(probability: arb) -> float:
    return (
        float(ndtri(float(probability)))
        if probability < 0.5
        else -float(ndtri(max(0.0, float(1 - probability))))
    )


class _Closed:
    """A truth with a curve in closed form, the same in both orders."""

    def curve(self, epsilon: arb) -> arb:
        """Return δ(ε)."""
        raise NotImplementedError

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε)."""
        found = self.curve(epsilon)
        return found, found

    def epsilon(self, delta: arb) -> Limits:
        """Return doubles on both sides of ε(δ)."""
        return inverse(self.curve, delta)


def inverse(curve: Callable[[arb], arb], delta: arb) -> Limits:
    """Return the ε at which a falling curve comes down to δ, between two doubles."""
    if delta == 0:
        return INFINITE, INFINITE
    if curve(arb(0)) <= delta:
        return arb(0), arb(0)
    low, high = 0.0, 1.0
    while not curve(arb(high)) <= delta:
        low, high = high, 2 * high
        if high > 1e6:
            return arb(low), INFINITE
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if curve(arb(middle)) <= delta else (middle, high)
    return arb(low), arb(high)


@dataclass(frozen=True)
class GaussianPair(_Closed):
    """N(0, 1) and N(μ, 1)."""

    apart: arb

    def curve(self, epsilon: arb) -> arb:
        """Return Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        return normal(self.apart / 2 - epsilon / self.apart) - epsilon.exp() * normal(
            -self.apart / 2 - epsilon / self.apart
        )

    def mu(self) -> Limits:
        """Return μ."""
        return self.apart, self.apart

    def renyi(self, order: arb) -> Limits:
        """Return αμ²/2."""
        return order * self.apart**2 / 2, order * self.apart**2 / 2

    def rho(self) -> Limits:
        """Return μ²/2."""
        return self.apart**2 / 2, self.apart**2 / 2


def normal(x: arb) -> arb:
    """Return Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True)
class LaplacePair(_Closed):
    """Two Laplace laws at a distance in units of their scale."""

    apart: arb

    def curve(self, epsilon: arb) -> arb:
        """Return 1 − e^((ε−Δ)/2), which the event beyond the point of ratio e^ε attains."""
        return (1 - ((epsilon - self.apart) / 2).exp()).max(arb(0))

    def epsilon(self, delta: arb) -> Limits:
        """Return Δ + 2 ln(1 − δ)."""
        found = (self.apart + 2 * (1 - delta).log()).max(arb(0))
        return found, found

    def mu(self) -> Limits:
        """Return the largest distance of quantiles at thresholds on a grid."""
        apart = float(self.apart)
        at = np.linspace(-40.0, 40.0, 8_001)
        tails = [
            np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
            for x in (at - apart, at)
        ]
        return floating(float(np.nanmax(ndtri(tails[0]) - ndtri(tails[1]))), 1e-3)

    def renyi(self, order: arb) -> Limits:
        """Return the closed form of Mironov (2017), arXiv:1702.07476v3, Table II."""
        more, less = (order - 1) * self.apart, -order * self.apart
        total = (order * more.exp() + (order - 1) * less.exp()) / (2 * order - 1)
        return total.log() / (order - 1), total.log() / (order - 1)

    def rho(self) -> Limits:
        """Return bounds from a grid of orders."""
        found = np.array([float(self.renyi(arb(float(a)))[0]) for a in ORDERS[::10]])
        low = float(np.max(found / ORDERS[::10]))
        high = max(
            float(np.max(found / np.append(1.0, ORDERS[:-10:10]))),
            float(self.apart) / ORDERS[-1],
        )
        return floating(low)[0], floating(high)[1]


@dataclass(frozen=True)
class Worst:
    """The worst of several pairs."""

    pairs: Sequence[Truth]

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε)."""
        return self._worst([pair.delta(epsilon) for pair in self.pairs])

    def epsilon(self, delta: arb) -> Limits:
        """Return ε(δ)."""
        return self._worst([pair.epsilon(delta) for pair in self.pairs])

    def mu(self) -> Limits:
        """Return μ."""
        return self._worst([pair.mu() for pair in self.pairs])

    def renyi(self, order: arb) -> Limits:
        """Return the Rényi divergence."""
        return self._worst([pair.renyi(order) for pair in self.pairs])

    def rho(self) -> Limits:
        """Return ρ."""
        return self._worst([pair.rho() for pair in self.pairs])

    @staticmethod
    def _worst(found: Sequence[Limits]) -> Limits:
        worst = found[0]
        for each in found[1:]:
            worst = larger(worst, each)
        return worst


@dataclass(frozen=True)
class Between:
    """Bounds between two truths, for a class with bounds only."""

    least: Truth
    most: Truth

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε)."""
        return self.least.delta(epsilon)[0], self.most.delta(epsilon)[1]

    def epsilon(self, delta: arb) -> Limits:
        """Return ε(δ)."""
        return self.least.epsilon(delta)[0], self.most.epsilon(delta)[1]

    def mu(self) -> Limits:
        """Return μ."""
        return self.least.mu()[0], self.most.mu()[1]

    def renyi(self, order: arb) -> Limits:
        """Return the Rényi divergence."""
        return self.least.renyi(order)[0], self.most.renyi(order)[1]

    def rho(self) -> Limits:
        """Return ρ."""
        return self.least.rho()[0], self.most.rho()[1]
