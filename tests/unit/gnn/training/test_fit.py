"""The trainer: against a loop written out, its seeds, batches, hooks and criteria."""

import math
from dataclasses import replace

import pytest
import torch
from torch import tensor
from torch.nn import functional
from torch.testing import assert_close

from auditdp.errors import ConfigurationError
from gnn.datasets import random_split
from gnn.models import APPNP, GAT, GCN, MLP, DecoupledPageRank, GraphSAGE
from gnn.randomness import seeded
from gnn.training import Settings, fit, higher_score, last, lower_loss
from gnn.training.fit import neighbourhood
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import flat, generator, two_communities

approx = pytest.approx
parametrize = pytest.mark.parametrize

NODE_MODELS = [GCN, GAT, GraphSAGE, MLP, APPNP, DecoupledPageRank]
DATA = two_communities(40)
SPLIT = random_split(DATA.y, (0.5, 0.25, 0.25), generator=generator())
NOTHING = torch.empty(0, dtype=torch.long)


def fitted(kind=GCN, data=DATA, *, seed=0, split=SPLIT, classes=2, **given):
    settings = given.pop("settings", Settings(epochs=2))
    return fit(
        kind(5, classes, generator=generator(seed)),
        data,
        split=split,
        generator=generator(seed),
        settings=settings,
        **given,
    )


def changed(**values):
    data = DATA.clone()
    for key, value in values.items():
        data[key] = value
    return data


# Steps


def test_it_is_adam_on_the_cross_entropy():
    """Weights and losses are those of the loop, with the penalty on the first layer."""
    settings = Settings(epochs=5, learning_rate=0.02, weight_decay=0.1, decayed="first")
    model, plain = (GCN(5, 2, dropout=0.0, generator=generator()) for _ in range(2))
    given = {"settings": settings, "split": SPLIT, "generator": generator()}
    _, record = fit(model, DATA, better=last, **given)
    first, second = plain.layers
    penalised = {"params": first.parameters(), "weight_decay": 0.1}
    free = {"params": second.parameters()}
    optimiser = torch.optim.Adam([penalised, free], lr=0.02)

    def logits(part):
        return plain(DATA.x, DATA.edge_index)[part], DATA.y[part]

    for epoch in record.epochs:
        optimiser.zero_grad()
        loss = functional.cross_entropy(*logits(SPLIT.training))
        assert epoch.training_loss == approx(loss.item(), rel=1e-5)
        loss.backward()
        optimiser.step()
        found, labels = logits(SPLIT.validation)
        loss = functional.cross_entropy(found, labels)
        assert epoch.validation_loss == approx(loss.item(), rel=1e-5)
        right = (found.argmax(dim=1) == labels).float().mean()
        assert epoch.validation_score == approx(right.item())

    assert_close(flat(model), flat(plain))
    assert [epoch.number for epoch in record.epochs] == [1, 2, 3, 4, 5]
    assert record.chosen == 5


def test_the_learning_rate_is_halved():
    """A step on a loss with a constant gradient is as long as the rate."""
    places = []

    def loss(logits, targets):
        return logits.mean()

    def hook(epoch, model):
        places.append(model.layers[-1].bias.detach().clone())

    settings = Settings(epochs=5, learning_rate=0.5, halving=2, optimiser="sgd")
    fitted(MLP, settings=settings, loss=loss, hook=hook, better=last)
    steps = torch.stack(places).diff(dim=0)[:, 0]
    expected = tensor([1.0, 0.5, 0.5, 0.25])

    assert_close(steps / steps[0], expected, rtol=1e-4, atol=0)


def test_a_batch_is_a_step():
    """Forty training nodes in batches of 15 are three steps."""
    steps = []

    def loss(logits, targets):
        steps.append(len(targets))
        return functional.cross_entropy(logits, targets)

    settings = Settings(epochs=2, batch=15)
    split = replace(SPLIT, validation=NOTHING)
    fitted(settings=settings, loss=loss, split=split, better=last)

    assert steps == [15, 15, 10] * 2


@parametrize("batch", [None, 20])
def test_a_training_is_a_function_of_its_seed(batch):
    """The global state of torch is neither used nor changed, and the data stay."""
    before, found = DATA.clone(), []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)
        state = torch.get_rng_state()
        model, record = fitted(seed=seed, settings=Settings(epochs=4, batch=batch))
        assert torch.equal(torch.get_rng_state(), state)
        found.append((record.epochs, flat(model).tolist()))

    assert found[0] == found[1] != found[2]

    for key in ("x", "edge_index", "y"):
        assert torch.equal(DATA[key], before[key])


def test_seeded_restores_the_global_state_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="shape"), seeded(generator()):
        torch.rand(3).reshape(2)
    assert torch.equal(torch.get_rng_state(), before)


# Batches of nodes

NODES = tensor([3, 50, 7])


@parametrize("kind", NODE_MODELS)
def test_logits_on_a_neighbourhood_are_those_on_the_graph(kind):
    options = {"steps": 2} if kind is APPNP else {}
    model = kind(5, 2, generator=generator(), **options).eval()
    hops = model.steps if kind is DecoupledPageRank else model.hops
    part, at = neighbourhood(DATA, NODES, hops)
    found = model(part.x, part.edge_index)[at]

    assert_close(found, model(DATA.x, DATA.edge_index)[NODES])
    assert neighbourhood(DATA, NODES, 0)[0].num_nodes == 3


def test_weights_and_sparse_features_belong_to_a_neighbourhood():
    weights = torch.rand(DATA.num_edges, generator=generator())
    data = changed(x=DATA.x.to_sparse_csr(), edge_weight=weights)
    model = GCN(5, 2, generator=generator()).eval()
    part, at = neighbourhood(data, NODES, 2)
    found = model(part.x, part.edge_index, part.edge_weight)[at]
    whole = model(data.x, data.edge_index, weights)

    assert_close(found, whole[NODES])
    fitted(data=data, settings=Settings(epochs=2, batch=9))


# Criteria and hooks


def run(losses, *, patience=None, better=lower_loss, scores=None):
    """A training whose validation losses and scores are given."""
    values = iter(losses)
    accuracies = iter(scores or [0.0] * len(losses))
    biases = []

    def loss(logits, targets):
        real = functional.cross_entropy(logits, targets)
        return real if logits.requires_grad else tensor(next(values))

    def score(logits, targets):
        return 0.0 if len(targets) == len(SPLIT.training) else next(accuracies)

    def hook(epoch, model):
        biases.append(model.layers[0].bias.tolist())

    settings = Settings(epochs=len(losses), patience=patience)
    model, record = fitted(
        settings=settings, loss=loss, score=score, hook=hook, better=better
    )

    assert biases.index(model.layers[0].bias.tolist()) == record.chosen - 1

    return record.chosen, len(record.epochs)


@parametrize(
    ("losses", "options", "chosen", "epochs"),
    [
        ([3.0, 1.0, 2.0, 1.0], {}, 2, 4),
        ([3.0, 1.0, 2.0, 1.0, 0.5], {"patience": 2}, 2, 4),
        ([3.0, 1.0, 2.0, 1.0, 0.5], {"patience": 3}, 5, 5),
        (
            [3, 2, 1, 4.0],
            {"better": higher_score, "scores": [0.5, 0.9, 0.9, 0.2]},
            3,
            4,
        ),
        ([3, 2, 1, 4.0], {"better": last}, 4, 4),
    ],
)
def test_the_best_epoch_by_a_criterion_is_chosen(losses, options, chosen, epochs):
    assert run(losses, **options) == (chosen, epochs)


def test_a_criterion_that_no_epoch_meets_is_an_error():
    def never(epoch, best):
        return False

    message = "none of 2 epochs met the criterion 'never'"
    with pytest.raises(TrainingError, match=message):
        fitted(better=never)


def test_a_hook_may_change_the_targets():
    """All labels are swapped after the first epoch, and the model hardly moves."""

    def hook(epoch, model):
        return 1 - DATA.y if epoch.number == 1 else None

    settings = Settings(epochs=2, learning_rate=1e-6)
    _, record = fitted(settings=settings, hook=hook, better=last)
    scores = [epoch.validation_score for epoch in record.epochs]

    assert sum(scores) == approx(1)


# Refusals

NAN = torch.where(torch.arange(80)[:, None] == 3, math.nan, DATA.x)


@parametrize(
    ("key", "value", "message"),
    [
        ("x", DATA.x[:9], "80 nodes, and features x of 9"),
        ("x", DATA.x.long(), r"features x of torch.int64.*x.float\(\)"),
        ("x", NAN, "NaN or infinite; clean them"),
        ("y", -1 + 0 * DATA.y, "40 of 40 training items have no label"),
        ("y", 1 + 0 * DATA.y, "of class 1: there is nothing to learn"),
        ("y", 2 * DATA.y, "labels go up to 2, the model has 2 classes; make it with 3"),
        ("edge_index", tensor([[0], [80]]), "edges between nodes 0 to 80, and"),
        ("edge_index", tensor([[-1], [4]]), "edges between nodes -1"),
        ("edge_index", tensor([[4], [4]]), "self-loops.*remove_self_loops"),
    ],
)
def test_bad_data_are_refused(key, value, message):
    with pytest.raises(DataError, match=message):
        fitted(data=changed(num_nodes=80, **{key: value}))


@parametrize(
    ("given", "message"),
    [
        ({"data": DATA.subgraph(NOTHING)}, "no nodes to train on"),
        ({"split": replace(SPLIT, test=tensor([80]))}, "from 0 to 80"),
        ({"split": replace(SPLIT, validation=NOTHING)}, "better="),
        (
            {"loss": lambda logits, targets: logits.sum() * math.nan},
            "training loss of epoch 1 is nan.*learning rate smaller than 0.01",
        ),
        (
            {"settings": Settings(learning_rate=1e30, optimiser="sgd")},
            "loss of epoch .* is (nan|inf)",
        ),
        ({"hook": lambda *_: DATA.y[:3]}, r"of shape \(3,\), expected \(80,"),
    ],
)
def test_bad_arguments_are_refused(given, message):
    refusals = DataError, ConfigurationError, TrainingError
    with pytest.raises(refusals, match=message):
        fitted(**given)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@parametrize("kind", NODE_MODELS)
def test_cuda_trains_alike_twice(kind):
    given = {"settings": Settings(epochs=20)}
    (_, first), (_, second) = (fitted(kind, device="cuda", **given) for _ in range(2))
    _, on_cpu = fitted(kind, **given)

    assert first.epochs == second.epochs
    assert first.device.startswith("cuda")

    score = on_cpu.epochs[-1].training_score
    assert first.epochs[-1].training_score == approx(score, abs=0.2)
