"""Sums of clipped gradients of linear layers, without the gradient of any example.

The gradient of a linear layer is Σ_k δ_k a_kᵀ over the rows k that an example puts through it, a_k the layer's input and δ_k
the gradient at its output. Its squared norm is Σ_kl (δ_k·δ_l)(a_k·a_l), and a sum over examples is one product of matrices.
A layer is found where the model calls ``torch.nn.functional.linear``; δ is the gradient at a zero that is added there.

Source: Goodfellow (2015), arXiv:1510.01799; Li et al. (2022), arXiv:2110.05679, Section 4, for several rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from auditdp.errors import ConfigurationError
from gnn.training.gradients import Gradients


class _Tap(TorchFunctionMode):
    """Keeps the input of every linear layer that is called, and adds a number to its output."""

    def __init__(self, weights: Gradients, added: Gradients | None) -> None:
        super().__init__()
        self.names = {id(weight): name for name, weight in weights.items()}
        self.added = added
        self.calls: list[tuple[str, str]] = []
        self.seen: Gradients = {}
        self.outputs: dict[str, torch.Size] = {}
        self.elsewhere: set[str] = set()

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        found = function(*args, **given)
        if function is not functional.linear:
            if self.added is None:
                self.elsewhere |= {
                    self.names[id(each)]
                    for each in (*args, *given.values())
                    if id(each) in self.names
                }
            return found
        row, weight, bias = (*args, *given.values(), None)[:3]
        name = self.names.get(id(weight), "")
        self.calls.append((name, self.names.get(id(bias), "")))
        self.seen[name], self.outputs[name] = row, found.shape
        return found if self.added is None else found + self.added[name]


def check_layers(
    loss_of: Callable[..., Tensor], weights: Gradients, example: tuple[Tensor, ...]
) -> dict[str, torch.Size]:
    """Return the shape of the output of each linear layer on an example, by the names of its weight and, after '+', bias.

    Args:
        loss_of: ``loss_of(weights, *example)``.
        weights: Of one model.
        example: One example.

    Raises:
        ConfigurationError: If a weight is none of a linear layer that is called once, or is used elsewhere as well.
    """
    with _Tap(weights, None) as tap:
        loss_of(weights, *example)
    called = [name for call in tap.calls for name in call if name]
    other = sorted(
        {name for name in weights if called.count(name) != 1} | tap.elsewhere
    )
    if other or any(not weight for weight, _ in tap.calls):
        raise ConfigurationError(
            f"gradients by layers are for models whose weights are those of linear layers, each called once, not for "
            f"{', '.join(other) or 'layers without weights'}; use gradients='functorch'"
        )
    return {f"{weight}+{bias}": tap.outputs[weight] for weight, bias in tap.calls}


def totals_by_layers(
    loss_of: Callable[..., Tensor],
    weights: Gradients,
    inputs: tuple[Tensor, ...],
    scales: Callable[[Tensor], Tensor],
    outputs: dict[str, torch.Size],
) -> Gradients:
    """Return the same as ``totals_by_examples``, layer by layer.

    Args:
        loss_of: ``loss_of(weights, *example)``.
        weights: Each shape (count, *weight).
        inputs: Each shape (count, batch, ...).
        scales: Of the gradients' norms, shape (count, batch), what they are multiplied by.
        outputs: What ``check_layers`` returned.
    """
    count, like = inputs[0].shape[:2], next(iter(weights.values()))
    names = [layer.split("+")[0] for layer in outputs]
    zeros = {
        name: like.new_zeros(*count, *shape, requires_grad=True)
        for name, shape in zip(names, outputs.values(), strict=True)
    }

    def tapped(
        added: Gradients, given: Gradients, *example: Tensor
    ) -> tuple[Tensor, Gradients]:
        with _Tap(given, added) as tap:
            return loss_of(given, *example), tap.seen

    axes: Any = (0, None, *[0] * len(inputs))
    with torch.enable_grad():
        losses, rows = vmap(vmap(tapped, in_dims=axes))(zeros, weights, *inputs)
        found = torch.autograd.grad(losses.sum(), list(zeros.values()))
    deltas = dict(zip(names, found, strict=True))
    squares = like.new_zeros(())
    flat: list[tuple[str, str, Tensor, Tensor]] = []
    for layer in outputs:
        weight, bias = layer.split("+")
        delta, row = (
            part.reshape(*part.shape[:2], -1, part.shape[-1])
            for part in (deltas[weight], rows[weight].detach())
        )
        if delta.shape[2] == 1:
            of_delta, of_row = (
                torch.linalg.vector_norm(part, dim=(2, 3)).square()
                for part in (delta, row)
            )
            squares = squares + of_delta * (of_row + bool(bias))
        else:
            products = (row @ row.mT) + bool(bias)
            squares = squares + ((delta @ delta.mT) * products).sum(dim=(2, 3))
        flat.append((weight, bias, delta, row))
    factors = scales(squares.clamp(min=0).sqrt())
    totals: Gradients = {}
    for weight, bias, delta, row in flat:
        scaled = (delta * factors[:, :, None, None]).flatten(1, 2)
        totals[weight] = torch.bmm(scaled.mT, row.flatten(1, 2))
        if bias:
            totals[bias] = scaled.sum(dim=1)
    return totals
