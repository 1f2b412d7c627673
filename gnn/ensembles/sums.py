"""Sums of clipped gradients at many weights at once, by torch.func."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from auditdp.errors import ConfigurationError
from gnn.ensembles.layers import check_layers, totals_by_layers
from gnn.ensembles.stack import OutputLoss, StackSums, linear_layers
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.trainer import Trainer
from gnn.training.gradients import Gradients, weights_of
from gnn.validation import DataError

BEYOND_MEAN = 3.0
"""Poisson batches up to this number of standard deviations above their mean are computed
in one piece."""
CHUNK_BYTES = 1 << 26
"""Default limit of the tensors of a chunk together: 64 MiB."""
STACK_BYTES = 1 << 25
"""The same for sums by hand, which takes 1.4 times as long with 8 MiB: 32 MiB."""
COPIES = 4
"""Tensors of the size of all gradients of a step, or of the rows of all layers, that are held at once."""


class Sums:
    """The noiseless sums of a trainer on some worlds.

    Args:
        trainer: The trainer.
        worlds: The worlds.

    Raises:
        DataError: If a canary is no gradient of the model in each step.
        ConfigurationError: If the trainer takes gradients by layers, and a weight is none of a linear layer.
    """

    def __init__(self, trainer: Trainer, worlds: Stacked) -> None:
        self.trainer, self.worlds = trainer, worlds
        self.shapes = {
            name: weight.shape for name, weight in weights_of(trainer.model).items()
        }
        self.weights = sum(shape.numel() for shape in self.shapes.values())
        self._buffers = {
            name: each.to(worlds.present.device)
            for name, each in trainer.model.named_buffers()
        }
        self._outputs: dict[str, torch.Size] = {}
        self.stack: StackSums | None = None
        expected = (trainer.settings.steps, self.weights)
        if worlds.canary is not None and worlds.canary.shape[1:] != expected:
            raise DataError(
                f"Sums: expected canaries of shape {expected}, a gradient for each step, got "
                f"{tuple(worlds.canary.shape[1:])}"
            )
        if trainer.settings.gradients == "layers" and worlds.present.shape[1]:
            start = self._by_name(trainer.start.to(worlds.inputs[0].device))
            self._outputs = check_layers(
                self._loss_of, start, tuple(each[0] for each in worlds.inputs)
            )
            self.stack = self._stack()

    def _stack(self) -> StackSums | None:
        """Return the sums by hand for a stack of linear layers with a known gradient."""
        layers, loss, inputs = (
            linear_layers(self.trainer.model),
            self.trainer.loss,
            self.worlds.inputs,
        )
        if (
            layers is None
            or not isinstance(loss, OutputLoss)
            or [each.ndim for each in inputs] != [2, 1]
        ):
            return None
        return StackSums(layers, loss, *inputs)

    @property
    def width(self) -> int:
        """Number of examples of a batch that are computed in one piece."""
        rate, examples = self.trainer.settings.rate, self.worlds.present.shape[1]
        if rate is None:
            return int(self.trainer.settings.batch)
        mean = rate * examples
        return max(
            1,
            min(examples, math.ceil(mean + BEYOND_MEAN * math.sqrt(mean * (1 - rate)))),
        )

    @property
    def chunk(self) -> int:
        """Default number of trainings that are computed at once."""
        steps, size = self.trainer.settings.steps, self.trainer.start.element_size()
        if self.stack is not None:
            numbers = self.width * self.stack.numbers + 2 * steps * (
                self.weights + self.worlds.places
            )
            return max(1, STACK_BYTES // (size * numbers))
        of_example = (
            sum(shape.numel() for shape in self._outputs.values())
            if self._outputs
            else self.weights
        )
        of_example += sum(each[0].numel() for each in self.worlds.inputs if len(each))
        numbers = COPIES * self.width * of_example + steps * (
            self.weights + self.worlds.places
        )
        return max(1, CHUNK_BYTES // (size * numbers))

    def __call__(
        self, weights: Tensor, world_of: Tensor, steps: Tensor, taken: Tensor
    ) -> Tensor:
        """Return the sum of clipped gradients at each of some weights, shape (count, weights).

        Args:
            weights: Shape (count, weights).
            world_of: Number of the world of each, int64, shape (count,).
            steps: Number of the step, which canaries depend on, int64, shape (count,).
            taken: Which records are in the batch, bool, shape (count, places), the canary the last one.

        Raises:
            ConfigurationError: If the model draws random numbers, as dropout does.
        """
        trainer, worlds = self.trainer, self.worlds
        clipping_norm, width = trainer.settings.clipping_norm, self.width
        examples = taken[:, :-1] & worlds.present[world_of]
        counts = examples.sum(dim=1)
        found, listed = torch.zeros_like(weights), _listed(examples, counts, width)
        for first in range(0, listed.shape[1], width):
            ids, among = listed[:, first : first + width], counts > first
            last = first + ids.shape[1]
            if bool(among.all()):
                used = (
                    None
                    if bool((counts >= last).all())
                    else self._used(first, last, counts)
                )
                self._add(weights, ids, world_of, used, found)
            else:
                rows = among.nonzero().squeeze(1)
                part = torch.zeros_like(weights[rows])
                self._add(
                    weights[rows],
                    ids[rows],
                    world_of[rows],
                    self._used(first, last, counts[rows]),
                    part,
                )
                found.index_add_(0, rows, part)
        if worlds.canary is not None:
            canary = worlds.canary[world_of, steps].to(weights)
            norms = torch.linalg.vector_norm(canary, dim=1, keepdim=True)
            found += taken[:, -1:] * trainer.scales(norms, clipping_norm) * canary
            counts = counts + taken[:, -1]
        return trainer.finish(found, counts, trainer.settings)

    def _used(self, first: int, last: int, counts: Tensor) -> Tensor:
        """Return True for places with an example, shape (count, places)."""
        return torch.arange(first, last, device=counts.device) < counts[:, None]

    def _add(
        self,
        weights: Tensor,
        ids: Tensor,
        world_of: Tensor,
        used: Tensor | None,
        total: Tensor,
    ) -> None:
        """Add the sums of clipped gradients of the examples that are used, shape (count, weights)."""
        clipping_norm = self.trainer.settings.clipping_norm
        if self.stack is not None:
            at = self.worlds.numbers(ids, world_of)
            self.stack.add(
                weights,
                at,
                used,
                lambda norms: self.trainer.scales(norms, clipping_norm),
                total,
            )
            return

        def scales(norms: Tensor) -> Tensor:
            found = self.trainer.scales(norms, clipping_norm)
            return found if used is None else torch.where(used, found, 0.0)

        named, inputs = self._by_name(weights), self.worlds.rows(ids, world_of)
        try:
            if self._outputs:
                totals = totals_by_layers(
                    self._loss_of, named, inputs, scales, self._outputs
                )
            else:
                totals = totals_by_examples(self._loss_of, named, inputs, scales)
        except RuntimeError as error:
            if "randomness" not in str(error):
                raise
            raise ConfigurationError(
                f"Sums: {type(self.trainer.model).__name__} draws random numbers of its own, such as dropout, so that no "
                "training can be computed again from its key; call model.eval(), or leave the dropout out"
            ) from error
        total += torch.cat([totals[name].flatten(1) for name in self.shapes], dim=1)

    def _loss_of(self, weights: Gradients, *example: Tensor) -> Tensor:
        """Return the loss of an example."""
        model, given = self.trainer.model, (weights, self._buffers)
        return self.trainer.loss(
            lambda *arguments: functional_call(model, given, arguments), *example
        )

    def _by_name(self, weights: Tensor) -> Gradients:
        """Return weights by their names, each shape (..., *weight)."""
        parts = torch.split(
            weights, [shape.numel() for shape in self.shapes.values()], dim=-1
        )
        lead = weights.shape[:-1]
        return {
            name: part.view(*lead, *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }


def _listed(taken: Tensor, counts: Tensor, width: int) -> Tensor:
    """Return the numbers of the examples of each batch, in the order of the data, shape (count, places).

    There are places for whole pieces, so that sums over a piece do not depend on what other batches there are.

    Args:
        taken: Which examples are in the batch, bool, shape (count, examples).
        counts: How many they are.
        width: Places of a piece.
    """
    most, examples = int(counts.max()) if len(counts) else 0, taken.shape[1]
    places = min(width * -(-most // width), examples)
    # numpy is much faster on the CPU
    flat = (
        taken.flatten().nonzero().squeeze(1)
        if taken.is_cuda
        else torch.from_numpy(np.flatnonzero(taken.numpy()))
    )
    rows = torch.arange(len(taken), device=taken.device)
    if len(flat) == places * len(taken):
        return flat.view(len(taken), places).sub_(rows[:, None] * examples)
    rows = rows.repeat_interleave(counts)
    found = counts.new_zeros(len(taken), places)
    found[
        rows,
        torch.arange(len(flat), device=flat.device) - (counts.cumsum(0) - counts)[rows],
    ] = flat - rows * examples
    return found


def totals_by_examples(
    loss_of: Callable[..., Tensor],
    weights: Gradients,
    inputs: tuple[Tensor, ...],
    scales: Callable[[Tensor], Tensor],
) -> Gradients:
    """Return sums of scaled gradients, by the gradient of each example.

    Args:
        loss_of: ``loss_of(weights, *example)``.
        weights: Each shape (count, *weight).
        inputs: Each shape (count, batch, ...).
        scales: Of the gradients' norms, shape (count, batch), what they are multiplied by.
    """
    axes: Any = (None, *[0] * len(inputs))
    gradients = vmap(vmap(grad(loss_of), in_dims=axes))(weights, *inputs)
    parts = [
        torch.linalg.vector_norm(each, dim=tuple(range(2, each.ndim)))
        for each in gradients.values()
    ]
    factors = scales(torch.linalg.vector_norm(torch.stack(parts), dim=0))
    return {
        name: torch.einsum("bm,bm...->b...", factors, each)
        for name, each in gradients.items()
    }
