"""The noise that the classic mechanisms share, drawn fast, and the checks of their input."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, brief
from mechanisms.cells import Rng


def laplace_noise(
    shape: int | tuple[int, ...], rng: Rng, *, scale: float = 1.0
) -> Array:
    """Return independent Laplace noise of the given scale, float64.

    A standard exponential (numpy's ziggurat) with a random sign is Laplace. The signs are random bits, put into the
    sign bits of the doubles: about a third of the time of ``rng.laplace``, which takes a logarithm for each number.
    """
    noise = rng.standard_exponential(shape)
    bits = noise.reshape(-1).view(np.uint64)
    signs = np.unpackbits(
        np.frombuffer(rng.bytes(-(-bits.size // 8)), np.uint8), count=bits.size
    ).astype(np.uint64)
    signs <<= np.uint64(63)
    bits ^= signs
    if scale != 1:
        noise *= scale
    return noise


def answers(owner: str, data: Any, *, length: int | None = None) -> Array:
    """Return query answers as float64 of shape (k,), k >= 1, or k = length where that is given.

    Raises:
        MechanismError: If they are anything else, or not finite.
    """
    array = np.asarray(data, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise MechanismError(
            f"{owner}: expected query answers, a one-dimensional array of at least one finite number, got {brief(data)}"
        )
    if length is not None and len(array) != length:
        raise MechanismError(
            f"{owner}: expected {length} answers, got {len(array)}: {brief(data)}"
        )
    return array
