"""A trainer of one model by DP-SGD, of which parts can be replaced by mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from auditdp.errors import ConfigurationError
from gnn.ensembles.draws import Batches, as_set
from gnn.ensembles.worlds import World
from gnn.training.gradients import check_private, weights_of
from gnn.training.private import PrivateSettings

ExampleLoss: TypeAlias = Callable[..., Tensor]
"""``loss(call, *inputs)``: the loss of one example, a number, where ``call(...)`` is the model with its weights."""


def clipped(norms: Tensor, clipping_norm: float) -> Tensor:
    """Return min(1, C/‖g‖), by which DP-SGD multiplies a gradient (Abadi et al. 2016, arXiv:1607.00133v2, Algorithm 1)."""
    return (clipping_norm / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(
        max=1.0
    )


def as_summed(sums: Tensor, sizes: Tensor, settings: PrivateSettings) -> Tensor:
    """Return the sums of a batch as they are."""
    return sums


def as_given(world: World) -> World:
    """Return the data as they are."""
    return world


def as_drawn(noise: Tensor) -> Tensor:
    """Return standard normal noise of all steps, shape (trainings, steps, weights), as it was drawn."""
    return noise


@dataclass(frozen=True, eq=False)
class Trainer:
    """DP-SGD: each step clips the gradients of a batch, adds N(0, (σC)² I) to their sum, and divides it by a public number.

    Source: Abadi et al. (2016), arXiv:1607.00133v2, Algorithm 1. What comes after ``settings`` is that of DP-SGD
    unless given; ``gnn.ensembles.twins`` has mistakes in their place. The weights of a model are one row of numbers here, in
    the order of ``model.named_parameters()``.

    Args:
        model: Any module that ``torch.func.functional_call`` takes. Its weights are the first ones of every training, and
            public. It is called as it is, in training or not.
        loss: ``loss(call, *inputs)``, of one example.
        settings: As of ``fit_private``, with ``gradients`` "functorch" for any model, or "layers" where all weights are
            those of linear layers, which is many times as fast; ``chunk`` is not read.
        scales: What each gradient is multiplied by, of the norms and the clipping norm.
        finish: What becomes of the sums before the noise, shape (trainings, weights), of their batches' sizes, shape
            (trainings,), and the settings.
        noise: What becomes of standard normal noise, shape (trainings, steps, weights), before it is multiplied by σC.
        batches: How batches are drawn.
        prepare: What becomes of the data before the first step.

    Raises:
        ConfigurationError: If the model normalises batches, or has no weights, or weights of several types; or if gradients
            are to be taken by Opacus.
    """

    model: nn.Module
    loss: ExampleLoss
    settings: PrivateSettings
    scales: Callable[[Tensor, float], Tensor] = clipped
    finish: Callable[[Tensor, Tensor, PrivateSettings], Tensor] = as_summed
    noise: Callable[[Tensor], Tensor] = as_drawn
    batches: Batches = as_set
    prepare: Callable[[World], World] = as_given

    def __post_init__(self) -> None:
        check_private(self.model)
        types = {weight.dtype for weight in weights_of(self.model).values()}
        if types not in ({torch.float32}, {torch.float64}):
            raise ConfigurationError(
                f"Trainer: expected weights of {type(self.model).__name__} all float32 or all float64, got "
                f"{sorted(map(str, types)) or 'none'}"
            )
        if self.settings.gradients == "opacus":
            raise ConfigurationError(
                "Trainer: Opacus takes gradients of one model; use gradients='functorch'"
            )

    @property
    def start(self) -> Tensor:
        """The model's weights as one row, shape (weights,)."""
        return torch.cat(
            [weight.detach().reshape(-1) for weight in weights_of(self.model).values()]
        )

    @property
    def deviation(self) -> float:
        """Standard deviation σC of the noise on a sum, 0 without noise."""
        settings = self.settings
        return (
            settings.noise_multiplier * settings.clipping_norm
            if settings.noise_multiplier
            else 0.0
        )
