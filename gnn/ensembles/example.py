"""The trainer that audits and benchmarks run: a linear classifier of a few examples, one of which may be a gradient canary.

Its claim is that of its accountant for one record that is there or not. The canary is the worst record for it, so that the
claim is tight.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from auditdp.adjacency import Pair
from gnn.ensembles.stack import CrossEntropy, Linear
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World, gradient_canary
from gnn.training.private import PrivateSettings

FEATURES, CLASSES, EXAMPLES = 4, 2, 8
WEIGHTS = FEATURES * CLASSES + CLASSES
CLIPPING_NORM = 1.0
OUTLIER = -100.0
"""Each feature of an outlier, beside standard normal ones."""


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
    return Trainer(model, CrossEntropy(), settings)


def canary_pair(
    steps: int, *, norm: float = CLIPPING_NORM, alternating: bool = True
) -> Pair:
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


def linear_trainer(
    *, noise_multiplier: float, batch: int, rate: float, steps: int
) -> Trainer:
    """Return a trainer with Poisson batches, in float64, whose gradients are its rows, ``FEATURES`` numbers.

    Args:
        noise_multiplier: σ.
        batch: The expected size of a batch, which twins draw exactly.
        rate: Probability of a record to be in a batch; twins that deal records out have 1/rate batches an epoch.
        steps: Steps.
    """
    model = nn.Linear(FEATURES, 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(model.weight)
    settings = PrivateSettings(
        steps=steps,
        noise_multiplier=noise_multiplier,
        clipping_norm=CLIPPING_NORM,
        batch=batch,
        rate=rate,
        learning_rate=0.1,
        optimiser="sgd",
        gradients="layers",
    )
    return Trainer(model, Linear(), settings)


def opposed_pair(examples: int, steps: int) -> Pair:
    """Return the worlds with and without a canary beside examples of the opposite gradient, all of the clipping norm.

    Where the canary takes an example's place in a batch, the sum changes by twice the clipping norm.
    """
    canary = gradient_canary(FEATURES, steps, norm=CLIPPING_NORM, alternating=False)
    inputs = (-canary[:1].expand(examples, -1), torch.zeros(examples, dtype=torch.long))
    return Pair(
        World(
            inputs,
            canary=canary,
            common=True,
            name=f"{examples} examples and a canary against them",
        ),
        World(inputs, common=True, name=f"{examples} examples"),
        "canary against all others",
    )


def outlier_pair() -> Pair:
    """Return the worlds of eight examples of one class with and without another one that is far from them."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(EXAMPLES, FEATURES, dtype=torch.float64, generator=generator)
    outlier = torch.full((1, FEATURES), OUTLIER, dtype=torch.float64)
    targets = torch.zeros(EXAMPLES + 1, dtype=torch.long)
    return Pair(
        World(
            (torch.cat([rows, outlier]), targets),
            name=f"{EXAMPLES} examples and an outlier",
        ),
        World((rows, targets[:-1]), name=f"{EXAMPLES} examples"),
        "outlier",
    )
