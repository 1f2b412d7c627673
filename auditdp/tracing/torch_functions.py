"""torch's functions on noise: sums and multiples keep it noise or make a release of it; for all others it is a tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from auditdp.tracing.comparing import compare
from auditdp.tracing.noise import Noise
from auditdp.tracing.numpy_functions import plain

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "subtract": operator.sub,
    "mul": operator.mul,
    "multiply": operator.mul,
    "div": operator.truediv,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def torch_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a function of torch: what ``Noise.__torch_function__`` does."""
    name, in_place = named(function)
    if len(arguments) == 2 and not set(keywords) - {"alpha"}:
        first, second = arguments
        if "alpha" in keywords:
            second = second * keywords["alpha"]
        if name == "rsub":
            name, first, second = "sub", second, first
        if name in OPERATORS:
            return _into(first if in_place else None, _operated(OPERATORS[name], first, second))
        if name in COMPARISONS and not in_place:
            which = COMPARISONS[name]
            return (
                compare(first, second, which) if isinstance(first, Noise) else compare(second, first, MIRRORED[which])
            )
    return function(
        *plain(arguments, f"is used by {name}"),
        **{key: plain([v], f"is used by {name}")[0] for key, v in keywords.items()},
    )


def named(function: Any) -> tuple[str, bool]:
    """Return the name of a function of torch, without marks, and whether it changes its first argument in place."""
    marked = getattr(function, "__name__", "")
    in_place = (marked.endswith("_") and not marked.endswith("__")) or marked.startswith("__i")
    name = marked.strip("_")
    return {"iadd": "add", "isub": "sub", "radd": "add", "imul": "mul", "rmul": "mul"}.get(name, name), in_place


def _operated(compute: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    """Apply an operator by the method of the noise, so that torch is not asked again."""
    if isinstance(first, Noise):
        return compute(first, second)
    reflected = {
        operator.add: "__radd__",
        operator.sub: "__rsub__",
        operator.mul: "__rmul__",
        operator.truediv: "__rtruediv__",
    }
    return getattr(second, reflected[compute])(first)


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
