"""torch's functions on noise: sums and multiples keep it noise or make a release of it; for all others it is a tensor.

Tensors that noise was written into: whatever looks at their memory, by a view or under another name, is that noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from auditdp.tracing.array_functions import gathering, plain, plainly, through
from auditdp.tracing.event_comparisons import compare
from auditdp.tracing.linear_forms import number
from auditdp.tracing.mixed_values import overwritten, without_zeros
from auditdp.tracing.noise import ARITHMETIC, Noise, operated, write
from auditdp.tracing.plain_values import any_of, put_at
from auditdp.tracing.watched_run import WatchedRun

COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
COPYING = (
    *(
        "bfloat16",
        "clone",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "double",
        "float",
        "half",
        "to",
        "type",
        "type_as",
    ),
)
"""What gives the same entries, up to rounding."""
LAYING = (
    *(
        "broadcast_to",
        "chunk",
        "expand",
        "expand_as",
        "flatten",
        "flip",
        "movedim",
        "narrow",
        "permute",
        "repeat",
    ),
    *(
        "reshape",
        "reshape_as",
        "roll",
        "select",
        "split",
        "squeeze",
        "t",
        "tile",
        "transpose",
        "unbind",
        "unsqueeze",
    ),
    *("view", "view_as"),
)
"""What lays entries out in another way, in one tensor or several."""
GATHERING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("cat", "concat", "hstack", "stack", "vstack"), ()),
    "where": (1, 2),
}
"""What puts entries of several tensors into one, as for numpy."""
LINEAR = (
    *(
        "addbmm",
        "addmm",
        "addmv",
        "addr",
        "baddbmm",
        "bmm",
        "cumsum",
        "dot",
        "einsum",
        "inner",
        "linear",
        "matmul",
    ),
    *("mean", "mm", "mv", "outer", "sum", "tensordot", "trace", "vdot"),
)
"""What is linear in each tensor, but for a constant."""
AFFINE: dict[str, Any] = {
    "addcmul": lambda x, y, z, value=1: (x, value * (y * z)),
    "addcdiv": lambda x, y, z, value=1: (x, value * (y / z)),
    "lerp": lambda x, y, weight: (x * (1 - weight), weight * y),
}
"""What adds up two tensors that depend on one argument each, entry by entry: these, from the arguments."""
OVERWRITING = ("copy", "fill", "setitem", "zero")
"""What leaves nothing of the entries that it writes into."""
WRITING = ("copy", "set")
"""What writes numbers into a tensor; noise that is written into a parameter is how that is initialised, and public."""
DESCRIBING = (
    *(
        "device",
        "dim",
        "dtype",
        "grad",
        "grad_fn",
        "is_cuda",
        "is_floating_point",
        "is_leaf",
        "is_sparse",
        "layout",
    ),
    *("len", "ndim", "numel", "requires_grad", "shape", "size", "stride"),
)
"""What may be asked of a tensor without a look at its entries."""
METHODS = (
    *COPYING,
    *LAYING,
    *LINEAR,
    *AFFINE,
    *(f"{name}_" for name in (*ARITHMETIC, *AFFINE, "copy", "fill", "zero")),
)
"""Methods of a tensor after which it is still noise."""


def torch_function(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Apply a function of torch: what ``Noise.__torch_function__`` does."""
    name, in_place = named(function)
    first: Any
    if (of_each := each_of(name, in_place, arguments, keywords)) is not None:
        apply, each, options = of_each
        return [
            torch_function(apply, one, options)
            if Noise in map(type, one)
            else apply(*one, **options)
            for one in each
        ]
    if (target := keywords.get("out")) is not None and name in (
        *ARITHMETIC,
        *AFFINE,
        *LINEAR,
    ):
        return _into(
            target,
            torch_function(
                function, arguments, {k: v for k, v in keywords.items() if k != "out"}
            ),
        )
    if name in ("mul", "div", *LINEAR, *AFFINE) and _has_gradient(arguments):
        return plainly(
            function, arguments, keywords, f"{name}, of which there is a gradient"
        )
    if len(arguments) == 2 and not set(keywords) - {"alpha"}:
        first, second = arguments
        if "alpha" in keywords:
            second = second * keywords["alpha"]
        if name == "rsub":
            name, first, second = "sub", second, first
        if name in ARITHMETIC:
            return _into(
                first if in_place else None, operated(ARITHMETIC[name], first, second)
            )
        if name in COMPARISONS and not in_place:
            return compare(first, second, COMPARISONS[name])
    first = next(iter(arguments), None)
    if (
        name in AFFINE
        and not set(keywords) - {"value"}
        and (found := _affine(name, arguments, keywords))
    ):
        return _into(first if in_place else None, found[0])
    if (
        name in LINEAR
        and not in_place
        and (made := through(function, arguments, keywords)) is not None
    ):
        return made
    which = GATHERING.get(name)
    if (
        which is not None
        and (made := gathering(_of_arrays(function), arguments, keywords, which))
        is not None
    ):
        return made
    if (
        type(first) is Noise
        and first.settled is None
        and not in_place
        and name in (*COPYING, *LAYING)
    ):
        others = [
            other.value if type(other) is Noise else other for other in arguments[1:]
        ]
        change = partial(changed, function, others, keywords)
        return (
            first.copied(change(first.value)) if name in COPYING else first.laid(change)
        )
    if type(first) is Noise and name in OVERWRITING and not keywords:
        put = (
            put_at(arguments[1])
            if name == "setitem"
            else (lambda array, part: array.copy_(part))
        )
        first.overwrite(0.0 if name == "zero" else arguments[-1], put)
        return first
    if name in WRITING and first.requires_grad:
        return function(*plain(arguments, ""), **keywords)
    return plainly(function, arguments, keywords, name)


def _has_gradient(values: Sequence[Any]) -> bool:
    """Return whether a gradient shows what numbers are multiplied with."""
    return sys.modules["torch"].is_grad_enabled() and any(
        type(value) is not Noise and getattr(value, "requires_grad", False)
        for value in values
    )


def each_of(
    name: str, in_place: bool, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Any, list[Sequence[Any]], Mapping[str, Any]] | None:
    """Return what a function of lists does with each tensor: the function, its arguments, its keywords; None of others."""
    of_each = name.removeprefix("foreach_")
    if of_each == name or of_each not in (*ARITHMETIC, *AFFINE, *OVERWRITING):
        return None
    if len(arguments) > 3:
        arguments, keywords = arguments[:3], {**keywords, "value": arguments[3]}
    each = zip(
        *(one if isinstance(one, list | tuple) else repeat(one) for one in arguments),
        strict=False,
    )
    return (
        getattr(sys.modules["torch"].Tensor, f"{of_each}{'_' * in_place}"),
        [*each],
        keywords,
    )


def named(function: Any) -> tuple[str, bool]:
    """Return the name of a function of torch, without marks, and whether it changes its first argument in place."""
    marked = getattr(function, "__name__", "")
    in_place = (
        marked.endswith("_") and not marked.endswith("__")
    ) or marked.startswith("__i")
    name = marked.strip("_")
    return {
        "iadd": "add",
        "isub": "sub",
        "radd": "add",
        "imul": "mul",
        "rmul": "mul",
    }.get(name, name), in_place


def changed(
    function: Any, others: Sequence[Any], keywords: Mapping[str, Any], entries: Any
) -> Any:
    """Apply a function to entries, or to what numpy holds of each: the same for either."""
    if hasattr(entries, "detach"):
        return function(entries, *others, **keywords)
    made = function(*_on_cpu([np.array(entries), *others]), **keywords)
    return (
        [part.numpy() for part in made]
        if isinstance(made, list | tuple)
        else made.numpy()
    )


def _affine(
    name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Any] | None:
    """Return what a function makes of noise, in a tuple, with the numbers that torch computes; None if not followed."""
    plain_ones = [value.value if type(value) is Noise else value for value in arguments]
    parts = AFFINE[name](*arguments, **keywords)
    noise, other = parts if type(parts[0]) is Noise else parts[::-1]
    if type(noise) is not Noise or noise.settled is not None or type(other) is Noise:
        return None
    offset = number(other) + (0.0 if noise.offset is None else noise.offset)
    return (
        noise.made(
            getattr(sys.modules["torch"], name)(*plain_ones, **keywords),
            noise.terms,
            offset,
        ),
    )


def _of_arrays(function: Any) -> Any:
    """Return a function of torch that takes arrays of numpy as well, among its arguments and in a list of them."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        parts = [
            part
            for one in arguments
            for part in (one if isinstance(one, list | tuple) else [one])
        ]
        return function(
            *(_on_cpu(arguments) if np.ndarray in map(type, parts) else arguments),
            **keywords,
        )

    return call


def _on_cpu(value: Any) -> Any:
    """Return arrays as tensors, and tensors where arrays are: on the CPU; lists of either too, and all else as it is."""
    if type(value) in (list, tuple):
        return [_on_cpu(part) for part in value]
    if isinstance(value, np.ndarray):
        return sys.modules["torch"].from_numpy(value)
    return value.cpu() if hasattr(value, "is_cuda") else value


def _into(target: Any, result: Any) -> Any:
    """Return a result, written into a tensor that is changed in place."""
    if target is None:
        return result
    if type(target) is Noise:
        return target.become(result)
    if type(result) is not Noise:
        return target.copy_(result)

    return fill(result.run, target, result)


ALONE = 2
"""References to memory that one tensor has: its own, and that which asks."""
CHANGED = "is changed where that is not seen"
Put = Callable[[Any, Any], Any]
"""Writes the second tensor, or number, into the first."""


def memory(tensor: Any) -> int:
    """Return where the memory of a tensor begins; 0 of one that has none of its own."""
    torch = sys.modules["torch"]
    if type(tensor) is Noise or not isinstance(tensor, torch.Tensor):
        return 0
    with torch._C.DisableTorchFunction():
        try:
            return (
                int(tensor.untyped_storage().data_ptr())
                if tensor.layout is torch.strided
                else 0
            )
        except (RuntimeError, NotImplementedError):  # of transforms of ``torch.func``
            return 0


def is_alone(tensor: Any) -> bool:
    """Return whether nothing else looks at the memory of a tensor."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        return (
            int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)) <= ALONE
        )


def _laid_as(tensor: Any) -> Callable[[Any], Any]:
    """Return what takes the entries of a tensor out of all that are in its memory."""
    geometry = [tuple(tensor.shape), tensor.stride(), tensor.storage_offset()]
    return partial(changed, sys.modules["torch"].as_strided, geometry, {})


def noise_in(run: WatchedRun, tensor: Any) -> Noise | None:
    """Return the noise that a tensor stands for; None where its numbers are no noise."""
    if not run.filled or (found := run.filled.get(memory(tensor))) is None:
        return None
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        flat, noise = found
        if not torch.equal(flat.view(torch.uint8), noise.value.view(torch.uint8)):
            for term in noise.terms:
                term.draw.is_lent = True
            end(run, tensor, CHANGED)
            return None
        if (
            tensor.requires_grad and torch.is_grad_enabled()
        ):  # a parameter, as it is initialised
            end(run, tensor, "")
            return None
        part = noise.shaped(_laid_as(tensor))
        return (
            without_zeros(part.copied(part.value.clone()))
            if any_of(part.law.scale)
            else None
        )


def end(run: WatchedRun, tensor: Any, why: str) -> None:
    """End the noise that a tensor stands for, and leave its numbers in it."""
    flat, noise = run.filled.pop(memory(tensor))
    with sys.modules["torch"]._C.DisableTorchFunction():
        noise.value = flat.clone()
        write(flat, noise.settle(why))


def fill(run: WatchedRun, target: Any, content: Any, put: Put | None = None) -> Any:
    """Return a tensor in which noise, or numbers, are written, and which stands for what it holds.

    Args:
        run: The run.
        target: The tensor.
        content: What is written.
        put: How it is written; into all entries unless it is given.
    """
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction(), torch.no_grad():
        key, place = memory(target), _laid_as(target)
        write_in = put or (lambda tensor, part: tensor.copy_(part))
        content = (
            content.settled[0]
            if type(content) is Noise and content.settled is not None
            else content
        )
        if key in run.filled:
            noise_in(run, target)  # which ends it if its numbers were changed
        flat, held = run.filled.pop(key, (None, None))
        if flat is None:
            flat = torch.empty(0, dtype=target.dtype, device=target.device).set_(
                target.untyped_storage()
            )
        before = flat.clone() if held is None else held

        made, is_whole = (
            None,
            put is None and target.is_contiguous() and target.numel() == flat.numel(),
        )
        if is_whole and type(content) is Noise and content.shape == target.shape:
            made = content.reshape(-1)
        elif Noise in map(type, (before, content)):
            made = overwritten(
                before, content, lambda flat, part: write_in(place(flat), part)
            )
        if made is None:
            before, content = plain((before, content), "is written into a tensor")
            write(flat, before)
            write_in(target, content)
            return target
        write(flat, made.value)
        made.value = flat.clone()
        if key and any_of(made.law.scale):
            run.filled[key] = (flat, made)
        return target
