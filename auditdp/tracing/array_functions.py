"""Rules that apply functions of numpy and of torch to noise, by the function's name.

If a function has no rule, or its rule does not follow the noise, the function gets
ordinary numbers, and the noise ends. Functions of one name do the same in both
libraries, up to the names of their options, which the rules pass on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from auditdp.tracing.event_comparisons import compare, largest, searched
from auditdp.tracing.linear_forms import (
    clipped,
    folded,
    logarithm,
    rounded,
    scaled,
    sign_of,
)
from auditdp.tracing.mixed_values import gathered, linear
from auditdp.tracing.noise import (
    COMPARISONS,
    RULES,
    Call,
    Noise,
    Rule,
    added,
    divided,
    multiplied,
    plain,
    subtracted,
    value_of,
)
from auditdp.tracing.plain_values import any_of, for_arrays, ndim, placed, shape_of

MAX_TERMS = 64
"""Largest number of noisy entries whose sum keeps a separate term for each entry."""
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": added,
    **dict.fromkeys(("subtract", "sub"), subtracted),
    "rsub": lambda first, second: subtracted(second, first),
    **dict.fromkeys(("multiply", "mul"), multiplied),
    **dict.fromkeys(("divide", "true_divide", "div"), divided),
}
LAYING = frozenset(
    (
        "array_split",
        "broadcast_to",
        "chunk",
        "expand",
        "expand_as",
        "expand_dims",
        "flatten",
        "flip",
        "getitem",
        "movedim",
        "narrow",
        "permute",
        "ravel",
        "repeat",
        "reshape",
        "reshape_as",
        "roll",
        "select",
        "split",
        "squeeze",
        "t",
        "take",
        "tile",
        "transpose",
        "unbind",
        "unsqueeze",
        "view",
        "view_as",
    )
)
"""Names of functions that move, repeat or select entries, of one array or several."""
COPYING = frozenset(
    (
        "bfloat16",
        "clone",
        "contiguous",
        "copy",
        "cpu",
        "cuda",
        "detach",
        "double",
        "float",
        "half",
        "numpy",
        "to",
        "type",
        "type_as",
    )
)
"""Names of functions that return the same entries, up to rounding."""
LINEAR = frozenset(
    (
        "addbmm",
        "addmm",
        "addmv",
        "addr",
        "baddbmm",
        "bmm",
        "convolve",
        "cumsum",
        "diff",
        "dot",
        "einsum",
        "inner",
        "kron",
        "linear",
        "matmul",
        "mean",
        "mm",
        "mv",
        "outer",
        "sum",
        "tensordot",
        "trace",
        "vdot",
    )
)
"""Names of functions that are linear in each array argument, plus a constant."""
GATHERING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ["cat", "column_stack", "concat", "concatenate", "hstack", "stack", "vstack"],
        (),
    ),
    "append": (0, 1),
    "insert": (0, 2),
    "where": (1, 2),
}
"""Functions that put entries of several arrays into one, by their names.

Each value has the places of these arrays among the function's arguments. It is () if
the first argument is a list of the arrays.
"""


Unary = Callable[[Noise, Call], Any]


def _unary(*names: str) -> Callable[[Unary], Unary]:
    """Return a decorator that registers a rule under some names.

    The rule applies if the first argument is noise.
    """

    def add(rule: Unary) -> Unary:
        def of_noise(call: Call) -> Any:
            if call.noise is None:
                return None
            return rule(call.noise, call)

        RULES.update(dict.fromkeys(names, of_noise))
        return rule

    return add


def _operator(compute: Callable[..., Any]) -> Rule:
    return lambda call: None if call.options else compute(*call.given)


def _comparison(name: str) -> Rule:
    def rule(call: Call) -> Any:
        if call.options or len(call.given) != 2 or Noise not in map(type, call.given):
            return None
        first, second = call.given
        return compare(first, second, name)

    return rule


RULES.update({name: _operator(compute) for name, compute in ARITHMETIC.items()})
for _torch_name, _name in COMPARISONS.items():
    RULES |= dict.fromkeys((_torch_name, _name), _comparison(_name))
RULES["positive"] = _operator(lambda noise: noise)


@_unary("negative", "neg")
def _negative(noise: Noise, call: Call) -> Any:
    result = noise.copied(call.of(noise.value))
    result.terms = scaled(noise.terms, -1.0)
    if noise.offset is not None:
        result.offset = -noise.offset
    return result


@_unary(*LAYING)
def _laid(noise: Noise, call: Call) -> Any:
    # The view of a tensor as another type reads its bytes as other numbers.
    as_type = any(type(other).__name__ == "dtype" for other in call.given[1:])
    if as_type or not hasattr(noise.value, "reshape"):
        return None
    return noise.laid(call.of)


@_unary(*COPYING)
def _copied(noise: Noise, call: Call) -> Any:
    return noise.copied(call.of(noise.value))


def _linear(call: Call) -> Any:
    # A product of two arrays of noise is linear in neither of them.
    places = [k for k, argument in enumerate(call.given) if type(argument) is Noise]
    if len(places) != 1 or "out" in call.options:
        return None

    def of_entries(entries: Any) -> Any:
        arguments = [*call.given]
        arguments[places[0]] = entries
        return call.function(*arguments, **call.options)

    return linear(call.given[places[0]], of_entries)


RULES.update(dict.fromkeys(LINEAR, _linear))


@_unary("sum")
def _sum(noise: Noise, call: Call) -> Any:
    # A short sum has a term for each entry. So draws of any family can be summed, and
    # draws that cancel are found. Longer sums have to be Gaussian.
    is_short = ndim(noise.value) == 1 and len(noise.value) <= MAX_TERMS
    if is_short and call.is_of_one:
        terms = tuple(term for entry in noise for term in entry.terms)
        offset = noise.offset
        if offset is not None:
            offset = np.broadcast_to(offset, shape_of(noise.value)).sum()
        return Noise(noise.run, call.of(noise.value), terms, offset)
    result = _linear(call)
    if result is None:
        return call.of(noise.settle("is summed"))
    return result


def _gathering(places: tuple[int, ...]) -> Rule:
    """Return the rule of a function that puts entries of several arrays into one.

    Args:
        places: Places of the arrays among the function's arguments; () if its first
            argument is a list of them.
    """

    def rule(call: Call) -> Any:
        if len(call.given) <= max(places, default=0):
            return None
        if not places and not isinstance(call.given[0], list | tuple):
            return None

        def gather(parts: list[Any]) -> Any:
            if not places:
                return call.of(parts)
            arguments = [*call.given]
            for place, part in zip(places, parts, strict=True):
                arguments[place] = part
            return call.function(*arguments, **call.options)

        if not places:
            return gathered(call.given[0], gather)
        return gathered([call.given[k] for k in places], gather)

    return rule


RULES.update({name: _gathering(places) for name, places in GATHERING.items()})


@_unary("rint", "round", "around", "round_")
def _rounded(noise: Noise, call: Call) -> Any:
    result = None
    # Rounding to whole numbers is followed, and rounding to digits is not.
    if call.is_of_one:
        result = rounded(noise, call.of(noise.value))
    if result is None:
        return call.of(noise.settle("is rounded"))
    return result


def _changed(change: Callable[[Noise, Any], Any]) -> Rule:
    """Return the rule of a function of one number that changes the law of noise."""

    def rule(call: Call) -> Any:
        if call.noise is None or not call.is_of_one:
            return None
        return change(call.noise, call.function)

    return rule


# Code without a library makes Laplace noise of a uniform draw: its logarithm is
# exponential noise, and its sign is that of the Laplace noise.
RULES |= {
    "log": _changed(logarithm),
    "log1p": _changed(partial(logarithm, plus=1.0)),
    "sign": _changed(sign_of),
    "abs": _changed(folded),
    "absolute": _changed(folded),
}


def _with_sign(call: Call) -> Any:
    """Return the result of ``copysign`` of a number and a uniform draw around 0.

    Returns:
        Noise; None for other arguments.
    """
    size, noise = call.given
    sign = None
    if type(noise) is Noise and type(size) in (int, float):
        sign = sign_of(noise)
    if sign is None:
        return None
    return abs(size) * sign


RULES["copysign"] = _with_sign


@_unary("clip")
def _clipped(noise: Noise, call: Call) -> Any:
    if len(call.given) != 3 or call.options:
        return None
    _, low, high = call.given
    return clipped(noise, low, high, call.of(noise.value))


@_unary("argmax")
def _largest(noise: Noise, call: Call) -> Any:
    # The place is a number of numpy, which torch would not return.
    if isinstance(noise.value, np.ndarray):
        return largest(*call.given, **call.options)
    return None


def _searched(call: Call) -> Any:
    table, noise, *rest = call.given
    side = call.options.get("side", "left")
    if rest:
        side = rest[0]
    if type(noise) is not Noise or hasattr(noise.value, "detach"):
        return None
    if "sorter" in call.options:
        return None
    return searched(noise, plain(table, "is a table"), side)


RULES["searchsorted"] = _searched


@_unary("setitem")
def _written(noise: Noise, call: Call) -> Any:
    """Write numbers or noise into entries of noise, and return the changed object.

    It is an ordinary array if numbers overwrote all of its entries.
    """
    key, content = call.given[1:]
    result = None
    if noise.settled is None:
        result = overwritten(noise, content, key)
    # If all of it was overwritten by numbers, it is an ordinary array from here on.
    if result is not None:
        has_noise = any_of(result.law.scale)
        return noise.become(result if has_noise else result.value)
    why = "is changed in place"
    target = noise.settle(why)
    target[placed(key, target)] = plain(content, why)
    return noise


def overwritten(
    before: Any,
    content: Any,
    key: Any = ...,
    view: Callable[[Any], Any] = lambda array: array,
) -> Noise | None:
    """Return an array or a tensor after a change of some entries, as noise.

    The array itself does not change.

    Args:
        before: The array, or noise.
        content: Numbers or noise that are written.
        key: Index of the entries that they are written into.
        view: Function that returns a view of the array; ``key`` is an index of the
            view.

    Returns:
        The noise, or None if it is not followed.
    """

    def put(parts: list[Any]) -> Any:
        array, part = parts
        array = array.clone() if hasattr(array, "detach") else np.array(array)
        view(array)[placed(key, array)] = part
        return array

    if hasattr(value_of(before), "detach"):
        put = for_arrays(put)
    return gathered([before, content], put)
