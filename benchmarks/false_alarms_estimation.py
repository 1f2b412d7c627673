"""Wrong judgements of estimates that are exactly at their promise or margin.

``FALSE_ALARMS`` maps a name to a function of (repeats, rng) that returns how many of so many repeated audits gave a verdict
that is false at ``ALPHA``: VIOLATED where the promise just holds for all of three inputs, EQUIVALENT where one of three is
just outside what is to be shown. Noise has mean 0 and variance 1. Where a range is declared, or a kurtosis, no noise can do
worse than ``ALPHA``; where nothing is, the tests are asymptotic, and skewed and rare noise is what they have to stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from auditdp.claims.estimates import Promise, Unbiased, VarianceAtMost
from auditdp.evidence.estimation import estimation_evidence
from auditdp.mechanism.protocol import Array
from auditdp.record.results import Verdict
from benchmarks.parts import ALPHA, Check, Rng

MARGIN = 0.1
CALLS = 900
DRAWS: dict[str, Callable[[Rng, int], Array]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "Laplace": lambda rng, n: rng.laplace(scale=math.sqrt(0.5), size=n),
    "exponential": lambda rng, n: rng.standard_exponential(n) - 1,
    "log-normal": lambda rng, n: (
        (np.exp(rng.standard_normal(n)) - math.exp(0.5))
        / math.sqrt(math.e * (math.e - 1))
    ),
    "uniform": lambda rng, n: math.sqrt(12) * (rng.random(n) - 0.5),
    "coin": lambda rng, n: 2.0 * rng.integers(0, 2, n) - 1,
    "rare": lambda rng, n: ((rng.random(n) < 0.01) - 0.01) / math.sqrt(0.01 * 0.99),
    "very rare": lambda rng, n: (
        ((rng.random(n) < 1e-4) - 1e-4) / math.sqrt(1e-4 * (1 - 1e-4))
    ),
}
RANGES = {
    "uniform": (-math.sqrt(3), math.sqrt(3)),
    "coin": (-1.0, 1.0),
    "rare": (-math.sqrt(0.01 / 0.99), math.sqrt(0.99 / 0.01)),
    "very rare": (-math.sqrt(1e-4 / (1 - 1e-4)), math.sqrt((1 - 1e-4) / 1e-4)),
}


@dataclass(frozen=True)
class Noise:
    """A number plus noise of mean 0 and variance 1, by name; ``bias`` is added.

    Args:
        kind: One of ``DRAWS``.
        bias: Bias of the estimate of 0, and of all if ``alone`` is False.
        declared: Whether the range is declared.
        alone: Whether only the estimate of 0 is at the edge of what is allowed: others have a third of the noise.
    """

    kind: str
    bias: float = 0.0
    declared: bool = False
    alone: bool = False

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return ``size`` noisy numbers."""
        bias, scale = (0.0, 1 / 3) if self.alone and data else (self.bias, 1.0)
        return np.asarray(data + bias + scale * DRAWS[self.kind](rng, size))

    def output_range(self, data: float) -> tuple[float, float] | None:
        """Return the range, if it is declared."""
        if not self.declared:
            return None
        low, high = RANGES[self.kind]
        return data + min(self.bias, 0) + low, data + max(self.bias, 0) + high


def _truth(value: float) -> float:
    return value


def _wrong(
    promise: Promise, noise: Noise, wrong: Verdict, repeats: int, rng: Rng
) -> int:
    """Audits of the estimates of three inputs that end with the wrong verdict."""
    inputs = {f"{value:g}": [value] for value in (0.0, 5.0, 20.0)}
    return sum(
        estimation_evidence(
            noise, promise, inputs, alpha=ALPHA, calls=CALLS, streams=lambda *_: rng
        ).verdict
        is wrong
        for _ in range(repeats)
    )


def _unbiased(kind: str, *, declared: bool = False) -> Check:
    return partial(
        _wrong,
        Unbiased(_truth, MARGIN),
        Noise(kind, declared=declared),
        Verdict.VIOLATED,
    )


def _almost(kind: str, bias: float, *, declared: bool = False) -> Check:
    return partial(
        _wrong,
        Unbiased(_truth, MARGIN, almost=True),
        Noise(kind, bias, declared),
        Verdict.VIOLATED,
    )


def _within(kind: str, bias: float, *, declared: bool = False) -> Check:
    noise = Noise(kind, bias, declared, alone=True)
    return partial(
        _wrong, Unbiased(_truth, MARGIN, almost=True), noise, Verdict.EQUIVALENT
    )


def _variance(kind: str) -> Check:
    return partial(_wrong, VarianceAtMost(1.0, _truth), Noise(kind), Verdict.VIOLATED)


def _below(
    kind: str, *, declared: bool = False, kurtosis: float | None = None
) -> Check:
    promise = VarianceAtMost(1.0, _truth, kurtosis=kurtosis)
    return partial(
        _wrong, promise, Noise(kind, declared=declared, alone=True), Verdict.EQUIVALENT
    )


FALSE_ALARMS: dict[str, Check] = {
    **{
        f"unbiased, {kind} noise": _unbiased(kind)
        for kind in ("normal", "exponential", "log-normal", "very rare")
    },
    **{
        f"unbiased, {kind} noise, range declared": _unbiased(kind, declared=True)
        for kind in RANGES
    },
    "almost unbiased, exponential noise at the upper margin": _almost(
        "exponential", MARGIN
    ),
    "almost unbiased, exponential noise at the lower margin": _almost(
        "exponential", -MARGIN
    ),
    "almost unbiased, coin at the margin, range declared": _almost(
        "coin", MARGIN, declared=True
    ),
    "equivalent, exponential noise at the upper margin": _within("exponential", MARGIN),
    "equivalent, exponential noise at the lower margin": _within(
        "exponential", -MARGIN
    ),
    "equivalent, uniform noise at the margin, range declared": _within(
        "uniform", MARGIN, declared=True
    ),
    **{
        f"variance at its bound, {kind} noise": _variance(kind)
        for kind in ("normal", "Laplace", "coin", "rare")
    },
    **{
        f"equivalent, variance at its bound, {kind} noise": _below(kind)
        for kind in ("normal", "exponential", "log-normal")
    },
    **{
        f"equivalent, variance at its bound, {kind} noise, range declared": _below(
            kind, declared=True
        )
        for kind in ("uniform", "coin", "rare")
    },
    **{
        f"equivalent, variance at its bound, {kind} noise, kurtosis declared": _below(
            kind, kurtosis=kurtosis
        )
        for kind, kurtosis in {
            "normal": 3.0,
            "Laplace": 6.0,
            "exponential": 9.0,
        }.items()
    },
}
