"""Functions of torch on noise, by the rules of `array_functions`.

`torch_function` applies a function to arguments that are noise. While code is watched,
a mode of torch calls `on_tensors` for every function. There, a tensor that noise was
written into stands for that noise.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from auditdp.tracing.array_functions import ARITHMETIC, COPYING, LAYING, LINEAR
from auditdp.tracing.filled_tensors import end, fill, memory, noise_in
from auditdp.tracing.noise import (
    ADAPTERS,
    DESCRIBING,
    RULES,
    Noise,
    apply,
    divided,
    multiplied,
    plain,
    plainly,
)
from auditdp.tracing.plain_values import for_arrays
from auditdp.tracing.watched_run import Active, WatchedRun

ALIASES = {"iadd": "add", "radd": "add", "isub": "sub", "imul": "mul", "rmul": "mul"}
"""The name of the rule of each in-place or reflected operator.

The operators are named without underscores.
"""
OVERWRITING = frozenset(("copy", "fill", "setitem", "zero"))
"""Functions that replace entries without regard to their former values."""
VIEWS = COPYING | LAYING | frozenset(["H", "T", "data", "item", "mH", "mT", "tolist"])
"""Functions and attributes with a result in the tensor's memory, or a copy of it."""
PRODUCTS = LINEAR | {n for n, f in ARITHMETIC.items() if f in (multiplied, divided)}
"""Functions whose gradient in one tensor reveals the entries of another one."""


def named(function: Any) -> tuple[str, bool]:
    """Return the name of a function of torch, and whether it marks a change in place.

    The name has no underscores at its ends, as in the table of rules. For the getter of
    an attribute it is the name of the attribute.

    Returns:
        The name, and True for a name like ``add_`` or ``__iadd__``. The flag is False
        for ``__setitem__``. It is also True for ``__invert__``, which has no rule.
    """
    marked = getattr(function, "__name__", "")
    if marked == "__get__":
        marked = getattr(function.__self__, "__name__", "")
    is_in_place = marked.endswith("_") and not marked.endswith("__")
    name = marked.strip("_")
    return ALIASES.get(name, name), is_in_place or marked.startswith("__i")


def torch_function(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Apply a function of torch, some of whose arguments are noise.

    The result is noise, or a tensor if the noise ends. For a ``foreach`` function it is
    a list of such results.
    """
    name, in_place = named(function)
    each = _of_each(name, in_place, arguments)
    if each is not None:
        method, calls = each
        return [
            torch_function(method, call, keywords)
            if Noise in map(type, call)
            else method(*call, **keywords)
            for call in calls
        ]
    options = dict(keywords)
    first = next(iter(arguments), None)
    if (name in ARITHMETIC or name in LINEAR) and options.get("out") is not None:
        target = options.pop("out")
        return _into(target, torch_function(function, arguments, options))
    # The gradient of a product shows the noise to the code, beside the product itself.
    if name in PRODUCTS and _has_gradient(arguments):
        why = f"{name}, of which there is a gradient"
        return plainly(function, arguments, options, why)
    if type(first) is Noise and name in OVERWRITING and not options:
        _, key, content = _of_overwriting(name, arguments)
        first[key] = content
        return first
    # Noise that is written into a parameter initialises it, and parameters are public.
    if name in ("copy", "set") and getattr(first, "requires_grad", False):
        return function(*plain(arguments, ""), **options)
    # A rule returns new noise. Changes in place are followed for arithmetic alone.
    if in_place and name not in ARITHMETIC:
        return plainly(function, arguments, options, name)
    if name in ("add", "sub") and len(arguments) == 2 and "alpha" in options:
        arguments = (first, arguments[1] * options.pop("alpha"))
    result = apply(name, for_arrays(function), arguments, options)
    if in_place:
        return _into(first, result)
    return result


ADAPTERS["torch"] = torch_function


def _has_gradient(values: Sequence[Any]) -> bool:
    """Return True if torch records gradients, and one of the values requires one.

    Noise is not counted. The gradient of a product reveals its other factors.
    """
    return sys.modules["torch"].is_grad_enabled() and any(
        type(value) is not Noise and getattr(value, "requires_grad", False)
        for value in values
    )


def _of_each(
    name: str, in_place: bool, arguments: Sequence[Any]
) -> tuple[Any, list[Sequence[Any]]] | None:
    """Return the calls for single tensors that a ``foreach`` function consists of.

    Args:
        name: Name of the function, without underscores at its ends.
        in_place: Whether it changes the tensors of its first argument.
        arguments: Its positional arguments.

    Returns:
        The method for one tensor, and a list of the arguments of each call. None for
        any other function.
    """
    single = name.removeprefix("foreach_")
    if single == name or not (single in ARITHMETIC or single in OVERWRITING):
        return None
    parts = [a if isinstance(a, list | tuple) else repeat(a) for a in arguments]
    method = getattr(sys.modules["torch"].Tensor, f"{single}{'_' * in_place}")
    return method, [*zip(*parts, strict=False)]


def _into(target: Any, result: Any) -> Any:
    """Write a result into a tensor or noise, and return this target.

    Noise that now has ordinary numbers is returned as a tensor.
    """
    if type(target) is Noise:
        return target.become(result)
    if type(result) is not Noise:
        return target.copy_(result)
    return fill(result.run, target, result)


# -- tensors that stand for noise ------------------------------------------------------


def filled_tensors(active: Active) -> Any:
    """Return a mode of torch in which tensors stand for the noise written into them.

    Args:
        active: Function that returns the run under way in this thread, or None.
    """
    overrides = sys.modules["torch.overrides"]

    class FilledTensors(overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
        def __torch_function__(
            self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
        ) -> Any:
            run, options = active(), keywords or {}
            if run is None:
                return function(*arguments, **options)
            return on_tensors(run, function, arguments, options)

    return FilledTensors()


def on_tensors(
    run: WatchedRun,
    function: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Apply a function of torch to arguments, where tensors may stand for noise.

    Returns:
        The function's result. It is noise if the noise can be followed, unless it lies
        in the memory of an argument: then it is a tensor that stands for noise.
    """
    name, in_place = named(function)
    is_written = bool(arguments) and type(arguments[-1]) is Noise
    # An attribute such as ``grad`` takes a tensor, which then stands for the noise.
    if name == "set" and is_written:
        tensor, noise = arguments
        if function.__self__.__name__ == "grad" or not tensor.requires_grad:
            return function(tensor, fill(run, noise.value, noise))
        return torch_function(function, arguments, keywords)
    if name in DESCRIBING and not in_place:
        return function(*arguments, **keywords)
    if name in OVERWRITING and (
        is_written or not run.filled.keys().isdisjoint(map(memory, arguments))
    ):
        return _overwritten(run, function, name, arguments, keywords)
    # Most calls of a run concern no noise, and end here.
    if not run.filled:
        return function(*arguments, **keywords)
    noisy = [_noise_in(run, value) for value in arguments]
    if all(new is old for new, old in zip(noisy, arguments, strict=True)):
        return function(*arguments, **keywords)

    each = _of_each(name, in_place, arguments)
    if each is not None:
        method, calls = each
        return [on_tensors(run, method, call, keywords) for call in calls]
    # A tensor in the same memory stays a tensor: later calls find its noise there.
    if name in VIEWS and type(noisy[0]) is Noise:
        return _viewed(function, name, noisy[0], arguments, keywords)
    if name not in RULES:
        why = "" if name == "requires_grad" else f"is used by {name}"
        _end(run, arguments, why)
        return function(*arguments, **keywords)
    result = torch_function(function, noisy, keywords)
    # The result is in a copy of the tensor that the function should change.
    if in_place and noisy[0] is not arguments[0]:
        return fill(run, arguments[0], result)
    return result


def _noise_in(run: WatchedRun, value: Any) -> Any:
    """Return a value with noise in place of tensors that stand for it.

    The value may be such a tensor, or a list or tuple with such tensors, which becomes
    a list. Any other value is returned as it is.
    """
    if type(value) in (list, tuple):
        noisy = [_noise_in(run, item) for item in value]
        is_same = all(new is old for new, old in zip(noisy, value, strict=True))
        if is_same:
            return value
        return noisy
    noise = noise_in(run, value)
    if noise is None:
        return value
    return noise


def _overwritten(
    run: WatchedRun,
    function: Any,
    name: str,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Write into a tensor, and store the noise that the tensor then stands for."""
    tensor, key, content = _of_overwriting(name, arguments)
    if type(tensor) is Noise or tensor.requires_grad or keywords:
        return torch_function(function, arguments, keywords)
    return fill(run, tensor, _noise_in(run, content), key)


def _of_overwriting(name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the tensor, index and content of a call that overwrites entries."""
    if name == "setitem":
        return arguments
    if name == "zero":
        return arguments[0], ..., 0.0
    return arguments[0], ..., arguments[-1]


def _viewed(
    function: Any,
    name: str,
    noise: Noise,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Apply a function of ``VIEWS`` to a tensor that stands for noise.

    Returns:
        Tensors for views in the same memory, and noise for any other result.
    """
    if name in ("item", "tolist"):
        return getattr(noise, name)()
    result = function(*arguments, **keywords)
    # An array that shares the memory of the tensor.
    if name == "numpy":
        return noise.copied(result)
    parts = result
    if not isinstance(result, list | tuple):
        parts = (result,)
    if all(memory(part) == memory(arguments[0]) for part in parts):
        return result
    return torch_function(function, [noise, *arguments[1:]], keywords)


def _end(run: WatchedRun, values: Any, why: str) -> None:
    """End the noise that tensors stand for; its numbers stay in them.

    Args:
        run: The run.
        values: Tensors, lists of them, and other values, which are left out.
        why: Use that ends the noise. For a parameter it counts as understood.
    """
    for value in values:
        if type(value) in (list, tuple):
            _end(run, value, why)
        elif memory(value) in run.filled:
            end(run, value, "" if value.requires_grad else why)
