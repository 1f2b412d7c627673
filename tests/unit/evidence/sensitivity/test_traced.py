"""A declared sensitivity against what moves in a trace: planted ones are found, correct ones never are."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import (
    AccountedDP,
    ApproxDP,
    Audit,
    GaussianDP,
    Pair,
    PureDP,
    ZeroConcentratedDP,
)
from auditdp.accountants.additive_noise import LaplaceUpper
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.record.results import Verdict


@dataclass(frozen=True)
class Total:
    """Laplace noise on a sum of clipped ages, which moves by 100."""

    sensitivity: float = 100.0
    scale: float = 100.0
    norm: str = "l1"

    def __call__(self, ages, size, *, rng):
        return sum(min(age, 100) for age in ages) + rng.laplace(
            scale=self.scale, size=size
        )


@dataclass(frozen=True)
class Means:
    """Noise on three floats whose moves add up to 1 but for rounding."""

    sensitivity: float = 1.0
    norm: str = "l1"

    def __call__(self, data, rng):
        return np.array(data) / 3 + rng.laplace(size=3)


@dataclass(frozen=True)
class Adaptive:
    """What is noised depends on the noisy value before, which is the same on both inputs."""

    sensitivity: float = 1.0
    norm: str = "l1"

    def __call__(self, x, rng):
        noisy = 0.0
        for _ in range(2):
            noisy = x + 100 * noisy + rng.laplace(scale=2.0)
        return noisy


class LastIterate:
    """Sixteen steps of descent, each with noise for the sensitivity of a step; only the last iterate is returned."""

    sensitivity, norm = 1.0, "l2"

    def __call__(self, x, rng):
        w = 0.0
        for _ in range(16):
            w -= (w - x + rng.normal()) / 2
        return w


MU_OF_LAST_ITERATE = (1 - 2.0**-16) / math.sqrt((1 - 4.0**-16) / 3)


class Eight:
    """Eight answers to one query, each with Laplace noise of scale 2."""

    sensitivity, norm = 1.0, "l1"

    def __call__(self, x, rng):
        return [x + rng.laplace(scale=2.0) for _ in range(8)]


class Antithetic:
    """Noise that cancels, and then the noise that counts."""

    sensitivity, norm = 1.0, "l1"

    def __call__(self, x, rng):
        z = rng.normal()
        return ((2 * x + z) + (2 * x - z)) / 4 + rng.laplace()


class NoisyMax:
    """The name of the largest count, each of which moves by 1: in the l1 norm they move by 4."""

    sensitivity, norm = 1.0, "l1"

    def __call__(self, counts, rng):
        return int(
            np.argmax(
                np.asarray(counts, float) + rng.laplace(scale=2.0, size=len(counts))
            )
        )


CURVE = LaplaceUpper(0.5, count=8)


def evidence(mechanism, claim, pair=([120], [])):
    audit = Audit(mechanism, claim, [pair], evidence=["sensitivity"], exhaustive=False)
    result = run_audit(audit, Settings(0.05, 200, 1, brief=True))
    return result.evidence


def test_a_planted_sensitivity_is_refuted_with_the_line():
    pair = Pair([120] * 90, [120] * 89)
    found = evidence(Total(50.0, scale=50.0), PureDP(1.0), (pair.data, pair.neighbour))[
        0
    ]
    assert found.verdict is Verdict.MISCALIBRATED
    assert (
        "line 33 is calibrated to l1 sensitivity 50, but the value to which it is added moves by 100"
        in found.statement
    )
    assert pair.python
    assert found.counterexample.python == pair.python


@pytest.mark.parametrize(
    ("mechanism", "claim", "pair"),
    [
        (Total(), PureDP(1.0), ([120], [])),
        (Total(100 * (1 - 1e-12)), PureDP(1.0), ([120], [])),
        (
            Total(50.0, scale=100.0),
            PureDP(1.0),
            ([120], []),
        ),  # in another unit, perhaps: its noise keeps the claim
        (Means(), PureDP(1.0), ([0.1, 0.2, 0.3], [1.1, 1.2, 1.3])),
        (Means(1 - 1e-15), PureDP(1.0), ([0.1, 0.2, 0.3], [1.1, 1.2, 1.3])),
        (Adaptive(), PureDP(1.0), (1.0, 0.0)),
        (LastIterate(), GaussianDP(MU_OF_LAST_ITERATE * (1 + 1e-9)), (0.0, 1.0)),
        (Eight(), PureDP(4.0), (0.0, 1.0)),
        (Eight(), AccountedDP(CURVE), (0.0, 1.0)),
        (Eight(), ApproxDP(CURVE.epsilon_at(1e-5), 1e-5), (0.0, 1.0)),
        (Eight(), ZeroConcentratedDP(8 * (0.5 + math.expm1(-0.5))), (0.0, 1.0)),
        (Antithetic(), PureDP(1.0), (0.0, 1.0)),
        (NoisyMax(), PureDP(1.0), ([1, 2, 3, 4], [2, 3, 4, 5])),
    ],
)
def test_correct_calibrations_are_not_accused(mechanism, claim, pair):
    assert all(
        each.verdict is not Verdict.MISCALIBRATED
        for each in evidence(mechanism, claim, pair)
    )
