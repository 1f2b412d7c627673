"""Worlds beside each other, so that trainings on different worlds are rows of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnn.ensembles.worlds import World
from gnn.validation import DataError


@dataclass(frozen=True, eq=False)
class Stacked:
    """Some worlds one after the other.

    Attributes:
        inputs: The examples of all worlds, one world after the other.
        offsets: Where each world begins, int64, shape (worlds,).
        present: Which examples each has, bool, shape (worlds, most examples).
        canary: The canaries, shape (worlds, steps, weights), zeros where a world has none; None where no world has one.
        records: At which places each world has a record, bool, shape (worlds, places), the canary at the last place.
    """

    inputs: tuple[Tensor, ...]
    offsets: Tensor
    present: Tensor
    canary: Tensor | None
    records: Tensor

    @classmethod
    def of(cls, worlds: Sequence[World], device: torch.device) -> Stacked:
        """Return the worlds on a device.

        Raises:
            DataError: If there is none, or their inputs or canaries differ in shape.
        """
        shapes = {tuple(each.shape[1:] for each in world.inputs) for world in worlds}
        canaries = [world.canary for world in worlds if world.canary is not None]
        if len(shapes) != 1 or len({canary.shape for canary in canaries}) > 1:
            raise DataError(
                "Stacked: expected worlds whose examples, and whose canaries, have one shape, got examples of "
                f"{sorted(map(str, shapes))} and canaries of {[tuple(canary.shape) for canary in canaries]}"
            )
        lengths = torch.tensor([len(world) for world in worlds])
        present = torch.zeros(len(worlds), int(lengths.max()), dtype=torch.bool)
        for row, world in zip(present, worlds, strict=True):
            row[: len(world)] = True if world.present is None else world.present
        inputs = tuple(
            torch.cat(parts).to(device)
            for parts in zip(*(world.inputs for world in worlds), strict=True)
        )
        canary = None
        if canaries:
            none = torch.zeros_like(canaries[0])
            canary = torch.stack(
                [none if world.canary is None else world.canary for world in worlds]
            ).to(device)
        records = torch.tensor(
            [
                [k < len(world) for k in range(present.shape[1])]
                + [world.canary is not None]
                for world in worlds
            ]
        )
        return cls(
            inputs,
            (lengths.cumsum(0) - lengths).to(device),
            present.to(device),
            canary,
            records,
        )

    @property
    def places(self) -> int:
        """The most examples of a world, and one for a canary."""
        return self.present.shape[1] + 1

    def rows(self, ids: Tensor, world_of: Tensor) -> tuple[Tensor, ...]:
        """Return the inputs of some examples, each shape (trainings, batch, ...).

        Args:
            ids: Numbers of examples in their worlds, int64, shape (trainings, batch).
            world_of: World of each training, shape (trainings,).
        """
        at = self.numbers(ids, world_of).flatten()
        return tuple(
            each.index_select(0, at).view(*ids.shape, *each.shape[1:])
            for each in self.inputs
        )

    def numbers(self, ids: Tensor, world_of: Tensor) -> Tensor:
        """Return the numbers of examples among those of all worlds, of any one for places beyond a world's last.

        Arguments as of ``rows``.
        """
        return (ids + self.offsets[world_of, None]).clamp_(max=len(self.inputs[0]) - 1)
