"""Thousands of trainings by DP-SGD as one batched tensor program, a chunk at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from auditdp.errors import ConfigurationError
from gnn.ensembles.draws import Keys, draws_of
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.sums import Sums
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World
from gnn.randomness import device_of
from gnn.validation import DataError, TrainingError, check_count


@dataclass(frozen=True, eq=False)
class Trainings:
    """The outcome of several trainings.

    Attributes:
        weights: Those of the last step, shape (trainings, weights).
        sums: The noised sum of clipped gradients of every step, before it is divided, shape (trainings, steps, weights);
            None where it was not asked for.
        taken: Which records were in which batch, the canary the last one, bool, shape (trainings, steps, places); None
            where sums were not asked for, or all records are in every batch.
    """

    weights: Tensor
    sums: Tensor | None = None
    taken: Tensor | None = None


def fit_ensemble(
    trainer: Trainer,
    worlds: Sequence[World],
    *,
    keys: Keys,
    world_of: Sequence[int] | None = None,
    sums: bool = False,
    chunk: int | None = None,
    device: str | torch.device = "cpu",
    workers: int = 1,
) -> Trainings:
    """Train one model for each key.

    Every training is a function of its key and its world alone: neither the size of a chunk nor its neighbours there change
    it. On the CPU in float64 by SGD this holds bit for bit, as ``tests/unit/gnn/ensembles`` shows; elsewhere up to the
    rounding of matrix products, whose order of summation may depend on how many there are, and of Adam's steps.

    Args:
        trainer: The trainer.
        worlds: What is trained on.
        keys: One for each training, by ``keys_of``.
        world_of: Number of the world of each training; by default the first.
        sums: Whether the noised sums of all steps are kept, and the batches.
        chunk: Trainings that are computed at once; by default as many as 64 MiB hold, and 32 MiB for sums by hand.
        workers: Threads that train a chunk each, on the CPU. More than one for sums by hand alone (``gnn.ensembles.stack``):
            torch.func changes the model while it is called.
        device: Where to train; noise and batches are drawn on the CPU, so that every device has the same.

    Returns:
        The trainings, in the order of the keys, on the CPU.

    Raises:
        ConfigurationError: If the device does not exist, or there are several workers and no sums by hand.
        DataError: If worlds differ in shape, a fixed batch is larger than its world, or ``world_of`` does not match.
        TrainingError: If weights are no numbers any more.
    """
    place = device_of(device)
    stacked = Stacked.of([trainer.prepare(world) for world in worlds], place)
    members = (
        torch.zeros(len(keys), dtype=torch.long)
        if world_of is None
        else torch.as_tensor(world_of)
    )
    if members.shape != (len(keys),) or (
        len(keys) and not 0 <= int(members.min()) <= int(members.max()) < len(worlds)
    ):
        raise DataError(
            f"fit_ensemble: expected world_of, one of {len(worlds)} worlds for each of {len(keys)} keys, got "
            f"{world_of!r:.80}"
        )
    if trainer.settings.rate is None and any(
        not bool(each.present.all()) for each in worlds if each.present is not None
    ):
        raise DataError(
            "fit_ensemble: batches of fixed size need worlds of which every example is present"
        )
    totals = Sums(trainer, stacked)
    size = chunk or totals.chunk
    check_count("fit_ensemble", "workers", workers)
    if workers > 1 and totals.stack is None:
        raise ConfigurationError(
            f"fit_ensemble: workers={workers} are for gradients='layers' of linear layers with ReLU between them, on rows, "
            "and a loss with its gradient, such as gnn.ensembles.CrossEntropy(); use workers=1"
        )

    def fitted(first: int) -> Trainings:
        return _fitted(
            totals,
            keys[first : first + size],
            members[first : first + size].to(place),
            sums,
        )

    starts = range(0, max(len(keys), 1), size)
    if workers == 1:
        parts = list(map(fitted, starts))
    else:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(fitted, starts))

    def joined(tensors: list[Tensor | None]) -> Tensor | None:
        given = [each for each in tensors if each is not None]
        return torch.cat(given) if given else None

    weights = torch.cat([part.weights for part in parts])
    return Trainings(
        weights,
        joined([part.sums for part in parts]),
        joined([part.taken for part in parts]),
    )


def _fitted(sums: Sums, keys: Keys, world_of: Tensor, keep: bool) -> Trainings:
    """Train a chunk."""
    trainer, worlds = sums.trainer, sums.worlds
    settings, place = trainer.settings, world_of.device
    start = trainer.start
    draws = draws_of(
        keys,
        settings,
        records=worlds.records.numpy(),
        world_of=world_of.cpu().numpy(),
        weights=start.numel(),
        dtype=start.dtype,
        batches=trainer.batches,
    )
    noise = trainer.noise(draws.noise)
    every = worlds.records.to(place)[world_of]
    weights = nn.Parameter(start.to(place).repeat(len(keys), 1))
    optimiser = settings.as_settings().optimiser_of(nn.ParameterList([weights]))
    released = (
        torch.empty(len(keys), settings.steps, start.numel(), dtype=start.dtype)
        if keep
        else None
    )
    for number in range(settings.steps):
        taken = every if draws.taken is None else draws.taken[:, number].to(place)
        step = torch.full_like(world_of, number)
        total = sums(weights.detach(), world_of, step, taken)
        total.add_(noise[:, number].to(place), alpha=trainer.deviation)
        if released is not None:
            released[:, number] = total.cpu()
        weights.grad = total.div_(settings.batch)
        optimiser.step()
    found = weights.detach().cpu()
    if not bool(torch.isfinite(found).all()):
        raise TrainingError(
            f"fit_ensemble: weights are no numbers after {settings.steps} steps; look for NaN in the data, or lower "
            f"learning_rate={settings.learning_rate!r}"
        )
    return Trainings(found, released, draws.taken if keep else None)


def trajectories(trainer: Trainer, sums: Tensor) -> Tensor:
    """Return the weights of trainings that released these sums, which determine them.

    Args:
        trainer: The trainer.
        sums: Noised sums, shape (trainings, steps, weights).

    Returns:
        Before the first step and after every step, shape (trainings, steps + 1, weights).
    """
    settings = trainer.settings
    weights = nn.Parameter(trainer.start.repeat(len(sums), 1))
    optimiser = settings.as_settings().optimiser_of(nn.ParameterList([weights]))
    found = [weights.detach().clone()]
    for number in range(settings.steps):
        weights.grad = sums[:, number] / settings.batch
        optimiser.step()
        found.append(weights.detach().clone())
    return torch.stack(found, dim=1)
