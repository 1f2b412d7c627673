"""diffprivlib: ``randomise`` of its mechanisms, which its tools and models use as well."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.draws import CHOICE, COIN
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.sources.primitives import (
    Library,
    apart,
    declared,
    of_groups,
    unlike,
)
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

Law = tuple[NoiseLaw, Any]


def _laplace(mechanism: Any, value: Any) -> Law:
    return NoiseLaw(
        "Laplace",
        mechanism.sensitivity / (mechanism.epsilon - math.log1p(-mechanism.delta)),
    ), value


def _uniform(mechanism: Any, value: Any) -> Law:
    width = mechanism.sensitivity / mechanism.delta
    return NoiseLaw("uniform", width), value - width / 2


def _numeric(mechanism: Any, value: Any) -> Law:
    """Noise that is drawn by rejection, snapped or in steps."""
    epsilon, delta = mechanism.epsilon, mechanism.delta
    says = (epsilon, delta, mechanism.sensitivity)
    return declared(
        _name(mechanism), apart(mechanism.sensitivity), of_groups(epsilon, delta), *says
    ), value


def _categorical(mechanism: Any, value: Any) -> Law:
    return declared(
        _name(mechanism), unlike, of_groups(mechanism.epsilon), mechanism.epsilon
    ), value


def _permute_and_flip(mechanism: Any, value: Any = None) -> Law:
    """What counts is how far a utility moved: the loss is ε for the sensitivity (McKenna & Sheldon 2020, Theorem 1)."""
    del value
    epsilon, sensitivity = mechanism.epsilon, mechanism.sensitivity

    def distance(first: Any, second: Any) -> float:
        if len(first) != len(second):
            return math.inf
        return max(
            (apart(sensitivity)(a, b) for a, b in zip(first, second, strict=True)),
            default=0.0,
        )

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
    """Replace ``randomise``."""
    LIBRARY.watch(patches, active)
    mechanisms = sys.modules["diffprivlib.mechanisms"]
    for kind, wrapped in (
        (mechanisms.Exponential, _exponential),
        (mechanisms.Binary, _binary),
    ):
        patches.attribute(kind, "randomise", wrapped(kind.randomise, active))


def _exponential(randomise: Callable[..., Any], active: Active) -> Callable[..., Any]:
    """Return a choice by a table, which is made of the utilities when the mechanism is."""

    def choose(run: WatchedRun, mechanism: Any, value: Any = None) -> Any:
        names = mechanism.candidates or list(range(len(mechanism.utility)))
        result, site = run.unwatched(randomise, mechanism, value)(), here()
        table = np.diff(np.asarray(mechanism._probabilities, float), prepend=0.0)
        law = NoiseLaw("choice")
        place = run.draw("randomise", lambda: names.index(result), law, site).value
        texts = tuple(map(repr, names))
        chosen = run.release(
            CHOICE, law, np.maximum(table, 0), place, site, names=texts, why=LIBRARY.why
        )
        return names[min(chosen, len(names) - 1)]

    return in_run(randomise, active, choose)


def _binary(randomise: Callable[..., Any], active: Active) -> Callable[..., Any]:
    """Return randomised response between two texts."""

    def respond(run: WatchedRun, mechanism: Any, value: Any) -> Any:
        result, site = run.unwatched(randomise, mechanism, value)(), here()
        kept = (math.exp(mechanism.epsilon) + mechanism.delta) / (
            math.exp(mechanism.epsilon) + 1
        )
        chance = kept if value == mechanism.value1 else 1 - kept
        draw = run.draw(
            "randomise", lambda: result == mechanism.value1, NoiseLaw("coin"), site
        )
        is_one = run.release(
            COIN, NoiseLaw("coin"), chance, draw.value, site, why=LIBRARY.why
        )
        return mechanism.value1 if is_one else mechanism.value0

    return in_run(randomise, active, respond)
