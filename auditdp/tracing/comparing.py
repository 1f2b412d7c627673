"""Noise that is compared: with a number an event of known probability, with other noise a maximum, with a table a choice."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM, WHOLE
from auditdp.tracing.families import NoiseLaw, same
from auditdp.tracing.forms import Form, is_numeric, number
from auditdp.tracing.plain import all_of, ndim, shape_of, size_of
from auditdp.tracing.run import law_and_groups
from auditdp.tracing.sites import here

COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], bool, bool]] = {
    "less": (operator.lt, True, True),
    "less_equal": (operator.le, True, False),
    "greater": (operator.gt, False, False),
    "greater_equal": (operator.ge, False, True),
}
"""By the name of numpy's function: the operator, whether small noise makes it true, and whether equality counts as large."""
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def compare(noise: Any, other: Any, name: str) -> Any:
    """Return the result of a comparison by the name of numpy's function: an event where its probability is known."""
    if not isinstance(noise, Form):
        noise, other, name = other, noise, MIRRORED[name]
    compute, small, strict = COMPARISONS[name]
    if isinstance(other, Form):
        found = _tournament(noise, other, compute, small)
        if found is not None:
            return found
        other = other.settle("is compared with noise")
    event = _event(noise, other, small, strict)
    if event is None:
        return compute(noise.settle("is compared with a number"), other)
    probability, limits, below = event
    term = noise.terms[0]
    happened = noise.run.release(COIN, NoiseLaw("coin"), probability, compute(noise.value, other), here(), ())
    if term.draw.used:  # noise that went into a release is compared as well
        noise.run.traced.releases[-1].earlier = tuple(term.draw.earlier(term.index))
    seen = of_tensor(happened)
    is_below = seen if small == bool(all_of(number(term.factor) * term.draw.law.scale > 0)) else np.logical_not(seen)
    low, high = limits
    term.draw.limits[term.index if isinstance(term.index, int) else WHOLE] = (
        np.where(is_below, low, np.maximum(low, below))[()],
        np.where(is_below, np.minimum(high, below), high)[()],
    )
    return happened


def _event(noise: Form, other: Any, small: bool, strict: bool) -> tuple[Any, tuple[Any, Any], Any] | None:
    """Return the probability that a comparison is true, given earlier ones, what these leave, and P(draw below)."""
    if noise.settled is not None or len(noise.terms) != 1 or not is_numeric(other):
        return None
    term, draw = noise.terms[0], noise.terms[0].draw
    family = draw.law.known
    if family is None or family.distribution is None or noise.weight is not None:
        return None
    key = term.index if isinstance(term.index, int) else WHOLE
    if key not in draw.limits and draw.compared(term.index):
        return None
    whole = isinstance(term.index, int) or size_of(term.index) == size_of(draw.value)
    if not whole or size_of(other) > max(size_of(noise.value), 1):
        return None
    with np.errstate(all="ignore"):
        scale = number(term.factor) * draw.law.scale
        if not all_of(scale):
            return None
        offset = 0.0 if noise.offset is None else noise.offset
        point = (number(other) - offset) / scale
        positive = bool(all_of(scale > 0))
        if not positive and not all_of(scale < 0):
            return None
        if family.is_whole:  # P(U < z) is P(U <= z − 1) for whole z
            takes_equal = strict == positive
            point = np.where(takes_equal, np.ceil(point - 1e-9) - 1, np.floor(point + 1e-9))[()]
        below = family.distribution(point, draw.law.parameter)
        low, high = limits = draw.limits.get(key, (0.0, 1.0))
        width = high - low
        inside = np.clip((np.clip(below, low, high) - low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        probability = inside if small == positive else 1 - inside
    return probability[()] if isinstance(probability, np.ndarray) else probability, limits, below


def _tournament(noise: Form, other: Form, compute: Callable[[Any, Any], Any], small: bool) -> Any:
    """Return which of two scores with Gumbel noise is larger, as an event; None where they are none.

    The larger of two is again a score with Gumbel noise, ln(e^v + e^w), independent of which one it was.
    """
    laws = [one.law for one in (noise, other)]
    alike = laws[0].family == laws[1].family == "Gumbel" and same(laws[0].scale, laws[1].scale)
    if not alike or ndim(noise.value) or ndim(other.value) or noise.settled or other.settled:
        return None
    scale = float(laws[0].scale)
    if scale <= 0 or any(one.weight == -math.inf for one in (noise, other)):
        return None
    scores = (float(0.0 if one.offset is None else one.offset) / scale for one in (noise, other))
    mine, theirs = (s if one.weight is None else one.weight for s, one in zip(scores, (noise, other), strict=True))
    larger = 1 / (1 + math.exp(min(theirs - mine, 700.0)))
    chance, result = 1 - larger if small else larger, compute(noise.value, other.value)
    happened = noise.run.release(COIN, NoiseLaw("coin"), chance, result, here(), ())
    winner, loser = (other, noise) if bool(happened) == small else (noise, other)
    winner.weight, loser.weight = float(np.logaddexp(mine, theirs)), -math.inf
    return happened


def searched(noise: Form, table: Any, side: str) -> Any:
    """Return the place in a table of sums of a uniform draw, as a choice; None where it is none."""
    if noise.settled is not None or len(noise.terms) != 1 or ndim(noise.value) > 1 or ndim(table) != 1:
        return None
    draw = noise.terms[0].draw
    if draw.law.family not in ("uniform", "integer") or draw.limits or draw.used:
        return None
    scale = float(number(noise.terms[0].factor) * draw.law.scale)
    if not scale > 0 or ndim(noise.offset):
        return None
    points = (np.asarray(table, float) - float(noise.offset or 0.0)) / scale
    if draw.law.family == "integer":
        points = points / draw.law.parameter
    chances = np.diff(np.clip(points, 0.0, 1.0), prepend=0.0, append=1.0)
    plain = np.searchsorted(table, noise.value, side=side)  # type: ignore[call-overload]
    return noise.run.release(CHOICE, NoiseLaw("choice"), np.maximum(chances, 0.0), plain, here(), noise.terms)


def largest(noise: Form, *arguments: Any, **keywords: Any) -> Any:
    """Return the place of the largest entry: a release of its name alone, where scores have Gumbel noise."""
    law, groups = law_and_groups(noise.terms, shape_of(noise.value))
    scale = np.asarray(law.scale, float)
    if (
        noise.settled is not None
        or law.family != "Gumbel"
        or arguments
        or keywords
        or groups is not None
        or not scale.size
        or not all_of(scale == scale.flat[0])
        or not scale.flat[0] > 0
    ):
        return np.argmax(noise.settle("is used by its order"), *arguments, **keywords)
    location = np.broadcast_to(0.0 if noise.offset is None else noise.offset, shape_of(noise.value)).ravel()
    made = NoiseLaw("Gumbel", float(scale.flat[0]))
    return noise.run.release(MAXIMUM, made, location.copy(), np.argmax(noise.value), here(), noise.terms)
