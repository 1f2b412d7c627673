"""numpy's functions on noise: those that keep it noise or make a release of it; for all others it is an ordinary array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.comparing import COMPARISONS, compare, searched
from auditdp.tracing.draws import Term, WatchedDraw
from auditdp.tracing.families import NoiseLaw
from auditdp.tracing.folding import clipped, logarithm, rounded, sign_of
from auditdp.tracing.noise import ARITHMETIC, Noise, operated
from auditdp.tracing.plain import shape_of

ROUNDINGS = ("rint", "round", "around", "round_")
LOGARITHMS = {"log": 0.0, "log1p": 1.0}
"""Logarithms, and what they add before."""
JOINING = ("concatenate", "stack", "vstack", "hstack", "column_stack")
LAYING = ("reshape", "ravel", "transpose", "squeeze", "split", "array_split", "expand_dims", "broadcast_to", "tile")
"""Functions that lay entries out in another way, in one array or several."""
MOST_JOINED = 100_000
"""Entries of noise that are followed one by one where arrays are joined, at most."""


def ufunc(function: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
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
        return rounded(inputs[0], np.rint(inputs[0].value)) or np.rint(inputs[0].settle("is rounded"))
    log = plain_call and name in LOGARITHMS and out is None
    if log and (found := logarithm(inputs[0], function, LOGARITHMS[name])) is not None:
        return found
    if plain_call and name == "absolute" and out is None:
        return abs(inputs[0])
    if plain_call and name == "sign" and out is None and (found := sign_of(inputs[0])) is not None:
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
    target[...] = result.settle("is written into an array") if isinstance(result, Noise) else result
    return target


def array_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a function of numpy: what ``Noise.__array_function__`` does."""
    name = function.__name__
    first: Any = arguments[0] if arguments else None
    if isinstance(first, Noise):
        is_array = isinstance(first.value, np.ndarray)
        if is_array and name in ("sum", "argmax"):
            return getattr(first, name)(*arguments[1:], **keywords)
        if is_array and name in LAYING:
            return first.laid(lambda array: function(array, *arguments[1:], **keywords))
        if name in ROUNDINGS and len(arguments) == 1 and not keywords and first.settled is None:
            found = rounded(first, np.round(first.value))
            if found is not None:
                return found
    if (
        name in JOINING
        and (made := stacked(first, lambda parts: function(parts, *arguments[1:], **keywords))) is not None
    ):
        return made
    if name == "clip" and isinstance(first, Noise) and first.settled is None and len(arguments) == 3 and not keywords:
        _, low, high = arguments
        if (found := clipped(first, low, high, np.clip(first.value, low, high))) is not None:
            return found
    if name == "searchsorted" and len(arguments) > 1 and isinstance(arguments[1], Noise) and "sorter" not in keywords:
        side = keywords.get("side", arguments[2] if len(arguments) > 2 else "left")
        found = searched(arguments[1], plain((first,), "is a table")[0], side)
        if found is not None:
            return found
    return plainly(function, arguments, keywords, name)


class Stacked(WatchedDraw):
    """Entries of several draws as one draw, where code puts them into an array."""

    __slots__ = ("parts",)
    parts: list[tuple[WatchedDraw, Any]]

    def earlier(self, index: Any) -> list[int]:
        """Return the releases that some entries went into already."""
        return sorted(
            {number for k in np.ravel(index).tolist() for number in self.parts[k][0].earlier(self.parts[k][1])}
        )

    def use(self, index: Any, release: int) -> None:
        """Note that some entries go into a release."""
        for k in np.ravel(index).tolist():
            self.parts[k][0].use(self.parts[k][1], release)


def stacked(items: Sequence[Any], join: Callable[[list[Any]], Any]) -> Noise | None:
    """Return noise of one family that a function joins of several; None where it is none, or of too many entries."""
    if not all(type(item) is Noise and len(item.terms) == 1 and item.settled is None for item in items):
        return None
    terms = [item.terms[0] for item in items]
    families = {term.draw.law.family for term in terms}
    plain_ones = all(i.offset is None and not t.draw.limits for i, t in zip(items, terms, strict=True))
    if len(families) != 1 or not plain_ones or any(term.draw.law.parameter is not None for term in terms):
        return None
    parts: list[tuple[WatchedDraw, Any]] = []
    scales, numbers = [], []
    for item, term in zip(items, terms, strict=True):
        shape = shape_of(item.value)
        index = np.broadcast_to(term.index, shape).ravel().tolist()
        numbers.append(np.arange(len(parts), len(parts) + len(index)).reshape(shape))
        scales += np.broadcast_to(term.factor * term.draw.law.scale, shape).ravel().tolist()
        parts += [(term.draw, k) for k in index]
        if len(parts) > MOST_JOINED:
            return None
    value, places = join([item.value for item in items]), np.asarray(join(numbers))
    one = len(set(scales)) == 1
    law = NoiseLaw(families.pop(), scales[0] if one else np.array(scales)[places])
    draw = Stacked(terms[0].draw.number, terms[0].draw.method, law, value, terms[0].draw.site)
    draw.parts = [parts[k] for k in places.ravel().tolist()]
    return Noise(items[0].run, value, (Term(draw, np.arange(len(parts)).reshape(places.shape)),))


def plain(values: Sequence[Any], why: str) -> list[Any]:
    """Return arguments with ordinary numbers in place of noise."""
    return [_plain(value, why) for value in values]


def _plain(value: Any, why: str) -> Any:
    if isinstance(value, Noise):
        return value.settle(why)
    if type(value) is dict:
        return {key: _plain(item, why) for key, item in value.items()}
    if isinstance(value, list | tuple) and any(isinstance(item, Noise) for item in value):
        return type(value)(_plain(item, why) for item in value)
    return value


def plainly(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any], name: str) -> Any:
    """Call a function of a library with ordinary numbers in place of noise."""
    why = f"is used by {name}"
    return function(*plain(arguments, why), **{key: _plain(value, why) for key, value in keywords.items()})
