"""Canaries on a graph: training nodes whose receptive fields are disjoint, so that each is protected like a record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import Array
from gnn.ensembles.draws import keys_of
from gnn.ensembles.fit import fit_ensemble
from gnn.ensembles.graphs import node_loss
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World
from gnn.models import GCN
from gnn.training.gradients import weights_of
from gnn.training.private import PrivateSettings

SCALE = 1e4
"""Size of a canary's feature: its gradient is clipped, and nearly all of it is along a direction of its own."""


@dataclass(frozen=True, eq=False)
class Stars:
    """A graph of stars, each the whole receptive field of its centre: a training node with ``leaves`` neighbours.

    The centres are the canaries, and the only nodes whose losses are trained on. Feature i is ``SCALE`` at the i-th star and
    0 elsewhere, so that the gradients of different canaries are orthogonal, but for the bias, which is 1/``SCALE`` as long.

    Args:
        canaries: Stars.
        leaves: Neighbours of each centre.
    """

    canaries: int
    leaves: int = 2

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """Arguments of ``node_loss`` for every canary, with the canary as first axis."""
        stars, size = self.canaries, 1 + self.leaves
        x = torch.zeros(stars * size, stars, dtype=torch.float64)
        x[torch.arange(stars * size), torch.arange(stars).repeat_interleave(size)] = (
            SCALE
        )
        centres = size * torch.arange(stars)
        leaf = (centres[:, None] + torch.arange(1, size)).flatten()
        hub = centres.repeat_interleave(self.leaves)
        arcs = torch.stack([torch.cat([hub, leaf]), torch.cat([leaf, hub])])
        targets = torch.zeros(stars, 1, dtype=torch.long)
        return (
            x.expand(stars, *x.shape),
            arcs.expand(stars, *arcs.shape),
            centres[:, None],
            targets,
        )

    def world(self, included: Array) -> World:
        """Return the world in which these centres are trained on; without its centre, nothing reads a star."""
        return World(
            self.inputs,
            present=torch.from_numpy(np.asarray(included)),
            name=f"{self.canaries} stars",
        )


def trainer_of(stars: Stars, settings: PrivateSettings) -> Trainer:
    """Return a layer of GCN for two classes, from weights of zero, trained by DP-SGD."""
    model = GCN(
        stars.canaries,
        2,
        hidden=1,
        layers=1,
        dropout=0.0,
        generator=torch.Generator().manual_seed(0),
    ).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    return Trainer(model, node_loss, settings)


@dataclass(frozen=True, eq=False)
class ScoredStars:
    """Trains on the stars that are included, and scores every canary by the noised sums of all steps.

    The attack knows the graph and no coin: a canary's score is the inner product of the sums with the direction of its
    gradient, which the likelihood ratio of the claimed trainer grows with.

    Args:
        trainer: Of ``trainer_of``, or a twin; full batches, and a learning rate so small that weights stay near zero.
        stars: The graph.
        label: What reports call it.

    Raises:
        ConfigurationError: If batches are not full.
    """

    trainer: Trainer
    stars: Stars
    label: str = "GCN on stars, scored by its noised sums"

    def __post_init__(self) -> None:
        if self.trainer.settings.rate != 1:
            raise ConfigurationError(
                f"ScoredStars: expected full batches, rate=1, got rate={self.trainer.settings.rate!r}: the score is of all"
            )

    @property
    def name(self) -> str:
        """The label."""
        return self.label

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the scores of ``size`` trainings, shape (size, canaries)."""
        trained = fit_ensemble(
            self.trainer,
            [self.stars.world(data)],
            keys=keys_of(size, rng=rng),
            sums=True,
        )
        assert trained.sums is not None  # they were asked for
        return np.asarray(self.scores(trained.sums).numpy())

    def scores(self, sums: Tensor) -> Tensor:
        """Return the score of each canary from the noised sums, shape (trainings, steps, weights)."""
        weights = [*weights_of(self.trainer.model).values()]
        parts = torch.split(
            sums.sum(dim=1), [weight.numel() for weight in weights], dim=1
        )
        (of_features,) = (
            part
            for part, weight in zip(parts, weights, strict=True)
            if weight.ndim == 2
        )  # and the bias
        by_class = of_features.view(-1, 2, self.stars.canaries)
        return by_class[:, 1] - by_class[:, 0]
