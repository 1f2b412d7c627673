"""OpenDP: a measurement is called in Rust, so a call is one release that loses what the map of the measurement says.

The map takes the distance of the two inputs that the measurement was called with, in its own metric. Of ρ-zCDP the loss is
taken for that of Gaussian noise, which it is where OpenDP's own measurements state ρ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.noise_families import Loss, NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sources.primitives import (
    Library,
    apart,
    declared,
    rows_apart,
    unlike,
)
from auditdp.tracing.watched_run import Active


def _norm(order: float) -> Callable[[Any, Any], float]:
    def distance(first: Any, second: Any) -> float:
        one, two = np.asarray(first, float), np.asarray(second, float)
        return (
            float(np.linalg.norm(np.ravel(one - two), order))
            if one.shape == two.shape
            else math.inf
        )

    return distance


def _positions(first: Any, second: Any) -> float:
    return (
        float(sum(a != b for a, b in zip(first, second, strict=True)))
        if len(first) == len(second)
        else math.inf
    )


METRICS: dict[str, Callable[[Any, Any], float]] = {
    "AbsoluteDistance": apart(),
    "L1Distance": _norm(1),
    "L2Distance": _norm(2),
    "LInfDistance": _norm(np.inf),
    "SymmetricDistance": rows_apart,
    "ChangeOneDistance": lambda first, second: rows_apart(first, second) / 2,
    "HammingDistance": _positions,
    "DiscreteDistance": unlike,
}
"""By the name of a metric, the distance of two inputs."""


def _stated(measure: str, said: Any) -> Loss | None:
    """Return what a map says as a loss; None of curves."""
    if measure == "MaxDivergence":
        return Loss(float(said))
    if measure == "ZeroConcentratedDivergence":
        return Loss(squared_mu=2 * float(said))
    if measure == "Approximate(MaxDivergence)":
        return Loss(float(said[0]), float(said[1]))
    if measure == "Approximate(ZeroConcentratedDivergence)":
        return Loss(0.0, float(said[1]), 2 * float(said[0]))
    return None


def _invoked(measurement: Any, arg: Any) -> tuple[NoiseLaw, Any]:
    metric, measure = (
        str(measurement.input_metric).partition("(")[0],
        str(measurement.output_measure),
    )
    name = f"a measurement of OpenDP ({measure})"
    whole = "f" not in str(measurement.input_distance_type)

    def loss(distance: float) -> Loss | None:
        if not math.isfinite(distance):
            return Loss(math.inf, 1.0)
        return _stated(
            measure, measurement.map(math.ceil(distance) if whole else distance)
        )

    known = (
        metric in METRICS
        and _stated(measure, (0.0, 0.0) if measure.startswith("Approx") else 0.0)
        is not None
    )
    if not known:
        return NoiseLaw(name), 0.0
    return declared(
        name,
        METRICS[metric],
        loss,
        repr(measurement),
        repr(measurement.map(1 if whole else 1.0)),
    ), arg


LIBRARY = Library(
    "opendp", "opendp", ("0.14", "0.15", "0.16"), {"core.measurement_invoke": _invoked}
)


def watch(patches: Patches, active: Active) -> None:
    """Replace what calls a measurement."""
    LIBRARY.watch(patches, active)
