"""The one place that knows numpy from torch: draws and arrays for mechanisms that run on either.

A mechanism asks ``backend_of(rng)`` once, draws from the backend, and computes with what both libraries call by one name
(``backend.xp.where``, operators, methods). All arithmetic is in float64, on the device of the generator. Nothing here
imports torch: who holds a ``torch.Generator`` has loaded it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auditdp.errors import MechanismError

Rng = Any
"""A ``numpy.random.Generator`` or a ``torch.Generator``."""
Values = Any
"""An ``ndarray`` or a ``Tensor``, of the library that the generator belongs to."""
BITS = 53
"""Uniform numbers are multiples of 2^-53, so that ``uniform < p`` has probability exactly p where p is one too."""


class Backend(Protocol):
    """Random draws of one library, each of a given shape, float64 by default."""

    xp: Any
    """The library, for the functions that both have under one name."""

    def array(self, values: Any) -> Values:
        """Return values as float64 on the device of the generator."""

    def uniform(self, *shape: int) -> Values:
        """Return uniform multiples of 2^-53 in [0, 1)."""

    def normal(self, *shape: int) -> Values:
        """Return standard normal numbers."""

    def laplace(self, *shape: int) -> Values:
        """Return Laplace numbers of scale 1."""

    def integers(self, high: int, *shape: int) -> Values:
        """Return uniform integers (int64) in [0, high)."""

    def subsets(self, rows: int, dimension: int, size: int) -> Values:
        """Return ``size`` of ``dimension`` places for every row, uniformly: bool, shape (rows, dimension)."""


@dataclass(frozen=True)
class NumpyBackend:
    """Draws from a ``numpy.random.Generator``."""

    rng: np.random.Generator
    xp = np

    def array(self, values: Any) -> Values:
        """Return values as a float64 array."""
        return np.asarray(values, dtype=np.float64)

    def uniform(self, *shape: int) -> Values:
        """Return uniform multiples of 2^-53 in [0, 1)."""
        return self.rng.random(shape)

    def normal(self, *shape: int) -> Values:
        """Return standard normal numbers."""
        return self.rng.standard_normal(shape)

    def laplace(self, *shape: int) -> Values:
        """Return Laplace numbers of scale 1."""
        return self.rng.laplace(size=shape)

    def integers(self, high: int, *shape: int) -> Values:
        """Return uniform integers in [0, high)."""
        return self.rng.integers(high, size=shape)

    def subsets(self, rows: int, dimension: int, size: int) -> Values:
        """Return shuffled rows of ``size`` ones."""
        return self.rng.permuted(
            np.tile(np.arange(dimension) < size, (rows, 1)), axis=1
        )


@dataclass(frozen=True)
class TorchBackend:
    """Draws from a ``torch.Generator``, on its device."""

    rng: Any

    @property
    def xp(self) -> Any:
        """The module torch, which whoever made the generator has loaded."""
        return sys.modules["torch"]

    def array(self, values: Any) -> Values:
        """Return values as a float64 tensor on the device of the generator.

        Raises:
            MechanismError: If they are a tensor on another device.
        """
        place = getattr(values, "device", None)
        if isinstance(values, self.xp.Tensor) and place.type != self.rng.device.type:
            raise MechanismError(
                f"expected a tensor on the generator's device, {self.rng.device}, got one on {place}; move the tensor or "
                f"use torch.Generator(device={str(place)!r})"
            )
        return self.xp.as_tensor(values, dtype=self.xp.float64, device=self.rng.device)

    def uniform(self, *shape: int) -> Values:
        """Return uniform multiples of 2^-53 in [0, 1).

        Made of integers, because ``torch.rand`` promises no such grid, and a comparison would then not have exactly the
        probability that it is given.
        """
        return self.integers(2**BITS, *shape).to(self.xp.float64) * 2.0**-BITS

    def normal(self, *shape: int) -> Values:
        """Return standard normal numbers."""
        return self.xp.randn(
            shape, generator=self.rng, dtype=self.xp.float64, device=self.rng.device
        )

    def laplace(self, *shape: int) -> Values:
        """Return exponential numbers with a random sign."""
        size = self.xp.empty(
            shape, dtype=self.xp.float64, device=self.rng.device
        ).exponential_(generator=self.rng)
        return size * (2 * self.integers(2, *shape) - 1)

    def integers(self, high: int, *shape: int) -> Values:
        """Return uniform integers in [0, high): exactly where high divides 2^62, else within a relative high 2^-62.

        ``torch.randint`` with a small range takes the remainder of 32 bits, which is uniform within high 2^-32 only.
        """
        bits = self.xp.randint(
            2**62,
            shape,
            generator=self.rng,
            dtype=self.xp.int64,
            device=self.rng.device,
        )
        return bits % high

    def subsets(self, rows: int, dimension: int, size: int) -> Values:
        """Return the places of the ``size`` smallest of ``dimension`` uniform numbers (ties: fewer than d² 2^-54)."""
        chosen = self.uniform(rows, dimension).argsort(dim=1)[:, :size]
        empty = self.xp.zeros(
            (rows, dimension), dtype=self.xp.bool, device=self.rng.device
        )
        return empty.scatter(1, chosen, True)


def backend_of(rng: Rng) -> Backend:
    """Return the backend that a generator belongs to.

    Raises:
        MechanismError: If it is no generator of either library.
    """
    if isinstance(rng, np.random.Generator):
        return NumpyBackend(rng)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rng, torch.Generator):
        return TorchBackend(rng)
    raise MechanismError(
        f"expected rng, a numpy.random.Generator or (with the extra 'torch' installed) a torch.Generator, got {rng!r}; "
        "write numpy.random.default_rng(seed)"
    )
