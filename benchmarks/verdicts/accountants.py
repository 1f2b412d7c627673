"""Claims about parameters, judged by random lists of accountants.

Where the worst of a class is not known, the truth lies between that of one pair that the class has and a bound of every
pair of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import arb
from scipy.special import comb

from auditdp import AccountedDP, Audit
from auditdp.accountants import (
    RDP,
    ZCDP,
    Accountant,
    AdvancedComposition,
    BasicComposition,
    ClassicGaussian,
    FixedSizeLower,
    FixedSizeRDP,
    FixedSizeSubsampled,
    FixedSizeUpper,
    GaussianCurve,
    HeterogeneousComposition,
    KairouzCorollary,
    NodeLevelLower,
    NodeLevelRDP,
    NodeLevelUpper,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    PoissonSubsampled,
    ShuffledLower,
    ShuffledUpper,
    TopKAdvanced,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKPure,
    TopKZCDP,
    WithReplacementSubsampled,
    within,
)
from auditdp.mechanism.laws import precision
from benchmarks.verdicts.case import Case, claim_near
from benchmarks.verdicts.quadrature import (
    Concentrated,
    CurveOf,
    Mixture,
    Nothing,
    Permuted,
)
from benchmarks.verdicts.truth import (
    BITS,
    INFINITE,
    Between,
    Finite,
    GaussianPair,
    Limits,
    Truth,
    Worst,
)


@dataclass(frozen=True)
class Known:
    """A class of mechanisms with a known or bounded truth.

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
    sigma, moved, count = (
        _between(case, 0.3, 30),
        _between(case, 0.5, 2),
        int(case.pick((1, 1, 2, 7, 30))),
    )
    curve = GaussianCurve(sigma, moved, count)
    own: list[Accountant] = [curve]
    if count == 1:
        own += [
            ClassicGaussian(sigma, moved, everywhere=everywhere)
            for everywhere in (False, True)
        ]
    with precision(BITS):
        truth = GaussianPair(arb(count).sqrt() * arb(moved) / arb(sigma))
    return Known(own, [ZCDP(float(curve.zcdp or 1) * (1 + 1e-15))], truth)


def responses(case: Case) -> Known:
    """Compositions of (ε, δ)-DP parts, equal or not: the worst are independent randomised responses that may reveal."""
    count = int(case.rng.integers(1, 5))
    equal = case.rng.random() < 0.6
    epsilons = (
        [_between(case, 0.02, 3)] * count
        if equal
        else [_between(case, 0.02, 3) for _ in range(count)]
    )
    delta = float(case.pick((0.0, 0.0, 1e-6, 0.01, 0.3)))
    with precision(BITS):
        p, q = [arb(1)], [arb(1)]
        for each in epsilons:
            keep = 1 / (1 + (-arb(each)).exp())
            first = [
                (1 - arb(delta)) * keep,
                (1 - arb(delta)) * (1 - keep),
                arb(delta),
                arb(0),
            ]
            second = [first[1], first[0], arb(0), arb(delta)]
            p, q = (
                [a * b for a, b in product(one, other)]
                for one, other in ((p, first), (q, second))
            )
    mixed = HeterogeneousComposition(tuple(epsilons), (delta,) * count)
    kinds = (
        OptimalComposition,
        BasicComposition,
        AdvancedComposition,
        KairouzCorollary,
    )
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


def sampled(case: Case) -> Known:
    """Any (ε, δ)-DP mechanism on a sample of the data: the worst is a randomised response that may reveal."""
    epsilon, rate, delta = (
        _between(case, 0.05, 5),
        _between(case, 0.01, 1),
        float(case.pick((0.0, 1e-6, 1e-3))),
    )
    poisson = bool(case.rng.random() < 0.6)
    with precision(BITS):
        keep, reveal, q = 1 / (1 + (-arb(epsilon)).exp()), arb(delta), arb(rate)
        a = [(1 - reveal) * keep, (1 - reveal) * (1 - keep), reveal, arb(0)]
        b = [a[1], a[0], arb(0), reveal]
        mixed = [(1 - q) * y + q * x for x, y in zip(a, b, strict=True)]
    if poisson:
        return Known(
            [PoissonSubsampled(epsilon, delta, rate)],
            [OptimalComposition(epsilon, delta, 1)],
            Finite(mixed, b),
        )
    if case.rng.random() < 0.5:
        # Given that the record is in no sample, any law may be common to both; the worst one gives Theorem 9's curve.
        return Known(
            [FixedSizeSubsampled(epsilon, delta, rate)],
            [OptimalComposition(epsilon, delta, 1)],
            CurveOf(Finite(mixed, b)),
        )
    records = int(case.pick((2, 5, 40)))
    batch = int(case.rng.integers(1, records + 1))
    with precision(BITS):
        # One randomised response with a part of each draw of the record would lose less; the record drawn at all, more.
        drawn = 1 - (1 - arb(1) / records) ** batch
        least = [(1 - drawn) * y + drawn * x for x, y in zip(a, b, strict=True)]
    return Known(
        [WithReplacementSubsampled(epsilon, delta, records, batch)],
        [],
        Between(Finite(least, b), Nothing()),
    )


def poisson(case: Case) -> Known:
    """Few steps of DP-SGD with Poisson batches."""
    noise, rate, steps = (
        _between(case, 0.5, 4),
        _between(case, 0.02, 1),
        int(case.pick((1, 1, 2))),
    )
    wider: list[Accountant] = [GaussianCurve(noise, count=steps)]
    own: list[Accountant] = [
        kind(noise, rate, steps) for kind in (PLDUpper, PLDLower, RDP)
    ]
    return Known(own, wider, Mixture(noise, (0.0, 1.0), (1 - rate, rate), steps))


def fixed_size(case: Case) -> Known:
    """Few steps of DP-SGD with batches of a fixed size: between an attained pair and no sampling."""
    noise, records, steps = (
        _between(case, 1, 8),
        int(case.pick((1, 2, 10, 1_000))),
        int(case.pick((1, 1, 2))),
    )
    batch = int(case.rng.integers(1, records + 1))
    rate, wider = batch / records, GaussianCurve(noise, 2.0, steps)
    own: list[Accountant] = [
        kind(noise, records, batch, steps) for kind in (FixedSizeUpper, FixedSizeLower)
    ]
    if records > 1 and case.rng.random() < 0.3:
        own.append(FixedSizeRDP(noise, records, batch, steps))
    pair = Mixture(noise, (0.0, 2.0), (1 - rate, rate), steps)
    with precision(BITS):
        whole = GaussianPair(arb(steps).sqrt() * 2 / arb(noise))
    # Of one step the amplified curve is attained (Theorem 9 of Balle, Barthe & Gaboardi).
    return Known(own, [wider], CurveOf(pair) if steps == 1 else Between(pair, whole))


def shuffled(case: Case) -> Known:
    """Return few shuffled batches with bounds of their loss from both sides."""
    noise, batches, epochs = (
        _between(case, 0.4, 4),
        int(case.pick((1, 2, 2, 3, 100))),
        int(case.pick((1, 1, 2))),
    )
    own = [ShuffledUpper(noise, batches, epochs), ShuffledLower(noise, batches, epochs)]
    with precision(BITS):
        whole = GaussianPair(arb(epochs).sqrt() / arb(noise))
    least: Truth = whole if batches == 1 else Nothing()
    if batches == 2 or (batches == 3 and noise > 0.8):
        least = Permuted(noise, batches)
    return Known(own, [GaussianCurve(noise, 1.0, epochs)], Between(least, whole))


def node_level(case: Case) -> Known:
    """Few steps of DP-SGD over the nodes of a graph: between the attained mixture and no sampling."""
    nodes, steps = int(case.pick((1, 3, 20, 200))), int(case.pick((1, 1, 2)))
    reached, batch = (int(case.rng.integers(1, min(nodes, 6) + 1)) for _ in range(2))
    noise = _between(case, 1, 8) * min(reached, batch)
    own: list[Accountant] = [
        kind(noise, nodes, reached, batch, steps)
        for kind in (NodeLevelUpper, NodeLevelLower)
    ]
    if case.rng.random() < 0.3:
        own.append(NodeLevelRDP(noise, nodes, reached, batch, steps))
    ways = [
        comb(reached, k, exact=True) * comb(nodes - reached, batch - k, exact=True)
        for k in range(batch + 1)
    ]
    shares = tuple(way / comb(nodes, batch, exact=True) for way in ways)
    pair = Mixture(noise, tuple(2.0 * k for k in range(batch + 1)), shares, steps)
    with precision(BITS):
        whole = GaussianPair(arb(steps).sqrt() * 2 * min(reached, batch) / arb(noise))
    return Known(
        own,
        [GaussianCurve(noise, 2.0 * min(reached, batch), steps)],
        Between(pair, whole),
    )


def selection(case: Case) -> Known:
    """Selections of bounded range: k independent ones between scores chosen beforehand from below, kη-DP from above."""
    eta, count = _between(case, 0.05, 3), int(case.pick((1, 1, 2, 4)))
    kinds = [
        TopKZCDP,
        TopKNonAdaptive,
        TopKBoundedRange,
        TopKDurfeeRogers,
        TopKPure,
        TopKOptimalComposition,
    ]
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
                first, second = (
                    [a * b for a, b in product(*both)]
                    for both in ((first, one), (second, other))
                )
            pairs.append(Finite(first, second))
        rr = 1 / (1 + (-arb(eta)).exp())
        whole = [arb(1)], [arb(1)]
        for _ in range(count):
            whole = (
                [a * b for a, b in product(whole[0], [rr, 1 - rr])],
                [a * b for a, b in product(whole[1], [1 - rr, rr])],
            )
    wider = [
        OptimalComposition(eta, 0.0, count),
        ZCDP(count * eta**2 / 8 * (1 + 1e-13)),
    ]
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
    listed = [a for a in (*known.own, *around) if case.rng.random() < 0.6] or list(
        known.own
    )
    case.rng.shuffle(listed)  # type: ignore[arg-type]  # a list is what it shuffles
    claim = _claim(case, known, listed)
    if claim is None:
        return
    if any(a.describes == about for a in listed) and case.rng.random() < 0.5:
        about = None  # the narrowest that is described is the same
    case.told = f"{draw.__name__}: {', '.join(a.name for a in listed)}{', about given' if about else ''}"
    case.audit(
        lambda: Audit(None, claim, accountants=listed, about=about), claim, known.truth
    )


def _claim(case: Case, known: Known, listed: Sequence[Accountant]) -> Any:
    """Return a claim near the truth or near an answer, or an accountant's curve."""
    one = listed[int(case.rng.integers(len(listed)))]
    if case.rng.random() < 0.15:
        scaled = case.near()
        try:
            return AccountedDP(
                lambda e: min(1.0, one.delta_at(e) * scaled),
                quoted=_between(case, 1e-7, 1e-2),
            )
        except Exception:  # a curve that falls to no such δ
            return None
    truth = known.truth
    if case.rng.random() < 0.25:
        return claim_near(case, _Said(one))
    return claim_near(case, truth)


@dataclass(frozen=True)
class _Said:
    """The answer of an accountant, for claims near it."""

    accountant: Any

    def delta(self, epsilon: arb) -> Limits:
        found = arb(float(self.accountant.delta_at(float(epsilon))))
        return found, found

    def epsilon(self, delta: arb) -> Limits:
        found = float(self.accountant.epsilon_at(float(delta)))
        return (
            (arb(found), arb(found)) if math.isfinite(found) else (INFINITE, INFINITE)
        )

    def mu(self) -> Limits:
        return INFINITE, INFINITE

    def renyi(self, order: arb) -> Limits:
        return INFINITE, INFINITE

    def rho(self) -> Limits:
        return INFINITE, INFINITE
