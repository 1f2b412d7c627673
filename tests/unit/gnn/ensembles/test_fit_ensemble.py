"""Ensembles against a loop over models and examples; chunks and neighbours; twins."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from auditdp.errors import ConfigurationError
from gnn.ensembles import (
    Trainer,
    World,
    gradient_canary,
    in_order,
    keys_of,
    over_own_size,
    twins,
)
from gnn.ensembles.draws import draws_of
from gnn.ensembles.graphs import GraphWorlds, node_loss
from gnn.ensembles.twins import shuffled
from gnn.models import GCN, GIN, GraphSAGE
from gnn.training import PageRankRows, Rows, fit_private
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import arcs, flat, generator, rng
from tests.unit.gnn.ensembles.small_trainer import (
    BATCHES,
    KEYS,
    SETTINGS,
    fitted,
    loss,
    mlp,
    sums_of,
    world,
)

parametrize = pytest.mark.parametrize

EXACT = {"rtol": 1e-12, "atol": 1e-12}
QUIET = replace(SETTINGS, noise_multiplier=0.0, rate=1.0)


def flat_gradient(model):
    return torch.cat([weight.grad.reshape(-1) for weight in model.parameters()])


def clipped(gradient, norm=0.5):
    return gradient * min(1.0, norm / float(gradient.norm()))


# Against loops


def looped(settings, world, key):
    """The noised sums and the weights of one training, example after example."""
    model = mlp()
    weights = flat(model)
    records = len(world) + (world.canary is not None)
    draws = draws_of(
        key[None],
        settings,
        records=np.ones((1, records), dtype=bool),
        world_of=np.zeros(1, int),
        weights=len(weights),
        dtype=torch.float64,
    )
    scale = settings.noise_multiplier * settings.clipping_norm
    released = []
    for step in range(settings.steps):
        total = scale * draws.noise[0, step]
        for record in range(records):
            if draws.taken is not None and not draws.taken[0, step, record]:
                continue
            if record == len(world):
                total += clipped(world.canary[step])
                continue
            model.zero_grad()
            loss(model, *(each[record] for each in world.inputs)).backward()
            total += clipped(flat_gradient(model))
        released.append(total)
        weights = weights - settings.learning_rate * total / settings.batch
        nn.utils.vector_to_parameters(weights, model.parameters())

    return torch.stack(released), weights


@parametrize("gradients", ["layers", "functorch"])
@parametrize("canary", [False, True])
@parametrize("batches", BATCHES)
def test_trainings_are_those_of_a_loop(batches, canary, gradients):
    settings = replace(SETTINGS, gradients=gradients, **BATCHES[batches])
    given = world(canary=canary)
    found = fitted(Trainer(mlp(), loss, settings), [given])
    for number, key in enumerate(KEYS):
        sums, weights = looped(settings, given, key)
        assert_close(found.sums[number], sums, **EXACT)
        assert_close(found.weights[number], weights, **EXACT)

    assert len(found.weights.unique(dim=0)) == len(KEYS)


@pytest.mark.dear
@parametrize("gradients", ["layers", "functorch"])
@parametrize("batches", BATCHES)
def test_neither_chunks_nor_other_worlds_change_a_training(batches, gradients):
    """Bit for bit in float64. The world with a canary has fewer examples."""
    settings = replace(SETTINGS, gradients=gradients, **BATCHES[batches])
    worlds = [world(seed=1), world(canary=True, count=4)]
    members = [0, 1, 1, 0, 1, 0, 0]
    trainer = Trainer(mlp(), loss, settings)
    whole = fitted(trainer, worlds, world_of=members)
    for chunk in (1, 3):
        part = fitted(trainer, worlds, world_of=members, chunk=chunk)
        assert torch.equal(part.sums, whole.sums)
        assert torch.equal(part.weights, whole.weights)

    for number, member in enumerate(members):
        alone = fitted(trainer, [worlds[member]], KEYS[[number]])
        assert torch.equal(alone.sums[0], whole.sums[number])


@parametrize("optimiser", ["sgd", "adam"])
def test_without_noise_it_is_the_trainer_of_one_model(optimiser):
    settings = replace(QUIET, optimiser=optimiser, weight_decay=0.01)
    model, given = mlp(torch.float32), world(dtype=torch.float32)
    found = fitted(Trainer(model, loss, settings), [given], KEYS[:1]).weights
    rows, targets = given.inputs
    single, _ = fit_private(
        model, Rows(rows), targets, settings=settings, generator=generator()
    )

    assert_close(found[0], flat(single), rtol=1e-5, atol=1e-6)


def test_mixed_rows_by_layers_are_those_by_examples():
    """Each example puts three rows through a layer."""
    neighbours = torch.randint(10, (8, 3), generator=generator())
    weights = torch.rand(8, 3, dtype=torch.float64, generator=generator())
    examples = PageRankRows(world().inputs[0], neighbours, weights)

    def mixed(call, rows, weights, target):
        logits = examples.logits(call, rows, weights)
        return functional.cross_entropy(logits, target)

    both = []
    for gradients in ("layers", "functorch"):
        settings = replace(QUIET, clipping_norm=0.2, gradients=gradients)
        given = World.of(examples, torch.arange(8) % 2)
        both.append(sums_of(settings, [given], loss=mixed))

    assert_close(*both, **EXACT)


@parametrize("kind", [GCN, GraphSAGE])
def test_graph_networks_are_trained_as_they_are(kind):
    """Gradients of torch-geometric's networks on the path 0 – 1 – 2, where node 3 is absent."""
    x = torch.randn(4, 3, generator=generator(), dtype=torch.float64)
    model = kind(3, 2, hidden=4, dropout=0.0, generator=generator()).double()
    path = arcs("01 10 12 21")
    graph = np.diag(np.array([1, 1, 1, 0], np.int8))
    graph[tuple(path.numpy())] = 1
    targets = torch.tensor([0, 1, 1, 0])
    settings = replace(QUIET, steps=1, gradients="functorch")
    worlds = [GraphWorlds(x, targets)(graph)]
    found = sums_of(settings, worlds, model=model, loss=node_loss)[0, 0]
    total = torch.zeros_like(found)
    for node in range(3):
        model.zero_grad()
        functional.cross_entropy(model(x, path)[node], targets[node]).backward()
        total += clipped(flat_gradient(model))

    assert_close(found, total, **EXACT)


# Draws and batches


def drawn(rate):
    """400 trainings of 3 steps on 9 records and an absent one."""
    return draws_of(
        keys_of(400, rng=rng()),
        replace(SETTINGS, rate=rate),
        records=np.arange(10)[None] < 9,
        world_of=np.zeros(400, int),
        weights=6,
        dtype=torch.float64,
    )


@parametrize(("rate", "expected"), [(0.4, 0.4), (None, 4 / 9)])
def test_batches_have_the_law_of_the_settings(rate, expected):
    """Within 5 standard deviations; 4 of 9 records without a rate."""
    taken = drawn(rate).taken
    shares = taken.double().mean(dim=(0, 1))
    deviation = (expected * (1 - expected) / 1200) ** 0.5

    assert shares[9] == 0
    assert ((shares[:9] - expected).abs() < 5 * deviation).all()
    assert rate or (taken.sum(dim=2) == 4).all()


def test_noise_is_normal_and_does_not_depend_on_the_batches():
    whole = drawn(1.0)
    assert whole.taken is None
    assert torch.equal(whole.noise, drawn(None).noise)
    assert abs(float(whole.noise.std()) - 1) < 5 / (2 * whole.noise.numel()) ** 0.5
    assert len(whole.noise.flatten(1).unique(dim=0)) == 400


EPOCHS = replace(SETTINGS, steps=6, rate=1 / 3, batch=4)
"""Two epochs of three batches."""
UNIFORM = np.random.default_rng(0).random((500, 6, 12))


def test_shuffled_batches_have_each_record_once_an_epoch():
    taken = shuffled(UNIFORM, EPOCHS)
    assert (taken.sum(axis=2) == 4).all()
    assert (taken.reshape(500, 2, 3, 12).sum(axis=2) == 1).all()

    first = taken[:, 0].mean(axis=0)
    assert np.abs(first - 1 / 3).max() < 5 * (2 / 9 / 500) ** 0.5
    differs = (taken[:, :3] != taken[:, 3:]).any(axis=(1, 2))
    assert differs.mean() > 0.99


def test_batches_in_order_end_with_a_smaller_one():
    """Ten records at places 0 to 8 and 11, of which the last is a canary."""
    absent = np.isin(np.arange(12), [9, 10])
    taken = in_order(np.where(absent, np.inf, UNIFORM), EPOCHS)
    batches = [np.flatnonzero(each).tolist() for each in taken[0, :3]]

    assert batches == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 11],
    ]
    assert (taken[:, 3:] == taken[:1, :3]).all()


# Twins


def test_a_sum_is_divided_by_the_size_of_its_own_batch():
    correct = Trainer(mlp(), loss, QUIET)
    given = [world(canary=True, count=2)]  # The canary is the third record.
    twin = fitted(replace(correct, finish=over_own_size), given).sums[:, 0]
    expected = fitted(correct, given).sums[:, 0] * 4 / 3

    assert_close(twin, expected)


def test_twins_have_the_errors_of_their_names():
    """Sums of a canary of norm 4 alone, where C = .5, in batches of 4."""
    rows = torch.zeros(0, 5), torch.zeros(0).long()
    alone = [World(rows, canary=gradient_canary(34, 3, norm=4.0))]
    correct = Trainer(mlp(), loss, replace(SETTINGS, rate=1.0))
    norms, noise = {}, {}
    for name, each in {"correct": correct, **twins(correct)}.items():
        quiet = fitted(replace(each, noise=torch.zeros_like), alone).sums
        norms[name] = round(float(quiet[0, 0].norm()), 9)
        noise[name] = fitted(each, alone).sums - quiet

    assert norms.pop("no clipping") == 4.0
    assert norms.pop("clipping after averaging") == 2.0
    assert set(norms.values()) == {0.5}

    expected = noise["correct"]
    assert_close(noise["half the noise"] * 2, expected)

    once_more = noise["noise of the mean divided by the batch once more"]
    assert_close(once_more * 4, expected)

    alike = noise["noise seeded alike in every step"]
    assert_close(alike[:, 2], expected[:, 0])
    assert not noise["no noise"].any()


# Refusals


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5, dtype=torch.float64)

    def forward(self, row):
        return self.layer(self.layer(row))


class Scaled(Tied):
    def forward(self, row):
        return self.layer(row) * self.layer.weight.sum()


NAN = torch.full((10, 5), np.nan, dtype=torch.float64), torch.zeros(10).long()


@parametrize(
    ("model", "message"),
    [
        (GIN(5, 2, generator=generator()), "normalises batches"),
        (Tied(), r"not for layer\.bias, layer\.weight"),
        (Scaled(), r"not for layer\.weight"),
    ],
)
def test_models_that_cannot_be_trained_are_refused(model, message):
    with pytest.raises(ConfigurationError, match=message):
        sums_of(SETTINGS, [world()], model=model)


TOO_LARGE = replace(SETTINGS, rate=None, batch=11)


@parametrize(
    ("settings", "changes", "error", "message"),
    [
        (TOO_LARGE, {}, DataError, "at most 10 records, got batch=11"),
        (SETTINGS, {"canary": torch.zeros(2, 34)}, DataError, r"shape \(3, 34\)"),
        (SETTINGS, {"inputs": NAN}, TrainingError, "NaN"),
    ],
)
def test_refusals(settings, changes, error, message):
    with pytest.raises(error, match=message):
        sums_of(settings, [replace(world(), **changes)])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@parametrize("gradients", ["layers", "functorch"])
def test_cuda_trains_as_the_cpu_does(gradients):
    """The same coins and noise: sums differ by rounding alone."""
    settings = replace(SETTINGS, gradients=gradients)
    given = [world(canary=True)]
    on = [sums_of(settings, given, device=device) for device in ("cpu", "cuda")]
    assert_close(*on, rtol=1e-9, atol=1e-9)
