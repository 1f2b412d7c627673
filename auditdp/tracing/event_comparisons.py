"""Comparisons of noise, which the trace records as events, choices and maxima.

A comparison of noise with a number is an event of known probability. So is a comparison
of two scores with Gumbel noise. The place of the largest of such scores is a maximum.
The place of a uniform draw in a table is a choice by that table.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM, WHOLE
from auditdp.tracing.linear_forms import Form, is_numeric, number
from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import all_of, ndim, shape_of, size_of
from auditdp.tracing.shared_noise import law_and_groups
from auditdp.tracing.sites import here
from auditdp.tracing.trace_limits import LIMITS, ROUNDING

COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], bool, bool]] = {
    "less": (operator.lt, True, True),
    "less_equal": (operator.le, True, False),
    "greater": (operator.gt, False, False),
    "greater_equal": (operator.ge, False, True),
}
"""Three facts about each comparison, by the name of numpy's function.

They are the operator; whether small noise on the left side makes it true; and whether
equality has the same result as larger noise.
"""
MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def compare(noise: Any, other: Any, name: str) -> Any:
    """Return the result of a comparison, and release it as an event.

    If the probability of the event is not computed, the noise ends instead.

    Args:
        noise: One side.
        other: The other side; at least one of them is noise.
        name: Name of numpy's comparison function, such as ``less``.
    """
    if not isinstance(noise, Form):
        noise, other, name = other, noise, MIRRORED[name]
    operation, is_small, is_strict = COMPARISONS[name]
    if isinstance(other, Form):
        is_first = _is_first_larger(noise, other, operation, is_small=is_small)
        if is_first is not None:
            return is_first
        other = other.settle("is compared with noise")
    below = _probability_below(noise, other, is_strict=is_strict)
    if below is None:
        return operation(noise.settle("is compared with a number"), other)
    term = noise.terms[0]
    key = term.index if isinstance(term.index, int) else WHOLE
    # Earlier comparisons left this interval for P(U <= u).
    low, high = term.draw.limits.get(key, (0.0, 1.0))
    width = np.where(high > low, high - low, 1.0)
    inside = np.clip((np.clip(below, low, high) - low) / width, 0.0, 1.0)
    is_positive = bool(all_of(number(term.factor) * term.draw.law.scale > 0))
    probability = inside if is_small == is_positive else 1 - inside
    result = operation(noise.value, other)
    happened = noise.run.release(
        COIN, NoiseLaw("coin"), probability[()], result, here()
    )
    if term.draw.used:
        # Noise that went into a release is compared as well.
        noise.run.traced.releases[-1].earlier = tuple(term.draw.earlier(term.index))
    is_below = of_tensor(happened)
    if is_small != is_positive:
        is_below = np.logical_not(is_below)
    # The result conditions later comparisons of this draw.
    term.draw.limits[key] = (
        np.where(is_below, low, np.maximum(low, below))[()],
        np.where(is_below, np.minimum(high, below), high)[()],
    )
    return happened


def _probability_below(noise: Form, other: Any, *, is_strict: bool) -> Any:
    """Return the probability that the draw of noise lies below the compared number.

    The number is first converted into units of the standard draw.

    Args:
        noise: The noise.
        other: The number.
        is_strict: Whether equality has the same result as larger noise.

    Returns:
        The probability, or None if it is not computed.
    """
    if noise.settled is not None or len(noise.terms) != 1 or not is_numeric(other):
        return None
    term, draw = noise.terms[0], noise.terms[0].draw
    family = draw.law.known
    if family is None or family.distribution is None or noise.weight is not None:
        return None
    is_entry = isinstance(term.index, int)
    key = term.index if is_entry else WHOLE
    if key not in draw.limits and draw.compared(term.index):
        return None
    if not is_entry and size_of(term.index) != size_of(draw.value):
        return None
    if size_of(other) > max(size_of(noise.value), 1):
        return None
    with np.errstate(all="ignore"):
        scale = number(term.factor) * draw.law.scale
        is_positive = bool(all_of(scale > 0))
        if not is_positive and not all_of(scale < 0):
            return None
        point = (number(other) - _offset(noise)) / scale
        if family.is_whole:
            # For whole z, P(U < z) is P(U <= z − 1).
            below = np.ceil(point - ROUNDING) - 1
            takes_equal = is_strict == is_positive
            point = below if takes_equal else np.floor(point + ROUNDING)
        return family.distribution(point, draw.law.parameter)


def _offset(noise: Form) -> Any:
    return 0.0 if noise.offset is None else noise.offset


def _is_first_larger(
    noise: Form, other: Form, operation: Callable[[Any, Any], Any], *, is_small: bool
) -> Any:
    """Return the result of a comparison of two scores with Gumbel noise, as an event.

    The larger of two scores v and w is again a score with Gumbel noise, ln(e^v + e^w),
    and its law does not depend on which one is larger.

    Args:
        noise: The left side.
        other: The right side.
        operation: The operator, such as ``operator.lt``.
        is_small: Whether small noise on the left side makes the comparison true.

    Returns:
        The result, or None if the scores are not of this kind.
    """
    laws = [form.law for form in (noise, other)]
    if {law.family for law in laws} != {"Gumbel"}:
        return None
    if not same(laws[0].scale, laws[1].scale) or ndim(noise.value) or ndim(other.value):
        return None
    scale = float(laws[0].scale)
    is_lost = -math.inf in (noise.weight, other.weight)
    if noise.settled or other.settled or scale <= 0 or is_lost:
        return None
    # A score that won before has the weight of all that it exceeded.
    weights = [
        float(_offset(form)) / scale if form.weight is None else form.weight
        for form in (noise, other)
    ]
    # The exponential of a larger difference overflows.
    difference = min(weights[1] - weights[0], LIMITS.exponent)
    chance = 1 / (1 + math.exp(difference))
    result = operation(noise.value, other.value)
    probability = 1 - chance if is_small else chance
    happened = noise.run.release(COIN, NoiseLaw("coin"), probability, result, here())
    winner, loser = noise, other
    if bool(happened) == is_small:
        winner, loser = other, noise
    winner.weight, loser.weight = float(np.logaddexp(weights[0], weights[1])), -math.inf
    return happened


def searched(noise: Form, table: Any, side: str) -> Any:
    """Return the place of a uniform draw in a table of cumulative sums, as a choice.

    Args:
        noise: A uniform draw of real numbers or integers.
        table: The cumulative sums, ascending.
        side: "left" or "right", as for ``numpy.searchsorted``.

    Returns:
        The place, which is released. None if the draw or the table is of another kind.
    """
    if noise.settled is not None or len(noise.terms) != 1:
        return None
    if ndim(noise.value) > 1 or ndim(table) != 1 or ndim(noise.offset):
        return None
    term, draw = noise.terms[0], noise.terms[0].draw
    family = draw.law.family
    if family not in ("uniform", "integer") or draw.limits or draw.used:
        return None
    scale = float(number(term.factor) * draw.law.scale)
    if not scale > 0:
        return None
    points = (np.asarray(table, float) - float(_offset(noise))) / scale
    if family == "integer":
        points = points / draw.law.parameter
    # The distances of the sums are the probabilities of the places.
    chances = np.diff(np.clip(points, 0.0, 1.0), prepend=0.0, append=1.0)
    place = np.searchsorted(table, noise.value, side=side)  # type: ignore[call-overload]
    return noise.run.release(
        CHOICE, NoiseLaw("choice"), np.maximum(chances, 0.0), place, here(), noise.terms
    )


def largest(noise: Form, *arguments: Any, **keywords: Any) -> Any:
    """Return the place of the largest entry.

    If the entries are scores with Gumbel noise of one scale, only the place is
    released. Else the noise ends. It also ends if there are further arguments, which
    are passed to ``numpy.argmax``.
    """
    shape = shape_of(noise.value)
    law, groups = law_and_groups(noise.terms, shape)
    scales = np.unique(np.asarray(law.scale, float))
    is_maximum = law.family == "Gumbel" and len(scales) == 1 and scales[0] > 0
    is_plain = groups is None and not arguments and not keywords
    if noise.settled is not None or not is_maximum or not is_plain:
        return np.argmax(noise.settle("is used by its order"), *arguments, **keywords)
    # The code may change its scores in place later.
    scores = np.broadcast_to(_offset(noise), shape).ravel().copy()
    return noise.run.release(
        MAXIMUM,
        NoiseLaw("Gumbel", float(scales[0])),
        scores,
        np.argmax(noise.value),
        here(),
        noise.terms,
    )
