"""Whole pipelines as mechanisms: private data in, everything that is released out, one training after the other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from auditdp.adjacency import Pair
from auditdp.mechanism.protocol import Array
from gnn.models import DecoupledPageRank
from gnn.training.private import PrivateSettings, sample

SEEDS = 2**32
"""Number of different seeds of a torch generator on the CPU."""


def generator_of(rng: np.random.Generator) -> torch.Generator:
    """Return a generator of torch with a seed that is drawn from numpy's."""
    return torch.Generator().manual_seed(int(rng.integers(SEEDS)))


def weights_row(model: nn.Module) -> Tensor:
    """Return the weights of a model as one row, shape (weights,)."""
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


@dataclass(frozen=True, eq=False)
class Trained:
    """Releases the output of a pipeline, shape (numbers,).

    Args:
        release: ``release(data, generator)`` returns a row of numbers, such as the weights of a model.
        along: What these are multiplied by and summed for a score, shape (numbers,).
        label: What reports call it.
    """

    release: Callable[[Any, torch.Generator], Tensor]
    along: Array
    label: str

    @property
    def name(self) -> str:
        """The label."""
        return self.label

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the component of the release along a direction, shape (size,)."""
        return np.asarray(np.asarray(outputs, dtype=float) @ self.along)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the releases of ``size`` runs, shape (size, numbers)."""
        return np.stack(
            [self.release(data, generator_of(rng)).numpy() for _ in range(size)]
        )


@dataclass(frozen=True, eq=False)
class TrainedByLaw(Trained):
    """The same with a known law of the component along the direction.

    Args:
        law: Log density of scores, shape (size,), given the data, up to what does not depend on these.
        others: As of ``Trained``.
    """

    law: Callable[[Array, Any], Array]

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each output along the direction, shape (size,)."""
        return self.law(np.asarray(outputs, dtype=float) @ self.along, data)


class _Mixed(nn.Module):
    """The decoupled model as Opacus takes one: a module of rows and their weights."""

    def __init__(self, model: DecoupledPageRank) -> None:
        super().__init__()
        self.mlp = model.mlp

    def forward(self, rows: Tensor, weights: Tensor) -> Tensor:
        """Return Σ_k w_k f(x_k) of each example, shape (examples, classes)."""
        return (weights.unsqueeze(-1) * self.mlp(rows)).sum(dim=-2)


def fit_by_opacus(
    model: DecoupledPageRank,
    inputs: tuple[Tensor, Tensor],
    targets: Tensor,
    settings: PrivateSettings,
    *,
    generator: torch.Generator,
) -> DecoupledPageRank:
    """Train the decoupled model in place by Opacus' own gradients of examples, clipping and noise, on Poisson batches.

    Source: Yousefpour et al. (2021), "Opacus", arXiv:2109.12298: ``GradSampleModule`` and ``DPOptimizer``.

    Note:
        An empty batch makes a step of noise alone, as the accounting has it.

    Args:
        model: The model.
        inputs: The rows that each example mixes, shape (examples, K, features), and their weights, shape (examples, K).
        targets: Classes, int64, shape (examples,).
        settings: With a rate; the optimiser is plain gradient descent.
        generator: Of batches and noise, on the CPU.
    """
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped: Any = GradSampleModule(_Mixed(model))
    optimiser = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=settings.learning_rate),
        noise_multiplier=settings.noise_multiplier,
        max_grad_norm=settings.clipping_norm,
        expected_batch_size=math.ceil(settings.batch),
        generator=generator,
    )
    for _ in range(settings.steps):
        ids = sample(len(targets), settings, generator=generator)
        optimiser.zero_grad()
        loss = functional.cross_entropy(
            wrapped(*(each[ids] for each in inputs)), targets[ids], reduction="sum"
        )
        with warnings.catch_warnings():  # inputs are data and need no gradients
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            (loss / max(len(ids), 1)).backward()
        optimiser.step()
    return model
