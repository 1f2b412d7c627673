"""DP-SGD against a loop over examples; sampling, clipping and noise."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn, tensor
from torch.nn import functional
from torch.testing import assert_close

from auditdp.accountants import AccountantError, PLDUpper
from auditdp.errors import ConfigurationError
from gnn.models import APPNP, GAT, GCN, GIN, MLP, GraphSAGE
from gnn.training import (
    PageRankRows,
    PrivateSettings,
    Rows,
    ego_graphs,
    fit_private,
    noise_for,
)
from gnn.training.gradients import (
    by_functorch,
    clipped_by_layers,
    clipped_sum,
    weights_of,
)
from gnn.training.private import sample
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import flat, generator, two_communities

parametrize = pytest.mark.parametrize

CPU = torch.device("cpu")
DATA = two_communities(30, inside=0.1)
QUIET = PrivateSettings(
    steps=5,
    noise_multiplier=0.0,
    clipping_norm=0.3,
    batch=6.0,
    rate=0.1,
    optimiser="sgd",
)
INDEX = tensor([3, 17, 44, 3])
LOSS = functional.cross_entropy


def mlp(seed=0):
    return MLP(5, 2, hidden=4, generator=generator(seed))


def trained(model=None, examples=None, targets=DATA.y, seed=0, **changed):
    return fit_private(
        model or mlp(),
        examples or Rows(DATA.x),
        targets,
        settings=replace(QUIET, **changed),
        generator=generator(seed),
    )


# Gradients


def network(kind, **options):
    return kind(5, 2, generator=generator(), **options).eval()


MIXED = PageRankRows(
    DATA.x,
    torch.randint(60, (60, 3), generator=generator()),
    torch.rand(60, 3, generator=generator(1)),
)
ROWS = {
    "rows": Rows(DATA.x),
    "sparse rows": Rows(DATA.x.to_sparse_csr()),
    "mixed rows": MIXED,
}


def on_egos(hops, kind, **options):
    examples = ego_graphs(DATA, torch.arange(60), hops=hops)
    return lambda: network(kind, **options), examples


CASES = {name: (mlp, examples) for name, examples in ROWS.items()}
CASES |= {
    "GraphSAGE": on_egos(2, GraphSAGE, hidden=4),
    "GAT": on_egos(2, GAT, hidden=2, heads=2),
    "GCN": on_egos(3, GCN, hidden=4),
    "APPNP": on_egos(3, APPNP, hidden=4, steps=2),
}


def logits_of_one(model, examples, number):
    """The logits of an example by an ordinary call of the model."""
    if isinstance(examples, Rows):
        return model(DATA.x[number : number + 1])[0]

    if not isinstance(examples, PageRankRows):
        return model(DATA.x, DATA.edge_index)[number]

    each = model(examples.x[examples.neighbours[number]])
    return (examples.weights[number, :, None] * each).sum(dim=0)


def looped(model, examples, number):
    """The gradient of an example, by a backward pass on the whole graph."""
    model.zero_grad()
    logits = logits_of_one(model, examples, number)
    LOSS(logits[None], DATA.y[number][None]).backward()
    found = {name: weight.grad.clone() for name, weight in weights_of(model).items()}
    model.zero_grad()
    return found


def arguments_of(model, examples):
    return model, examples, examples.batch(INDEX, CPU), DATA.y[INDEX], LOSS


@parametrize("case", CASES)
def test_gradients_are_those_of_a_loop(case):
    make, examples = CASES[case]
    model = make()
    gradients, losses, logits = by_functorch(*arguments_of(model, examples))
    for place, number in enumerate(INDEX.tolist()):
        for name, each in looped(model, examples, number).items():
            assert_close(gradients[name][place], each)

    assert_close(losses, LOSS(logits, DATA.y[INDEX], reduction="none"))
    assert max(float(each.abs().max()) for each in gradients.values()) > 1e-3


@parametrize("name", ROWS)
@parametrize("clipping_norm", [0.3, math.inf])
@parametrize("model", [mlp(), nn.Linear(5, 2, bias=False)])
def test_sums_by_layers_are_those_of_clipped_gradients(name, clipping_norm, model):
    given = arguments_of(model, ROWS[name])
    gradients, losses, logits = by_functorch(*given)
    expected = clipped_sum(gradients, clipping_norm)
    found = clipped_by_layers(*given, clipping_norm)

    assert_close(found, (expected, losses, logits))

    parts = [each.flatten(1) for each in gradients.values()]
    norms = torch.cat(parts, dim=1).norm(dim=1)
    assert norms.max() > 0.3


@parametrize(
    ("norm", "first", "second"),
    [
        (0.5, [0.4, 0.0], 0.5),
        (math.inf, [3.1, 0.0], 4.1),
    ],
)
def test_clipped_sums_by_hand(norm, first, second):
    """Norms 5, .1·√2 and 0, clipped over both weights together."""
    gradients = {
        "a": tensor(
            [
                [3.0, 0.0],
                [0.1, 0.0],
                [0.0, 0.0],
            ]
        ),
        "b": tensor([4.0, 0.1, 0.0]),
    }
    expected = {"a": tensor(first), "b": tensor(second)}

    assert_close(clipped_sum(gradients, norm), expected)


# Trainings


@parametrize("how", ["functorch", "layers", "opacus"])
def test_a_training_is_the_loop_written_out(how):
    """Poisson coins, clipping by a loop, noise and division, from the same generator."""
    if how == "opacus":
        pytest.importorskip("opacus")

    model, _ = trained(noise_multiplier=0.7, gradients=how, chunk=2, seed=9)
    plain, coins = mlp(), generator(9)
    weights = weights_of(plain)
    torch.randint(2**63 - 1, (), generator=coins)  # This is the seed of dropout.
    for _ in range(5):
        uniform = torch.rand(60, dtype=torch.float64, generator=coins)
        total = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        for number in (uniform < 0.1).nonzero():
            one = looped(plain, ROWS["rows"], number.item())
            parts = [each.flatten() for each in one.values()]
            norm = float(torch.cat(parts).norm())
            for name, each in one.items():
                total[name] += each * min(1.0, 0.3 / norm)
        for name, weight in weights.items():
            noise = 0.7 * 0.3 * torch.randn(weight.shape, generator=coins)
            weight.data -= 0.01 * (total[name] + noise) / 6.0

    assert_close(flat(model), flat(plain))


REPEATS = 2000
ROOT = math.sqrt(REPEATS)


def batches(rate):
    """2,000 batches of 50 examples, as coins."""
    coins, settings = generator(), replace(QUIET, rate=rate, batch=10)
    taken = torch.zeros(REPEATS, 50)
    for row in taken:
        row[sample(50, settings, generator=coins)] = 1

    assert (abs(taken.mean(dim=0) - 0.2) < 6 * 0.4 / ROOT).all()
    return taken


def test_fixed_batches_have_one_size():
    assert (batches(None).sum(dim=1) == 10).all()


def test_poisson_batches_have_binomial_sizes():
    """Within 6 standard deviations."""
    taken = batches(0.2)
    sizes = taken.sum(dim=1)
    assert abs(float(sizes.mean()) - 10) < 6 * math.sqrt(8) / ROOT
    assert abs(float(sizes.var()) - 8) < 6 * 8 * math.sqrt(2) / ROOT
    together = float((taken[:, 0] * taken[:, 1]).mean())
    assert abs(together - 0.04) < 6 * math.sqrt(0.04 * 0.96) / ROOT


def test_empty_batches_still_get_noise():
    model, record = trained(rate=1e-9, noise_multiplier=1.0)
    assert math.isnan(record.best.training_loss)
    assert (flat(model) != flat(mlp())).all()


def test_a_training_is_a_function_of_its_seed():
    """Whatever the global state of torch is, and with dropout."""
    found = []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)
        model = network(MLP, hidden=4, dropout=0.5)
        found.append(flat(trained(model, noise_multiplier=1.0, seed=seed)[0]))

    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_the_noise_for_a_target_is_the_smallest():
    found = noise_for(2.0, 1e-5, rate=0.1, steps=50).value
    settings = replace(QUIET, noise_multiplier=found, rate=0.1, steps=50)

    assert settings.epsilon(1e-5) <= 2.0
    assert PLDUpper(0.99 * found, 0.1, 50).epsilon_at(1e-5) > 2.0
    assert QUIET.epsilon(1e-5) == math.inf
    with pytest.raises(AccountantError):
        noise_for(2.0, 1.5, rate=0.1, steps=50)


def by_layers_of_a_norm():
    model = nn.Sequential(nn.Linear(5, 2), nn.LayerNorm(2))
    return clipped_by_layers(*arguments_of(model, ROWS["rows"]), 0.3)


@parametrize(
    ("call", "error", "message"),
    [
        (by_layers_of_a_norm, ConfigurationError, r"1\.weight of Sequential on Rows"),
        (lambda: trained(network(GIN)), ConfigurationError, "normalises batches"),
        (lambda: trained(targets=DATA.y[:9]), DataError, "for each of 60 examples"),
        (lambda: trained(rate=None, batch=61), DataError, "got batch=61"),
        (
            lambda: trained(examples=Rows(DATA.x * math.nan)),
            TrainingError,
            "training loss of epoch 1 is nan",
        ),
        (
            lambda: replace(QUIET, rate=None).epsilon(1e-5),
            ConfigurationError,
            "dp_sgd_batches",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


@parametrize(
    ("changes", "message"),
    [
        ({"clipping_norm": 0.0}, "clipping_norm > 0, got 0.0"),
        ({"clipping_norm": math.inf, "noise_multiplier": 1.0}, "infinite; give a"),
    ],
)
def test_settings_outside_their_range_are_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        replace(QUIET, **changes)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@parametrize("case", CASES)
def test_cuda_trains_as_the_cpu_does(case):
    """The same coins and noise: the weights differ by rounding alone."""
    make, examples = CASES[case]
    settings = replace(QUIET, noise_multiplier=1.0)
    found = []
    for device in ("cpu", "cuda"):
        model = make()
        for module in model.modules():
            if isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0
        given = {"settings": settings, "generator": generator(), "device": device}
        fit_private(model, examples, DATA.y, **given)
        found.append(flat(model).cpu())

    assert_close(*found, rtol=1e-3, atol=1e-5)
