"""OpenDP: a call of a measurement is one release, whose loss its privacy map states.

The map gets the distance of the two inputs of the measurement, in the measurement's own
metric. A stated ρ of zero-concentrated DP is taken for the loss of Gaussian noise. That
is right for OpenDP's own measurements that state ρ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.noise_families import Loss, NoiseLaw
from auditdp.tracing.sources.primitives import (
    Law,
    Library,
    apart,
    declared,
    rows_apart,
    unlike,
)


def _norm(order: float) -> Callable[[Any, Any], float]:
    def distance(first: Any, second: Any) -> float:
        one, two = np.asarray(first, float), np.asarray(second, float)
        if one.shape != two.shape:
            return math.inf
        return float(np.linalg.norm(np.ravel(one - two), order))

    return distance


def _positions(first: Any, second: Any) -> float:
    if len(first) != len(second):
        return math.inf
    return float(sum(a != b for a, b in zip(first, second, strict=True)))


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
"""Functions that return the distance of two inputs, by the name of the metric."""
MEASURES: dict[str, Callable[[Any], Loss]] = {
    "MaxDivergence": lambda stated: Loss(float(stated)),
    "ZeroConcentratedDivergence": lambda stated: Loss(squared_mu=2 * float(stated)),
    "Approximate(MaxDivergence)": lambda stated: Loss(*map(float, stated)),
    "Approximate(ZeroConcentratedDivergence)": lambda stated: Loss(
        0.0, float(stated[1]), 2 * float(stated[0])
    ),
}
"""Functions from the result of a privacy map to a loss, by the name of the measure.

Measures whose maps return curves are left out.
"""


def _invoked(measurement: Any, arg: Any) -> Law:
    metric = str(measurement.input_metric).partition("(")[0]
    measure = str(measurement.output_measure)
    name = f"a measurement of OpenDP ({measure})"
    is_whole = "f" not in str(measurement.input_distance_type)
    if metric not in METRICS or measure not in MEASURES:
        return NoiseLaw(name), 0.0

    def loss(distance: float) -> Loss:
        if not math.isfinite(distance):
            return Loss(math.inf, 1.0)
        # The map takes whole distances, and a larger distance can only raise the loss.
        stated = measurement.map(math.ceil(distance) if is_whole else distance)
        return MEASURES[measure](stated)

    at_one = repr(measurement.map(1 if is_whole else 1.0))
    law = declared(name, METRICS[metric], loss, repr(measurement), at_one)
    return law, arg


LIBRARY = Library(
    "opendp", "opendp", ("0.14", "0.15", "0.16"), {"core.measurement_invoke": _invoked}
)
watch = LIBRARY.watch
