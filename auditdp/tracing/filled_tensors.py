"""Tensors that noise was written into.

Such a tensor stands for the noise. So does every other tensor in the same memory, as a
view or under another name. ``WatchedRun.filled`` has the noise of each memory.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from auditdp.tracing.array_functions import overwritten
from auditdp.tracing.mixed_values import without_zeros
from auditdp.tracing.noise import Noise, opened, plain, write
from auditdp.tracing.plain_values import any_of, for_arrays, placed
from auditdp.tracing.watched_run import WatchedRun


def memory(tensor: Any) -> int:
    """Return the address of the memory of a tensor, or 0 for any other value.

    Sparse tensors and tensors within transforms of ``torch.func`` count as other
    values.
    """
    torch = sys.modules["torch"]
    if type(tensor) is Noise or not isinstance(tensor, torch.Tensor):
        return 0
    with torch._C.DisableTorchFunction():
        if tensor.layout is not torch.strided:
            return 0
        try:
            return int(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):
            # These are tensors of transforms of ``torch.func``.
            return 0


def is_alone(tensor: Any) -> bool:
    """Return True if no other tensor uses the memory of a tensor."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        uses = int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))
    # The tensor's own reference, and that of this call.
    return uses <= 2


def _laid_as(tensor: Any) -> Any:
    """Return a function that lays out a flat tensor of the whole memory like a tensor.

    It returns a view with the entries of the tensor, in its shape.
    """
    return partial(
        sys.modules["torch"].as_strided,
        size=tuple(tensor.shape),
        stride=tensor.stride(),
        storage_offset=tensor.storage_offset(),
    )


def noise_in(run: WatchedRun, tensor: Any) -> Noise | None:
    """Return the noise that a tensor stands for, or None if it has no noise.

    The noise ends here, with the result None, if other code has changed the memory, or
    if the tensor requires a gradient while torch records gradients, as a parameter.
    """
    if not run.filled:
        return None
    flat, noise = run.filled.get(memory(tensor), (None, None))
    if noise is None:
        return None
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        # Code in C, or an array of numpy in the same memory, may have changed the
        # numbers.
        if not torch.equal(flat.view(torch.uint8), noise.value.view(torch.uint8)):
            for term in noise.terms:
                term.draw.is_lent = True
            end(run, tensor, "is changed by code that the trace does not watch")
            return None
        # Noise initialises a parameter, which is public.
        if tensor.requires_grad and torch.is_grad_enabled():
            end(run, tensor, "")
            return None
        part = noise.shaped(for_arrays(_laid_as(tensor)))
        if not any_of(part.law.scale):
            return None
        return without_zeros(part.copied(part.value.clone()))


def end(run: WatchedRun, tensor: Any, why: str) -> None:
    """End the noise that a tensor stands for; its numbers stay in the memory.

    Args:
        run: The run.
        tensor: The tensor, whose memory is a key of ``run.filled``.
        why: Use that ends the noise; empty for a use that is understood.
    """
    flat, noise = run.filled.pop(memory(tensor))
    with sys.modules["torch"]._C.DisableTorchFunction():
        noise.value = flat.clone()
        write(flat, noise.settle(why))


def fill(run: WatchedRun, target: Any, content: Any, key: Any = ...) -> Any:
    """Write noise or numbers into a tensor, which stands for its content from then on.

    If the noise cannot be followed there, it ends.

    Args:
        run: The run.
        target: The tensor.
        content: The noise, or the numbers.
        key: Index of the entries of the tensor that are written into.

    Returns:
        The tensor ``target``.
    """
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction(), torch.no_grad():
        content = opened(content)
        address, lay = memory(target), _laid_as(target)
        if address in run.filled:
            # This ends the recorded noise if its entries were changed.
            noise_in(run, target)
        flat, before = run.filled.pop(address, (None, None))
        if flat is None:
            flat = torch.empty(0, dtype=target.dtype, device=target.device)
            flat.set_(target.untyped_storage())
            before = flat.clone()

        # The noise is that of the whole memory, in which other tensors may overlap.
        noise = None
        is_whole = target.is_contiguous() and target.numel() == flat.numel()
        is_same = type(content) is Noise and content.shape == target.shape
        if key is ... and is_whole and is_same:
            noise = content.reshape(-1)
        elif Noise in map(type, (before, content)):
            noise = overwritten(before, content, key, lay)
        if noise is None:
            why = "is written into a tensor"
            write(flat, plain(before, why))
            target[placed(key, target)] = plain(content, why)
            return target
        # The copy shows later whether the memory still holds these numbers.
        write(flat, noise.value)
        noise.value = flat.clone()
        if address and any_of(noise.law.scale):
            run.filled[address] = (flat, noise)
        return target
