"""Outputs of watched runs: noise in them becomes numbers, and two are compared."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.inputs import difference
from auditdp.mechanism.calls.leaves import Raised, form_key, kind, leaves
from auditdp.mechanism.protocol import brief as brief_text
from auditdp.tracing.filled_tensors import noise_in
from auditdp.tracing.noise import Noise
from auditdp.tracing.plain_values import rebuilt
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import WatchedRun

WHY = "is in the output"
ATOMS = (str, bytes, int, float, complex, np.generic)


def plain(output: Any, run: WatchedRun, depth: int = 0) -> Any:
    """Return an output with ordinary numbers in place of noise.

    Args:
        output: The value that the code returned.
        run: The run.
        depth: Number of containers around the value. Beyond ``LIMITS.output_depth``
            containers are not searched.

    Returns:
        For noise, its number or array. For a container the same object if it holds no
        noise or its items could be replaced in place, else a new one of the same type.
        Any other value as it is.
    """
    if type(output) is Noise:
        return output.settle(WHY)
    if run.filled and hasattr(output, "detach"):
        noise = noise_in(run, output)
        if noise is not None:
            return noise.settle(WHY)
    if depth > LIMITS.output_depth or output is None or isinstance(output, ATOMS):
        return output
    if isinstance(output, np.ndarray):
        if output.dtype == object:
            _replace_items(output, np.ndenumerate(output), run, depth)
        return output
    if isinstance(output, list):
        _replace_items(output, enumerate(output), run, depth)
        return output
    if isinstance(output, tuple | set | frozenset):
        return rebuilt(output, [plain(value, run, depth + 1) for value in output])
    if isinstance(output, dict):
        # Only values of existing keys change, which is allowed during the iteration.
        _replace_items(output, output.items(), run, depth)
        keys = [plain(key, run, depth + 1) for key in output]
        if all(map(operator.is_, keys, output)):
            return output
        values = [*output.values()]
        # The class may not take a list of items: a Counter would count them.
        output.clear()
        for key, value in zip(keys, values, strict=True):
            output[key] = value
        return output
    attributes = getattr(output, "__dict__", None)
    if type(attributes) is dict:
        _replace_items(attributes, attributes.items(), run, depth)
    return output


def _replace_items(
    container: Any, items: Iterable[tuple[Any, Any]], run: WatchedRun, depth: int
) -> None:
    for key, value in items:
        made = plain(value, run, depth + 1)
        if made is not value:
            container[key] = made


def occurs(result: Any, output: Any) -> bool:
    """Return True if all numbers of a result occur among the numbers of an output.

    It is False for outputs of unsupported types.
    """
    try:
        numbers = set(leaves(output))
    except MechanismError:
        # A type that no output of an audit may have.
        return False
    results = np.ravel(np.real(result)).tolist()
    return all(float(number) in numbers for number in results)


def unequal_numbers(first: Any, second: Any) -> frozenset[int]:
    """Return the indices of the numbers in which two outputs of one form differ.

    The numbers of an output are counted in the order of ``leaves``. NaN differs from
    every number, also from NaN.

    Raises:
        ValueError: If the outputs have different counts of numbers.
        MechanismError: If an output has a part of an unsupported type.
    """
    both = enumerate(zip(leaves(first), leaves(second), strict=True))
    return frozenset(place for place, (one, other) in both if one != other)


def same_form(first: Any, second: Any) -> bool:
    """Return True if two outputs have the same types and the same count of numbers.

    It is False for outputs of unsupported types.
    """
    try:
        if kind(first) != kind(second):
            return False
        return len(list(leaves(first))) == len(list(leaves(second)))
    except Exception:
        # A type that no output of an audit may have.
        return False


def where_differ(first: Any, second: Any) -> str | None:
    """Return a phrase such as "output['age'] (3 and 4)" for two unequal outputs.

    Outputs with other types, lengths, keys or another order of keys are unequal, since
    everybody who gets an output observes these.

    Returns:
        The phrase for the first difference, or None if the outputs are equal.
    """
    if isinstance(first, Raised) or isinstance(second, Raised):
        if type(first) is type(second) and first == second:
            return None
        return f"{brief(first)} and {brief(second)}"
    try:
        place = difference(first, second)
    except Exception:
        # Whatever the objects of a user raise.
        return None if first is second else "output"
    if place is not None:
        return f"output{place} ({_contrast(*_parts_at(first, second, place))})"
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = list(first), list(second)
        if keys[0] != keys[1]:
            return f"the order of keys ({brief(keys[0])} and {brief(keys[1])})"
    try:
        is_same = first is second or form_key(first) == form_key(second)
    except Exception:
        # A type that no output of an audit may have.
        return None
    return None if is_same else "a type, or the sign of a zero"


def _contrast(first: Any, second: Any) -> str:
    """Return a phrase with the types, lengths or values of two unequal values."""
    if type(first) is not type(second):
        return f"{type(first).__name__} and {type(second).__name__}"
    if isinstance(first, Mapping) and set(first) != set(second):
        keys = sorted(map(repr, set(first) ^ set(second)))
        return f"keys on one side alone: {', '.join(keys[: LIMITS.named])}"
    if hasattr(first, "shape") and first.shape != second.shape:
        return f"shapes {first.shape} and {second.shape}"
    has_length = isinstance(first, list | tuple | set | frozenset | str)
    if has_length and len(first) != len(second):
        return f"lengths {len(first)} and {len(second)}"
    if isinstance(first, np.ndarray) and first.dtype == second.dtype:
        # NaN differs from itself, and isnan raises for arrays of text or objects.
        is_nan = (first != first) & (second != second)
        places = np.argwhere(~((first == second) | is_nan))
        if len(places):
            place = tuple(int(k) for k in places[0])
            index = "".join(f"[{k}]" for k in place)
            return f"{index} {brief(first[place])} and {brief(second[place])}"
    if not dataclasses.is_dataclass(first) and kind(first) != kind(second):
        return f"{kind(first)} and {kind(second)}"
    return f"{brief(first)} and {brief(second)}"


def _parts_at(first: Any, second: Any, place: str) -> tuple[Any, Any]:
    """Return the parts of two outputs at a place such as "['age']".

    If an output has no such place, the parts are the outputs themselves.
    """
    try:
        return eval(f"_{place}", {"_": first}), eval(f"_{place}", {"_": second})
    except Exception:
        return first, second


def brief(value: Any) -> str:
    """Return a short text of a value."""
    return (
        str(value)
        if isinstance(value, Raised)
        else brief_text(value, LIMITS.text_length)
    )
