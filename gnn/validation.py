"""Checks of settings that the rooms of ``gnn`` share, and the errors that they raise beside the harness' own."""

from __future__ import annotations

import math

from auditdp.errors import AuditError, ConfigurationError, did_you_mean


class DataError(AuditError, ValueError):
    """Data on which a model cannot be trained or tested."""


class TrainingError(AuditError, RuntimeError):
    """A training that failed, such as one whose loss is not a number."""


def check_count(owner: str, name: str, value: int, least: int = 1) -> None:
    """Raise unless ``value`` is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(
            f"{owner}: expected {name}, an integer >= {least}, got {value!r}"
        )


def check_number(
    owner: str, name: str, value: float, *, least: float = 0.0, below: float = math.inf
) -> None:
    """Raise unless ``least`` <= ``value`` < ``below``."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not least <= value < below
    ):
        raise ConfigurationError(
            f"{owner}: expected {name} in [{least:g}, {below:g}), got {value!r}"
        )


def check_positive(owner: str, name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number > 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value < math.inf
    ):
        raise ConfigurationError(
            f"{owner}: expected {name}, a finite number > 0, got {value!r}"
        )


def check_choice(owner: str, name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise unless ``value`` is a known choice."""
    if value not in known:
        raise ConfigurationError(
            f"{owner}: no {name} {value!r}; {did_you_mean(str(value), known)}"
        )
