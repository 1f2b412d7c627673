"""torch's functions on noise: sums and multiples keep it noise or make a release of it; for all others it is a tensor."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from auditdp.tracing.comparing import compare
from auditdp.tracing.noise import ARITHMETIC, Noise, operated
from auditdp.tracing.numpy_functions import plain, plainly, stacked

COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
COPYING = (
    *("bfloat16", "clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "half", "to", "type", "type_as"),
)
"""What gives the same entries, up to rounding."""
LAYING = (
    *("broadcast_to", "chunk", "expand", "expand_as", "flatten", "flip", "movedim", "narrow", "permute", "repeat"),
    *("reshape", "reshape_as", "select", "split", "squeeze", "t", "tile", "transpose", "unbind", "unsqueeze", "view"),
    "view_as",
)
"""What lays entries out in another way, in one tensor or several."""
JOINING = ("cat", "concat", "hstack", "stack", "vstack")
WRITING = ("copy", "set")
"""What writes numbers into a tensor; noise that is written into a parameter is how that is initialised, and public."""
METHODS = (*COPYING, *LAYING, *(f"{name}_" for name in ARITHMETIC))
"""Methods of a tensor after which it is still noise."""


def torch_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply a function of torch: what ``Noise.__torch_function__`` does."""
    name, in_place = named(function)
    first: Any
    if (of_each := name.removeprefix("foreach_")) != name and of_each in ARITHMETIC and len(arguments) == 2:
        apply, others = getattr(sys.modules["torch"].Tensor, f"{of_each}{'_' * in_place}"), arguments[1]
        both = zip(arguments[0], others if isinstance(others, list | tuple) else repeat(others), strict=False)
        return [
            torch_function(apply, each, keywords) if Noise in map(type, each) else apply(*each, **keywords)
            for each in both
        ]
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
    first = next(iter(arguments), None)
    if (
        name in JOINING
        and (made := stacked(first, lambda parts: function(_tensors(parts), *arguments[1:], **keywords))) is not None
    ):
        return made
    if type(first) is Noise and first.settled is None and not in_place and name in (*COPYING, *LAYING):
        others = [other.value if type(other) is Noise else other for other in arguments[1:]]
        change = partial(_changed, function, others, keywords)
        return first.copied(change(first.value)) if name in COPYING else first.laid(change)
    if name in WRITING and first.requires_grad:
        return function(*plain(arguments, ""), **keywords)
    return plainly(function, arguments, keywords, name)


def named(function: Any) -> tuple[str, bool]:
    """Return the name of a function of torch, without marks, and whether it changes its first argument in place."""
    marked = getattr(function, "__name__", "")
    in_place = (marked.endswith("_") and not marked.endswith("__")) or marked.startswith("__i")
    name = marked.strip("_")
    return {"iadd": "add", "isub": "sub", "radd": "add", "imul": "mul", "rmul": "mul"}.get(name, name), in_place


def _changed(function: Any, others: Sequence[Any], keywords: Mapping[str, Any], entries: Any) -> Any:
    """Apply a function to entries, or to what numpy holds of each: the same for either."""
    if hasattr(entries, "detach"):
        return function(entries, *others, **keywords)
    made = function(*_tensors([np.array(entries)]), *others, **keywords)
    return [part.numpy() for part in made] if isinstance(made, list | tuple) else made.numpy()


def _tensors(parts: Sequence[Any]) -> list[Any]:
    return [sys.modules["torch"].as_tensor(part) for part in parts]


def _into(target: Any, result: Any) -> Any:
    """Return a result, written into a tensor that is changed in place."""
    if target is None:
        return result
    if type(target) is Noise:
        return target.become(result)
    return fill(target, result) if isinstance(result, Noise) else target.copy_(result)


def fill(target: Any, noise: Noise) -> Any:
    """Return a tensor in which noise is written, and which stands for that noise where it is used."""
    target.copy_(noise.value if noise.settled is None else noise.settled[0])
    if noise.settled is None:
        noise.run.filled[id(target)] = (target, noise)
    return target
