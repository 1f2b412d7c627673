"""numpy's functions on noise: those that keep it noise or make a release of it; for all others it is an ordinary array.

Calls of ``int`` and ``float`` in the caller's code, which must leave noise what it is.

``int(x)`` returns an exact ``int`` whatever ``x`` is, so ``int(rng.geometric(p)) - int(rng.geometric(p))`` would lose its
draws. While code is watched its functions have a code object in which a *call* of these two names finds another function;
every other use of the names, as in ``isinstance(x, int)``, is untouched. In CPython's bytecode the two differ by a
bit: a name that is loaded to be called is pushed together with a null.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from auditdp.tracing.event_comparisons import COMPARISONS, compare, searched
from auditdp.tracing.linear_forms import clipped, logarithm, rounded, sign_of
from auditdp.tracing.mixed_values import gathered, linear
from auditdp.tracing.noise import ARITHMETIC, WRITTEN, Noise, operated

ROUNDINGS = ("rint", "round", "around", "round_")
LOGARITHMS = {"log": 0.0, "log1p": 1.0}
"""Logarithms, and what they add before."""
GATHERING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("concatenate", "stack", "vstack", "hstack", "column_stack"), ()),
    "append": (0, 1),
    "insert": (0, 2),
    "where": (1, 2),
}
"""Functions that put entries of several arrays into one: which arguments these are; none where it is the first, a list."""
LINEAR = (
    *(
        "matmul",
        "dot",
        "inner",
        "vdot",
        "einsum",
        "tensordot",
        "convolve",
        "sum",
        "mean",
        "cumsum",
        "diff",
        "trace",
    ),
    *("outer", "kron"),
)
"""Functions that are linear in each array."""
LAYING = (
    *(
        "reshape",
        "ravel",
        "transpose",
        "squeeze",
        "split",
        "array_split",
        "expand_dims",
        "broadcast_to",
        "tile",
    ),
    *("flip", "roll", "repeat", "take"),
)
"""Functions that lay entries out in another way, in one array or several."""


def ufunc(
    function: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Apply a ufunc of numpy: what ``Noise.__array_ufunc__`` does."""
    name, out = function.__name__, keywords.get("out")
    plain_call = method == "__call__" and set(keywords) <= {"out"}
    if plain_call and Noise not in map(type, inputs):
        return _into(out, function(*inputs))
    if plain_call and name in ARITHMETIC:
        return _into(out, operated(ARITHMETIC[name], *inputs))
    if plain_call and name in COMPARISONS and len(inputs) == 2:
        return _into(out, compare(inputs[0], inputs[1], name))
    if plain_call and name == "rint" and out is None:
        return rounded(inputs[0], np.rint(inputs[0].value)) or np.rint(
            inputs[0].settle("is rounded")
        )
    log = plain_call and name in LOGARITHMS and out is None
    if log and (found := logarithm(inputs[0], function, LOGARITHMS[name])) is not None:
        return found
    is_linear = (name == "matmul" and plain_call and out is None) or (
        name == "add" and method == "reduce"
    )
    if (
        is_linear
        and (found := through(getattr(function, method), inputs, keywords)) is not None
    ):
        return found
    if plain_call and name == "absolute" and out is None:
        return abs(inputs[0])
    if (
        plain_call
        and name == "sign"
        and out is None
        and (found := sign_of(inputs[0])) is not None
    ):
        return found
    return plainly(getattr(function, method), inputs, keywords, name)


def _into(out: Any, result: Any) -> Any:
    """Return a result, written into the array that ``out`` names, where it names one."""
    if out is None:
        return result
    (target,) = out if isinstance(out, tuple) else (out,)
    if isinstance(target, Noise):
        return target.become(result)
    if isinstance(result, Noise) and result.site in result.run.traced.constants:
        target[...] = result.value
        return result  # what ``x += noise`` makes of x
    target[...] = result.settle(WRITTEN) if isinstance(result, Noise) else result
    return target


def array_function(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Apply a function of numpy: what ``Noise.__array_function__`` does."""
    name = function.__name__
    first: Any = arguments[0] if arguments else None
    if isinstance(first, Noise):
        is_array = isinstance(first.value, np.ndarray)
        if is_array and name in ("sum", "argmax"):
            return getattr(first, name)(*arguments[1:], **keywords)
        if is_array and name in LAYING:
            return first.laid(lambda array: function(array, *arguments[1:], **keywords))
        if (
            name in ROUNDINGS
            and len(arguments) == 1
            and not keywords
            and first.settled is None
        ):
            found = rounded(first, np.round(first.value))
            if found is not None:
                return found
    if (
        name in LINEAR
        and "out" not in keywords
        and (made := through(function, arguments, keywords)) is not None
    ):
        return made
    if (
        name in GATHERING
        and (made := gathering(function, arguments, keywords, GATHERING[name]))
        is not None
    ):
        return made
    if (
        name == "clip"
        and isinstance(first, Noise)
        and first.settled is None
        and len(arguments) == 3
        and not keywords
    ):
        _, low, high = arguments
        if (
            found := clipped(first, low, high, np.clip(first.value, low, high))
        ) is not None:
            return found
    if (
        name == "searchsorted"
        and len(arguments) > 1
        and isinstance(arguments[1], Noise)
        and "sorter" not in keywords
    ):
        side = keywords.get("side", arguments[2] if len(arguments) > 2 else "left")
        found = searched(arguments[1], plain((first,), "is a table")[0], side)
        if found is not None:
            return found
    return plainly(function, arguments, keywords, name)


def through(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Return what a function makes of noise, in which it is linear but for a constant; None where it is not followed."""
    places = [k for k, argument in enumerate(arguments) if type(argument) is Noise]
    if len(places) != 1 or arguments[places[0]].settled is not None:
        return None

    noise, given = arguments[places[0]], [*arguments]

    def of(array: Any) -> Any:
        if not hasattr(noise.value, "detach"):
            given[places[0]] = array
            return function(*given, **keywords)
        double = {key: _double(value) for key, value in keywords.items()}
        others = [
            _double(value)
            for value in (*given[: places[0]], array, *given[places[0] + 1 :])
        ]
        return function(*others, **double).numpy()

    def compute() -> Any:
        return function(
            *(noise.value if type(value) is Noise else value for value in arguments),
            **keywords,
        )

    return linear(noise, compute, of)


def _double(value: Any) -> Any:
    """Return a tensor of double precision in place of a tensor, or an array, of numbers with fractions."""
    if isinstance(value, list | tuple):
        return type(value)(map(_double, value))
    tensor = (
        sys.modules["torch"].from_numpy(value)
        if isinstance(value, np.ndarray)
        else value
    )
    if not hasattr(tensor, "is_floating_point"):
        return value
    return (
        tensor.detach().cpu().double() if tensor.is_floating_point() else tensor.cpu()
    )


def gathering(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    which: tuple[int, ...],
) -> Noise | None:
    """Return noise that a function puts together; None where it is not followed.

    Args:
        function: Of any arrays.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
        which: The arguments that are arrays; none where it is the first, a list of them.
    """
    if len(arguments) <= max(which, default=0) or (
        not which and not isinstance(arguments[0], list | tuple)
    ):
        return None

    def gather(parts: list[Any]) -> Any:
        given = [*arguments]
        for place, part in zip(which, parts, strict=True) if which else [(0, parts)]:
            given[place] = part
        return function(*given, **keywords)

    return gathered([arguments[k] for k in which] if which else arguments[0], gather)


def plain(values: Sequence[Any], why: str) -> list[Any]:
    """Return arguments with ordinary numbers in place of noise."""
    return [_plain(value, why) for value in values]


def _plain(value: Any, why: str) -> Any:
    if isinstance(value, Noise):
        return value.settle(why)
    if type(value) is dict:
        return {key: _plain(item, why) for key, item in value.items()}
    if isinstance(value, list | tuple) and any(
        isinstance(item, Noise) for item in value
    ):
        return type(value)(_plain(item, why) for item in value)
    return value


def plainly(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str,
) -> Any:
    """Call a function of a library with ordinary numbers in place of noise."""
    why = f"is used by {name}"
    return function(
        *plain(arguments, why),
        **{key: _plain(value, why) for key, value in keywords.items()},
    )


NAMES = {"int": "__watched_int__", "float": "__watched_float__"}
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
LAST = 127
"""The largest number of a name that fits into one byte beside the bit."""


def watched_int(*arguments: Any, **keywords: Any) -> Any:
    """Return ``int(...)``, noise of whole numbers as noise."""
    if len(arguments) == 1 and not keywords and type(arguments[0]) is Noise:
        return arguments[0].as_number(int)
    return int(*arguments, **keywords)


def watched_float(*arguments: Any) -> Any:
    """Return ``float(...)``, noise as noise."""
    if len(arguments) == 1 and type(arguments[0]) is Noise:
        return arguments[0].as_number(float)
    return float(*arguments)


FUNCTIONS = {NAMES["int"]: watched_int, NAMES["float"]: watched_float}


@lru_cache(maxsize=4096)
def converted(code: CodeType, own: frozenset[str] = frozenset()) -> CodeType:
    """Return code whose calls of ``int`` and ``float`` are watched; the same object where it has none.

    Args:
        code: The code of a function.
        own: Names among these two that its module defines itself.
    """
    constants = tuple(
        converted(part, own) if isinstance(part, CodeType) else part
        for part in code.co_consts
    )
    nested = any(
        new is not old for new, old in zip(constants, code.co_consts, strict=True)
    )
    body, names = bytearray(code.co_code), list(code.co_names)
    changed = False
    for name, watched in NAMES.items():
        if name in own or name not in code.co_names:
            continue
        called = (code.co_names.index(name) << 1) | 1
        places = [
            at
            for at in range(0, len(body), 2)
            if body[at] == LOAD_GLOBAL
            and body[at + 1] == called
            and not (at and body[at - 2] == EXTENDED_ARG)
        ]
        if not places or len(names) > LAST:
            continue
        names.append(watched)
        for at in places:
            body[at + 1] = ((len(names) - 1) << 1) | 1
        changed = True
    if not changed and not nested:
        return code
    return code.replace(co_code=bytes(body), co_names=tuple(names), co_consts=constants)


def own_names(namespace: dict[str, Any]) -> frozenset[str]:
    """Return which of the two names a module has for something of its own."""
    return frozenset(
        name
        for name in NAMES
        if namespace.get(name, getattr(builtins, name)) is not getattr(builtins, name)
    )
