"""Sums by hand against those by torch.func; that threads change nothing; which models are taken by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from auditdp.errors import ConfigurationError
from gnn.ensembles import (
    CrossEntropy,
    Trainer,
    World,
    fit_ensemble,
    gradient_canary,
    keys_of,
)
from gnn.ensembles.stack import Linear, linear_layers
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.sums import Sums
from gnn.training import PrivateSettings

KEYS = keys_of(9, rng=np.random.default_rng(2))
BATCHES = {"full": {"rate": 1.0}, "Poisson": {"rate": 0.4}, "fixed": {"rate": None}}
SETTINGS = PrivateSettings(
    steps=4,
    noise_multiplier=0.7,
    clipping_norm=0.5,
    batch=4,
    rate=0.4,
    learning_rate=0.3,
    optimiser="adam",
    gradients="layers",
)


def stack(*sizes, bias=True, dtype=torch.float64):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        parts = [
            nn.Linear(first, last, bias=bias)
            for first, last in itertools.pairwise(sizes)
        ]
    found = [each for part in parts for each in (part, nn.ReLU())][:-1]
    return (nn.Sequential(*found) if len(found) > 1 else found[0]).to(dtype)


MODELS = {
    "one layer": stack(5, 3),
    "two layers": stack(5, 4, 3),
    "three layers without biases": stack(5, 6, 4, 3, bias=False),
    "one output": stack(5, 4, 1),
}


def worlds(model, seed=0, dtype=torch.float64):
    """Ten examples with a canary, seven without."""
    rows = torch.randn(
        10, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)
    weights = sum(each.numel() for each in model.parameters())
    classes = next(
        each.out_features
        for each in reversed(list(model.modules()))
        if isinstance(each, nn.Linear)
    )
    targets = torch.arange(10) % classes
    canary = gradient_canary(weights, 4, norm=2.0)
    return [World((rows, targets), canary=canary), World((rows[:7] + 0.1, targets[:7]))]


def by_function(loss):
    """The same loss as a plain function, whose gradient nobody has written down."""
    return lambda call, row, target: loss(call, row, target)


@pytest.mark.parametrize(
    "loss", [CrossEntropy(), Linear()], ids=["cross-entropy", "linear"]
)
@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_sums_by_hand_are_those_by_torch_func(name, batches, loss):
    """To 1e-12 of a number, over all steps, with two worlds of different lengths in one batch."""
    model, settings = MODELS[name], replace(SETTINGS, **BATCHES[batches])
    given, members = worlds(model), [0, 1, 0, 0, 1, 1, 0, 1, 0]
    both = [
        fit_ensemble(
            Trainer(model, each, settings),
            given,
            keys=KEYS,
            world_of=members,
            sums=True,
        )
        for each in (loss, by_function(loss))
    ]
    torch.testing.assert_close(both[0].sums, both[1].sums, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(both[0].weights, both[1].weights, rtol=1e-12, atol=1e-12)
    assert len(both[0].weights.unique(dim=0)) == len(KEYS)


def test_single_precision_is_double_precision_to_six_digits():
    """Without noise, whose numbers of single precision are others."""
    found = []
    for dtype in (torch.float64, torch.float32):
        model = stack(5, 4, 3, dtype=dtype)
        trainer = Trainer(
            model,
            CrossEntropy(),
            replace(SETTINGS, noise_multiplier=0.0, optimiser="sgd", rate=1.0),
        )
        found.append(
            fit_ensemble(
                trainer, worlds(model, dtype=dtype), keys=KEYS, sums=True
            ).sums.double()
        )
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batches", BATCHES)
def test_neither_chunks_nor_threads_change_a_training(batches):
    """Bit for bit in float64, by SGD; torch's Adam rounds numbers by where they lie in memory."""
    model = MODELS["two layers"]
    trainer = Trainer(
        model, CrossEntropy(), replace(SETTINGS, optimiser="sgd", **BATCHES[batches])
    )
    whole = fit_ensemble(trainer, worlds(model), keys=KEYS, sums=True)
    for chunk, workers in ((1, 1), (2, 1), (2, 3)):
        part = fit_ensemble(
            trainer, worlds(model), keys=KEYS, sums=True, chunk=chunk, workers=workers
        )
        assert torch.equal(part.sums, whole.sums)
        assert torch.equal(part.weights, whole.weights)


class Twice(nn.Linear):
    """A layer that is more than linear."""

    def forward(self, row):
        return 2 * super().forward(row)


SHARED = nn.Linear(4, 4)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU()),
        nn.Sequential(nn.ReLU(), nn.Linear(4, 2), nn.ReLU()),
        nn.Sequential(SHARED, nn.ReLU(), SHARED),
        nn.Sequential(),
        Twice(5, 2),
    ],
)
def test_other_models_are_not_taken_by_hand(model):
    assert linear_layers(model) is None


def test_what_is_no_stack_on_rows_is_taken_by_torch_func():
    """Another loss, gradients by torch.func, targets of several numbers."""
    model, given = MODELS["two layers"], worlds(MODELS["two layers"])

    def by_hand(trainer, given=given):
        return Sums(trainer, Stacked.of(given, torch.device("cpu"))).stack is not None

    trainer = Trainer(model, CrossEntropy(), SETTINGS)
    assert by_hand(trainer)
    assert not by_hand(replace(trainer, loss=by_function(CrossEntropy())))
    assert not by_hand(
        replace(trainer, settings=replace(SETTINGS, gradients="functorch"))
    )
    shares = World((given[0].inputs[0], torch.rand(10, 3, dtype=torch.float64)))
    assert not by_hand(trainer, [shares])


def test_threads_are_refused_where_torch_func_changes_the_model():
    trainer = Trainer(MODELS["two layers"], by_function(CrossEntropy()), SETTINGS)
    with pytest.raises(ConfigurationError, match=r"workers=2 are for.*CrossEntropy"):
        fit_ensemble(trainer, worlds(trainer.model), keys=KEYS, workers=2)
    with pytest.raises(ConfigurationError, match="workers"):
        fit_ensemble(trainer, worlds(trainer.model), keys=KEYS, workers=0)
