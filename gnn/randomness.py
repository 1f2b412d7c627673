"""Torch's global randomness, lent to code that cannot be given a generator, such as initial weights and dropout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from auditdp.errors import ConfigurationError

CUBLAS_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


def device_of(device: str | torch.device) -> torch.device:
    """Return the device.

    Raises:
        ConfigurationError: If there is no such device on this machine.
    """
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ConfigurationError(
            f"no device {device!r}: {str(error).splitlines()[0]}; use 'cpu' or 'cuda'"
        ) from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(
            f"device {device!r}: torch finds no CUDA device on this machine; use device='cpu'"
        )
    return found


@contextmanager
def seeded(
    generator: torch.Generator, device: str | torch.device = "cpu"
) -> Iterator[None]:
    """Seed torch's global generators of the CPU and of ``device`` from ``generator``; afterwards they are as they were.

    Args:
        generator: On the CPU; one number is drawn from it.
        device: Where the code in the block computes.
    """
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    place = device_of(device)
    devices = (
        [place.index if place.index is not None else torch.cuda.current_device()]
        if place.type == "cuda"
        else []
    )
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def deterministic(device: str | torch.device) -> Iterator[None]:
    """Have torch use deterministic algorithms on CUDA, where sums over edges depend on the order of threads otherwise.

    On the CPU nothing changes: its algorithms are deterministic for a given number of threads.
    """
    if device_of(device).type == "cpu":
        yield
        return
    os.environ.setdefault(CUBLAS_WORKSPACE, ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
