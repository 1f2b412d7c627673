"""Mistakes of trainers, each in the place of a part of DP-SGD; an audit of trainers must refute all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn.ensembles.draws import as_set
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World
from gnn.training.private import PrivateSettings


def unclipped(norms: Tensor, clipping_norm: float) -> Tensor:
    """Return 1: gradients are not clipped."""
    return torch.ones_like(norms)


def mean_clipped(sums: Tensor, sizes: Tensor, settings: PrivateSettings) -> Tensor:
    """Clip the mean gradient of a batch to norm C, in place of each gradient."""
    most = settings.batch * settings.clipping_norm
    norms = torch.linalg.vector_norm(sums, dim=1, keepdim=True)
    scales: Tensor = (most / norms.clamp(min=torch.finfo(sums.dtype).tiny)).clamp(
        max=1.0
    )
    return sums * scales


@dataclass(frozen=True)
class Scaled:
    """Noise multiplied by a factor.

    Args:
        factor: 0 for no noise.
    """

    factor: float

    def __call__(self, noise: Tensor) -> Tensor:
        """Return the noise of all steps, scaled."""
        return self.factor * noise


def alike(noise: Tensor) -> Tensor:
    """Return the noise of the first step in all steps, as a generator gives it that is seeded anew in each."""
    return noise[:, :1].expand_as(noise)


def over_own_size(sums: Tensor, sizes: Tensor, settings: PrivateSettings) -> Tensor:
    """Divide a sum by the size of its own batch, where the noise is divided by the size that is set.

    A mean by the loss's own reduction does that in a last batch of fewer records, and in Poisson batches.
    """
    return sums * (settings.batch / sizes.clamp(min=1))[:, None]


def in_order(
    uniform: NDArray[np.float64], settings: PrivateSettings
) -> NDArray[np.bool_]:
    """Return the records in order in batches of fixed size; the last may be smaller.

    By itself that is no mistake: where a record is added at the end, it is in one batch of an epoch, and changes no other.
    An epoch has 1/rate batches.
    """
    return _dealt(np.cumsum(np.isfinite(uniform[:, :1]), axis=2) - 1, uniform, settings)


def shuffled(
    uniform: NDArray[np.float64], settings: PrivateSettings
) -> NDArray[np.bool_]:
    """Return the records in an order that is drawn for each epoch, in batches of fixed size.

    Source of the mistake: Chua et al. (2024), "How Private are DP-SGD Implementations?", arXiv:2403.17673.
    """
    first = uniform[:, :: _batches_of_epoch(settings)]
    return _dealt(first.argsort(axis=2).argsort(axis=2), uniform, settings)


def of_fixed_size(
    uniform: NDArray[np.float64], settings: PrivateSettings
) -> NDArray[np.bool_]:
    """Return batches of exactly ``batch`` records, drawn without replacement in each step."""
    return as_set(uniform, replace(settings, rate=None))


def _dealt(
    places: NDArray[np.int64], uniform: NDArray[np.float64], settings: PrivateSettings
) -> NDArray[np.bool_]:
    """Return batches of an order: ``places`` of the records in each epoch's, shape (trainings, epochs or 1, places)."""
    steps, epoch = np.arange(uniform.shape[1]), _batches_of_epoch(settings)
    number = places // int(settings.batch)
    of_step = number if number.shape[1] == 1 else number[:, steps // epoch]
    return np.asarray((of_step == (steps % epoch)[:, None]) & np.isfinite(uniform))


def _batches_of_epoch(settings: PrivateSettings) -> int:
    return math.ceil(1 / (settings.rate or 1.0))


def standardised(world: World) -> World:
    """Return the data with each feature at mean 0 and deviation 1, by the private examples' own mean and deviation."""
    rows = world.inputs[0]
    there = rows if world.present is None else rows[world.present]
    deviation = there.std(dim=0, correction=0)
    return replace(
        world, inputs=((rows - there.mean(dim=0)) / deviation, *world.inputs[1:])
    )


def twins(trainer: Trainer) -> dict[str, Trainer]:
    """Return broken twins that a gradient canary reveals on any examples."""
    return {
        "no clipping": replace(trainer, scales=unclipped),
        "clipping after averaging": replace(
            trainer, scales=unclipped, finish=mean_clipped
        ),
        "noise of the mean divided by the batch once more": replace(
            trainer, noise=Scaled(1 / trainer.settings.batch)
        ),
        "noise seeded alike in every step": replace(trainer, noise=alike),
        "no noise": replace(trainer, noise=Scaled(0.0)),
        "half the noise": replace(trainer, noise=Scaled(0.5)),
    }


def batch_twins(trainer: Trainer) -> dict[str, Trainer]:
    """Return the broken twins whose batches are not the Poisson batches of the accounting.

    Their faults need examples whose gradients are against the canary's, in whose place it is in a batch.
    """
    return {
        "shuffled batches": replace(trainer, batches=shuffled),
        "batches of fixed size": replace(trainer, batches=of_fixed_size),
        "Poisson batches over their own size": replace(trainer, finish=over_own_size),
    }
