"""DP-SGD against a loop over examples; sampling, clipping and noise against their definition."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from auditdp.accountants import AccountantError, PLDUpper
from auditdp.errors import ConfigurationError
from gnn.datasets.generated import stochastic_block_model
from gnn.models import APPNP, GAT, GCN, GIN, MLP, DecoupledPageRank, GraphSAGE
from gnn.training import (
    PageRankRows,
    PrivateSettings,
    Rows,
    ego_graphs,
    evaluate,
    fit_private,
    noise_for,
)
from gnn.training.gradients import (
    by_functorch,
    by_opacus,
    clipped_by_layers,
    clipped_sum,
    noisy_mean,
    weights_of,
)
from gnn.training.private import sample
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import generator

CPU = torch.device("cpu")
DATA = stochastic_block_model(
    [30, 30],
    inside=0.1,
    across=0.02,
    features=5,
    signal=3.0,
    rng=np.random.default_rng(0),
)
QUIET = PrivateSettings(
    steps=5,
    noise_multiplier=0.0,
    clipping_norm=0.3,
    batch=6.0,
    rate=0.1,
    optimiser="sgd",
)


def mlp(seed=0):
    return MLP(5, 2, hidden=4, generator=generator(seed))


def pagerank_rows():
    neighbours = torch.randint(60, (60, 3), generator=generator())
    return PageRankRows(DATA.x, neighbours, torch.rand(60, 3, generator=generator(1)))


def of_one(model, examples, number):
    """The logits of an example by an ordinary call of the model."""
    if isinstance(examples, Rows):
        return model(examples.x[number : number + 1])[0]
    if isinstance(examples, PageRankRows):
        ids, weights = examples.neighbours[number], examples.weights[number]
        return sum(
            w * model(examples.x[i : i + 1])[0]
            for i, w in zip(ids.tolist(), weights, strict=True)
        )
    return model(DATA.x, DATA.edge_index)[number]


CASES = {
    "rows": (mlp, lambda: Rows(DATA.x)),
    "sparse rows": (mlp, lambda: Rows(DATA.x.to_sparse_csr())),
    "mixed rows": (mlp, pagerank_rows),
    "GraphSAGE": (
        lambda: GraphSAGE(5, 2, hidden=4, generator=generator()),
        lambda: ego_graphs(DATA, torch.arange(60), hops=2),
    ),
    "GAT": (
        lambda: GAT(5, 2, hidden=2, heads=2, generator=generator()),
        lambda: ego_graphs(DATA, torch.arange(60), hops=2),
    ),
    "GCN": (
        lambda: GCN(5, 2, hidden=4, generator=generator()),
        lambda: ego_graphs(DATA, torch.arange(60), hops=3),
    ),
    "APPNP": (
        lambda: APPNP(5, 2, hidden=4, steps=2, generator=generator()),
        lambda: ego_graphs(DATA, torch.arange(60), hops=3),
    ),
}


def looped(model, examples, index):
    """Gradients one example after the other, by backward passes on the whole graph."""
    found = {name: [] for name in weights_of(model)}
    for number in index.tolist():
        model.zero_grad()
        functional.cross_entropy(
            of_one(model, examples, number)[None], DATA.y[number][None]
        ).backward()
        for name, weight in weights_of(model).items():
            found[name].append(weight.grad.clone())
    model.zero_grad()
    return {name: torch.stack(each) for name, each in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_a_loop(case):
    """For every kind of example and model, on the whole graph: each example's gradient is that of its loss alone."""
    model, examples = CASES[case][0]().eval(), CASES[case][1]()
    if case == "sparse rows":
        dense = Rows(DATA.x)
    index = torch.tensor([3, 17, 44, 3])
    inputs = examples.batch(index, CPU)
    gradients, losses, logits = by_functorch(
        model, examples, inputs, DATA.y[index], functional.cross_entropy
    )
    expected = looped(model, dense if case == "sparse rows" else examples, index)
    for name, each in expected.items():
        torch.testing.assert_close(gradients[name], each)
    torch.testing.assert_close(
        losses, functional.cross_entropy(logits, DATA.y[index], reduction="none")
    )
    assert max(float(each.abs().max()) for each in expected.values()) > 1e-3


@pytest.mark.parametrize("case", ["rows", "sparse rows", "mixed rows"])
@pytest.mark.parametrize("clipping_norm", [0.3, math.inf])
def test_sums_by_layers_are_those_of_clipped_gradients(case, clipping_norm):
    model, examples, index = mlp(), CASES[case][1](), torch.tensor([3, 17, 44, 3])
    given = (
        model,
        examples,
        examples.batch(index, CPU),
        DATA.y[index],
        functional.cross_entropy,
    )
    gradients, losses, logits = by_functorch(*given)
    found, each, outputs = clipped_by_layers(*given, clipping_norm)
    expected = clipped_sum(gradients, clipping_norm)
    assert list(found) == list(expected)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)
    torch.testing.assert_close(each, losses)
    torch.testing.assert_close(outputs, logits)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(
        dim=0
    )
    assert float(norms.max()) > 0.3  # some are clipped


def test_sums_by_layers_take_a_single_layer_and_refuse_others():
    examples, index = Rows(DATA.x), torch.tensor([3, 17])
    rest = examples.batch(index, CPU), DATA.y[index], functional.cross_entropy
    line = nn.Linear(5, 2, bias=False)
    expected = clipped_sum(by_functorch(line, examples, *rest)[0], 0.3)
    torch.testing.assert_close(
        clipped_by_layers(line, examples, *rest, 0.3)[0], expected
    )
    with pytest.raises(
        ConfigurationError,
        match=r"1\.weight of Sequential on Rows; use gradients='functorch'",
    ):
        clipped_by_layers(
            nn.Sequential(nn.Linear(5, 2), nn.LayerNorm(2)), examples, *rest, 0.3
        )


def test_opacus_gives_the_same_gradients():
    pytest.importorskip("opacus")
    model, examples, index = mlp(), Rows(DATA.x), torch.tensor([3, 17, 44])
    given = examples.batch(index, CPU), DATA.y[index], functional.cross_entropy
    for ours, theirs in zip(
        by_functorch(model, examples, *given),
        by_opacus(model, examples, *given),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)
    assert not hasattr(next(model.parameters()), "grad_sample")


def test_a_step_is_opacus_own():
    """Opacus' optimiser, without noise, moves the weights as we do: clipped sum over the expected batch size."""
    opacus = pytest.importorskip("opacus")
    batch = torch.arange(60)
    settings = replace(QUIET, steps=1, rate=1.0, batch=60.0)
    ours, _ = fit_private(
        mlp(), Rows(DATA.x), DATA.y, settings=settings, generator=generator()
    )
    theirs = opacus.GradSampleModule(mlp())
    optimiser = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(theirs.parameters(), lr=0.01),
        noise_multiplier=0.0,
        max_grad_norm=0.3,
        expected_batch_size=60,
    )
    functional.cross_entropy(theirs(DATA.x[batch]), DATA.y[batch]).backward()
    optimiser.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("how", ["functorch", "opacus"])
def test_a_training_is_the_loop_written_out(how):
    """Five steps with noise: Poisson coins, clipping by a loop, noise and division, from the same generator."""
    settings = replace(QUIET, noise_multiplier=0.7, gradients=how, chunk=2)
    if how == "opacus":
        pytest.importorskip("opacus")
    model, _ = fit_private(
        mlp(), Rows(DATA.x), DATA.y, settings=settings, generator=generator(9)
    )
    plain, coins = mlp(), generator(9)
    torch.randint(2**63 - 1, (), generator=coins)  # the seed of dropout
    for _ in range(5):
        index = (
            (torch.rand(60, dtype=torch.float64, generator=coins) < 0.1)
            .nonzero()
            .squeeze(1)
        )
        total = {
            name: torch.zeros_like(weight) for name, weight in weights_of(plain).items()
        }
        for number in index.tolist():
            one = looped(plain, Rows(DATA.x), torch.tensor([number]))
            norm = math.sqrt(sum(float(each.square().sum()) for each in one.values()))
            for name, each in one.items():
                total[name] += each[0] * min(1.0, 0.3 / norm)
        for name, weight in weights_of(plain).items():
            noise = 0.7 * 0.3 * torch.randn(weight.shape, generator=coins)
            weight.data -= 0.01 * (total[name] + noise) / 6.0
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_no_example_adds_more_than_the_clipping_norm():
    gradients = {
        "a": torch.tensor([[3.0, 0.0], [0.1, 0.0], [0.0, 0.0]]),
        "b": torch.tensor([4.0, 0.1, 0.0]),
    }
    one = [
        clipped_sum({name: each[i : i + 1] for name, each in gradients.items()}, 0.5)
        for i in range(3)
    ]
    torch.testing.assert_close(
        one[0], {"a": torch.tensor([0.3, 0.0]), "b": torch.tensor(0.4)}
    )
    torch.testing.assert_close(
        one[1], {"a": torch.tensor([0.1, 0.0]), "b": torch.tensor(0.1)}
    )
    torch.testing.assert_close(one[2], {"a": torch.zeros(2), "b": torch.tensor(0.0)})
    together = clipped_sum(gradients, 0.5)
    torch.testing.assert_close(together["a"], one[0]["a"] + one[1]["a"])
    torch.testing.assert_close(clipped_sum(gradients, math.inf)["b"], torch.tensor(4.1))


def test_neighbouring_sums_differ_by_at_most_the_clipping_norm():
    model, examples = mlp(), Rows(1000 * DATA.x)
    gradients, _, _ = by_functorch(
        model, examples, (examples.x,), DATA.y, functional.cross_entropy
    )
    whole = clipped_sum(gradients, 0.3)
    for number in range(0, 60, 10):
        rest = clipped_sum(
            {
                name: torch.cat([g[:number], g[number + 1 :]])
                for name, g in gradients.items()
            },
            0.3,
        )
        difference = math.sqrt(
            sum(float((whole[name] - rest[name]).square().sum()) for name in whole)
        )
        assert difference <= 0.3 * (1 + 1e-4)


def test_noise_has_its_deviation():
    """Of 200,000 entries: mean within 6 σ/√n, variance within 6 σ²√(2/n), and every entry has noise of its own."""
    n, deviation = 200_000, 2.5
    noise = noisy_mean(
        {"a": torch.zeros(n)}, deviation=deviation, batch=1.0, generator=generator()
    )["a"].double()
    assert abs(float(noise.mean())) < 6 * deviation / math.sqrt(n)
    assert abs(float(noise.var()) - deviation**2) < 6 * deviation**2 * math.sqrt(2 / n)
    assert len(noise.unique()) > 0.9 * n
    total = {"a": torch.ones(3)}
    assert (
        noisy_mean(total, deviation=0.0, batch=4.0, generator=generator())["a"].tolist()
        == [0.25] * 3
    )


def test_the_noise_of_a_training_is_relative_to_the_clipping_norm():
    """Without examples' gradients a step of SGD at rate 1 moves weights by N(0, (σC/batch)²): 100,000 of them."""

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(1, 1)])
            self.weight = nn.Parameter(torch.zeros(100_000))

        def forward(self, x):
            return torch.cat([x, -x], dim=1) + 0 * self.weight.sum()

    settings = PrivateSettings(
        steps=1,
        noise_multiplier=3.0,
        clipping_norm=0.2,
        batch=4.0,
        rate=0.5,
        learning_rate=1.0,
        optimiser="sgd",
    )
    model, _ = fit_private(
        Flat(),
        Rows(torch.ones(8, 1)),
        DATA.y[:8],
        settings=settings,
        generator=generator(),
    )
    moved = model.weight.detach().double()
    expected = (3.0 * 0.2 / 4.0) ** 2
    assert abs(float(moved.var()) - expected) < 6 * expected * math.sqrt(2 / 100_000)


def test_poisson_batches():
    """Sizes of 2,000 batches of 50 coins at .2 have a binomial's mean and variance, and each example its own rate."""
    coins, settings = generator(), replace(QUIET, rate=0.2)
    taken = torch.zeros(2000, 50)
    for row in taken:
        row[sample(50, settings, generator=coins)] = 1
    sizes = taken.sum(dim=1)
    assert abs(float(sizes.mean()) - 10) < 6 * math.sqrt(8 / 2000)
    assert abs(float(sizes.var()) - 8) < 6 * 8 * math.sqrt(2 / 2000)
    assert (abs(taken.mean(dim=0) - 0.2) < 6 * math.sqrt(0.16 / 2000)).all()
    together = float((taken[:, 0] * taken[:, 1]).mean())
    assert abs(together - 0.04) < 6 * math.sqrt(0.04 * 0.96 / 2000)
    assert sample(50, replace(QUIET, rate=1.0), generator=coins).tolist() == list(
        range(50)
    )


def test_batches_of_fixed_size():
    """Without repetition, and each example in 10 of 50 as often as any other."""
    coins, settings = generator(), replace(QUIET, rate=None, batch=10)
    taken = torch.zeros(2000, 50)
    for row in taken:
        row[sample(50, settings, generator=coins)] = 1
    assert (taken.sum(dim=1) == 10).all()
    assert (abs(taken.mean(dim=0) - 0.2) < 6 * math.sqrt(0.16 / 2000)).all()


def test_empty_batches_still_get_noise():
    settings = replace(QUIET, rate=1e-9, noise_multiplier=1.0)
    model, record = fit_private(
        mlp(), Rows(DATA.x), DATA.y, settings=settings, generator=generator()
    )
    assert math.isnan(record.best.training_loss)
    assert all(
        (a != b).any()
        for a, b in zip(model.parameters(), mlp().parameters(), strict=True)
    )


def test_a_seed_is_a_private_training():
    settings = replace(QUIET, noise_multiplier=1.0)

    def weights(seed):
        model = MLP(5, 2, hidden=4, dropout=0.5, generator=generator())
        found = fit_private(
            model, Rows(DATA.x), DATA.y, settings=settings, generator=generator(seed)
        )[0]
        return torch.cat([weight.detach().flatten() for weight in found.parameters()])

    torch.manual_seed(0)
    first = weights(0)
    torch.manual_seed(1)
    assert (weights(0) == first).all()
    assert (weights(1) != first).any()


@pytest.mark.parametrize("case", ["rows", "GraphSAGE"])
def test_it_learns_with_little_noise(case):
    make, examples = CASES[case]
    settings = replace(
        QUIET,
        steps=120,
        noise_multiplier=0.1,
        clipping_norm=1.0,
        rate=0.3,
        batch=18.0,
        optimiser="adam",
    )
    model, record = fit_private(
        make(), examples(), DATA.y, settings=settings, generator=generator()
    )
    assert evaluate(model, DATA, torch.arange(60)) > 0.9
    assert len(record.epochs) == math.ceil(120 / 3)


def test_decoupled_pagerank_trains_on_mixed_rows():
    """Each node mixes itself and a neighbour; inference is by power iteration."""
    first = torch.tensor(
        [int(DATA.edge_index[1][DATA.edge_index[0] == n][:1].sum()) for n in range(60)]
    )
    examples = PageRankRows(
        DATA.x, torch.stack([torch.arange(60), first], dim=1), torch.full((60, 2), 0.5)
    )
    model = DecoupledPageRank(5, 2, hidden=8, generator=generator())
    settings = replace(
        QUIET, steps=100, clipping_norm=1.0, rate=0.3, batch=18.0, optimiser="adam"
    )
    fit_private(model.mlp, examples, DATA.y, settings=settings, generator=generator())
    assert evaluate(model, DATA, torch.arange(60)) > 0.9


def test_ego_graphs_by_hand():
    """Arcs 1 → 0, 2 → 1, 3 → 2: one hop of node 0 is 1 → 0, two are 2 → 1 → 0, and node 3 has no arc into it."""
    data = DATA.clone()
    data.edge_index, data.num_nodes, data.x = (
        torch.tensor([[1, 2, 3], [0, 1, 2]]),
        4,
        torch.arange(8.0).reshape(4, 2),
    )
    one, two = (ego_graphs(data, torch.tensor([0, 3]), hops=hops) for hops in (1, 2))
    assert one.members.tolist() == [[0, 1, 4], [3, 4, 4]]
    assert one.arcs.tolist() == [[[1], [0]], [[2], [2]]]
    assert two.members.tolist() == [[0, 1, 2, 4], [3, 4, 4, 4]]
    assert two.arcs.tolist() == [[[1, 2], [0, 1]], [[3, 3], [3, 3]]]
    x, _ = one.batch(torch.tensor([1]), CPU)
    assert x.tolist() == [[[6, 7], [0, 0], [0, 0]]]


def test_noise_is_solved_for():
    """The returned noise multiplier meets the target by its accountant, and a little less does not."""
    found = noise_for(2.0, 1e-5, rate=0.1, steps=50)
    settings = replace(QUIET, noise_multiplier=found.value, rate=0.1, steps=50)
    assert (
        settings.epsilon(1e-5)
        <= 2.0
        < PLDUpper(0.99 * found.value, 0.1, 50).epsilon_at(1e-5)
    )
    assert QUIET.epsilon(1e-5) == math.inf
    with pytest.raises(AccountantError):
        noise_for(2.0, 1.5, rate=0.1, steps=50)


def private(model=None, examples=None, targets=None, **changed):
    given = Rows(DATA.x) if examples is None else examples
    labels = DATA.y if targets is None else targets
    return fit_private(
        model or mlp(),
        given,
        labels,
        settings=replace(QUIET, **changed),
        generator=generator(),
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: private(GIN(5, 2, generator=generator())),
            ConfigurationError,
            "normalises batches.*LayerNorm",
        ),
        (
            lambda: private(targets=DATA.y[:9]),
            DataError,
            "a label >= 0 for each of 60 examples",
        ),
        (lambda: private(targets=DATA.y - 1), DataError, "a label >= 0"),
        (
            lambda: private(examples=Rows(DATA.x[:0]), targets=DATA.y[:0]),
            DataError,
            "of 0 examples, at least one",
        ),
        (
            lambda: private(rate=None, batch=61),
            DataError,
            "batches of at most 60 examples, got batch=61",
        ),
        (
            lambda: private(examples=Rows(DATA.x * math.nan)),
            TrainingError,
            "training loss of epoch 1 is nan",
        ),
        (
            lambda: private(examples=pagerank_rows(), gradients="opacus"),
            ConfigurationError,
            "not of PageRankRows",
        ),
        (lambda: replace(QUIET, steps=0), ConfigurationError, "steps"),
        (
            lambda: replace(QUIET, noise_multiplier=-1.0),
            ConfigurationError,
            "noise_multiplier",
        ),
        (
            lambda: replace(QUIET, clipping_norm=0.0),
            ConfigurationError,
            "clipping_norm > 0, got 0.0",
        ),
        (
            lambda: replace(QUIET, clipping_norm=math.inf, noise_multiplier=1.0),
            ConfigurationError,
            "infinite; give a finite",
        ),
        (lambda: replace(QUIET, rate=1.5), ConfigurationError, "rate, a probability"),
        (
            lambda: replace(QUIET, rate=None, batch=1.5),
            ConfigurationError,
            "whole number",
        ),
        (lambda: replace(QUIET, batch=0.0), ConfigurationError, "batch"),
        (
            lambda: replace(QUIET, gradients="functorc"),
            ConfigurationError,
            "did you mean 'functorch'",
        ),
        (lambda: replace(QUIET, chunk=0), ConfigurationError, "chunk"),
        (
            lambda: replace(QUIET, optimiser="rmsprop"),
            ConfigurationError,
            "no optimiser 'rmsprop'",
        ),
        (
            lambda: replace(QUIET, rate=None).epsilon(1e-5),
            ConfigurationError,
            "auditdp.accountants.dp_sgd_batches",
        ),
        (
            lambda: PageRankRows(DATA.x, torch.zeros(3, 2).long(), torch.zeros(3)),
            DataError,
            "one shape",
        ),
        (
            lambda: ego_graphs(DATA, torch.arange(3), hops=0),
            ConfigurationError,
            "hops, an integer >= 1",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_opacus_says_which_layers_it_has_no_rule_for():
    pytest.importorskip("opacus")

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(5))
            self.running = nn.InstanceNorm1d(5, track_running_stats=True, affine=True)

        def forward(self, x):
            return self.running((x * self.scale)[..., None])[..., 0]

    with pytest.raises(
        ConfigurationError, match=r"Opacus refuses Odd.*use gradients='functorch'"
    ):
        private(Odd(), gradients="opacus")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", CASES)
def test_cuda_trains_as_the_cpu_does(case):
    """The same coins and noise: the weights differ by rounding alone."""
    trained = []
    for device in ("cpu", "cuda"):
        model, examples = CASES[case][0]().eval(), CASES[case][1]()
        for module in model.modules():
            if hasattr(module, "dropout") and isinstance(module.dropout, float):
                module.dropout = 0.0
        settings = replace(QUIET, noise_multiplier=1.0)
        fit_private(
            model,
            examples,
            DATA.y,
            settings=settings,
            generator=generator(),
            device=device,
        )
        trained.append([weight.detach().cpu() for weight in model.parameters()])
    torch.testing.assert_close(*trained, rtol=1e-3, atol=1e-5)
