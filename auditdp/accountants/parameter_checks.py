"""Checks of parameters, whose errors name the value and the allowed range.

The argument ``kind`` of each check is the name of the Python class or function whose
parameter is checked.
"""

from __future__ import annotations

import math
from typing import NoReturn

from auditdp.errors import AuditError


class AccountantError(AuditError, ValueError):
    """Parameters that describe no mechanism, or that a theorem does not cover."""


def check_positive(kind: str, **values: float) -> None:
    """Raise AccountantError unless every value is finite and > 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            _refuse(kind, f"finite {name} > 0", name, value)


def check_delta(kind: str, delta: float) -> None:
    """Raise AccountantError unless ``delta`` is in [0, 1]."""
    if not 0 <= delta <= 1:
        _refuse(kind, "delta in [0, 1]", "delta", delta)


def check_rate(kind: str, rate: float) -> None:
    """Raise AccountantError unless ``rate`` is in (0, 1]."""
    if not 0 < rate <= 1:
        _refuse(kind, "rate in (0, 1]", "rate", rate)


def check_epsilon(kind: str, epsilon: float) -> None:
    """Raise AccountantError unless ``epsilon`` is >= 0; ``inf`` is allowed."""
    if not epsilon >= 0:
        _refuse(kind, "epsilon >= 0", "epsilon", epsilon)


def check_target(kind: str, epsilon: float, delta: float) -> None:
    """Raise AccountantError unless ``epsilon`` is finite, >= 0, and ``delta`` in (0, 1).

    Every amount of noise meets a target with an infinite ε or δ = 1, so none is the
    smallest.
    """
    if not 0 <= epsilon < math.inf:
        _refuse(kind, "a finite target epsilon >= 0", "epsilon", epsilon)
    if not 0 < delta < 1:
        _refuse(kind, "a target delta in (0, 1)", "delta", delta)


def check_count(kind: str, **counts: int) -> None:
    """Raise AccountantError unless every count is an integer >= 1."""
    for name, count in counts.items():
        if isinstance(count, bool) or not float(count).is_integer() or count < 1:
            _refuse(kind, f"an integer {name} >= 1", name, count)


def _refuse(kind: str, expected: str, name: str, value: float) -> NoReturn:
    raise AccountantError(f"{kind}: expected {expected}, got {name}={value!r}")
