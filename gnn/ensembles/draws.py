"""The randomness of trainings, each from a key of its own: noise, and which examples are in which batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn.training.private import PrivateSettings
from gnn.validation import DataError

Keys: TypeAlias = NDArray[np.uint64]
"""Keys of trainings, shape (trainings, 2): 128 bits each, so that no two of many trainings share their randomness."""
Batches: TypeAlias = Callable[[NDArray[np.float64], PrivateSettings], NDArray[np.bool_]]
"""The batches of records, from independent uniform numbers; infinite without a record.

Both have the shape (trainings, steps, places).
"""
CONSTANT = 0x9E3779B97F4A7C15
"""The word of the generator's state that is no part of a key."""
ROUNDS = 12
"""Numbers that are drawn before the first that is used, as numpy does where it seeds SFC64 itself."""


def keys_of(size: int, *, rng: np.random.Generator) -> Keys:
    """Return the keys of ``size`` independent trainings."""
    return rng.integers(2**64, size=(size, 2), dtype=np.uint64)


def as_set(
    uniform: NDArray[np.float64], settings: PrivateSettings
) -> NDArray[np.bool_]:
    """Return Poisson batches with the rate that is set, and batches of exactly ``batch`` records where that is None.

    Raises:
        DataError: If a batch of fixed size has more records than there are.
    """
    if settings.rate is not None:
        return uniform < settings.rate
    size = int(settings.batch)
    if uniform.size and size > (
        least := int(np.isfinite(uniform[:, 0]).sum(axis=1).min())
    ):
        raise DataError(
            f"as_set: expected batches of at most {least} records, got batch={settings.batch!r}"
        )
    return np.asarray(
        uniform <= np.partition(uniform, size - 1, axis=2)[:, :, size - 1 : size]
    )


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
    world_of: NDArray[np.int64],
    weights: int,
    dtype: torch.dtype,
    batches: Batches = as_set,
) -> Draws:
    """Return the draws of some trainings, each a function of its own key and records and of nothing else.

    A key is the state of a generator SFC64 (numpy's), which is set in less time than one is made in.

    Args:
        keys: One for each training.
        settings: What ``batches`` reads, and the number of steps.
        records: At which places each world has a record, shape (worlds, places): at the first ones, and at the last one if
            it has a canary.
        world_of: Number of the world of each training, shape (trainings,).
        weights: Numbers in a gradient.
        dtype: Of the noise, float32 or float64.
        batches: How batches are drawn.

    Raises:
        DataError: If a batch of fixed size has more records than there are.
    """
    steps, full = settings.steps, settings.rate == 1 and batches is as_set
    noisy = 2 * -(
        -steps * weights // 2
    )  # Box and Muller's normal numbers come in pairs
    bits = np.empty(
        (len(keys), noisy), dtype=np.uint32 if dtype == torch.float32 else np.float64
    )
    coins = (steps * records.sum(axis=1) * (not full))[world_of]
    numbers = np.empty((len(keys), int(coins.max(initial=0))))
    source = np.random.SFC64(0)
    rng, state = np.random.Generator(source), source.state
    for row, (key, coined) in enumerate(zip(keys, coins.tolist(), strict=True)):
        state["state"]["state"][:] = (*key, CONSTANT, 1)
        source.state = state
        source.random_raw(ROUNDS, output=False)
        if dtype == torch.float32:
            bits[row] = source.random_raw(noisy // 2).view(np.uint32)
        else:
            rng.random(out=bits[row])
        rng.random(out=numbers[row, :coined])
    noise = _normal(bits)[:, : steps * weights].reshape(len(keys), steps, weights)
    if full:
        return Draws(noise, None)
    uniform = np.full((len(keys), steps, records.shape[1]), np.inf)
    for world, places in enumerate(records):
        rows, count, examples = (
            np.flatnonzero(world_of == world),
            int(places.sum()),
            int(places[:-1].sum()),
        )
        found = numbers[rows, : steps * count].reshape(-1, steps, count)
        uniform[rows, :, :examples] = found[:, :, :examples]
        if places[-1]:
            uniform[rows, :, -1] = found[:, :, -1]
    return Draws(noise, torch.from_numpy(batches(uniform, settings)))


def _normal(bits: NDArray[Any]) -> Tensor:
    """Return standard normal numbers of uniform ones, in place, by Box & Muller (1958).

    That takes less than half of the time of numpy's ziggurat, as its steps are those of whole tensors.

    Args:
        bits: Uniform doubles on [0, 1), or integers of 32 bits for single precision, shape (trainings, even count).
    """
    if bits.dtype == np.float64:
        both = torch.from_numpy(bits)
        radius, angle = both.chunk(2, dim=1)
        radius.neg_().add_(1.0)  # on (0, 1]
    else:
        both = torch.from_numpy(bits.view(np.int32)).to(torch.float32).mul_(2.0**-32)
        radius, angle = both.chunk(2, dim=1)
        radius.add_(0.5).clamp_(min=2.0**-33)
    angle.mul_(2 * math.pi)
    radius.log_().mul_(-2.0).sqrt_()
    first = angle.cos().mul_(radius)
    angle.sin_().mul_(radius)
    radius.copy_(first)
    return both
