"""Gradients of single examples, by torch.func or by Opacus, their clipping, and the noise on their sum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from auditdp.errors import ConfigurationError
from gnn.training.examples import Examples, PageRankRows, Rows
from gnn.training.record import Loss

Gradients: TypeAlias = dict[str, Tensor]
"""Gradients by the name of each weight: shape (examples, *weight) of single examples,
shape (*weight) of a sum."""


def check_private(model: nn.Module) -> None:
    """Raise if the model mixes examples, so that none has a gradient of its own.

    Raises:
        ConfigurationError: If it normalises batches.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise ConfigurationError(
                f"{type(model).__name__}: {name} normalises batches, so that an example changes the gradients of others; "
                "use nn.LayerNorm or nn.GroupNorm"
            )


def weights_of(model: nn.Module) -> Gradients:
    """Return the trained weights, by name."""
    return {
        name: weight
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }


def by_functorch(
    model: nn.Module,
    examples: Examples,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    loss: Loss,
) -> tuple[Gradients, Tensor, Tensor]:
    """Return the gradient of each example's loss, the losses, shape (examples,), and the logits, shape (examples, classes).

    Args:
        model: Any model that ``torch.func.vmap`` takes, in training or not; dropout is independent for each example.
        examples: How the model is called.
        inputs: A batch of theirs.
        targets: Shape (examples,) or (examples, classes).
        loss: Mean loss of logits at targets.
    """
    buffers = dict(model.named_buffers())

    def loss_of(
        weights: Gradients, target: Tensor, *inputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        logits = examples.logits(
            lambda *given: functional_call(model, (weights, buffers), given), *inputs
        )
        return loss(logits.unsqueeze(0), target.unsqueeze(0)), logits

    each = grad_and_value(loss_of, has_aux=True)
    axes = (None, 0, *[0] * len(inputs))
    weights = {name: weight.detach() for name, weight in weights_of(model).items()}
    gradients, (losses, logits) = vmap(each, in_dims=axes, randomness="different")(
        weights, targets, *inputs
    )
    return gradients, losses, logits


def by_opacus(
    model: nn.Module,
    examples: Examples,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    loss: Loss,
) -> tuple[Gradients, Tensor, Tensor]:
    """Return the same as ``by_functorch``, by Opacus' hooks, for layers with its rules.

    Raises:
        ConfigurationError: If the examples are no rows, or Opacus has no rule for a layer.
    """
    from opacus import GradSampleModule

    if not isinstance(examples, Rows):
        raise ConfigurationError(
            f"Opacus takes gradients of rows, not of {type(examples).__name__}; use gradients='functorch'"
        )
    try:
        wrapped = GradSampleModule(model, loss_reduction="mean", strict=True)
    except NotImplementedError as error:
        raise ConfigurationError(
            f"Opacus refuses {type(model).__name__}: {error}; use gradients='functorch'"
        ) from None
    try:
        logits = wrapped(*inputs)
        with warnings.catch_warnings():  # inputs are data and need no gradients
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            loss(logits, targets).backward()  # type: ignore[no-untyped-call]
        gradients = {
            name: weight.grad_sample.detach()
            for name, weight in weights_of(model).items()
        }  # type: ignore[attr-defined]
    finally:
        wrapped.zero_grad(set_to_none=True)
        wrapped.to_standard_module()
    with torch.no_grad():
        each = [
            loss(row.unsqueeze(0), target.unsqueeze(0))
            for row, target in zip(logits, targets, strict=True)
        ]
    return gradients, torch.stack(each), logits.detach()


def clipped_by_layers(
    model: nn.Module,
    examples: Examples,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    loss: Loss,
    clipping_norm: float,
) -> tuple[Gradients, Tensor, Tensor]:
    """Return ``clipped_sum`` of what ``by_functorch`` gives, the losses and the logits, without any gradient of an example.

    The gradient of a linear layer is Σ_k δ_k a_kᵀ over the rows k that an example mixes, a_k the layer's input and δ_k the
    gradient at its output. Its squared norm is Σ_kl (δ_k·δ_l)(a_k·a_l), and a sum over examples is one product of matrices.

    Source: Goodfellow (2015), arXiv:1510.01799; Li et al. (2022), arXiv:2110.05679, Section 4, for several rows.

    Args:
        model: All of its weights are those of ``nn.Linear`` layers, each called once.
        examples: ``Rows`` or ``PageRankRows``, whose ``logits`` take a whole batch as well.
        inputs: A batch of theirs.
        targets: Shape (examples,) or (examples, classes).
        loss: Mean loss of logits at targets.
        clipping_norm: C, > 0; infinite for no clipping.

    Raises:
        ConfigurationError: If a weight is none of a linear layer, or examples are neither of the two.
    """
    layers = {  # by the prefix of their weights' names
        f"{name}." if name else "": module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    }
    known = {f"{name}{kind}" for name in layers for kind in ("weight", "bias")}
    other = sorted(set(weights_of(model)) - known)
    if other or not isinstance(examples, Rows | PageRankRows):
        raise ConfigurationError(
            f"gradients by layers are for linear layers on Rows or PageRankRows, not for {', '.join(other) or 'these'} of "
            f"{type(model).__name__} on {type(examples).__name__}; use gradients='functorch'"
        )
    seen: dict[str, Tensor] = {}
    given: dict[str, Tensor] = {}

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def hook(
            module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor
        ) -> None:
            seen[name] = arguments[0].detach()
            output.register_hook(lambda gradient: given.__setitem__(name, gradient))  # type: ignore[no-untyped-call]

        return hook

    handles = [
        module.register_forward_hook(watch(name)) for name, module in layers.items()
    ]
    try:
        logits = examples.logits(model, *inputs)
        losses = vmap(lambda row, target: loss(row.unsqueeze(0), target.unsqueeze(0)))(
            logits, targets
        )
        weights = weights_of(model)
        torch.autograd.grad(losses.sum(), list(weights.values()))
    finally:
        for handle in handles:
            handle.remove()
    count = len(targets)
    squares = losses.new_zeros(count)
    rows = {
        name: (seen[name].reshape(count, -1, layer.in_features), layer)
        for name, layer in layers.items()
    }
    back = {
        name: given[name].reshape(count, -1, layer.out_features)
        for name, layer in layers.items()
    }
    for name, (a, _) in rows.items():
        delta = back[name]
        if f"{name}weight" in weights:
            squares += ((a @ a.transpose(1, 2)) * (delta @ delta.transpose(1, 2))).sum(
                dim=(1, 2)
            )
        if f"{name}bias" in weights:
            squares += delta.sum(dim=1).square().sum(dim=1)
    scale = (
        clipping_norm
        / squares.clamp(min=0).sqrt().clamp(min=torch.finfo(squares.dtype).tiny)
    ).clamp(max=1.0)
    total: Gradients = {}
    for name, (a, _) in rows.items():
        delta = (back[name] * scale[:, None, None]).flatten(0, 1)
        if f"{name}weight" in weights:
            total[f"{name}weight"] = delta.t() @ a.flatten(0, 1)
        if f"{name}bias" in weights:
            total[f"{name}bias"] = delta.sum(dim=0)
    return {name: total[name] for name in weights}, losses.detach(), logits.detach()


def clipped_sum(gradients: Gradients, clipping_norm: float) -> Gradients:
    """Return Σ_i g_i min(1, C/‖g_i‖), ‖·‖ the Euclidean norm over all weights together.

    Source: Abadi et al. (2016), arXiv:1607.00133v2, Algorithm 1.

    Args:
        gradients: Of single examples.
        clipping_norm: C, > 0; infinite for no clipping.
    """
    if math.isinf(clipping_norm):
        return {name: each.sum(dim=0) for name, each in gradients.items()}
    norms = torch.stack(
        [each.reshape(len(each), -1).norm(dim=1) for each in gradients.values()]
    ).norm(dim=0)
    scale = (clipping_norm / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(
        max=1.0
    )
    return {
        name: torch.tensordot(scale, each, dims=1) for name, each in gradients.items()
    }


def noisy_mean(
    total: Gradients, *, deviation: float, batch: float, generator: torch.Generator
) -> Gradients:
    """Return (total + N(0, deviation² I)) / batch.

    Note:
        torch's generators are no source of randomness for cryptography, and the noise is in floating point: this is for
        experiments.

    Args:
        total: Sum of clipped gradients.
        deviation: Standard deviation of the noise on each entry: the noise multiplier times the clipping norm.
        batch: Public number by which the sum is divided.
        generator: On the CPU, so that every device sees the same noise.
    """
    found = {}
    for name, value in total.items():
        noise = torch.randn(value.shape, dtype=value.dtype, generator=generator).to(
            value.device
        )
        found[name] = (value + deviation * noise) / batch
    return found
