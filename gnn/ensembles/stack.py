"""Sums of clipped gradients of linear layers with ReLU between them, at many weights at once, by hand.

What ``gnn.ensembles.layers`` does for any model of linear layers by torch.func is done here without it: a few products of
batches of matrices, whose results stay where they are from step to step. The gradient of a layer is δ aᵀ, a the layer's
input and δ the gradient at its output, and its squared norm is |δ|² (|a|² + 1), the 1 if there is a bias.

Source: Goodfellow (2015), arXiv:1510.01799.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional


@runtime_checkable
class OutputLoss(Protocol):
    """A loss of the model's outputs on a row, with its gradient: ``loss(call, row, target)`` is that of one example."""

    def __call__(
        self, call: Callable[[Tensor], Tensor], row: Tensor, target: Tensor
    ) -> Tensor:
        """Return the loss of an example."""

    def differentiate(self, outputs: Tensor, targets: Tensor) -> None:
        """Replace outputs by the gradients of the losses there.

        Args:
            outputs: Shape (count, outputs, batch).
            targets: Shape (count, batch).
        """


@dataclass(frozen=True)
class CrossEntropy:
    """The cross-entropy of the softmax of the outputs at a class, in nats."""

    def __call__(
        self, call: Callable[[Tensor], Tensor], row: Tensor, target: Tensor
    ) -> Tensor:
        """Return the loss of an example."""
        return functional.cross_entropy(call(row), target)

    def differentiate(self, outputs: Tensor, targets: Tensor) -> None:
        """Replace outputs by their softmax, less one at the class."""
        outputs.sub_(outputs.amax(dim=1, keepdim=True)).exp_()
        outputs.div_(outputs.sum(dim=1, keepdim=True))
        classes = torch.arange(outputs.shape[1], device=targets.device)[:, None]
        outputs.sub_((targets[:, None] == classes).to(outputs.dtype))


@dataclass(frozen=True)
class Linear:
    """The sum of the outputs, whatever the target: of one linear layer the gradient is the row, at any weights."""

    def __call__(
        self, call: Callable[[Tensor], Tensor], row: Tensor, target: Tensor
    ) -> Tensor:
        """Return the loss of an example."""
        return call(row).sum()

    def differentiate(self, outputs: Tensor, targets: Tensor) -> None:
        """Replace outputs by ones."""
        outputs.fill_(1.0)


def linear_layers(model: nn.Module) -> list[nn.Linear] | None:
    """Return the layers of a model that is nothing but linear layers with ReLU between them, else None."""
    parts = list(model) if isinstance(model, nn.Sequential) else [model]
    layers, between = parts[::2], parts[1::2]
    plain = all(type(each) is nn.Linear for each in layers) and all(
        type(each) is nn.ReLU for each in between
    )
    distinct = len(
        {id(weight) for each in parts for weight in each.parameters()}
    ) == sum(1 for each in parts for _ in each.parameters())
    return (
        [each for each in layers if isinstance(each, nn.Linear)]
        if plain and distinct and len(parts) % 2
        else None
    )


class StackSums:
    """Sums of clipped gradients of a stack on examples that are rows.

    Args:
        layers: Of the model, from the first.
        loss: Of its outputs.
        rows: Of all examples, shape (examples, features).
        targets: Shape (examples,).
    """

    def __init__(
        self, layers: list[nn.Linear], loss: OutputLoss, rows: Tensor, targets: Tensor
    ) -> None:
        self.loss, self.rows, self.targets = loss, rows, targets
        self._biased = [layer.bias is not None for layer in layers]
        self._shapes = [(layer.out_features, layer.in_features) for layer in layers]
        self._squares = rows.square().sum(dim=1)
        self._kept = threading.local()

    @property
    def numbers(self) -> int:
        """Number of entries per example during the computation."""
        return sum(size for shape in self._shapes for size in shape) + max(
            size for size, _ in self._shapes
        )

    def add(
        self,
        weights: Tensor,
        ids: Tensor,
        used: Tensor | None,
        scales: Callable[[Tensor], Tensor],
        total: Tensor,
    ) -> None:
        """Add the sums of scaled gradients of some examples to ``total``.

        Args:
            weights: Shape (count, weights).
            ids: Numbers of examples, int64, shape (count, batch).
            used: Which of them count, bool, shape (count, batch); None where all do.
            scales: What gradients are multiplied by, of their norms, shape (count, batch).
            total: Shape (count, weights).
        """
        (count, batch), parts = ids.shape, self._parts(weights)
        at = ids.flatten()
        inputs = [
            torch.index_select(
                self.rows, 0, at, out=self._buffer("rows", len(at), self.rows.shape[1])
            )
        ]
        inputs[0] = inputs[0].view(count, batch, -1)
        for number, (weight, bias) in enumerate(parts[:-1]):
            outputs = self._buffer(f"outputs {number}", count, batch, weight.shape[1])
            inputs.append(_affine(bias, inputs[-1], weight.mT, outputs).relu_())
        weight, bias = parts[-1]
        # With the batch as last axis, since the last outputs are few and operations are fast along the last axis.
        outputs = self._buffer("last outputs", count, weight.shape[1], batch)
        _affine(None if bias is None else bias.mT, weight, inputs[-1].mT, outputs)
        self.loss.differentiate(
            outputs, self.targets.index_select(0, at).view(count, batch)
        )
        deltas = [outputs.mT]
        for number in range(len(parts) - 1, 0, -1):
            delta = self._buffer(f"delta {number}", *inputs[number].shape)
            torch.bmm(deltas[0], parts[number][0], out=delta)
            torch.ops.aten.threshold_backward.grad_input(
                delta, inputs[number], 0, grad_input=delta
            )
            deltas.insert(0, delta)
        squares = torch.index_select(
            self._squares, 0, at, out=self._buffer("squares", len(at))
        ).view(count, batch)
        norms = self._buffer("norms", count, batch).zero_()
        for number, (row, delta) in enumerate(zip(inputs, deltas, strict=True)):
            of_row = squares if number == 0 else self._squared_norms("of rows", row)
            norms.addcmul_(
                of_row.add_(float(self._biased[number])),
                self._squared_norms("of deltas", delta),
            )
        factors = scales(norms.sqrt_())
        if used is not None:
            factors = torch.where(used, factors, 0.0)
        sums = self._parts(total)
        for number, (row, delta) in enumerate(zip(inputs, deltas, strict=True)):
            delta.mul_(factors[:, :, None])
            weight, bias = sums[number]
            weight += torch.bmm(
                delta.mT, row, out=self._buffer(f"sums {number}", *weight.shape)
            )
            if bias is not None:
                bias += delta.sum(dim=1, keepdim=True)

    def _parts(self, weights: Tensor) -> list[tuple[Tensor, Tensor | None]]:
        """Return the matrix of each layer, shape (count, out, in), and its bias, shape (count, 1, out), as views."""
        found: list[tuple[Tensor, Tensor | None]] = []
        first, count = 0, len(weights)
        for (size, width), biased in zip(self._shapes, self._biased, strict=True):
            matrix = weights[:, first : first + size * width].view(count, size, width)
            first += size * width
            found.append(
                (matrix, weights[:, None, first : first + size] if biased else None)
            )
            first += size * biased
        return found

    def _squared_norms(self, name: str, rows: Tensor) -> Tensor:
        """Return squared norms along the last axis, in a buffer."""
        found = self._buffer(name, *rows.shape[:2])
        if rows.is_contiguous():
            torch.linalg.vector_norm(rows, dim=2, out=found)
            return found.square_()
        torch.sum(rows.square(), dim=2, out=found)  # which is fast along any axis
        return found

    def _buffer(self, name: str, *shape: int) -> Tensor:
        """Return memory of a name, which is that of the call before; each thread has its own."""
        kept: dict[str, Tensor] = self._kept.__dict__
        size = math.prod(shape)
        if name not in kept or kept[name].numel() < size:
            kept[name] = self.rows.new_empty(size)
        return kept[name][:size].view(shape)


def _affine(bias: Tensor | None, first: Tensor, second: Tensor, out: Tensor) -> Tensor:
    """Return first @ second + bias, of batches of matrices."""
    found: Tensor = (
        torch.bmm(first, second, out=out)
        if bias is None
        else torch.baddbmm(bias, first, second, out=out)
    )
    return found
