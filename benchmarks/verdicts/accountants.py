"""Claims about what parameters describe, judged by random lists of accountants: the truth by closed forms and quadrature.

Where the worst of a class is not known, the truth lies between that of one pair that the class has and a bound of every
pair of it. A quadrature is in floats, sums one step after the other, and shares no code with the accountants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from flint import arb
from scipy.special import comb, log_ndtr, logsumexp, ndtr

from auditdp import AccountedDP, Audit
from auditdp.accountants.base import Accountant
from auditdp.accountants.composition import BasicComposition, OptimalComposition
from auditdp.accountants.description import within
from auditdp.accountants.dp_sgd import RDP, PLDLower, PLDUpper
from auditdp.accountants.fixed_size import FixedSizeLower, FixedSizeRDP, FixedSizeUpper
from auditdp.accountants.gaussian import ClassicGaussian, GaussianCurve
from auditdp.accountants.heterogeneous import HeterogeneousComposition
from auditdp.accountants.node_level import NodeLevelLower, NodeLevelRDP, NodeLevelUpper
from auditdp.accountants.quoted import AdvancedComposition, KairouzCorollary
from auditdp.accountants.shuffled import ShuffledLower, ShuffledUpper
from auditdp.accountants.subsampling import FixedSizeSubsampled, PoissonSubsampled, WithReplacementSubsampled
from auditdp.accountants.top_k import (
    TopKAdvanced,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKPure,
    TopKZCDP,
)
from auditdp.accountants.zcdp import ZCDP
from auditdp.laws import precision
from benchmarks.verdicts.case import Case, claim_near
from benchmarks.verdicts.truth import (
    BITS,
    INFINITE,
    Between,
    Finite,
    GaussianPair,
    Limits,
    Truth,
    Worst,
    floating,
    inverse,
)


@dataclass(frozen=True)
class Known:
    """A class of mechanisms of which the truth is known, or bounded.

    Attributes:
        own: Accountants of it.
        wider: Accountants of classes around it.
        truth: What is true of its worst.
    """

    own: Sequence[Accountant]
    wider: Sequence[Accountant]
    truth: Truth


def _between(case: Case, low: float, high: float) -> float:
    return float(np.exp(case.rng.uniform(math.log(low), math.log(high))))


def gaussian(case: Case) -> Known:
    """Releases with Gaussian noise."""
    sigma, moved, count = _between(case, 0.3, 30), _between(case, 0.5, 2), int(case.pick((1, 1, 2, 7, 30)))
    curve = GaussianCurve(sigma, moved, count)
    own: list[Accountant] = [curve]
    if count == 1:
        own += [ClassicGaussian(sigma, moved, everywhere) for everywhere in (False, True)]
    with precision(BITS):
        truth = GaussianPair(arb(count).sqrt() * arb(moved) / arb(sigma))
    return Known(own, [ZCDP(float(curve.zcdp or 1) * (1 + 1e-15))], truth)


def responses(case: Case) -> Known:
    """Compositions of (ε, δ)-DP parts, equal or not: the worst are independent randomised responses that may reveal."""
    count = int(case.rng.integers(1, 5))
    equal = case.rng.random() < 0.6
    epsilons = [_between(case, 0.02, 3)] * count if equal else [_between(case, 0.02, 3) for _ in range(count)]
    delta = float(case.pick((0.0, 0.0, 1e-6, 0.01, 0.3)))
    with precision(BITS):
        p, q = [arb(1)], [arb(1)]
        for each in epsilons:
            keep = 1 / (1 + (-arb(each)).exp())
            first = [(1 - arb(delta)) * keep, (1 - arb(delta)) * (1 - keep), arb(delta), arb(0)]
            second = [first[1], first[0], arb(0), arb(delta)]
            p, q = ([a * b for a, b in product(one, other)] for one, other in ((p, first), (q, second)))
    mixed = HeterogeneousComposition(tuple(epsilons), (delta,) * count)
    kinds = (OptimalComposition, BasicComposition, AdvancedComposition, KairouzCorollary)
    own = [kind(epsilons[0], delta, count) for kind in kinds] if equal else [mixed]
    wider: list[Accountant] = [kind(max(epsilons), delta, count + 1) for kind in kinds]
    if delta == 0:
        wider.append(ZCDP(sum(e * e for e in epsilons) / 2 * (1 + 1e-13)))
    return Known(own, wider, Finite(p, q))


def concentrated(case: Case) -> Known:
    """All that is ρ-zCDP: Gaussian noise among it; from above the divergence alone."""
    rho = _between(case, 1e-3, 5)
    with precision(BITS):
        pair = GaussianPair((2 * arb(rho)).sqrt())
    return Known([ZCDP(rho)], [ZCDP(rho * 1.5)], Between(pair, Concentrated(rho)))


@dataclass(frozen=True)
class Concentrated:
    """What ρ-zCDP proves of all that has it, by the conversion at many orders."""

    value: float

    def delta(self, epsilon: arb) -> Limits:
        """Return Proposition 12 of Canonne, Kamath & Steinke (2020) at the best of many orders, up to 1 %."""
        orders = 1 + np.geomspace(1e-3, 1e4, 4_000)
        logs = (
            (orders - 1) * (orders * self.value - float(epsilon)) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
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


def sampled(case: Case) -> Known:
    """Any (ε, δ)-DP mechanism on a sample of the data: the worst is a randomised response that may reveal."""
    epsilon, rate, delta = _between(case, 0.05, 5), _between(case, 0.01, 1), float(case.pick((0.0, 1e-6, 1e-3)))
    poisson = bool(case.rng.random() < 0.6)
    with precision(BITS):
        keep, reveal, q = 1 / (1 + (-arb(epsilon)).exp()), arb(delta), arb(rate)
        a = [(1 - reveal) * keep, (1 - reveal) * (1 - keep), reveal, arb(0)]
        b = [a[1], a[0], arb(0), reveal]
        mixed = [(1 - q) * y + q * x for x, y in zip(a, b, strict=True)]
    if poisson:
        return Known(
            [PoissonSubsampled(epsilon, delta, rate)], [OptimalComposition(epsilon, delta, 1)], Finite(mixed, b)
        )
    if case.rng.random() < 0.5:
        # Given that the record is in no sample, any law may be common to both; the worst one gives Theorem 9's curve.
        return Known(
            [FixedSizeSubsampled(epsilon, delta, rate)],
            [OptimalComposition(epsilon, delta, 1)],
            _Curve(Finite(mixed, b)),
        )
    records = int(case.pick((2, 5, 40)))
    batch = int(case.rng.integers(1, records + 1))
    with precision(BITS):
        # One randomised response with a part of each draw of the record would lose less; the record drawn at all, more.
        drawn = 1 - (1 - arb(1) / records) ** batch
        least = [(1 - drawn) * y + drawn * x for x, y in zip(a, b, strict=True)]
    return Known([WithReplacementSubsampled(epsilon, delta, records, batch)], [], _LowerOnly(_Curve(Finite(least, b))))


@dataclass(frozen=True)
class _Curve:
    """The curve of a pair's worse order, where no more than the curve is attained."""

    pair: Any

    def delta(self, epsilon: arb) -> Limits:
        return self.pair.delta(epsilon)  # type: ignore[no-any-return]

    def epsilon(self, delta: arb) -> Limits:
        return self.pair.epsilon(delta)  # type: ignore[no-any-return]

    def mu(self) -> Limits:
        return self.pair.mu()[0], INFINITE

    def renyi(self, order: arb) -> Limits:
        return self.pair.renyi(order)[0], INFINITE

    def rho(self) -> Limits:
        return self.pair.rho()[0], INFINITE


@dataclass(frozen=True)
class _LowerOnly:
    """What a class loses at least."""

    pair: Any

    def delta(self, epsilon: arb) -> Limits:
        return self.pair.delta(epsilon)[0], arb(1)

    def epsilon(self, delta: arb) -> Limits:
        return self.pair.epsilon(delta)[0], INFINITE

    def mu(self) -> Limits:
        return self.pair.mu()[0], INFINITE

    def renyi(self, order: arb) -> Limits:
        return self.pair.renyi(order)[0], INFINITE

    def rho(self) -> Limits:
        return self.pair.rho()[0], INFINITE


# trainings, by quadrature

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PIECES, REACH = 64, 11.0


@dataclass(frozen=True)
class Mixture:
    """A step whose output is a mixture of N(m_i, σ²) on one input and N(0, σ²) on the other, and so many steps of it.

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
        ends = np.linspace(low, high, PIECES * math.ceil((high - low) / (24 * self.sigma)) + 1)
        half = np.diff(ends) / 2
        x = (ends[:-1] + half)[:, None] + half[:, None] * NODES
        weight = (half[:, None] * WEIGHTS).ravel()
        x = x.ravel()
        without = weight * np.exp(-((x / self.sigma) ** 2) / 2) / (self.sigma * math.sqrt(2 * math.pi))
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
        x = np.linspace(-12 * self.sigma - 40, max(self.means) + 12 * self.sigma, 40_001)
        return x, np.maximum.accumulate(self._loss(x))

    def _one(self, epsilon: Any, *, removed: bool) -> Any:
        """δ of one step at any ε, in one order: the loss rises, so the event is a half-line."""
        epsilon = np.asarray(epsilon, float)
        # No event is better, so an error of the threshold costs its square.
        x, losses = self._table
        at, sign = np.interp(epsilon if removed else -epsilon, losses, x), -1.0 if removed else 1.0
        mixed = sum(s * ndtr(sign * (at - m) / self.sigma) for m, s in zip(self.means, self.shares, strict=True))
        plain_log = log_ndtr(sign * at / self.sigma)
        if removed:
            return np.maximum(mixed - np.exp(np.minimum(epsilon + plain_log, 700)), 0.0)
        with np.errstate(divide="ignore"):
            return np.maximum(np.exp(plain_log) - np.exp(np.minimum(epsilon + np.log(mixed), 700)), 0.0)

    def _of(self, epsilon: Any, steps: int, *, removed: bool) -> Any:
        if steps == 1:
            return self._one(epsilon, removed=removed)
        mixed, plain, loss = self._points
        weight, moved = (mixed, loss) if removed else (plain, -loss)
        kept = weight > 1e-18
        inner = self._of(np.asarray(epsilon)[..., None] - moved[kept], steps - 1, removed=removed)
        return (weight[kept] * inner).sum(axis=-1)

    @cache  # noqa: B019  # a pair lives as long as its case
    def _delta(self, epsilon: float) -> float:
        return max(float(self._of(epsilon, self.steps, removed=removed)) for removed in (True, False))

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
            low, high = (low, middle) if self._delta(middle) <= float(delta) else (middle, high)
        return (arb(low) * (1 - arb(1e-5)) - 1e-6).max(arb(0)), arb(high) * (1 + arb(1e-5)) + 1e-6

    def mu(self) -> Limits:
        """Return a lower bound from a grid of thresholds of one step, which all steps lose at least."""
        worst = 0.0
        from scipy.special import ndtri

        for x in np.linspace(-3 * self.sigma, max(self.means) + 4 * self.sigma, 200):
            tails = [ndtr(-(x - m) / self.sigma) for m in self.means]
            p, q = float(np.dot(self.shares, tails)), float(ndtr(-x / self.sigma))
            worst = max(worst, abs(float(ndtri(p) - ndtri(q)))) if 1e-12 < p < 1 - 1e-12 and q > 1e-12 else worst
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
        reach = (a * max(self.means)) > REACH * self.sigma + max(self.means) - 6 * self.sigma
        low = floating(max(both), 1e-6)[0]
        return low, INFINITE if reach else floating(max(both), 1e-6)[1]

    def rho(self) -> Limits:
        """Return the largest of a few orders as a lower bound."""
        found = [self.renyi(arb(a))[0] / arb(a) for a in (1.01, 1.5, 2.0, 3.0, 6.0, 12.0)]
        worst = found[0]
        for each in found[1:]:
            worst = worst.max(each)
        return worst, INFINITE


def poisson(case: Case) -> Known:
    """Few steps of DP-SGD with Poisson batches."""
    noise, rate, steps = _between(case, 0.5, 4), _between(case, 0.02, 1), int(case.pick((1, 1, 2)))
    wider: list[Accountant] = [GaussianCurve(noise, count=steps)]
    own: list[Accountant] = [kind(noise, rate, steps) for kind in (PLDUpper, PLDLower, RDP)]
    return Known(own, wider, Mixture(noise, (0.0, 1.0), (1 - rate, rate), steps))


def fixed_size(case: Case) -> Known:
    """Few steps of DP-SGD with batches of a fixed size: between an attained pair and no sampling."""
    noise, records, steps = _between(case, 1, 8), int(case.pick((1, 2, 10, 1_000))), int(case.pick((1, 1, 2)))
    batch = int(case.rng.integers(1, records + 1))
    rate, wider = batch / records, GaussianCurve(noise, 2.0, steps)
    own: list[Accountant] = [kind(noise, records, batch, steps) for kind in (FixedSizeUpper, FixedSizeLower)]
    if records > 1 and case.rng.random() < 0.3:
        own.append(FixedSizeRDP(noise, records, batch, steps))
    pair = Mixture(noise, (0.0, 2.0), (1 - rate, rate), steps)
    with precision(BITS):
        whole = GaussianPair(arb(steps).sqrt() * 2 / arb(noise))
    # Of one step the amplified curve is attained (Theorem 9 of Balle, Barthe & Gaboardi).
    return Known(own, [wider], _Curve(pair) if steps == 1 else Between(pair, whole))


def shuffled(case: Case) -> Known:
    """Few shuffled batches: between the likelihood ratio of an attained pair and batches of known order."""
    noise, batches, epochs = _between(case, 0.4, 4), int(case.pick((1, 2, 2, 3, 100))), int(case.pick((1, 1, 2)))
    own = [ShuffledUpper(noise, batches, epochs), ShuffledLower(noise, batches, epochs)]
    with precision(BITS):
        whole = GaussianPair(arb(epochs).sqrt() / arb(noise))
    least: Truth = whole if batches == 1 else _Nothing()
    if batches == 2 or (batches == 3 and noise > 0.8):
        least = Permuted(noise, batches)
    return Known(own, [GaussianCurve(noise, 1.0, epochs)], Between(least, whole))


@dataclass(frozen=True)
class _Nothing:
    """No lower bound."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_: (arb(0), INFINITE)


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
        step = min(self.sigma, self.sigma**2) / 16 if self.batches == 2 else self.sigma / 5
        x = np.arange(-8.5 * self.sigma, 2 + 8.5 * self.sigma, step)
        density = np.exp(-((x / self.sigma) ** 2) / 2) * step / (self.sigma * math.sqrt(2 * math.pi))
        grid = np.stack(np.meshgrid(*[x] * self.batches, indexing="ij"))
        base = np.prod(np.stack(np.meshgrid(*[density] * self.batches, indexing="ij")), axis=0)
        ratios = [np.exp((grid - m / 2) * m / self.sigma**2).mean(axis=0) for m in (2.0, 1.0)]
        return base * ratios[0], base * ratios[1], np.log(ratios[0] / ratios[1])

    def delta(self, epsilon: arb) -> Limits:
        """Return δ(ε) from below: positive parts have a kink, so that a lattice is right to 0.5 %, a coarse one to 5 %."""
        p, q, _ = self._cells
        factor = math.exp(min(float(epsilon), 700.0))
        found = max(float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p)))
        return arb(max(0.0, found * (1 - (5e-3 if self.batches == 2 else 5e-2)) - 1e-9)), arb(1)

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
        both = [float(logsumexp((a - 1) * part, b=weight)) / (a - 1) for weight, part in ((p, loss), (q, -loss))]
        return arb(max(0.0, max(both) * (1 - 1e-3))), INFINITE

    def rho(self) -> Limits:
        """Return the divergence of order 1.1 by its order."""
        return self.renyi(arb(1.1))[0] / arb(1.1), INFINITE


def node_level(case: Case) -> Known:
    """Few steps of DP-SGD over the nodes of a graph: between the attained mixture and no sampling."""
    nodes, steps = int(case.pick((1, 3, 20, 200))), int(case.pick((1, 1, 2)))
    reached, batch = (int(case.rng.integers(1, min(nodes, 6) + 1)) for _ in range(2))
    noise = _between(case, 1, 8) * min(reached, batch)
    own: list[Accountant] = [kind(noise, nodes, reached, batch, steps) for kind in (NodeLevelUpper, NodeLevelLower)]
    if case.rng.random() < 0.3:
        own.append(NodeLevelRDP(noise, nodes, reached, batch, steps))
    ways = [comb(reached, k, exact=True) * comb(nodes - reached, batch - k, exact=True) for k in range(batch + 1)]
    shares = tuple(way / comb(nodes, batch, exact=True) for way in ways)
    pair = Mixture(noise, tuple(2.0 * k for k in range(batch + 1)), shares, steps)
    with precision(BITS):
        whole = GaussianPair(arb(steps).sqrt() * 2 * min(reached, batch) / arb(noise))
    return Known(own, [GaussianCurve(noise, 2.0 * min(reached, batch), steps)], Between(pair, whole))


def selection(case: Case) -> Known:
    """Selections of bounded range: k independent ones between scores chosen beforehand from below, kη-DP from above."""
    eta, count = _between(case, 0.05, 3), int(case.pick((1, 1, 2, 4)))
    kinds = [TopKZCDP, TopKNonAdaptive, TopKBoundedRange, TopKDurfeeRogers, TopKPure, TopKOptimalComposition]
    kinds += [TopKAdvanced] * (count > 1)
    own = [kind(count, eta) for kind in kinds]
    with precision(BITS):
        pairs = []
        for part in np.linspace(0.05, 0.95, 19):
            t = arb(eta) * arb(float(part))
            q = ((-t).exp() - (-arb(eta)).exp()) / (1 - (-arb(eta)).exp())
            p = q * t.exp()
            one, other = [p, 1 - p], [q, 1 - q]
            first, second = [arb(1)], [arb(1)]
            for _ in range(count):
                first, second = ([a * b for a, b in product(*both)] for both in ((first, one), (second, other)))
            pairs.append(Finite(first, second))
        rr = 1 / (1 + (-arb(eta)).exp())
        whole = [arb(1)], [arb(1)]
        for _ in range(count):
            whole = (
                [a * b for a, b in product(whole[0], [rr, 1 - rr])],
                [a * b for a, b in product(whole[1], [1 - rr, rr])],
            )
    wider = [OptimalComposition(eta, 0.0, count), ZCDP(count * eta**2 / 8 * (1 + 1e-13))]
    return Known(own, wider, Between(Worst(pairs), Finite(*whole)))


CLASSES: tuple[Callable[[Case], Known], ...] = (
    gaussian,
    gaussian,
    responses,
    responses,
    concentrated,
    sampled,
    poisson,
    fixed_size,
    shuffled,
    node_level,
    selection,
)


def accounting(case: Case) -> None:
    """Audit a claim about a class by some of its accountants, in any order."""
    draw = case.pick(CLASSES)
    known = draw(case)
    about: Any = known.own[0].describes
    around = [a for a in known.wider if within(about, a.describes)]
    listed = [a for a in (*known.own, *around) if case.rng.random() < 0.6] or list(known.own)
    case.rng.shuffle(listed)  # type: ignore[arg-type]  # a list is what it shuffles
    claim = _claim(case, known, listed)
    if claim is None:
        return
    if any(a.describes == about for a in listed) and case.rng.random() < 0.5:
        about = None  # the narrowest that is described is the same
    case.told = f"{draw.__name__}: {', '.join(a.name for a in listed)}{', about given' if about else ''}"
    case.audit(lambda: Audit(None, claim, accountants=listed, about=about), claim, known.truth)


def _claim(case: Case, known: Known, listed: Sequence[Accountant]) -> Any:
    """A claim beside the truth, or beside what an accountant says, or the curve of an accountant itself."""
    one = listed[int(case.rng.integers(len(listed)))]
    if case.rng.random() < 0.15:
        scaled = case.near()
        try:
            return AccountedDP(lambda e: min(1.0, one.delta_at(e) * scaled), quoted=_between(case, 1e-7, 1e-2))
        except Exception:  # a curve that falls to no such δ
            return None
    truth = known.truth
    if case.rng.random() < 0.25:
        return claim_near(case, _Said(one))
    return claim_near(case, truth)


@dataclass(frozen=True)
class _Said:
    """What an accountant says, for claims beside it."""

    accountant: Any

    def delta(self, epsilon: arb) -> Limits:
        found = arb(float(self.accountant.delta_at(float(epsilon))))
        return found, found

    def epsilon(self, delta: arb) -> Limits:
        found = float(self.accountant.epsilon_at(float(delta)))
        return (arb(found), arb(found)) if math.isfinite(found) else (INFINITE, INFINITE)

    def mu(self) -> Limits:
        return INFINITE, INFINITE

    def renyi(self, order: arb) -> Limits:
        return INFINITE, INFINITE

    def rho(self) -> Limits:
        return INFINITE, INFINITE
