"""The randomness of trainings, each from a key of its own: noise, and which examples are in which batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn.training.private import PrivateSettings
from gnn.validation import DataError

Keys: TypeAlias = NDArray[np.uint64]
"""Keys of trainings, shape (trainings, 2): 128 bits each, so that no two of many trainings share their randomness."""
Batches: TypeAlias = Callable[[NDArray[np.float64], PrivateSettings], NDArray[np.bool_]]
"""Which records are in which batch, given independent uniform numbers, infinite where there is no record.

Both have the shape (trainings, steps, places).
"""


def keys_of(size: int, *, rng: np.random.Generator) -> Keys:
    """Return the keys of ``size`` independent trainings."""
    return rng.integers(2**64, size=(size, 2), dtype=np.uint64)


def as_set(uniform: NDArray[np.float64], settings: PrivateSettings) -> NDArray[np.bool_]:
    """Return Poisson batches with the rate that is set, and batches of exactly ``batch`` records where that is None.

    Raises:
        DataError: If a batch of fixed size has more records than there are.
    """
    if settings.rate is not None:
        return uniform < settings.rate
    size = int(settings.batch)
    if uniform.size and size > (least := int(np.isfinite(uniform[:, 0]).sum(axis=1).min())):
        raise DataError(f"as_set: expected batches of at most {least} records, got batch={settings.batch!r}")
    taken = np.zeros(uniform.shape, dtype=bool)
    np.put_along_axis(taken, uniform.argpartition(size - 1, axis=2)[:, :, :size], True, axis=2)
    return taken


@dataclass(frozen=True, eq=False)
class Draws:
    """The randomness of some trainings.

    Attributes:
        noise: Standard normal, shape (trainings, steps, weights).
        taken: Which records are in which batch, bool, shape (trainings, steps, places); None where all are in every batch.
    """

    noise: Tensor
    taken: Tensor | None


def draws_of(
    keys: Keys,
    settings: PrivateSettings,
    *,
    records: NDArray[np.bool_],
    weights: int,
    dtype: torch.dtype,
    batches: Batches = as_set,
) -> Draws:
    """Return the draws of some trainings, each a function of its own key and records and of nothing else.

    Args:
        keys: One for each training.
        settings: What ``batches`` reads, and the number of steps.
        records: At which places each training has a record, shape (trainings, places).
        weights: Numbers in a gradient.
        dtype: Of the noise, float32 or float64.
        batches: How batches are drawn.

    Raises:
        DataError: If a batch of fixed size has more records than there are.
    """
    steps, full = settings.steps, settings.rate == 1 and batches is as_set
    noise = np.empty((len(keys), steps, weights), dtype=np.float32 if dtype == torch.float32 else np.float64)
    uniform = np.full((len(keys), 0 if full else steps, records.shape[1]), np.inf)
    for row, (key, places) in enumerate(zip(keys, records, strict=True)):
        rng = np.random.Generator(np.random.Philox(key=key))
        rng.standard_normal(out=noise[row], dtype=noise.dtype.type)
        if not full:
            uniform[row][:, places] = rng.random((steps, int(places.sum())))
    return Draws(torch.from_numpy(noise), None if full else torch.from_numpy(batches(uniform, settings)))
