"""The data of one world of a game, as tensors of examples, with the record of an adversary if there is one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnn.training.examples import Examples
from gnn.validation import DataError


@dataclass(frozen=True, eq=False)
class World:
    """The input of a training.

    Args:
        inputs: What the loss takes of an example, each tensor with the examples as first axis; of no example, with length 0.
        present: Which of them are in the data, bool, shape (examples,); by default all. Neighbours with one public list of
            ids, such as graphs on the same ids, keep their shapes by it.
        canary: The gradient of one more record in every step, whatever the weights are, shape (steps, weights): a gradient
            canary. None where that record is not in the data.
        common: Whether neighbours have the same examples, and differ in the canary alone.
        name: What reports call it.

    Raises:
        DataError: If the inputs differ in length, or ``present`` does not match them.
    """

    inputs: tuple[Tensor, ...]
    present: Tensor | None = None
    canary: Tensor | None = None
    common: bool = False
    name: str = "world"

    def __post_init__(self) -> None:
        lengths = {len(each) for each in self.inputs}
        if len(lengths) != 1:
            raise DataError(
                f"World: expected inputs of one length, got {[tuple(each.shape) for each in self.inputs]}"
            )
        if self.present is not None and (
            self.present.shape != (len(self),) or self.present.dtype != torch.bool
        ):
            raise DataError(
                f"World: expected present, bool of shape ({len(self)},), got {self.present.dtype} of shape "
                f"{tuple(self.present.shape)}"
            )
        if self.canary is not None and self.canary.ndim != 2:
            raise DataError(
                f"World: expected canary of shape (steps, weights), got {tuple(self.canary.shape)}"
            )

    def __len__(self) -> int:
        return len(self.inputs[0])

    def __repr__(self) -> str:
        return self.name

    @classmethod
    def of(cls, examples: Examples, targets: Tensor, *, name: str = "world") -> World:
        """Return the world of examples that DP-SGD is trained on, whose last input is the target.

        Args:
            examples: Such as ``Rows``.
            targets: Shape (examples,) or (examples, classes).
            name: What reports call it.
        """
        everything = torch.arange(len(examples))
        return cls(
            (*examples.batch(everything, torch.device("cpu")), targets), name=name
        )


def gradient_canary(
    weights: int, steps: int, *, norm: float, alternating: bool = True
) -> Tensor:
    """Return a gradient of a norm along (1, ..., 1)/√weights in every step, shape (steps, weights), float64.

    Any gradient is one that some loss has; it is the worst for DP-SGD if its norm is the clipping norm at least (Nasr et al.
    2023, "Tight Auditing of Differentially Private Machine Learning", arXiv:2302.07956, Section 4).

    Args:
        weights: Numbers in a gradient.
        steps: Steps of the training.
        norm: Its Euclidean norm before clipping; above the clipping norm it shows whether there is clipping.
        alternating: Whether its sign changes from step to step. What two steps share, such as their noise, then cannot hide
            it; in the final model it cancels out, so that one needs the same sign for that.
    """
    signs = torch.ones(steps, 1, dtype=torch.float64)
    if alternating:
        signs[1::2] = -1
    return signs * torch.full((weights,), norm / weights**0.5, dtype=torch.float64)
