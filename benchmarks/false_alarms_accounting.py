"""False statements of the cross-check of accountants: none, since its verdicts are proofs.

A mechanism is drawn whose curve is known in closed form, and a claim near its truth; it is judged by a random list of
accountants of it and of classes around it, in random order. What counts is a wrong VIOLATED, a wrong CERTIFIED, a verdict
that depends on the order, and one that a further accountant of a wider class changes otherwise than from NOT_REFUTED to
CERTIFIED. The truth is in ball arithmetic, by formulas that share the law of the worst pair with the accountants, and no
more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb

from auditdp.accountants import (
    RDP,
    ZCDP,
    Accountant,
    AdvancedComposition,
    BasicComposition,
    ClassicGaussian,
    Description,
    GaussianCurve,
    HeterogeneousComposition,
    KairouzCorollary,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    PoissonSubsampled,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKPure,
    TopKZCDP,
    cross_check,
    within,
)
from auditdp.claims.statements import ApproxDP
from auditdp.mechanism.laws import precision
from auditdp.record.results import Verdict
from benchmarks.parts import Check, Rng

COMPOSITIONS = (
    OptimalComposition,
    BasicComposition,
    AdvancedComposition,
    KairouzCorollary,
)


@dataclass(frozen=True)
class Known:
    """A mechanism with a known curve.

    Attributes:
        about: Its description.
        own: Accountants of it.
        wider: Accountants of classes around it.
        truth: δ(ε), enclosed.
    """

    about: Description
    own: Sequence[Accountant]
    wider: Sequence[Accountant]
    truth: Callable[[float], arb]


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _compositions(epsilon: float, delta: float, count: int) -> list[Accountant]:
    return [kind(epsilon, delta, count) for kind in COMPOSITIONS]


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def _gaussian_delta(mu: arb, epsilon: arb) -> arb:
    return _normal(mu / 2 - epsilon / mu) - epsilon.exp() * _normal(
        -mu / 2 - epsilon / mu
    )


def gaussian(rng: Rng) -> Known:
    """Releases with Gaussian noise; around them zCDP, and compositions of parts that each release is one of."""
    sigma, sensitivity, count = (
        _log_uniform(rng, 0.3, 30),
        _log_uniform(rng, 0.5, 2),
        int(rng.integers(1, 30)),
    )
    curve, each = (
        GaussianCurve(sigma, sensitivity, count),
        GaussianCurve(sigma, sensitivity),
    )
    delta = _log_uniform(rng, 1e-9, 1e-2)
    part = each.epsilon_at(delta) * (1 if rng.random() < 0.5 else 1.5)
    wider: list[Accountant] = [
        ZCDP(float(curve.zcdp) * (1 + 1e-15) * rng.choice([1.0, 2.0]))
    ]
    if part > 0:
        wider += _compositions(part, delta, count + int(rng.integers(2)))
    own: list[Accountant] = (
        [curve]
        if count > 1
        else [
            curve,
            *(ClassicGaussian(sigma, sensitivity, 1, e) for e in (False, True)),
        ]
    )
    return Known(
        curve.describes,
        own,
        wider,
        lambda epsilon: _gaussian_delta(
            arb(count).sqrt() * arb(sensitivity) / arb(sigma), arb(epsilon)
        ),
    )


def responses(rng: Rng) -> Known:
    """Independent randomised responses: the worst of all compositions of ε-DP parts, equal or not."""
    count = int(rng.integers(1, 9))
    equal = rng.random() < 0.5
    drawn = [_log_uniform(rng, 0.02, 2) for _ in range(1 if equal else count)]
    epsilons = tuple(drawn * count) if equal else tuple(drawn)

    def truth(epsilon: float) -> arb:
        # Σ over all answers, each right or wrong.
        total = arb(0)
        for signs in product([1, -1], repeat=count):
            p = q = arb(1)
            for sign, each in zip(signs, epsilons, strict=True):
                p, q = (
                    p / (1 + (-sign * arb(each)).exp()),
                    q / (1 + (sign * arb(each)).exp()),
                )
            total += (p - arb(epsilon).exp() * q).max(arb(0))
        return total

    rho = sum(e * e for e in epsilons) / 2
    wider: list[Accountant] = [
        ZCDP(rho * (1 + 1e-13)),
        *_compositions(max(epsilons) * 1.1, 0.0, count),
    ]
    mixed = HeterogeneousComposition(epsilons, (0.0,) * count)
    own = _compositions(drawn[0], 0.0, count) if equal else [mixed]
    return Known(own[0].describes, own, wider, truth)


def selection(rng: Rng) -> Known:
    """One selection of bounded range: of the losses t and t − η at the worst t, which is (ε + η)/2."""
    eta = _log_uniform(rng, 0.05, 5)

    def truth(epsilon: float) -> arb:
        e, range_ = arb(epsilon), arb(eta)
        if epsilon >= eta:
            return arb(0)
        t = (e + range_) / 2
        return (
            ((-t).exp() - (-range_).exp()) * (t.exp() - e.exp()) / (1 - (-range_).exp())
        )

    kinds = (TopKZCDP, TopKNonAdaptive, TopKBoundedRange, TopKDurfeeRogers, TopKPure)
    wider = [
        ZCDP(eta**2 / 8 * (1 + 1e-15)),
        *_compositions(eta, 0.0, 1),
        *_compositions(eta * 1.2, 1e-6, 2),
    ]
    own = [kind(1, eta) for kind in kinds]
    return Known(own[0].describes, own, wider, truth)


def sampled_response(rng: Rng) -> Known:
    """Randomised response, perhaps revealing, on whether the record is in a Poisson sample."""
    epsilon, rate = _log_uniform(rng, 0.05, 5), _log_uniform(rng, 0.01, 1)
    delta = float(rng.choice([0.0, 1e-6, 1e-3]))

    def truth(at: float) -> arb:
        keep, reveal, q = 1 / (1 + (-arb(epsilon)).exp()), arb(delta), arb(rate)
        present = [(1 - reveal) * keep, (1 - reveal) * (1 - keep), reveal, arb(0)]
        absent = [present[1], present[0], arb(0), reveal]
        with_it = [(1 - q) * b + q * a for a, b in zip(present, absent, strict=True)]
        scale = arb(at).exp()
        both = [
            sum(
                ((a - scale * b).max(arb(0)) for a, b in zip(*pair, strict=True)),
                arb(0),
            )
            for pair in ((with_it, absent), (absent, with_it))
        ]
        return both[0].max(both[1])

    own = [PoissonSubsampled(epsilon, delta, rate)]
    return Known(own[0].describes, own, _compositions(epsilon, delta, 1), truth)


def sampled_gaussian(rng: Rng) -> Known:
    """One step of DP-SGD; around it the step without sampling, and any mechanism that is as private, sampled."""
    noise, rate = _log_uniform(rng, 0.5, 5), _log_uniform(rng, 0.01, 1)
    delta = _log_uniform(rng, 1e-8, 1e-3)
    part = GaussianCurve(noise).epsilon_at(delta)

    def truth(epsilon: float) -> arb:
        q = arb(rate)
        return q * _gaussian_delta(1 / arb(noise), (1 + arb(epsilon).expm1() / q).log())

    own = [kind(noise, rate, 1) for kind in (PLDUpper, PLDLower, RDP)]
    wider: list[Accountant] = [
        GaussianCurve(noise),
        ZCDP(float(GaussianCurve(noise).zcdp) * (1 + 1e-15)),
    ]
    wider += (
        [PoissonSubsampled(part, delta, rate), *_compositions(part, delta, 1)]
        if part > 0
        else []
    )
    return Known(own[0].describes, own, wider, truth)


def _is_wrong(known: Known, rng: Rng) -> bool:
    """Return True if a cross-check stated something false, or two different things."""
    listed = [a for a in (*known.own, *known.wider) if rng.random() < 0.5] or list(
        known.own
    )
    rng.shuffle(listed)  # type: ignore[arg-type]  # a list is what it shuffles
    if not all(within(known.about, accountant.describes) for accountant in listed):
        raise AssertionError(f"not around {known.about}: {[a.name for a in listed]}")
    claim = _claim(known, listed, rng)
    about = (
        None
        if any(a.describes == known.about for a in listed) and rng.random() < 0.5
        else known.about
    )
    verdict = cross_check(claim, listed, about=about).verdict
    with precision():
        excess = known.truth(claim.epsilon) - arb(claim.delta)
    if (verdict is Verdict.VIOLATED and excess <= 0) or (
        verdict is Verdict.CERTIFIED and excess > 0
    ):
        return True
    if cross_check(claim, listed[::-1], about=about).verdict is not verdict:
        return True
    fewer = [a for a in listed if a.describes == known.about or rng.random() < 0.5]
    if not fewer:
        return False
    before = cross_check(claim, fewer, about=known.about).verdict
    return before is not verdict and (before, verdict) != (
        Verdict.NOT_REFUTED,
        Verdict.CERTIFIED,
    )


def _claim(known: Known, listed: Sequence[Accountant], rng: Rng) -> ApproxDP:
    """Return a claim at the δ of a likely ε, near the truth or an accountant's answer."""
    delta = (
        float(rng.choice([0.0, 1e-12]))
        if rng.random() < 0.1
        else _log_uniform(rng, 1e-9, 0.1)
    )
    said = [
        a.epsilon_at(delta)
        for a in (known.own[0], listed[int(rng.integers(len(listed)))])
    ]
    epsilon = said[int(rng.integers(2))]
    if not 0 < epsilon < 500:
        epsilon = _log_uniform(rng, 0.01, 10)
    near = float(rng.choice([0.0, 1e-15, 1e-12, 1e-9, 1e-4, 0.3])) * float(
        rng.choice([-1.0, 1.0])
    )
    return ApproxDP(epsilon * (1 + near), delta)


def _case(draw: Callable[[Rng], Known]) -> Check:
    return lambda repeats, rng: sum(_is_wrong(draw(rng), rng) for _ in range(repeats))


FALSE_ALARMS: dict[str, Check] = {
    "Gaussian noise, lists of accountants": _case(gaussian),
    "randomised responses, lists of accountants": _case(responses),
    "one selection, lists of accountants": _case(selection),
    "sampled response, lists of accountants": _case(sampled_response),
    "one step of DP-SGD, lists of accountants": _case(sampled_gaussian),
}
