"""A small trainer of private models, its keys, and worlds of ten examples."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gnn.ensembles import Trainer, World, fit_ensemble, gradient_canary, keys_of
from gnn.training import PrivateSettings
from tests.unit.gnn.draws import generator

SETTINGS = PrivateSettings(
    steps=3,
    noise_multiplier=0.7,
    clipping_norm=0.5,
    batch=4.0,
    rate=0.4,
    learning_rate=0.3,
    optimiser="sgd",
    gradients="layers",
)
BATCHES = {"full": {"rate": 1.0}, "Poisson": {"rate": 0.4}, "fixed": {"rate": None}}
KEYS = keys_of(7, rng=np.random.default_rng(1))


def mlp(dtype=torch.float64):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    return model.to(dtype)


def loss(call, row, target):
    return functional.cross_entropy(call(row), target)


def world(*, canary=False, seed=0, count=10, weights=34, dtype=torch.float64):
    """Rows of two classes, and perhaps a gradient canary of norm 2."""
    rows = torch.randn(count, 5, generator=generator(seed), dtype=torch.float64)
    added = gradient_canary(weights, 3, norm=2.0) if canary else None
    return World((rows.to(dtype), (rows[:, 1] > 0).long()), canary=added)


def fitted(trainer, worlds, keys=KEYS, **arguments):
    return fit_ensemble(trainer, worlds, keys=keys, sums=True, **arguments)


def sums_of(settings, worlds, *, model=None, loss=loss, **arguments):
    trainer = Trainer(model or mlp(), loss, settings)
    return fitted(trainer, worlds, **arguments).sums
