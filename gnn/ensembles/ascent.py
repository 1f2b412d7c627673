"""Search by gradient ascent for neighbours with the largest difference of a trainer's sum.

What differs between neighbours, what they share, and the weights of the model are one row of numbers, which ascent changes.
Graphs and labels are not: each choice of them is a search of its own. What is found is a pair like any other, which evidence
compares with the sensitivity that is declared; a search that finds nothing bounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from auditdp.errors import ConfigurationError
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.sums import Sums
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Steepest:
    """The outcome of the ascent.

    Attributes:
        at: The numbers, shape of the start.
        change: The Euclidean norm there.
    """

    at: Tensor
    change: float


def noiseless_sum(
    trainer: Trainer, world: World, weights: Tensor | None = None
) -> Tensor:
    """Return the sum of clipped gradients of all records at some weights, shape (weights,), before the noise.

    With ``gradients="functorch"`` it is differentiable in the inputs of the world and in the weights.

    Args:
        trainer: The trainer.
        world: The data.
        weights: Shape (weights,); by default the first ones.
    """
    stacked = Stacked.of([trainer.prepare(world)], CPU)
    first = torch.zeros(1, dtype=torch.long)
    at = trainer.start if weights is None else weights
    return Sums(trainer, stacked)(at[None], first, first, stacked.records)[0]


def change_of(
    trainer: Trainer,
    worlds: Callable[[Tensor], tuple[World, World]],
    weights: Callable[[Tensor], Tensor] | None = None,
) -> Callable[[Tensor], Tensor]:
    """Return the Euclidean change of a trainer's sum between two worlds, as a function of a row of numbers.

    Args:
        trainer: With ``gradients="functorch"``.
        worlds: Makes neighbours of the numbers.
        weights: Makes the weights of them at which gradients are taken; by default the first ones of the trainer.

    Raises:
        ConfigurationError: If gradients are taken in another way, through which none can be taken again.
    """
    if trainer.settings.gradients != "functorch":
        raise ConfigurationError(
            f"change_of: expected gradients='functorch', got {trainer.settings.gradients!r}, which has no second derivative"
        )

    def change(numbers: Tensor) -> Tensor:
        at = None if weights is None else weights(numbers)
        first, second = (noiseless_sum(trainer, world, at) for world in worlds(numbers))
        return torch.linalg.vector_norm(first - second)

    return change


def ascend(
    change: Callable[[Tensor], Tensor],
    starts: Iterable[Tensor],
    *,
    steps: int = 40,
    learning_rate: float = 2.0,
) -> Steepest:
    """Return the numbers of the largest change that gradient ascent (Adam) from some starts comes across.

    Args:
        change: Of a row of numbers, differentiable. Where it is 0, as between equal inputs, there is no direction: start
            where neighbours differ.
        starts: Each of one shape.
        steps: Steps from each.
        learning_rate: Of Adam.

    Raises:
        ConfigurationError: If there is no start.
    """
    best: Steepest | None = None
    for start in starts:
        numbers = start.clone().requires_grad_()
        optimiser = torch.optim.Adam([numbers], lr=learning_rate, maximize=True)
        for _ in range(steps + 1):
            optimiser.zero_grad()
            found = change(numbers)
            if best is None or float(found.detach()) > best.change:
                best = Steepest(numbers.detach().clone(), float(found.detach()))
            found.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    if best is None:
        raise ConfigurationError("ascend: expected at least one start, got none")
    return best
