"""Outputs of watched runs: ordinary ones in place of noise, and where two of them differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.inputs import difference
from auditdp.mechanism.calls.leaves import Raised, form_key, kind, leaves
from auditdp.tracing.filled_tensors import noise_in
from auditdp.tracing.noise import Noise
from auditdp.tracing.watched_run import WatchedRun

WHY = "is in the output"
DEEPEST = 12


def plain(output: Any, run: WatchedRun, depth: int = 0) -> Any:
    """Return an output with ordinary numbers in place of noise; the same object where there is none in it.

    Args:
        output: What the code returned.
        run: The run.
        depth: How deep it lies.
    """
    if (
        run.filled
        and hasattr(output, "detach")
        and (noise := noise_in(run, output)) is not None
    ):
        return noise.settle(WHY)
    if type(output) is Noise:
        return output.settle(WHY)
    if (
        depth > DEEPEST
        or output is None
        or isinstance(output, str | bytes | int | float | complex | np.generic)
    ):
        return output
    if isinstance(output, np.ndarray):
        return (
            _with_plain(output, np.ndenumerate(output), run, depth)
            if output.dtype == object
            else output
        )
    if isinstance(output, list):
        return _with_plain(output, enumerate(output), run, depth)
    if isinstance(output, tuple):
        parts = [plain(value, run, depth + 1) for value in output]
        if all(new is old for new, old in zip(parts, output, strict=True)):
            return output
        return output._make(parts) if hasattr(output, "_make") else type(output)(parts)
    if isinstance(output, dict):
        _with_plain(output, output.items(), run, depth)
        if any(type(key) is Noise for key in output):
            return type(output)(
                (plain(key, run), value) for key, value in output.items()
            )
        return output
    if isinstance(output, set | frozenset):
        noisy = any(type(value) is Noise for value in output)
        return type(output)(plain(value, run) for value in output) if noisy else output
    attributes = getattr(output, "__dict__", None)
    if type(attributes) is dict:
        _with_plain(attributes, attributes.items(), run, depth)
    return output


def _with_plain(
    container: Any, items: Iterable[tuple[Any, Any]], run: WatchedRun, depth: int
) -> Any:
    """Return a container whose items have become plain, in place."""
    for key, value in items:
        if (made := plain(value, run, depth + 1)) is not value:
            container[key] = made
    return container


def occurs(result: Any, output: Any) -> bool:
    """Return whether all numbers of a result are among those of an output."""
    try:
        numbers = set(leaves(output))
    except MechanismError:  # of a type that no output of an audit may have
        return False
    return all(
        float(number) in numbers for number in np.ravel(np.real(result)).tolist()
    )


def where_differ(first: Any, second: Any) -> str | None:
    """Return where two outputs differ, as a phrase such as "output['age'] (3 and 4)"; None where they are the same.

    Types, lengths, keys and their order count, as whoever gets the output sees them.
    """
    if isinstance(first, Raised) or isinstance(second, Raised):
        return (
            None
            if type(first) is type(second) and first == second
            else f"{brief(first)} and {brief(second)}"
        )
    try:
        place = difference(first, second)
    except Exception:  # whatever the objects of a user raise
        return None if first is second else "output"
    if (
        place is None
        and isinstance(first, Mapping)
        and isinstance(second, Mapping)
        and list(first) != list(second)
    ):
        return f"the order of keys ({brief(list(first))} and {brief(list(second))})"
    if place is None:
        return _in_form(first, second)
    one, other = _at(first, second, place)
    return f"output{place} ({what(one, other)})"


def _in_form(first: Any, second: Any) -> str | None:
    """Return that two outputs of equal numbers have other types or other signs of zero; None where they have not."""
    try:
        alike = first is second or form_key(first) == form_key(second)
    except Exception:  # of a type that no output of an audit may have
        return None
    return None if alike else "a type, or the sign of a zero"


def what(one: Any, other: Any) -> str:
    """Return in what two values differ: their types, lengths, or themselves."""
    if type(one) is not type(other):
        return f"{type(one).__name__} and {type(other).__name__}"
    if isinstance(one, Mapping) and set(one) != set(other):
        only = sorted(map(repr, set(one) ^ set(other)))
        return f"keys on one side alone: {', '.join(only[:3])}"
    if hasattr(one, "shape") and one.shape != other.shape:
        return f"shapes {one.shape} and {other.shape}"
    if isinstance(one, list | tuple | set | frozenset | str) and len(one) != len(other):
        return f"lengths {len(one)} and {len(other)}"
    if isinstance(one, np.ndarray) and one.dtype == other.dtype:
        places = np.argwhere(~((one == other) | ((one != one) & (other != other))))
        if len(places):
            first = tuple(int(k) for k in places[0])
            shown = "".join(f"[{k}]" for k in first)
            return f"{shown} {brief(one[first])} and {brief(other[first])}"
    if not dataclasses.is_dataclass(one) and kind(one) != kind(other):
        return f"{kind(one)} and {kind(other)}"
    return f"{brief(one)} and {brief(other)}"


def _at(first: Any, second: Any, place: str) -> tuple[Any, Any]:
    """Return the parts of two outputs at a place; the outputs where it cannot be read."""
    try:
        return eval(f"_{place}", {"_": first}), eval(f"_{place}", {"_": second})
    except Exception:
        return first, second


def brief(value: Any) -> str:
    """Return a short text of a value."""
    from auditdp.mechanism.protocol import brief as of

    return str(value) if isinstance(value, Raised) else of(value, 40)
