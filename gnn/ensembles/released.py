"""Trainers as mechanisms: an output is what one training releases.

A claim is about all neighbours, so an audit chooses the worst that it can think of: the first weights, the examples that are
in both worlds, and the record that is in one of them. What is released is the final model, or every step's noised sum, which
DP-SGD's proof allows anybody to see; from the sums the weights of every step follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auditdp.adjacency import Pair
from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import Array
from gnn.ensembles.ascent import CPU, noiseless_sum
from gnn.ensembles.draws import keys_of
from gnn.ensembles.fit import Trainings, fit_ensemble, trajectories
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.sums import Sums
from gnn.ensembles.trainer import Trainer, as_given, clipped
from gnn.ensembles.worlds import World


@dataclass(frozen=True, eq=False)
class Released:
    """Base of trainers as mechanisms: independent trainings, and the sum before the noise.

    Args:
        trainer: The trainer.
        world: Makes the world of an input, such as a graph's; by default an input is a world.
        reach: How many clipping norms the sum is said to change by between neighbours: 1 where one record is there or not.
        device: Where to train.
        label: What reports call it.
    """

    trainer: Trainer
    world: Callable[[Any], World] = as_given
    reach: float = 1.0
    device: str = "cpu"
    label: str = ""
    norm = "l2"

    @property
    def name(self) -> str:
        """The label or the kind of release, with the settings."""
        settings = self.trainer.settings
        batches = (
            f"batches of {settings.batch:g}"
            if settings.rate is None
            else f"q = {settings.rate:g}"
        )
        return self.label or (
            f"{type(self).__name__}({batches}, {settings.steps} steps, σ = {settings.noise_multiplier:g}, "
            f"C = {settings.clipping_norm:g})"
        )

    @property
    def sensitivity(self) -> float:
        """The Euclidean change of the sum of a batch that the noise is for."""
        return self.reach * self.trainer.settings.clipping_norm

    def query(self, data: Any, rng: np.random.Generator) -> Array:
        """Return the sum of the first step without noise, all records in the batch, shape (weights,)."""
        return np.asarray(noiseless_sum(self.trainer, self.world(data)).numpy())

    def trainings(
        self, data: Any, size: int, *, rng: np.random.Generator, sums: bool
    ) -> Trainings:
        """Return ``size`` independent trainings on an input."""
        world, keys = self.world(data), keys_of(size, rng=rng)
        return fit_ensemble(
            self.trainer, [world], keys=keys, sums=sums, device=self.device
        )


@dataclass(frozen=True, eq=False)
class FinalModel(Released):
    """Releases the weights of the last step, shape (weights,).

    Arguments as of ``Released``.
    """

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the final weights of ``size`` trainings, shape (size, weights)."""
        return np.asarray(
            self.trainings(data, size, rng=rng, sums=False).weights.numpy()
        )


@dataclass(frozen=True, eq=False)
class NoisedSums(Released):
    """Releases the noised sum of every step, and which of the examples that both worlds have were in its batch.

    An output has shape (steps, weights), or with Poisson batches (steps, weights + examples): a one for each example in the
    batch. The canary's coin is hidden. The coins of the others are independent of it, so that an accountant's curve for one
    record holds given any of them; they would be no part of what is claimed if neighbours differed in these examples, which
    is why worlds have to say that they do not (``common``). The law of the sums is known by them: ``log_prob`` is that of
    the trainer that is claimed, with clipping and full noise, also where the code is a twin that has neither.

    Arguments as of ``Released``.

    Raises:
        ConfigurationError: If batches have a fixed size, or there is no noise: then nothing is known of the law.
    """

    def __post_init__(self) -> None:
        settings = self.trainer.settings
        if settings.rate is None or not settings.noise_multiplier > 0:
            raise ConfigurationError(
                "NoisedSums: the law of the sums is known for noise_multiplier > 0 and Poisson batches (rate=1 for full "
                f"ones), got noise_multiplier={settings.noise_multiplier!r} and rate={settings.rate!r}; use FinalModel"
            )

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the releases of ``size`` trainings, shape (size, steps, ...).

        Raises:
            ConfigurationError: If batches are Poisson, and the world does not say that its examples are common.
        """
        if self.trainer.settings.rate != 1 and not (world := self.world(data)).common:
            raise ConfigurationError(
                f"NoisedSums: with Poisson batches it is seen which examples are in which, and {world!r} does not say that "
                "neighbours have the same ones; give World(..., common=True) if they differ in the canary alone, else "
                "use FinalModel, or rate=1"
            )
        found = self.trainings(data, size, rng=rng, sums=True)
        assert found.sums is not None  # they were asked for
        if found.taken is None:
            return np.asarray(found.sums.numpy())
        return np.asarray(
            torch.cat(
                [found.sums, found.taken[:, :, :-1].to(found.sums.dtype)], dim=2
            ).numpy()
        )

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each output up to a common term, shape (size,).

        Given the weights, a step's sum is N(S, σ²C² I) where the canary is not in the batch, and N(S + g, σ²C² I) with
        probability q, g its clipped gradient.
        """
        return np.asarray(self._log_probs(outputs, [self.world(data)])[0])

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the log likelihood ratio of the claimed trainer, shape (size,)."""
        first, second = self._log_probs(
            outputs, [self.world(data) for data in (pair.data, pair.neighbour)]
        )
        return np.asarray(first - second)

    def _log_probs(self, outputs: Array, worlds: list[World]) -> Array:
        """Return ``log_prob`` of each output in each world, shape (worlds, size)."""
        count, weights = len(outputs), self.trainer.start.numel()
        given = torch.from_numpy(np.array(outputs)).reshape(
            count, self.trainer.settings.steps, -1
        )
        taken = given[:, :, weights:] > 0 if self.trainer.settings.rate != 1 else None
        return log_probs(
            self.trainer, given[:, :, :weights].contiguous(), worlds, taken=taken
        )


@dataclass(frozen=True, eq=False)
class SumsAlone(Released):
    """Releases the noised sum of every step, shape (steps, weights), and nothing of the batches.

    This is what DP-SGD's accountants are about, however batches are drawn, and for trainers of other batches than Poisson
    ones: there, the coins of the other examples tell that of the canary, and nobody claims that they may be seen. The law is
    that of a mixture over all batches, and is not stated.

    Arguments as of ``Released``.

    Raises:
        ConfigurationError: If there is no noise.
    """

    def __post_init__(self) -> None:
        if not self.trainer.deviation > 0:
            raise ConfigurationError(
                "SumsAlone: scores need noise_multiplier > 0, got "
                f"noise_multiplier={self.trainer.settings.noise_multiplier!r}; use FinalModel"
            )

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the releases of ``size`` trainings, shape (size, steps, weights)."""
        found = self.trainings(data, size, rng=rng, sums=True)
        assert found.sums is not None  # they were asked for
        return np.asarray(found.sums.numpy())

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return a log likelihood ratio in which the sum of the examples has its mean in place of its law, shape (size,)."""
        worlds = [self.world(data) for data in (pair.data, pair.neighbour)]
        first, second = log_probs(
            self.trainer, torch.from_numpy(np.array(outputs)), worlds, taken=None
        )
        return np.asarray(first - second)


def log_probs(
    trainer: Trainer, released: Tensor, worlds: list[World], *, taken: Tensor | None
) -> Array:
    """Return the log density of noised sums, up to a common term.

    Args:
        trainer: The trainer; what is wrong with it is left out.
        released: The noised sums, shape (trainings, steps, weights).
        worlds: The worlds.
        taken: Which examples were in the batches, bool, shape (trainings, steps, examples). None where all were; with a rate
            below 1 their sum then has its mean, the rate times that of all, in place of its law.
    """
    claimed = Trainer(trainer.model, trainer.loss, trainer.settings)
    settings, stacked = claimed.settings, Stacked.of(worlds, CPU)
    rate = settings.rate or settings.batch / int(stacked.records[0].sum())
    at = trajectories(claimed, released)[:, :-1].flatten(0, 1).repeat(len(worlds), 1)
    steps = torch.arange(settings.steps).repeat(len(worlds) * len(released))
    world_of = torch.arange(len(worlds)).repeat_interleave(released.shape[:2].numel())
    seen = torch.ones(len(steps), stacked.places, dtype=torch.bool)
    if taken is not None:
        seen[:, :-1] = taken.flatten(0, 1).repeat(len(worlds), 1)
    seen[:, -1] = False
    share = rate if taken is None else 1.0
    sums, rest = Sums(claimed, stacked), released.flatten(0, 1).repeat(len(worlds), 1)
    for part in torch.split(torch.arange(len(steps)), sums.chunk):
        rest[part] -= share * sums(at[part], world_of[part], steps[part], seen[part])
    variance = claimed.deviation**2
    found = -rest.square().sum(dim=1) / (2 * variance)
    if stacked.canary is not None:
        canary = stacked.canary[world_of, steps].to(rest)
        canary = (
            clipped(
                torch.linalg.vector_norm(canary, dim=1, keepdim=True),
                settings.clipping_norm,
            )
            * canary
        )
        ratio = ((rest - canary / 2) * canary).sum(dim=1) / variance
        absent = ratio.new_full((), math.log1p(-rate) if rate < 1 else -math.inf)
        found = found + torch.logaddexp(absent, math.log(rate) + ratio)
    return np.asarray(
        found.reshape(len(worlds), len(released), settings.steps).sum(dim=2).numpy()
    )
