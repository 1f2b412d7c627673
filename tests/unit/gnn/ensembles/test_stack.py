"""Sums by hand against those by torch.func, chunks and threads, and eligible models."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from auditdp.errors import ConfigurationError
from gnn.ensembles import CrossEntropy, Trainer, World, gradient_canary
from gnn.ensembles.stack import Linear, linear_layers
from gnn.ensembles.stacked import Stacked
from gnn.ensembles.sums import Sums
from tests.unit.gnn.draws import flat, generator
from tests.unit.gnn.ensembles.small_trainer import BATCHES, SETTINGS, fitted
from tests.unit.gnn.ensembles.small_trainer import loss as by_function

parametrize = pytest.mark.parametrize

MEMBERS = [0, 1, 0, 0, 1, 1, 0]
ADAM = replace(SETTINGS, optimiser="adam")


def stack(*sizes, bias=True):
    parts = []
    for first, last in itertools.pairwise(sizes):
        layer = nn.Linear(first, last, bias=bias, dtype=torch.float64)
        for weight in layer.parameters():
            weight.data.uniform_(-0.5, 0.5, generator=generator(weight.numel()))
        parts += [layer, nn.ReLU()]

    parts.pop()
    return nn.Sequential(*parts) if len(parts) > 1 else parts[0]


MODELS = {
    "one layer": stack(5, 3),
    "two layers": stack(5, 4, 3),
    "three layers without biases": stack(5, 6, 4, 3, bias=False),
    "one output": stack(5, 4, 1),
}
TWO = MODELS["two layers"]


def worlds(model):
    """Ten examples with a canary, seven without."""
    outputs = linear_layers(model)[-1].out_features
    rows = torch.randn(10, 5, generator=generator(), dtype=torch.float64)
    targets = torch.arange(10) % outputs
    canary = gradient_canary(len(flat(model)), 3, norm=2.0)
    shorter = World((rows[:7] + 0.1, targets[:7]))
    return [World((rows, targets), canary=canary), shorter]


def plain(loss):
    """The same loss as a plain function, whose gradient is not written down."""
    return lambda call, row, target: loss(call, row, target)


@parametrize("loss", [CrossEntropy(), Linear()])
@parametrize("batches", BATCHES)
@parametrize("name", MODELS)
def test_sums_by_hand_are_those_by_torch_func(name, batches, loss):
    """Over all steps, with two worlds of different lengths in one batch."""
    model = MODELS[name]
    settings = replace(ADAM, **BATCHES[batches])
    both = []
    for each in (loss, plain(loss)):
        trainer = Trainer(model, each, settings)
        both.append(fitted(trainer, worlds(model), world_of=MEMBERS))

    for found in ("sums", "weights"):
        ours, theirs = (getattr(each, found) for each in both)
        assert_close(ours, theirs, rtol=1e-12, atol=1e-12)

    assert len(both[0].weights.unique(dim=0)) == len(MEMBERS)


@parametrize("batches", BATCHES)
def test_neither_chunks_nor_threads_change_a_training(batches):
    """Bit for bit by SGD; torch's Adam rounds by the place in memory."""
    trainer = Trainer(TWO, CrossEntropy(), replace(SETTINGS, **BATCHES[batches]))
    whole = fitted(trainer, worlds(TWO))
    for chunk, workers in ((1, 1), (2, 3)):
        part = fitted(trainer, worlds(TWO), chunk=chunk, workers=workers)
        assert torch.equal(part.sums, whole.sums)
        assert torch.equal(part.weights, whole.weights)


class Twice(nn.Linear):
    """A layer that is not linear alone."""

    def forward(self, row):
        return 2 * super().forward(row)


SHARED = nn.Linear(4, 4)


@parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(SHARED, nn.ReLU(), SHARED),
        nn.Sequential(),
        Twice(5, 2),
    ],
)
def test_other_models_have_no_stack(model):
    assert linear_layers(model) is None


SHARES = World((torch.zeros(10, 5).double(), torch.rand(10, 3).double()))


@parametrize(
    ("changes", "given", "by_hand"),
    [
        ({}, worlds(TWO), True),
        ({"loss": by_function}, worlds(TWO), False),
        ({"settings": replace(ADAM, gradients="functorch")}, worlds(TWO), False),
        ({}, [SHARES], False),
    ],
)
def test_stacks_on_rows_with_one_class_are_summed_by_hand(changes, given, by_hand):
    trainer = replace(Trainer(TWO, CrossEntropy(), ADAM), **changes)
    sums = Sums(trainer, Stacked.of(given, torch.device("cpu")))
    assert (sums.stack is not None) is by_hand


@parametrize(
    ("workers", "message"),
    [
        (2, r"workers=2 are for.*CrossEntropy"),
        (0, "workers"),
    ],
)
def test_threads_are_refused_for_torch_func(workers, message):
    trainer = Trainer(TWO, by_function, SETTINGS)
    with pytest.raises(ConfigurationError, match=message):
        fitted(trainer, worlds(TWO), workers=workers)
