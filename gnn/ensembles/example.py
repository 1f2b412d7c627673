"""The trainer that audits and benchmarks run: a linear classifier of a few examples, one of which may be a gradient canary.

Its claim is that of its accountant for one record that is there or not. The canary is the worst record for it, so that the
claim is tight.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from auditdp.adjacency import Pair
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World, gradient_canary
from gnn.training.private import PrivateSettings

FEATURES, CLASSES, EXAMPLES = 4, 2, 8
WEIGHTS = FEATURES * CLASSES + CLASSES
CLIPPING_NORM = 1.0


def cross_entropy(call: object, row: Tensor, target: Tensor) -> Tensor:
    """Return the loss of a row of features at its class."""
    assert callable(call)  # the model with its weights
    return functional.cross_entropy(call(row), target)


def full_batch(mu: float, steps: int) -> Trainer:
    """Return a trainer whose batches have all examples, which is exactly μ-Gaussian DP: σ = √steps/μ.

    Source: Dong, Roth & Su (2022), arXiv:1905.02383v3, Corollary 3.3.

    Args:
        mu: μ of all steps together.
        steps: Steps.
    """
    return trainer(noise_multiplier=math.sqrt(steps) / mu, rate=1.0, steps=steps)


def trainer(*, noise_multiplier: float, rate: float, steps: int) -> Trainer:
    """Return a trainer with Poisson batches, in float64, whose first weights are zeros."""
    model = nn.Linear(FEATURES, CLASSES, dtype=torch.float64)
    for weight in model.parameters():
        nn.init.zeros_(weight)
    settings = PrivateSettings(
        steps=steps,
        noise_multiplier=noise_multiplier,
        clipping_norm=CLIPPING_NORM,
        batch=max(1.0, rate * EXAMPLES),
        rate=rate,
        learning_rate=0.1,
        optimiser="sgd",
        gradients="layers",
    )
    return Trainer(model, cross_entropy, settings)


def canary_pair(steps: int, *, norm: float = CLIPPING_NORM, alternating: bool = True) -> Pair:
    """Return the worlds with and without a gradient canary beside eight random examples of two classes.

    Args:
        steps: Steps of the training.
        norm: Of the canary before clipping.
        alternating: As of ``gradient_canary``.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(EXAMPLES, FEATURES, dtype=torch.float64, generator=generator)
    inputs = (rows, (rows[:, 0] > 0).long())
    canary = gradient_canary(WEIGHTS, steps, norm=norm, alternating=alternating)
    name = f"{EXAMPLES} examples"
    worlds = (
        World(inputs, canary=canary, common=True, name=f"{name} and a canary"),
        World(inputs, common=True, name=name),
    )
    return Pair(*worlds, "gradient canary")
