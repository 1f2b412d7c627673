"""Ensembles against a loop over models and examples; that neither chunks nor neighbours change a training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from auditdp.errors import ConfigurationError
from gnn.ensembles import (
    Trainer,
    World,
    fit_ensemble,
    gradient_canary,
    in_order,
    keys_of,
    over_own_size,
    standardised,
    twins,
)
from gnn.ensembles.draws import as_set, draws_of
from gnn.ensembles.graphs import GraphWorlds, node_loss
from gnn.ensembles.trainer import as_summed
from gnn.ensembles.twins import of_fixed_size, shuffled
from gnn.models import GCN, GIN, GraphSAGE
from gnn.training import PageRankRows, PrivateSettings, Rows, fit_private
from gnn.training.gradients import weights_of
from gnn.validation import DataError, TrainingError
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
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)


def loss(call, row, target):
    return functional.cross_entropy(call(row), target)


def world(dtype=torch.float64, canary=False, seed=0, count=10):
    rows = torch.randn(count, 5, generator=generator(seed), dtype=torch.float64)
    found = gradient_canary(34, 3, norm=2.0) if canary else None
    return World((rows.to(dtype), (rows[:, 1] > 0).long()), canary=found)


def looped(trainer, world, key, *, finish=None):
    """One training, one example after the other, by backward passes and SGD by hand; the noised sums and the weights."""
    settings, model = trainer.settings, mlp()
    model.load_state_dict(trainer.model.state_dict())
    records = len(world) + (world.canary is not None)
    there = np.ones((1, records), dtype=bool)
    draws = draws_of(
        key[None],
        settings,
        records=there,
        world_of=np.zeros(1, int),
        weights=trainer.start.numel(),
        dtype=torch.float64,
    )
    released = []
    for step in range(settings.steps):
        total = torch.zeros_like(trainer.start)
        for record in range(records):
            if draws.taken is not None and not draws.taken[0, step, record]:
                continue
            if record == len(world):
                gradient = world.canary[step]
            else:
                model.zero_grad()
                trainer.loss(model, *(each[record] for each in world.inputs)).backward()
                gradient = torch.cat(
                    [weight.grad.reshape(-1) for weight in model.parameters()]
                )
            total += gradient * min(
                1.0, settings.clipping_norm / float(gradient.norm())
            )
        released.append(
            total
            + settings.noise_multiplier * settings.clipping_norm * draws.noise[0, step]
        )
        with torch.no_grad():
            step_of = torch.cat([weight.reshape(-1) for weight in model.parameters()])
            step_of -= settings.learning_rate * released[-1] / settings.batch
            nn.utils.vector_to_parameters(step_of, model.parameters())
    return torch.stack(released), nn.utils.parameters_to_vector(
        model.parameters()
    ).detach()


@pytest.mark.parametrize("gradients", ["layers", "functorch"])
@pytest.mark.parametrize("canary", [False, True])
@pytest.mark.parametrize("batches", BATCHES)
def test_trainings_are_those_of_a_loop(batches, canary, gradients):
    """Up to the order of summation: to 1e-12 of a number."""
    trainer = Trainer(
        mlp(), loss, replace(SETTINGS, gradients=gradients, **BATCHES[batches])
    )
    found = fit_ensemble(trainer, [world(canary=canary)], keys=KEYS, sums=True)
    for number, key in enumerate(KEYS):
        sums, weights = looped(trainer, world(canary=canary), key)
        torch.testing.assert_close(found.sums[number], sums, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            found.weights[number], weights, rtol=1e-12, atol=1e-12
        )
    assert len(found.weights.unique(dim=0)) == len(KEYS)


@pytest.mark.dear
@pytest.mark.parametrize("gradients", ["layers", "functorch"])
@pytest.mark.parametrize("batches", BATCHES)
def test_neither_chunks_nor_worlds_beside_it_change_a_training(batches, gradients):
    """Bit for bit in float64: in chunks of any size, alone, and beside trainings on another world."""
    trainer = Trainer(
        mlp(), loss, replace(SETTINGS, gradients=gradients, **BATCHES[batches])
    )
    worlds = [world(), world(canary=True, seed=1)]
    members = [0, 1, 1, 0, 1, 0, 0]
    whole = fit_ensemble(trainer, worlds, keys=KEYS, world_of=members, sums=True)
    for chunk in (1, 3):
        part = fit_ensemble(
            trainer, worlds, keys=KEYS, world_of=members, sums=True, chunk=chunk
        )
        assert torch.equal(part.sums, whole.sums)
        assert torch.equal(part.weights, whole.weights)
    for number, member in enumerate(members):
        alone = fit_ensemble(trainer, [worlds[member]], keys=KEYS[[number]], sums=True)
        assert torch.equal(alone.sums[0], whole.sums[number])


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_without_noise_it_is_the_trainer_of_one_model(optimiser):
    """``fit_private`` on the same examples, with the same optimiser."""
    settings = replace(
        SETTINGS, noise_multiplier=0.0, rate=1.0, optimiser=optimiser, weight_decay=0.01
    )
    model, given = mlp(torch.float32), world(torch.float32)
    found = fit_ensemble(Trainer(model, loss, settings), [given], keys=KEYS[:2])
    examples, targets = Rows(given.inputs[0]), given.inputs[1]
    fitted, _ = fit_private(
        model, examples, targets, settings=settings, generator=generator()
    )
    expected = torch.cat(
        [weight.detach().reshape(-1) for weight in fitted.parameters()]
    )
    torch.testing.assert_close(
        found.weights, expected.expand(2, -1), rtol=1e-5, atol=1e-6
    )


def test_mixed_rows_by_layers_are_those_by_examples():
    """A layer through which each example puts three rows."""
    examples = PageRankRows(
        world().inputs[0],
        torch.randint(10, (8, 3), generator=generator()),
        torch.rand(8, 3).double(),
    )
    given = World.of(examples, torch.arange(8) % 2)

    def mixed(call, rows, weights, target):
        return functional.cross_entropy(examples.logits(call, rows, weights), target)

    settings = replace(SETTINGS, noise_multiplier=0.0, clipping_norm=0.2)
    both = [
        fit_ensemble(
            Trainer(mlp(), mixed, replace(settings, gradients=kind)),
            [given],
            keys=KEYS,
            sums=True,
        ).sums
        for kind in ("layers", "functorch")
    ]
    torch.testing.assert_close(*both, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_graph_networks_are_trained_as_they_are(kind):
    """Sums on a graph: of torch-geometric's own networks, node by node, by ordinary calls on the graph without padding."""
    x = torch.randn(4, 3, generator=generator(), dtype=torch.float64)
    model = kind(3, 2, hidden=4, layers=2, dropout=0.0, generator=generator()).double()
    graph = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]], np.int8)
    targets = torch.tensor([0, 1, 1, 0])
    settings = replace(
        SETTINGS, noise_multiplier=0.0, rate=1.0, steps=1, gradients="functorch"
    )
    found = fit_ensemble(
        Trainer(model, node_loss, settings),
        [GraphWorlds(x, targets)(graph)],
        keys=KEYS[:2],
        sums=True,
    ).sums
    arcs = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    total = torch.zeros_like(found[0, 0])
    for node in range(3):  # node 3 is not there
        model.zero_grad()
        functional.cross_entropy(
            model(x, arcs)[node][None], targets[node][None]
        ).backward()
        gradient = torch.cat(
            [weight.grad.reshape(-1) for weight in weights_of(model).values()]
        )
        total += gradient * min(1.0, 0.5 / float(gradient.norm()))
    torch.testing.assert_close(found[:, 0], total.expand(2, -1), rtol=1e-12, atol=1e-12)


def test_draws_are_those_that_the_settings_ask_for():
    """Rates within 5 standard deviations; fixed batches of their size, among the records that there are; normal noise."""
    keys = keys_of(400, rng=np.random.default_rng(0))
    there = np.arange(10)[None] < 9
    given = {
        "records": there,
        "world_of": np.zeros(400, int),
        "weights": 6,
        "dtype": torch.float64,
    }
    poisson = draws_of(keys, SETTINGS, **given)
    assert (
        abs(float(poisson.taken[:, :, :9].double().mean()) - 0.4)
        < 5 * (0.24 / (400 * 3 * 9)) ** 0.5
    )
    assert not poisson.taken[:, :, 9].any()
    assert abs(float(poisson.noise.std()) - 1) < 5 / (2 * poisson.noise.numel()) ** 0.5
    fixed = draws_of(keys, replace(SETTINGS, rate=None), **given)
    assert (fixed.taken.sum(dim=2) == 4).all()
    assert not fixed.taken[:, :, 9].any()
    assert (
        abs(float(fixed.taken[:, :, 0].double().mean()) - 4 / 9)
        < 5 * (0.25 / 1200) ** 0.5
    )
    assert torch.equal(fixed.noise, poisson.noise)
    assert len(poisson.noise.flatten(1).unique(dim=0)) == 400
    assert draws_of(keys, replace(SETTINGS, rate=1.0), **given).taken is None


def test_a_canary_is_in_batches_however_many_examples_other_worlds_have():
    """The world with a canary has fewer examples than the one beside it; it is trained as it is alone."""
    trainer, worlds = (
        Trainer(mlp(), loss, SETTINGS),
        [world(canary=True, count=4), world(seed=1)],
    )
    beside = fit_ensemble(trainer, worlds, keys=KEYS, sums=True)
    alone = fit_ensemble(trainer, worlds[:1], keys=KEYS, sums=True)
    assert torch.equal(beside.sums, alone.sums)
    assert torch.equal(beside.taken[:, :, -1], alone.taken[:, :, -1])
    assert 0 < beside.taken[:, :, -1].double().mean() < 1


EPOCHS = replace(SETTINGS, steps=6, rate=1 / 3, batch=4)
"""Twins that deal records out have two epochs of three batches."""
UNIFORM = np.random.default_rng(0).random((500, 6, 12))


def test_shuffled_batches_have_each_record_once_an_epoch_in_an_order_of_its_own():
    taken = shuffled(UNIFORM, EPOCHS)
    assert (taken.sum(axis=2) == 4).all()
    assert (taken.reshape(500, 2, 3, 12).sum(axis=2) == 1).all()
    first = taken[:, 0].mean(axis=0)  # 1/3 each, with a deviation of .021
    assert np.abs(first - 1 / 3).max() < 5 * (2 / 9 / 500) ** 0.5
    assert (taken[:, :3] != taken[:, 3:]).any(axis=(1, 2)).mean() > 0.99


def test_batches_in_order_leave_the_last_one_what_is_left():
    """Ten records at places 0 to 8 and 11, of which the last is a canary."""
    uniform = np.where(np.isin(np.arange(12), [9, 10]), np.inf, UNIFORM)
    taken = in_order(uniform, EPOCHS)
    assert [np.flatnonzero(each).tolist() for each in taken[0, :3]] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 11],
    ]
    assert (taken[:, 3:] == taken[:1, :3]).all()


def test_batches_of_fixed_size_are_those_that_settings_without_a_rate_have():
    assert (of_fixed_size(UNIFORM, EPOCHS).sum(axis=2) == 4).all()
    assert np.array_equal(
        of_fixed_size(UNIFORM, EPOCHS), as_set(UNIFORM, replace(EPOCHS, rate=None))
    )


def test_a_mean_over_the_batch_itself_is_of_the_batch_itself():
    sums, sizes = torch.ones(3, 2), torch.tensor([4, 1, 0])
    assert over_own_size(sums, sizes, EPOCHS).tolist() == [
        [1.0, 1.0],
        [4.0, 4.0],
        [4.0, 4.0],
    ]
    given, none = (
        world(canary=True, count=2),
        replace(SETTINGS, noise_multiplier=0.0, rate=1.0),
    )
    both = [
        fit_ensemble(
            replace(Trainer(mlp(), loss, none), finish=finish),
            [given],
            keys=KEYS[:1],
            sums=True,
        ).sums[0, 0]
        for finish in (as_summed, over_own_size)
    ]
    torch.testing.assert_close(both[0] * 4 / 3, both[1])  # two examples and the canary


def test_features_are_standardised_by_the_examples_that_are_there():
    there = torch.arange(10) < 7
    found = standardised(replace(world(), present=there)).inputs[0]
    torch.testing.assert_close(
        found[there].mean(dim=0), torch.zeros(5).double(), rtol=0, atol=1e-12
    )
    torch.testing.assert_close(
        found[there].square().mean(dim=0), torch.ones(5).double()
    )


def test_twins_are_wrong_in_the_way_that_they_say():
    """Sums of one step on a canary alone, of norm 2, clipped to .5 where anything is clipped, in batches of 4."""
    none = World(
        (torch.zeros(0, 5), torch.zeros(0).long()),
        canary=gradient_canary(34, 3, norm=4.0),
    )
    correct = Trainer(mlp(), loss, replace(SETTINGS, rate=1.0))
    made = {"correct": correct, **twins(correct)}
    sums = {
        name: fit_ensemble(each, [none], keys=KEYS, sums=True).sums
        for name, each in made.items()
    }
    quiet = {
        name: fit_ensemble(
            replace(each, noise=torch.zeros_like), [none], keys=KEYS, sums=True
        ).sums
        for name, each in made.items()
    }
    norms = {name: round(float(each[0, 0].norm()), 9) for name, each in quiet.items()}
    assert norms.pop("no clipping") == 4.0
    assert norms.pop("clipping after averaging") == 2.0
    assert set(norms.values()) == {0.5}
    noise = {name: sums[name] - quiet[name] for name in made}
    torch.testing.assert_close(noise["half the noise"] * 2, noise["correct"])
    torch.testing.assert_close(
        noise["noise of the mean divided by the batch once more"] * 4, noise["correct"]
    )
    torch.testing.assert_close(
        noise["noise seeded alike in every step"][:, 2], noise["correct"][:, 0]
    )
    assert not noise["no noise"].any()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5, dtype=torch.float64)

    def forward(self, row):
        return self.layer(self.layer(row))


class Scaled(Tied):
    def forward(self, row):
        return self.layer(row) * self.layer.weight.sum()


def fitted(model=None, worlds=None, world_of=None, **changed):
    trainer = Trainer(model or mlp(), loss, replace(SETTINGS, **changed))
    return fit_ensemble(trainer, worlds or [world()], keys=KEYS, world_of=world_of)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fitted(GIN(5, 2, generator=generator())),
            ConfigurationError,
            "normalises batches",
        ),
        (
            lambda: fitted(nn.Linear(5, 2).half()),
            ConfigurationError,
            "all float32 or all float64",
        ),
        (lambda: fitted(nn.ReLU()), ConfigurationError, "got none"),
        (
            lambda: fitted(gradients="opacus"),
            ConfigurationError,
            "use gradients='functorch'",
        ),
        (
            lambda: fitted(Tied()),
            ConfigurationError,
            r"not for layer\.bias, layer\.weight",
        ),
        (lambda: fitted(Scaled()), ConfigurationError, r"not for layer\.weight"),
        (
            lambda: fitted(nn.Sequential(mlp(), nn.Dropout(0.5))),
            ConfigurationError,
            r"call model\.eval\(\)",
        ),
        (
            lambda: fitted(world_of=[0, 1]),
            DataError,
            "one of 1 worlds for each of 7 keys",
        ),
        (lambda: fitted(world_of=[1] * 7), DataError, "one of 1 worlds"),
        (
            lambda: fitted(rate=None, batch=11),
            DataError,
            "at most 10 records, got batch=11",
        ),
        (
            lambda: fitted(worlds=[replace(world(), canary=torch.zeros(2, 34))]),
            DataError,
            r"shape \(3, 34\)",
        ),
        (
            lambda: fitted(
                worlds=[world(), World((torch.zeros(2, 4), torch.zeros(2)))]
            ),
            DataError,
            "have one shape",
        ),
        (
            lambda: fitted(
                worlds=[World((world().inputs[0] * np.nan, world().inputs[1]))]
            ),
            TrainingError,
            "NaN",
        ),
        (lambda: World((torch.zeros(2), torch.zeros(3))), DataError, "of one length"),
        (
            lambda: World((torch.zeros(2),), present=torch.ones(2)),
            DataError,
            "present, bool",
        ),
        (
            lambda: World((torch.zeros(2),), canary=torch.ones(2)),
            DataError,
            "canary of shape",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("gradients", ["layers", "functorch"])
def test_cuda_trains_as_the_cpu_does(gradients):
    """The same coins and noise: sums differ by rounding alone."""
    trainer = Trainer(mlp(), loss, replace(SETTINGS, gradients=gradients))
    on = [
        fit_ensemble(trainer, [world(canary=True)], keys=KEYS, sums=True, device=each)
        for each in ("cpu", "cuda")
    ]
    torch.testing.assert_close(on[0].sums, on[1].sums, rtol=1e-9, atol=1e-9)
