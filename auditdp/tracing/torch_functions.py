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
    name = getattr(function, "__name__", "").strip("_")
    name = {"iadd": "add", "isub": "sub", "radd": "add", "imul": "mul", "rmul": "mul"}.get(name, name)
    in_place = getattr(function, "__name__", "").endswith("_") and not getattr(function, "__name__", "").endswith("__")
    in_place = in_place or getattr(function, "__name__", "").startswith("__i")
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
    return target.copy_(result.settle("is written into a tensor") if isinstance(result, Noise) else result)
