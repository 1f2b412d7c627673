"""torch's draws: functions, in place, distributions; outputs are those of plain runs."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")


def in_place(v, rng):
    x = torch.tensor(v)
    x += torch.normal(0.0, 2.0, (2,))
    return x


def added_in_place(v, rng):
    x = torch.tensor(v)
    x.add_(torch.randn_like(x), alpha=2.0)
    return x


def added_together(v, rng):
    x, noise = [torch.tensor(v, dtype=torch.double)], [torch.randn(2, dtype=torch.double)]
    torch._foreach_mul_(noise, 2.0)
    torch._foreach_add_(x, noise)
    return x[0]


FULL = {
    "of several tensors": (added_together, 0.5),
    "randn": (lambda v, rng: torch.tensor(v) + 2 * torch.randn(2), 0.5),
    "normal": (in_place, 0.5),
    "randn_like": (added_in_place, 0.5),
    "location": (lambda v, rng: torch.normal(torch.tensor(v), 2.0), 0.5),
    "a new tensor": (lambda v, rng: torch.tensor(v) + torch.zeros(2).normal_(0, 2.0), 0.5),
    "distribution": (lambda v, rng: torch.tensor(v) + torch.distributions.Normal(0.0, 2.0).sample((2,)), 0.5),
    "its location": (lambda v, rng: torch.distributions.Normal(torch.tensor(v), 2.0).sample(), 0.5),
    "as an array": (lambda v, rng: (torch.tensor(v) + torch.randn(2)).numpy().tolist(), 1.0),
}


@pytest.mark.parametrize("name", FULL)
def test_a_tensor_with_noise_is_a_release(name):
    function, level = FULL[name]
    torch.manual_seed(0)
    pair = compare(Trace(function), [1.0, 2.0], [1.0, 3.0], np.random.default_rng(0), claim=GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.differ is None
    assert pair.level == pytest.approx(level)
    torch.manual_seed(0)
    plain = function([1.0, 2.0], None)
    assert type(plain) is type(pair.first.output)
    assert str(plain) == str(pair.first.output)


def filled(v, rng):
    noise = torch.zeros(2)
    noise.normal_(0, 2.0)
    return torch.tensor(v) + noise


def filled_and_scaled(v, rng):
    noise = torch.zeros(2)
    noise.normal_()
    noise.mul_(2.0)
    x = torch.tensor(v)
    x += noise
    return x


def added_to_zeros(v, rng):
    noise = torch.zeros(2)
    for _ in range(4):
        noise += torch.randn(2)
    return torch.tensor(v) + noise


@pytest.mark.parametrize("function", [filled, filled_and_scaled, added_to_zeros])
def test_a_tensor_that_noise_is_written_into_stands_for_the_noise(function):
    pair = compare(Trace(function), [1.0, 2.0], [1.0, 3.0], np.random.default_rng(0), claim=GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.is_bound
    assert pair.level == pytest.approx(0.5)


def test_a_tensor_of_noise_in_the_output_shows_what_it_was_added_to():
    def shown(v, rng):
        noise = torch.zeros(2)
        noise.normal_()
        return torch.tensor(v) + noise, noise

    pair = compare(Trace(shown), [1.0, 2.0], [1.0, 3.0], np.random.default_rng(0), claim=GaussianDP(9.0))
    assert [finding.kind for finding in pair.findings] == ["reuse"]


def test_what_else_is_done_with_a_filled_tensor_is_opaque():
    def clamped(v, rng):
        noise = torch.zeros(2)
        noise.normal_()
        noise.clamp_(-1, 1)
        return torch.tensor(v) + noise

    pair = compare(Trace(clamped), [1.0, 2.0], [1.0, 3.0], np.random.default_rng(0), claim=GaussianDP(9.0))
    assert pair.extent == "part"
    assert any("is used by clamp" in why for _, why in pair.opaque)
    assert not pair.proposes


@pytest.mark.parametrize(
    "draw",
    [lambda p: torch.bernoulli(p), lambda p: torch.rand(2) < p, lambda p: torch.distributions.Bernoulli(p).sample()],
)
def test_coins_have_their_probabilities(draw):
    pair = compare(
        Trace(lambda v, rng: draw(torch.sigmoid(torch.tensor(v)))), [0.0, 1.0], [0.0, 2.0], np.random.default_rng(0)
    )
    p, q = (1 / (1 + np.exp(-np.array(v))) for v in ([0.0, 1.0], [0.0, 2.0]))
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(np.abs(np.log((1 - p[1]) / (1 - q[1]))), rel=1e-5)


def test_after_a_run_torch_is_as_before():
    before = {
        (owner.__name__, name): id(value) for owner in (torch, torch.Tensor) for name, value in vars(owner).items()
    }
    Trace(in_place).record([1.0, 2.0], np.random.default_rng(0))
    after = {
        (owner.__name__, name): id(value) for owner in (torch, torch.Tensor) for name, value in vars(owner).items()
    }
    assert before == after


def scaled_in_place(v):
    noise = torch.randn(2)
    noise.mul_(4.0).div_(2)
    return v + noise


def as_parameters(v):
    vector = torch.nn.utils.parameters_to_vector([v[:1], v[1:]]) + 2 * torch.randn(2)
    return torch.cat([part.clone() for part in torch.split(vector, 1)])


LAID_OUT = {
    "to": lambda v: v + 2 * torch.randn(2).to("cpu", torch.float64),
    "copies": lambda v: v + 2 * torch.randn(2).float().clone().detach().cpu(),
    "view as": lambda v: v + 2 * torch.randn(2, 1).view_as(v),
    "axes": lambda v: (v[None] + 2 * torch.randn(2).unsqueeze(0)).flatten(),
    "parts": lambda v: v + 2 * torch.split(torch.randn(6), [3, 2, 1])[1],
    "chunks": lambda v: v + 2 * torch.randn(4).chunk(2)[1],
    "joined": lambda v: v + 2 * torch.cat([torch.randn(1), torch.randn(1)]),
    "stacked": lambda v: v + torch.stack([2 * torch.randn(()) for _ in range(2)]),
    "in place": scaled_in_place,
    "of an array": lambda v: v + torch.from_numpy(np.random.normal(size=2)).float() * 2,  # noqa: NPY002
    "a tensor of an array": lambda v: v + torch.tensor(np.random.normal(0, 2, 2), dtype=torch.float32),  # noqa: NPY002
    "as parameters": as_parameters,
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_noise_that_is_laid_out_or_copied_is_noise(name):
    def code(v, rng):
        return LAID_OUT[name](torch.tensor(v))

    pair = compare(Trace(code), [1.0, 2.0], [1.0, 3.0], np.random.default_rng(0), claim=GaussianDP(9.0))
    assert (pair.extent, pair.opaque, pair.differ) == ("full", [], None)
    assert pair.level == pytest.approx(0.5)


def by_module():
    return torch.nn.Sequential(torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1, bias=False))


def by_attribute():
    weights = torch.randn(3, 1)
    weights.requires_grad = True
    return weights


def in_a_filled_tensor():
    weights = torch.empty(3, 1)
    torch.nn.init.trunc_normal_(weights)
    return weights.requires_grad_()


INITIALISED = {
    "module": by_module,
    "xavier": lambda: torch.nn.init.xavier_uniform_(torch.nn.Parameter(torch.empty(3, 1))),
    "parameter": lambda: torch.nn.Parameter(0.1 * torch.randn(3, 1)),
    "keyword": lambda: torch.randn(3, 1, requires_grad=True),
    "method": lambda: (0.1 * torch.randn(3, 1)).requires_grad_(),
    "attribute": by_attribute,
    "filled": in_a_filled_tensor,
}


@pytest.mark.parametrize("name", INITIALISED)
def test_random_weights_are_public_and_have_gradients(name):
    def train(data, rng):
        made = INITIALISED[name]()
        weights, forward = (
            (list(made.parameters()), lambda x: made(x[:, None]))
            if name == "module"
            else ([made], lambda x: (x @ made).sum(1))
        )
        (gradient, *_) = torch.autograd.grad(forward(data).sum(), weights)
        return weights[0].detach() - 0.1 * (gradient / gradient.norm() + 2 * torch.randn_like(gradient))

    data = torch.tensor(np.random.default_rng(1).normal(size=(5, 3)), dtype=torch.float32)
    pair = compare(Trace(train), data, data[1:] + 1, np.random.default_rng(0), claim=GaussianDP(2.0))
    assert (pair.extent, pair.opaque, pair.differ) == ("full", [], None)
    assert [moved.first.law.scale for moved in pair.noisy if moved.distance] == [2.0]


def test_plain_runs_of_a_trace_are_in_no_mode_of_torch():
    trace = Trace(lambda v, rng: len(torch.overrides._get_current_function_mode_stack()))
    with trace:
        assert trace.record(1.0, np.random.default_rng(0)).output == 1
        assert list(trace.outputs(1.0, 2, np.random.default_rng(0))) == [0, 0]


def test_rounding_to_single_precision_breaks_no_claim_also_where_weights_begin_at_random():
    def train(v, rng):
        start = torch.nn.init.uniform_(torch.empty(2), -0.3, 0.7)
        return start - (torch.tensor(v) + torch.randn(2))

    pair = compare(Trace(train), [0.0, 0.0], [1.000001, 0.0], np.random.default_rng(0), claim=GaussianDP(1.0))
    assert pair.share > 1
    assert not pair.proposes
