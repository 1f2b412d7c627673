"""The randomness of trainings, each from a key of its own: noise, and which examples are in which batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn.training.private import PrivateSettings
from gnn.validation import DataError

Keys = NDArray[np.uint64]
"""Keys of trainings, shape (trainings, 2): 128 bits each, so that no two of many trainings share their randomness."""


def keys_of(size: int, *, rng: np.random.Generator) -> Keys:
    """Return the keys of ``size`` independent trainings."""
    return rng.integers(2**64, size=(size, 2), dtype=np.uint64)


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
    keys: Keys, settings: PrivateSettings, *, records: Sequence[int], places: int, weights: int, dtype: torch.dtype
) -> Draws:
    """Return the draws of some trainings, each a function of its own key and of nothing else.

    Args:
        keys: One for each training.
        settings: How batches are drawn: Poisson batches with its ``rate``, all records if that is 1, and batches of exactly
            ``batch`` records, without replacement, if it is None.
        records: How many records each training has; of ``places`` it has the first ones.
        places: The most records of a training.
        weights: Numbers in a gradient.
        dtype: Of the noise, float32 or float64.

    Raises:
        DataError: If a batch of fixed size has more records than there are.
    """
    steps, rate, size = settings.steps, settings.rate, int(settings.batch)
    if rate is None and size > min(records, default=size):
        raise DataError(f"draws_of: expected batches of at most {min(records)} records, got batch={settings.batch!r}")
    noise = np.empty((len(keys), steps, weights), dtype=np.float32 if dtype == torch.float32 else np.float64)
    uniform = None if rate == 1 else np.ones((len(keys), steps, places))
    for row, (key, count) in enumerate(zip(keys, records, strict=True)):
        rng = np.random.Generator(np.random.Philox(key=key))
        rng.standard_normal(out=noise[row], dtype=noise.dtype.type)
        if uniform is not None:
            uniform[row, :, :count] = rng.random((steps, count))
    if uniform is None:
        return Draws(torch.from_numpy(noise), None)
    if rate is not None:
        return Draws(torch.from_numpy(noise), torch.from_numpy(uniform < rate))
    taken = np.zeros(uniform.shape, dtype=bool)
    np.put_along_axis(taken, uniform.argpartition(size - 1, axis=2)[:, :, :size], True, axis=2)
    return Draws(torch.from_numpy(noise), torch.from_numpy(taken))
