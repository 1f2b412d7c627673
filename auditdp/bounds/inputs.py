"""What a record must look like: every refusal shows the value and says what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from auditdp.bounds.curves import curve_of
from auditdp.bounds.result import Question
from auditdp.errors import ConfigurationError
from auditdp.numerics.arrays import Floats, Labels

FEWEST_OUTPUTS = 20
UNFAIR = 1e-6
"""Probability with which labels that fair coins gave are refused, at most."""


def question_of(parameter: str, delta: float, alpha: float, claim: float | None) -> Question:
    """Return what is asked, checked.

    Raises:
        ConfigurationError: If a number is out of range.
    """
    for name, value in (("alpha", alpha), ("delta", delta), ("claim", claim)):
        if not isinstance(value, int | float | np.floating | np.integer | None) or isinstance(value, bool):
            least = f"; give its {parameter} as a number" if name == "claim" else ""
            raise ConfigurationError(f"expected {name} as a number, got {value!r}{least}")
    if not 0 < alpha < 1:
        raise ConfigurationError(f"expected alpha between 0 and 1, got {alpha!r}; usual is 0.05")
    least = "> 0" if parameter == "mu" else ">= 0"
    if claim is not None and not (math.isfinite(claim) and (claim > 0 or (claim == 0 and parameter != "mu"))):
        raise ConfigurationError(f"expected a finite claim {least}, got {claim!r}; leave it out to get the bound alone")
    return Question(curve_of(parameter, delta), float(alpha), None if claim is None else float(claim))


def increasing(**counts: Any) -> tuple[int, ...]:
    """Return whole numbers 0 <= ... <= ..., given by their names, of which the last is positive.

    Raises:
        ConfigurationError: If they are not.
    """
    values = list(counts.values())
    whole = all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values)
    if not whole or values != sorted(values) or values[0] < 0 or values[-1] < 1:
        *_, last = counts
        shown = ", ".join(f"{name}={value!r}" for name, value in counts.items())
        raise ConfigurationError(f"expected whole numbers 0 <= {' <= '.join(counts)} and {last} > 0, got {shown}")
    return tuple(int(value) for value in values)


def numbers(name: str, values: ArrayLike, *, gaps: bool = False) -> Floats:
    """Return the values as an array of finite numbers with at least one dimension; with ``gaps`` some may be NaN.

    Raises:
        ConfigurationError: If they are not.
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}: expected numbers, all rows of one shape: {error}") from error
    known = np.isfinite(array) | (gaps & np.isnan(array))
    if not known.all():
        bad = int(np.flatnonzero(~known.reshape(len(array), -1).all(axis=1))[0])
        raise ConfigurationError(
            f"{name}: row {bad + 1} is {array[bad]}, expected finite numbers; give such rows a number that says so, "
            "the same for either label, rather than leave them out"
        )
    return array


def scores_and_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Labels]:
    """Return scores and labels, both of shape (n,).

    Raises:
        ConfigurationError: If the shapes differ, a label is not 0 or 1, or there are not two of either.
    """
    values, truth = numbers("scores", scores), numbers("labels", labels)
    if values.ndim != 1 or values.shape != truth.shape:
        raise ConfigurationError(
            f"expected one score and one label per row, got scores of shape {values.shape} and labels {truth.shape}"
        )
    check_binary("labels", truth)
    inside = int(truth.sum())
    if min(inside, len(truth) - inside) < 2:
        raise ConfigurationError(
            f"labels: {inside} in and {len(truth) - inside} out; at least two of either are needed, so record more runs"
        )
    return values, truth.astype(np.int8)


def check_binary(name: str, values: Floats) -> None:
    """Raise unless all of these say 'in' or 'out'.

    Raises:
        ConfigurationError: If one does not.
    """
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ConfigurationError(f"{name}: expected 1 for in and 0 for out, got {wrong[0]:g}; recode them")


def check_fair(labels: Labels) -> None:
    """Raise where fair coins give numbers of in and out as uneven as these with probability ``UNFAIR`` at most.

    Null hypothesis: each label was thrown by its own fair coin. The test is the two-sided binomial one. Where labels were
    not thrown so, guesses are right without any training, and a bound that assumes coins would be false.

    Raises:
        ConfigurationError: If the labels are so uneven.
    """
    inside, rows = int(labels.sum()), len(labels)
    if 2 * float(bdtr(min(inside, rows - inside), rows, 0.5)) <= UNFAIR:
        raise ConfigurationError(
            f"labels: {inside:,} of {rows:,} are in; fair coins give numbers as uneven with probability {UNFAIR:g} at most; "
            "use design 'arms' if every row is an independent run of the mechanism, or propensities that say how likely "
            "each row is a member"
        )


def outputs(name: str, values: ArrayLike) -> Floats:
    """Return outputs, shape (n, features).

    Raises:
        ConfigurationError: If there are too few to learn an event from.
    """
    array = numbers(name, values)
    if len(array) < FEWEST_OUTPUTS:
        raise ConfigurationError(
            f"{name}: {len(array)} outputs, expected at least {FEWEST_OUTPUTS} to learn an event from; record more, or "
            "count an event that was fixed beforehand (from_counts)"
        )
    return array.reshape(len(array), -1)
