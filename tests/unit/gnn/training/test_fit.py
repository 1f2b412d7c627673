"""The trainer: against a loop written out, its seeds, early stopping, batches, hooks, and everything that it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError
from gnn.datasets import random_split
from gnn.datasets.generated import stochastic_block_model, threads
from gnn.models import APPNP, GAT, GCN, GIN, MLP, DecoupledPageRank, GraphSAGE
from gnn.randomness import seeded
from gnn.training import (
    Epoch,
    Settings,
    area_under_roc,
    evaluate,
    fit,
    higher_score,
    last,
    lower_loss,
    predict,
)
from gnn.training.fit import neighbourhood
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import generator

NODE_MODELS = [GCN, GAT, GraphSAGE, MLP, APPNP, DecoupledPageRank]


def communities(signal=3.0):
    return stochastic_block_model(
        [40, 40],
        inside=0.2,
        across=0.02,
        features=5,
        signal=signal,
        rng=np.random.default_rng(0),
    )


DATA = communities()
SPLIT = random_split(DATA.y, (0.5, 0.25, 0.25), generator=generator())
QUICK = Settings(epochs=20)


def forum(count=40, mean_nodes=20):
    graphs = threads(count, mean_nodes=mean_nodes, rng=np.random.default_rng(0))
    for graph in graphs:
        graph.x = torch.ones(graph.num_nodes, 1)
    return graphs, random_split(
        torch.arange(count) % 2, (0.5, 0.25, 0.25), generator=generator()
    )


def fitted(kind=GCN, data=DATA, *, seed=0, split=SPLIT, **given):
    settings = given.pop("settings", QUICK)
    return fit(
        kind(5, 2, generator=generator(seed)),
        data,
        split=split,
        generator=generator(seed),
        settings=settings,
        **given,
    )


def test_it_is_adam_on_the_cross_entropy():
    """Ten epochs give the weights and losses of the loop written out, with the penalty on the first layer alone."""
    settings = Settings(
        epochs=10, learning_rate=0.02, weight_decay=0.1, decayed="first"
    )
    model, record = fit(
        GCN(5, 2, dropout=0.0, generator=generator()),
        DATA,
        split=SPLIT,
        generator=generator(),
        settings=settings,
        better=last,
    )
    plain = GCN(5, 2, dropout=0.0, generator=generator())
    first, second = plain.layers
    groups = [
        {"params": first.parameters(), "weight_decay": 0.1},
        {"params": second.parameters()},
    ]
    optimiser = torch.optim.Adam(groups, lr=0.02)
    for epoch in record.epochs:
        optimiser.zero_grad()
        loss = functional.cross_entropy(
            plain(DATA.x, DATA.edge_index)[SPLIT.training], DATA.y[SPLIT.training]
        )
        assert epoch.training_loss == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        optimiser.step()
        logits = plain(DATA.x, DATA.edge_index)[SPLIT.validation]
        validation = functional.cross_entropy(logits, DATA.y[SPLIT.validation])
        assert epoch.validation_loss == pytest.approx(validation.item(), rel=1e-5)
        right = (logits.argmax(dim=1) == DATA.y[SPLIT.validation]).float().mean()
        assert epoch.validation_score == pytest.approx(right.item())
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert [epoch.number for epoch in record.epochs] == list(range(1, 11))
    assert (record.chosen, record.device) == (10, "cpu")
    assert record.seconds > 0


def test_the_learning_rate_is_halved():
    """On a loss with a constant gradient a step is as long as the rate: half after two epochs, a quarter after four."""
    places = []
    fitted(
        MLP,
        settings=Settings(epochs=5, learning_rate=0.5, halving=2, optimiser="sgd"),
        loss=lambda logits, targets: logits.mean(),
        hook=lambda epoch, model: places.append(model.layers[-1].bias.detach().clone()),
        better=last,
    )
    steps = torch.stack(places).diff(dim=0)[:, 0]
    torch.testing.assert_close(
        steps / steps[0], torch.tensor([1.0, 0.5, 0.5, 0.25]), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("kind", NODE_MODELS)
def test_every_model_learns_communities(kind):
    model, record = fitted(kind, settings=Settings(epochs=60))
    assert evaluate(model, DATA, SPLIT.test) >= 0.9
    assert record.epochs[-1].training_loss < record.epochs[0].training_loss


@pytest.mark.parametrize("kind", NODE_MODELS)
def test_nothing_is_learned_from_independent_labels(kind):
    """Labels of fair coins: the accuracy on 200 test nodes is that of guessing, within six standard deviations."""
    nodes = 400
    data = Data(
        x=torch.rand(nodes, 5, generator=generator()),
        edge_index=torch.randint(nodes, (2, 800), generator=generator()),
    )
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    data.y = torch.randint(2, (nodes,), generator=generator(1))
    split = random_split(data.y, (0.25, 0.25, 0.5), generator=generator())
    model, _ = fitted(kind, data, split=split)
    assert abs(evaluate(model, data, split.test) - 0.5) < 6 * 0.5 / math.sqrt(200)


@pytest.mark.parametrize("batch", [None, 7])
def test_a_seed_is_a_training(batch):
    """Dropout, batches and weights come from the generators, and the global state of torch is not touched."""
    settings = replace(QUICK, batch=batch)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, record = fitted(settings=settings)
    assert (torch.get_rng_state() == before).all()
    torch.manual_seed(6)
    same, again = fitted(settings=settings)
    _, other = fitted(seed=1, settings=settings)
    assert record.epochs == again.epochs != other.epochs
    assert all(
        (a == b).all()
        for a, b in zip(first.parameters(), same.parameters(), strict=True)
    )


def test_graphs_have_seeds_too():
    graphs, split = forum()
    losses = []
    for seed in (0, 0, 1):
        model = GIN(1, 2, hidden=8, layers=2, generator=generator(seed))
        settings = Settings(epochs=3, batch=8)
        losses.append(
            fit(
                model, graphs, split=split, generator=generator(seed), settings=settings
            )[1].epochs
        )
    assert losses[0] == losses[1] != losses[2]


def test_gin_learns_kinds_of_threads():
    graphs, split = forum(120, 100)
    model = GIN(1, 2, hidden=16, layers=3, dropout=0.0, generator=generator())
    model, _ = fit(
        model,
        graphs,
        split=split,
        generator=generator(),
        settings=Settings(epochs=25, batch=16),
    )
    assert evaluate(model, graphs, split.test, score=area_under_roc) > 0.8


def test_batches_of_nodes_see_what_they_depend_on():
    """A batch's logits on its neighbourhood are those on the whole graph, of every model."""
    nodes = torch.tensor([3, 50, 7])
    for kind in NODE_MODELS:
        model = kind(
            5, 2, generator=generator(), **({"steps": 2} if kind is APPNP else {})
        ).eval()
        part, at = neighbourhood(
            DATA, nodes, model.steps if kind is DecoupledPageRank else model.hops
        )
        torch.testing.assert_close(
            model(part.x, part.edge_index)[at], model(DATA.x, DATA.edge_index)[nodes]
        )
    assert neighbourhood(DATA, nodes, 0)[0].num_nodes == 3


def test_weights_and_sparse_features_go_along_with_a_batch():
    data = DATA.clone()
    data.x = DATA.x.to_sparse_csr()
    data.edge_weight = torch.rand(DATA.num_edges, generator=generator())
    model = GCN(5, 2, generator=generator()).eval()
    nodes = torch.tensor([3, 50, 7])
    part, at = neighbourhood(data, nodes, 2)
    whole = model(data.x, data.edge_index, data.edge_weight)[nodes]
    torch.testing.assert_close(
        model(part.x, part.edge_index, part.edge_weight)[at], whole
    )
    _, record = fitted(data=data, settings=Settings(epochs=2, batch=9))
    assert len(record.epochs) == 2


def test_a_batch_is_a_step():
    """Forty training nodes in batches of 15 are three steps of SGD: each moves the bias by the rate times its gradient."""
    steps = []

    def loss(logits, targets):
        steps.append(len(targets))
        return functional.cross_entropy(logits, targets)

    settings = Settings(epochs=2, batch=15, optimiser="sgd")
    fitted(
        settings=settings,
        loss=loss,
        split=replace(SPLIT, validation=SPLIT.validation[:0]),
        better=last,
    )
    assert steps == [15, 15, 10] * 2


def run(losses, *, patience=None, better=lower_loss, scores=None):
    """A training whose validation losses and scores are given."""
    values, accuracies = iter(losses), iter(scores or [0.0] * len(losses))
    weights = []

    def loss(logits, targets):
        real = functional.cross_entropy(logits, targets)
        return real if logits.requires_grad else torch.tensor(next(values))

    def score(logits, targets):
        return 0.0 if len(targets) == len(SPLIT.training) else next(accuracies)

    def hook(epoch, model):
        weights.append(model.layers[0].bias.detach().clone())

    settings = Settings(epochs=len(losses), patience=patience)
    model, record = fitted(
        settings=settings, loss=loss, score=score, hook=hook, better=better
    )
    return model, record, weights


def test_the_best_epoch_is_kept():
    model, record, weights = run([3.0, 1.0, 2.0, 1.0])
    assert (record.chosen, len(record.epochs)) == (2, 4)
    assert record.best.validation_loss == 1.0
    assert (model.layers[0].bias == weights[1]).all()
    assert (weights[1] != weights[3]).any()
    assert not model.training


def test_it_stops_after_patience():
    """Epochs 3 and 4 are no better than epoch 2: two in a row end the training."""
    _, record, _ = run([3.0, 1.0, 2.0, 1.0, 0.5], patience=2)
    assert (record.chosen, len(record.epochs)) == (2, 4)
    _, record, _ = run([3.0, 1.0, 2.0, 1.0, 0.5], patience=3)
    assert (record.chosen, len(record.epochs)) == (5, 5)


def test_other_criteria():
    losses, scores = [3.0, 2.0, 1.0, 4.0], [0.5, 0.9, 0.9, 0.2]
    assert run(losses, better=higher_score, scores=scores)[1].chosen == 3
    assert run(losses, better=last, scores=scores)[1].chosen == 4


def test_a_criterion_of_ones_own():
    """Keep an epoch whose loss falls and whose accuracy rises without passing .8, as LPGNN's Drop does."""

    def drop(epoch, best):
        if epoch.validation_score > 0.8:
            return False
        return best is None or (
            epoch.validation_loss < best.validation_loss
            and epoch.validation_score > best.validation_score
        )

    assert (
        run([3.0, 2.0, 1.0, 0.5], better=drop, scores=[0.5, 0.7, 0.9, 0.6])[1].chosen
        == 2
    )
    with pytest.raises(
        TrainingError, match="none of 2 epochs met the criterion 'drop'"
    ):
        run([3.0, 2.0], better=drop, scores=[0.9, 0.9])


def test_a_hook_may_change_the_targets():
    """From the second epoch on all labels are swapped: a model that has not moved far errs where it was right."""
    seen = []

    def hook(epoch, model):
        seen.append(epoch)
        return 1 - DATA.y if epoch.number == 1 else None

    _, record = fitted(
        settings=Settings(epochs=2, learning_rate=1e-6), hook=hook, better=last
    )
    assert seen == list(record.epochs)
    assert record.epochs[0].validation_score + record.epochs[
        1
    ].validation_score == pytest.approx(1)


def test_the_callers_data_stays():
    before = DATA.clone()
    fitted()
    assert set(DATA.keys()) == set(before.keys())
    assert all((DATA[key] == before[key]).all() for key in ("x", "edge_index", "y"))


def test_isolated_nodes_and_graphs_without_nodes():
    lonely = Data(x=DATA.x, y=DATA.y, edge_index=DATA.edge_index[:, :0], num_nodes=80)
    for kind in NODE_MODELS:
        model, record = fitted(kind, lonely)
        assert torch.isfinite(predict(model, lonely)).all()
        assert math.isfinite(record.best.validation_loss)
    graphs, split = forum()
    graphs[int(split.training[0])] = Data(
        x=torch.empty(0, 1),
        edge_index=torch.empty(2, 0, dtype=torch.long),
        y=torch.tensor([0]),
        num_nodes=0,
    )
    model, record = fit(
        GIN(1, 2, hidden=4, layers=2, generator=generator()),
        graphs,
        split=split,
        generator=generator(),
        settings=Settings(epochs=2),
    )
    assert torch.isfinite(predict(model, graphs)).all()


def test_a_class_without_training_nodes_is_recorded():
    data = DATA.clone()
    data.y = data.y.clone()
    data.y[SPLIT.test[:3]] = 2
    _, record = fit(
        GCN(5, 3, generator=generator()),
        data,
        split=SPLIT,
        generator=generator(),
        settings=QUICK,
    )
    assert record.untrained_classes == (2,)
    assert fitted()[1].untrained_classes == ()


def test_several_classes_each():
    data = DATA.clone()
    data.y = functional.one_hot(DATA.y, 2).float()
    _, record = fitted(
        data=data,
        loss=functional.binary_cross_entropy_with_logits,
        settings=Settings(epochs=60),
    )
    assert record.best.validation_score > 0.9


def changed(**values):
    data = DATA.clone()
    for key, value in values.items():
        data[key] = value
    return data


NAN = torch.where(torch.arange(80)[:, None] == 3, math.nan, DATA.x)
NOTHING = torch.empty(0, dtype=torch.long)
EMPTY = Data(
    x=torch.empty(0, 5),
    edge_index=torch.empty(2, 0, dtype=torch.long),
    y=NOTHING,
    num_nodes=0,
)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fitted(data=EMPTY), DataError, "no nodes to train on"),
        (lambda: fitted(data=[]), DataError, "no nodes to train on"),
        (lambda: fitted(data=changed(x=None)), DataError, "no features x; make some"),
        (
            lambda: fitted(data=changed(x=DATA.x[:9], num_nodes=80)),
            DataError,
            "80 nodes, and features x of 9",
        ),
        (
            lambda: fitted(data=changed(x=DATA.x.long())),
            DataError,
            r"features x of torch.int64.*x.float\(\)",
        ),
        (lambda: fitted(data=changed(x=NAN)), DataError, "NaN or infinite; clean them"),
        (
            lambda: fitted(data=changed(x=NAN.to_sparse_csr())),
            DataError,
            "NaN or infinite",
        ),
        (lambda: fitted(data=changed(y=None)), DataError, "no labels y"),
        (
            lambda: fitted(data=changed(y=-torch.ones(80).long())),
            DataError,
            "40 of 40 training items have no label",
        ),
        (
            lambda: fitted(data=changed(y=torch.ones(80).long())),
            DataError,
            "of class 1: there is nothing to learn",
        ),
        (
            lambda: fitted(data=changed(y=3 * DATA.y)),
            DataError,
            "labels go up to 3, the model has 2 classes; make it with 4",
        ),
        (
            lambda: fitted(data=changed(y=torch.zeros(80, 3))),
            DataError,
            "labels have 3 columns, the model 2",
        ),
        (
            lambda: fitted(data=changed(edge_index=torch.tensor([[0], [99]]))),
            DataError,
            "edges between nodes 0 to 99, and 80 nodes",
        ),
        (
            lambda: fitted(data=changed(edge_index=torch.tensor([[4], [4]]))),
            DataError,
            "self-loops.*remove_self_loops",
        ),
        (
            lambda: fitted(split=replace(SPLIT, test=torch.tensor([80]))),
            DataError,
            "ids from 0 to 80, the data only 0 to 79",
        ),
        (
            lambda: fitted(split=replace(SPLIT, validation=NOTHING)),
            ConfigurationError,
            "no validation part.*better=",
        ),
        (
            lambda: fitted(loss=lambda logits, targets: logits.sum() * math.nan),
            TrainingError,
            "training loss of epoch 1 is nan.*learning rate smaller than 0.01",
        ),
        (
            lambda: fitted(settings=Settings(learning_rate=1e30, optimiser="sgd")),
            TrainingError,
            "loss of epoch .* is (nan|inf)",
        ),
        (
            lambda: fitted(device="tpu9"),
            ConfigurationError,
            "no device 'tpu9'.*use 'cpu' or 'cuda'",
        ),
        (
            lambda: fitted(hook=lambda epoch, model: 5 * DATA.y),
            DataError,
            "labels go up to 5",
        ),
        (
            lambda: fitted(hook=lambda epoch, model: DATA.y[:3]),
            DataError,
            r"targets of shape \(3,\), expected \(80,\)",
        ),
        (lambda: evaluate(fitted()[0], DATA, NOTHING), DataError, "at least one node"),
        (
            lambda: Settings(epochs=0),
            ConfigurationError,
            "epochs, an integer >= 1, got 0",
        ),
        (
            lambda: Settings(learning_rate=0.0),
            ConfigurationError,
            "learning_rate, a finite number > 0",
        ),
        (lambda: Settings(weight_decay=-1.0), ConfigurationError, "weight_decay in"),
        (lambda: Settings(patience=0), ConfigurationError, "patience"),
        (lambda: Settings(batch=0), ConfigurationError, "batch"),
        (lambda: Settings(halving=0), ConfigurationError, "halving"),
        (lambda: Settings(decayed="frist"), ConfigurationError, "did you mean 'first'"),
        (
            lambda: Settings(optimiser="adamm"),
            ConfigurationError,
            "did you mean 'adam'",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_cuda_is_refused_where_there_is_none():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ConfigurationError, match=r"finds no CUDA device.*device='cpu'"):
        fitted(device="cuda")


def test_seeded_gives_the_global_state_back_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="shape"), seeded(generator()):
        torch.rand(3).reshape(2)
    assert (torch.get_rng_state() == before).all()


def test_criteria_are_ordered_by_what_they_name():
    better, worse = Epoch(2, 1.0, 0.5, 0.5, 0.6), Epoch(1, 1.0, 0.5, 0.6, 0.7)
    assert lower_loss(better, worse)
    assert not lower_loss(worse, better)
    assert higher_score(worse, better)
    assert not higher_score(better, better)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", NODE_MODELS)
def test_cuda_trains_alike_twice(kind):
    first, second = (fitted(kind, device="cuda")[1] for _ in range(2))
    assert first.epochs == second.epochs
    assert first.device.startswith("cuda")
    on_cpu = fitted(kind)[1]
    assert first.epochs[-1].training_score == pytest.approx(
        on_cpu.epochs[-1].training_score, abs=0.2
    )
