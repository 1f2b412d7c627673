"""Mistakes of trainers, each in the place of a part of DP-SGD; an audit of trainers must refute all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gnn.ensembles.trainer import Trainer
from gnn.training.private import PrivateSettings


def unclipped(norms: Tensor, clipping_norm: float) -> Tensor:
    """Return 1: gradients are not clipped."""
    return torch.ones_like(norms)


def mean_clipped(sums: Tensor, settings: PrivateSettings) -> Tensor:
    """Clip the mean gradient of a batch to norm C, in place of each gradient."""
    most = settings.batch * settings.clipping_norm
    norms = torch.linalg.vector_norm(sums, dim=1, keepdim=True)
    scales: Tensor = (most / norms.clamp(min=torch.finfo(sums.dtype).tiny)).clamp(max=1.0)
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


def twins(trainer: Trainer) -> dict[str, Trainer]:
    """Return the broken twins of a trainer by what is wrong with them."""
    return {
        "no clipping": replace(trainer, scales=unclipped),
        "clipping after averaging": replace(trainer, scales=unclipped, finish=mean_clipped),
        "noise of the mean divided by the batch once more": replace(trainer, noise=Scaled(1 / trainer.settings.batch)),
        "noise seeded alike in every step": replace(trainer, noise=alike),
        "no noise": replace(trainer, noise=Scaled(0.0)),
        "half the noise": replace(trainer, noise=Scaled(0.5)),
    }
