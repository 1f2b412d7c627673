"""numpy's functions on noise: those that keep it noise or make a release of it; for all others it is an ordinary array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from auditdp.tracing.plain import all_of, ndim

from auditdp.tracing.draws import Term
from auditdp.tracing.families import Law
from auditdp.tracing.noise import COMPARISONS, ROUNDINGS, Noise

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "negative": operator.neg,
    "positive": operator.pos,
}


def ufunc(function: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a ufunc of numpy: what ``Noise.__array_ufunc__`` does."""
    name, out = function.__name__, keywords.get("out")
    plain_call = method == "__call__" and set(keywords) <= {"out"}
    if plain_call and name in ARITHMETIC:
        return _into(out, _arithmetic(name, inputs))
    if plain_call and name in COMPARISONS and len(inputs) == 2:
        return _into(out, _compared(name, *inputs))
    if plain_call and name == "rint" and out is None:
        return inputs[0].rounded(np.rint(inputs[0].value)) or np.rint(inputs[0].settle("is rounded"))
    if plain_call and name == "log" and out is None and (found := _logarithm(inputs[0])) is not None:
        return found
    return getattr(function, method)(*plain(inputs, f"is used by {name}"), **_plain_keywords(keywords, name))


def _arithmetic(name: str, inputs: Sequence[Any]) -> Any:
    """Apply an operator by the method of the noise, so that numpy is not asked again."""
    if len(inputs) == 1:
        return ARITHMETIC[name](inputs[0])
    first, second = inputs
    if isinstance(first, Noise):
        return ARITHMETIC[name](first, second)
    reflected = {"add": second.__radd__, "subtract": second.__rsub__, "multiply": second.__rmul__}
    return reflected.get(name, second.__rtruediv__)(first)


def _compared(name: str, first: Any, second: Any) -> Any:
    if isinstance(first, Noise):
        return first._compare(second, name)
    mirrored = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
    return second._compare(first, mirrored[name])


def _into(out: Any, result: Any) -> Any:
    """Return a result, written into the array that ``out`` names, where it names one."""
    if out is None:
        return result
    (target,) = out if isinstance(out, tuple) else (out,)
    if isinstance(target, Noise):
        return result
    target[...] = result.settle("is written into an array") if isinstance(result, Noise) else result
    return target


def _logarithm(noise: Any) -> Noise | None:
    """Return the logarithm of a uniform draw, an exponential one with a minus sign; None of anything else."""
    if not isinstance(noise, Noise) or len(noise.terms) != 1 or noise.offset is not None:
        return None
    term = noise.terms[0]
    draw = term.draw
    is_standard = draw.law.family == "uniform" and ndim(draw.law.scale) == 0 and draw.law.scale == 1.0
    if not is_standard or draw.used or draw.limits or not all_of(np.asarray(term.factor) == 1.0):
        return None
    made = type(draw)(draw.number, draw.method, Law("exponential", -1.0), draw.value, draw.site, draw.location, draw.used)
    return Noise(noise.run, np.log(noise.value), (Term(made, term.index),))


def array_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a function of numpy: what ``Noise.__array_function__`` does."""
    name = function.__name__
    first = arguments[0] if arguments else None
    if isinstance(first, Noise):
        if name in ("reshape", "ravel", "transpose", "squeeze", "sum", "argmax", "copy"):
            return getattr(first, name)(*arguments[1:], **keywords)
        if name in ROUNDINGS and len(arguments) == 1 and not keywords:
            return first.round()
    if name == "searchsorted" and len(arguments) > 1 and isinstance(arguments[1], Noise) and "sorter" not in keywords:
        side = keywords.get("side", arguments[2] if len(arguments) > 2 else "left")
        found = arguments[1].searched(plain((first,), "is a table")[0], side)
        if found is not None:
            return found
    return function(*plain(arguments, f"is used by {name}"), **_plain_keywords(keywords, name))


def plain(values: Sequence[Any], why: str) -> list[Any]:
    """Return arguments with ordinary numbers in place of noise."""
    return [_plain(value, why) for value in values]


def _plain(value: Any, why: str) -> Any:
    if isinstance(value, Noise):
        return value.settle(why)
    if isinstance(value, list | tuple) and any(isinstance(item, Noise) for item in value):
        return type(value)(_plain(item, why) for item in value)
    return value


def _plain_keywords(keywords: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: _plain(value, f"is used by {name}") for key, value in keywords.items()}
