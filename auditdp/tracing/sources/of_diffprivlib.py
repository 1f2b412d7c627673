"""diffprivlib: ``randomise`` of its mechanisms, which its tools and models call."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from auditdp.tracing.draws import CHOICE, COIN
from auditdp.tracing.noise import drawn_release
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sources.primitives import (
    Law,
    Library,
    apart,
    declared,
    of_groups,
    unlike,
)
from auditdp.tracing.watched_run import Active, WatchedRun


def _laplace(mechanism: Any, value: Any) -> Law:
    loss = mechanism.epsilon - math.log1p(-mechanism.delta)
    return NoiseLaw("Laplace", mechanism.sensitivity / loss), value


def _uniform(mechanism: Any, value: Any) -> Law:
    width = mechanism.sensitivity / mechanism.delta
    return NoiseLaw("uniform", width), value - width / 2


def _numeric(mechanism: Any, value: Any) -> Law:
    """Return the law and the value of a call whose noise is not followed.

    The law states the (ε, δ) that the mechanism declares.
    """
    epsilon, delta, unit = mechanism.epsilon, mechanism.delta, mechanism.sensitivity
    loss = of_groups(epsilon, delta)
    law = declared(_name(mechanism), apart(unit), loss, epsilon, delta, unit)
    return law, value


def _categorical(mechanism: Any, value: Any) -> Law:
    epsilon = mechanism.epsilon
    return declared(_name(mechanism), unlike, of_groups(epsilon), epsilon), value


def _permute_and_flip(mechanism: Any, value: Any = None) -> Law:
    """Return the declared law of a call of permute-and-flip, and its utilities.

    The loss is kε if utilities move by at most k sensitivities, k = 0, 1, …

    Source: McKenna & Sheldon (2020), Theorem 1.
    """
    del value
    epsilon, sensitivity = mechanism.epsilon, mechanism.sensitivity

    def distance(first: Any, second: Any) -> float:
        if len(first) != len(second):
            return math.inf
        moves = map(apart(sensitivity), first, second)
        return max(moves, default=0.0)

    law = declared(_name(mechanism), distance, of_groups(epsilon), epsilon, sensitivity)
    return law, list(mechanism.utility)


def _name(mechanism: Any) -> str:
    return f"{type(mechanism).__name__} of diffprivlib"


LIBRARY = Library(
    "diffprivlib",
    "diffprivlib",
    ("0.6",),
    {
        "mechanisms.laplace.Laplace.randomise": _laplace,
        "mechanisms.laplace.LaplaceBoundedDomain.randomise": _numeric,
        "mechanisms.laplace.LaplaceBoundedNoise.randomise": _numeric,
        "mechanisms.gaussian.Gaussian.randomise": lambda self, v: (
            NoiseLaw("Gaussian", float(self._scale)),
            v,
        ),
        "mechanisms.gaussian.GaussianDiscrete.randomise": lambda self, v: (
            NoiseLaw("discrete Gaussian", 1.0, float(self._scale)),
            v,
        ),
        "mechanisms.geometric.Geometric.randomise": lambda self, v: (
            NoiseLaw("two-sided geometric", 1.0, -math.expm1(self._scale)),
            v,
        ),
        "mechanisms.uniform.Uniform.randomise": _uniform,
        "mechanisms.snapping.Snapping.randomise": _numeric,
        "mechanisms.staircase.Staircase.randomise": _numeric,
        "mechanisms.exponential.PermuteAndFlip.randomise": _permute_and_flip,
        "mechanisms.exponential.ExponentialCategorical.randomise": _categorical,
    },
)


def watch(patches: Patches, active: Active) -> None:
    """Replace the methods ``randomise`` of the mechanisms."""
    LIBRARY.watch(patches, active)
    mechanisms = sys.modules["diffprivlib.mechanisms"]
    patches.sampler(mechanisms.Exponential, "randomise", active, _chosen)
    patches.sampler(mechanisms.Binary, "randomise", active, _responded)


def _chosen(run: WatchedRun, randomise: Any, mechanism: Any, value: Any = None) -> Any:
    """Return the result of an exponential mechanism, and release it as a choice."""
    names = mechanism.candidates or list(range(len(mechanism.utility)))
    result = run.unwatched(randomise, mechanism, value)()
    sums = np.asarray(mechanism._probabilities, float)
    place = drawn_release(
        run,
        "randomise",
        lambda: names.index(result),
        CHOICE,
        NoiseLaw("choice"),
        np.maximum(np.diff(sums, prepend=0.0), 0),
        names=tuple(map(repr, names)),
        why=LIBRARY.why,
    )
    return names[min(place, len(names) - 1)]


def _responded(run: WatchedRun, randomise: Any, mechanism: Any, value: Any) -> Any:
    """Return the result of randomised response, and release it as an event."""
    result = run.unwatched(randomise, mechanism, value)()
    odds = math.exp(mechanism.epsilon)
    truthful = (odds + mechanism.delta) / (odds + 1)
    chance = truthful if value == mechanism.value1 else 1 - truthful
    is_one = drawn_release(
        run,
        "randomise",
        lambda: result == mechanism.value1,
        COIN,
        NoiseLaw("coin"),
        chance,
        why=LIBRARY.why,
    )
    if is_one:
        return mechanism.value1
    return mechanism.value0
