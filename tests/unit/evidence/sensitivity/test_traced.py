"""A declared sensitivity against what moves in a trace: planted ones are found, correct ones never are."""

from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import Audit, Pair, PureDP
from auditdp.auditing.judging import run_audit
from auditdp.auditing.settings import Settings
from auditdp.record.results import Verdict


@dataclass(frozen=True)
class Total:
    """Laplace noise on a sum of clipped ages, which moves by 100."""

    sensitivity: float = 100.0
    scale: float = 100.0
    norm: str = "l1"

    def __call__(self, ages, size, *, rng):
        return sum(min(age, 100) for age in ages) + rng.laplace(scale=self.scale, size=size)


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


def evidence(mechanism, pair=([120], [])):
    audit = Audit(mechanism, PureDP(1.0), [pair], evidence=["sensitivity"], exhaustive=False)
    result = run_audit(audit, Settings(0.05, 200, 1, brief=True))
    return result.evidence[0]


def test_a_planted_sensitivity_is_refuted_with_the_line():
    pair = Pair([120] * 90, [120] * 89)
    found = evidence(Total(50.0, scale=50.0), (pair.data, pair.neighbour))
    assert found.verdict is Verdict.MISCALIBRATED
    assert "line 23 is calibrated to l1 sensitivity 50, but what it is added to moves by 100" in found.statement
    assert pair.python
    assert found.counterexample.python == pair.python


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (Total(), ([120], [])),
        (Total(100 * (1 - 1e-12)), ([120], [])),
        (Total(50.0, scale=100.0), ([120], [])),  # in another unit, perhaps: its noise keeps the claim
        (Means(), ([0.1, 0.2, 0.3], [1.1, 1.2, 1.3])),
        (Means(1 - 1e-15), ([0.1, 0.2, 0.3], [1.1, 1.2, 1.3])),
        (Adaptive(), (1.0, 0.0)),
    ],
)
def test_what_moves_by_the_sensitivity_or_less_is_not_accused(mechanism, pair):
    assert evidence(mechanism, pair).verdict is Verdict.NOT_REFUTED
