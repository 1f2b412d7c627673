"""A declared sensitivity against the moves in a trace; outputs unlike traced ones."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import (
    AccountedDP,
    GaussianDP,
    Pair,
    PureDP,
    ZeroConcentratedDP,
    check,
)
from auditdp.accountants import LaplaceUpper
from auditdp.record.details import GameDetails
from auditdp.record.results import details
from tests.unit.evidence.toys import MISCALIBRATED, audited


@dataclass(frozen=True)
class Declared:
    sensitivity: float = 1.0
    norm: str = "l1"


@dataclass(frozen=True)
class Total(Declared):
    """Laplace noise on a sum of clipped ages, which moves by 100."""

    sensitivity: float = 100.0
    scale: float = 100.0

    def __call__(self, ages, size, *, rng):
        clipped = sum(min(age, 100) for age in ages)
        return clipped + rng.laplace(scale=self.scale, size=size)


class Means(Declared):
    """Noise on three floats whose moves add up to 1 but for rounding."""

    def __call__(self, data, rng):
        return np.array(data) / 3 + rng.laplace(size=3)


class Adaptive(Declared):
    """The second value depends on the noisy one before: the same on both inputs."""

    def __call__(self, x, rng):
        noisy = x + rng.laplace(scale=2.0)
        return x + 100 * noisy + rng.laplace(scale=2.0)


class LastIterate(Declared):
    """Sixteen steps of descent, each with noise for the sensitivity of a step.

    Only the last iterate is returned.
    """

    def __call__(self, x, rng):
        w = 0.0
        for _ in range(16):
            w -= (w - x + rng.normal()) / 2
        return w


class Eight(Declared):
    """Eight answers to one query, each with Laplace noise of scale 2."""

    def __call__(self, x, rng):
        return [x + rng.laplace(scale=2.0) for _ in range(8)]


class Antithetic(Declared):
    """Noise that cancels, and then the noise that counts."""

    def __call__(self, x, rng):
        z = rng.normal()
        return ((2 * x + z) + (2 * x - z)) / 4 + rng.laplace()


class NoisyMax(Declared):
    """The name of the largest count, each of which moves by 1.

    In the l1 norm they move by 4.
    """

    def __call__(self, counts, rng):
        noise = rng.laplace(scale=2.0, size=len(counts))
        return int(np.argmax(np.asarray(counts, float) + noise))


def evidence(mechanism, claim, pair):
    options = {"evidence": ["sensitivity"], "exhaustive": False}
    return audited(mechanism, claim, [pair], budget=200, **options).evidence


def test_a_planted_sensitivity_is_refuted_with_its_line():
    pair = Pair([120] * 90, [120] * 89)
    mechanism = Total(50.0, scale=50.0)
    (found,) = evidence(mechanism, PureDP(1.0), (pair.data, pair.neighbour))

    assert found.verdict is MISCALIBRATED
    line = Total.__call__.__code__.co_firstlineno + 2
    assert f"line {line} is calibrated to l1 sensitivity 50, but" in found.statement
    assert "differs by 100 between two neighbours" in found.statement
    assert found.counterexample.python == pair.python is not None


PURE = PureDP(1.0)
ONE = 0.0, 1.0
AGES = [120], []
FLOATS = [0.1, 0.2, 0.3], [1.1, 1.2, 1.3]
COUNTS = [1, 2, 3, 4], [2, 3, 4, 5]
CURVE = LaplaceUpper(0.5, count=8)
MU_OF_LAST_ITERATE = (1 - 2.0**-16) / math.sqrt((1 - 4.0**-16) / 3)


@pytest.mark.parametrize(
    ("mechanism", "claim", "pair"),
    [
        # Perhaps in another unit: its noise keeps the claim.
        (Total(50.0, scale=100.0), PURE, AGES),
        (Means(), PURE, FLOATS),
        (Adaptive(), PURE, ONE),
        (LastIterate(norm="l2"), GaussianDP(MU_OF_LAST_ITERATE * (1 + 1e-9)), ONE),
        (Eight(), AccountedDP(CURVE), ONE),
        (Eight(), ZeroConcentratedDP(8 * (0.5 + math.expm1(-0.5))), ONE),
        (Antithetic(), PURE, ONE),
        (NoisyMax(), PURE, COUNTS),
    ],
)
def test_correct_calibrations_are_not_refuted(mechanism, claim, pair):
    found = evidence(mechanism, claim, pair)
    assert MISCALIBRATED not in [each.verdict for each in found]


def once(x, rng):
    return [x + rng.laplace()]


def twice_if_large(x, rng):
    released = x + rng.laplace()
    return [released] if released < 4 else [released, released]


@pytest.mark.parametrize(("mechanism", "unlike"), [(twice_if_large, 1), (once, 0)])
def test_outputs_unlike_those_of_traced_runs_are_counted(mechanism, unlike):
    """Of 400 outputs some 7 are above 4, with probability 1 - exp(-7) at least.

    No traced run's is, at this seed.
    """
    found = check(mechanism, PureDP(1.0), Pair(1.0, 0.0), calls=400, seed=3)
    (game,) = details(found.evidence, GameDetails)
    assert game.trace.played

    opaque = [text for text in game.trace.opaque if "of another form" in text]
    assert len(opaque) == unlike
    for text in opaque:
        assert 0 < int(text.split(": ")[1].split(";")[0]) < 40
