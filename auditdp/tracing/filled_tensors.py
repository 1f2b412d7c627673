"""Tensors that noise was written into: whatever looks at their memory, by a view or under another name, is that noise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from auditdp.tracing.mixing import overwritten, without_zeros
from auditdp.tracing.noise import Noise, write
from auditdp.tracing.numpy_functions import plain
from auditdp.tracing.plain import any_of
from auditdp.tracing.run import WatchedRun
from auditdp.tracing.torch_functions import changed

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
            return int(tensor.untyped_storage().data_ptr()) if tensor.layout is torch.strided else 0
        except (RuntimeError, NotImplementedError):  # of transforms of ``torch.func``
            return 0


def is_alone(tensor: Any) -> bool:
    """Return whether nothing else looks at the memory of a tensor."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)) <= ALONE


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
        if tensor.requires_grad and torch.is_grad_enabled():  # a parameter, as it is initialised
            end(run, tensor, "")
            return None
        part = noise.shaped(_laid_as(tensor))
        return without_zeros(part.copied(part.value.clone())) if any_of(part.law.scale) else None


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
        content = content.settled[0] if type(content) is Noise and content.settled is not None else content
        if key in run.filled:
            noise_in(run, target)  # which ends it if its numbers were changed
        flat, held = run.filled.pop(key, (None, None))
        if flat is None:
            flat = torch.empty(0, dtype=target.dtype, device=target.device).set_(target.untyped_storage())
        before = flat.clone() if held is None else held

        made, is_whole = None, put is None and target.is_contiguous() and target.numel() == flat.numel()
        if is_whole and type(content) is Noise and content.shape == target.shape:
            made = content.reshape(-1)
        elif Noise in map(type, (before, content)):
            made = overwritten(before, content, lambda flat, part: write_in(place(flat), part))
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
