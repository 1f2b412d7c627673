"""Releases that chance decides: their possible outcomes, and the probability of each.

An event, a choice by a table and the maximum of noisy scores are such releases. So is a
draw of integers, of items with replacement or of an order, if the code uses it by
itself and it has few outcomes. Every outcome can be forced in a replay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from auditdp.tracing.among import AMONG
from auditdp.tracing.draws import ALONE, CHOICE, COIN, MAXIMUM, Release
from auditdp.tracing.trace_limits import LIMITS

NAMED = (COIN, CHOICE, MAXIMUM)
"""Kinds of releases that have a table of the probabilities of their outcomes."""
SAMPLES = ("permutation", "choice of items", "integer")
"""Families of orders, and of draws with replacement among items or integers."""


def is_by_chance(release: Release) -> bool:
    """Return True if a release is an event, a choice, a maximum, or a short draw.

    A short draw is one that the code uses by itself: an order of at most
    ``LIMITS.permuted_items`` items, or a draw of integers, or of items with
    replacement, with at most ``LIMITS.outcomes`` outcomes.
    """
    if release.kind in NAMED:
        return True
    if release.kind != ALONE or release.law.family not in SAMPLES:
        return False
    count = float(np.max(release.law.parameter))
    if release.law.family == "permutation":
        return count <= LIMITS.permuted_items
    return count ** math.prod(release.shape) <= LIMITS.outcomes


def is_sample(release: Release) -> bool:
    """Return True if a release may decide which records take part.

    A vector of events may, and a coin that a loop tosses for each record. So may an
    order, and a vector of drawn places or integers.
    """
    is_draw = release.kind == ALONE and release.law.family in AMONG
    is_vector = bool(release.shape)
    return release.of_record or (is_vector and (is_draw or release.kind == COIN))


def tables_of(release: Release) -> Any:
    """Return the probabilities of the outcomes of an event, a choice or a maximum.

    Returns:
        An array of shape (events, outcomes). The outcomes of an event are False and
        True, in this order. A choice or a maximum counts as one event.
    """
    if release.kind == COIN:
        p = np.atleast_1d(np.asarray(release.location, float)).ravel()
        return np.stack([1 - p, p], axis=-1)
    if release.kind == CHOICE:
        return np.atleast_2d(release.location)
    scores = np.asarray(release.location, float) / release.law.scale
    weights = np.exp(scores - scores.max()) if len(scores) else scores
    return np.atleast_2d(weights / weights.sum())


def probability_of(release: Release) -> float:
    """Return the probability of the recorded outcome of a release by chance.

    It is 0 if the outcome was forced and is not possible on this input.
    """
    if release.kind == COIN and not release.shape:
        p = float(release.location)
        return p if release.result else 1 - p
    if release.kind not in NAMED:
        if release.law.family == "permutation":
            return 1 / math.factorial(int(release.law.parameter))
        return float(release.law.parameter) ** -math.prod(release.shape)
    rows = tables_of(release)
    product = 1.0
    for k, outcome in enumerate(np.atleast_1d(np.asarray(release.result, int)).ravel()):
        row = rows[k if len(rows) > 1 else 0]
        # A result that was forced may lie outside the table of this input.
        product *= float(row[outcome]) if outcome < len(row) else 0.0
    return product


def other_outcome(release: Release) -> Any:
    """Return one outcome of a release by chance that is not the recorded one.

    Returns:
        The outcome. None if there is no other one, or if the release is not by chance.
    """
    if not is_by_chance(release):
        return None
    return next(other_outcomes(release)[0], None)


def other_outcomes(release: Release) -> tuple[Iterator[Any], bool]:
    """Return the possible outcomes of a release by chance, without the recorded one.

    Returns:
        An iterator over at most ``LIMITS.outcomes`` outcomes, and whether it yields all
        of them. For orders it always yields all.
    """
    shape, size = release.shape, math.prod(release.shape)
    if release.law.family == "permutation":
        orders = map(np.array, itertools.permutations(range(size)))
        return _without(orders, release.result), True
    # The outcomes of an array are all combinations of the values of its entries.
    values = _values(release)
    if not shape:
        others = [value for value in values if value != release.result]
        return iter(others[: LIMITS.outcomes]), len(others) <= LIMITS.outcomes
    if len(values) ** size <= LIMITS.outcomes:
        vectors = itertools.product(values, repeat=size)
        arrays = (np.array(vector).reshape(shape) for vector in vectors)
        return _without(arrays, release.result), True
    # Too many to force them all: results that differ in one entry come first.
    return itertools.islice(_with_one_entry(release, values), LIMITS.outcomes), False


def _values(release: Release) -> list[Any]:
    """Return the values that one entry of a release by chance can have, ascending."""
    if release.kind == ALONE:
        start = 0 if release.location is None else int(np.min(release.location))
        return [start + k for k in range(int(np.max(release.law.parameter)))]
    if release.kind == COIN:
        if release.shape:
            return [False, True]
        p = float(release.location)
        return [False] * (p < 1) + [True] * (p > 0)
    table = np.ravel(release.location)
    return [k for k, p in enumerate(table) if p > 0 or release.kind == MAXIMUM]


def _without(arrays: Iterator[Any], result: Any) -> Iterator[Any]:
    return (array for array in arrays if not np.array_equal(array, result))


def _with_one_entry(release: Release, values: list[Any]) -> Iterator[Any]:
    for place in range(math.prod(release.shape)):
        for value in values:
            array = np.array(release.result)
            if array.flat[place] != value:
                array.flat[place] = value
                yield array
