"""torch's functions on noise: sums and multiples keep it noise or make a release of it; for all others it is a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditdp.tracing.comparing import compare
from auditdp.tracing.noise import ARITHMETIC, Noise, operated
from auditdp.tracing.numpy_functions import plainly

COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def torch_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a function of torch: what ``Noise.__torch_function__`` does."""
    name, in_place = named(function)
    if len(arguments) == 2 and not set(keywords) - {"alpha"}:
        first, second = arguments
        if "alpha" in keywords:
            second = second * keywords["alpha"]
        if name == "rsub":
            name, first, second = "sub", second, first
        if name in ARITHMETIC:
            return _into(first if in_place else None, operated(ARITHMETIC[name], first, second))
        if name in COMPARISONS and not in_place:
            return compare(first, second, COMPARISONS[name])
    return plainly(function, arguments, keywords, name)


def named(function: Any) -> tuple[str, bool]:
    """Return the name of a function of torch, without marks, and whether it changes its first argument in place."""
    marked = getattr(function, "__name__", "")
    in_place = (marked.endswith("_") and not marked.endswith("__")) or marked.startswith("__i")
    name = marked.strip("_")
    return {"iadd": "add", "isub": "sub", "radd": "add", "imul": "mul", "rmul": "mul"}.get(name, name), in_place


def _into(target: Any, result: Any) -> Any:
    """Return a result, written into a tensor that is changed in place."""
    if target is None or isinstance(target, Noise):
        return result
    return fill(target, result) if isinstance(result, Noise) else target.copy_(result)


def fill(target: Any, noise: Noise) -> Any:
    """Return a tensor in which noise is written, and which stands for that noise where it is used."""
    target.copy_(noise.value if noise.settled is None else noise.settled[0])
    if noise.settled is None:
        noise.run.filled[id(target)] = (target, noise)
    return target
