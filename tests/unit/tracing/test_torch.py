"""torch's draws: functions, in place, distributions, laid out and copied, and as weights that are initialised."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare
from tests.unit.tracing.idioms import last, level_of, of_tensors, torch

pytestmark = pytest.mark.usefixtures("made_on_device")


def added_in_place(v):
    v += torch.normal(0.0, 2.0, (3,), device=v.device)
    return v


def as_parameters(v):
    vector = torch.nn.utils.parameters_to_vector([v[:1], v[1:]]) + 2 * torch.randn(3)
    return torch.cat([part.clone() for part in torch.split(vector, 1)])


FULL = {
    "randn": lambda v: v + 2 * torch.randn(3),
    "normal": added_in_place,
    "randn_like": lambda v: v.add_(torch.randn_like(v), alpha=2.0),
    "location": lambda v: torch.normal(v, 2.0),
    "a new tensor": lambda v: v + torch.zeros(3).normal_(0, 2.0),
    "distribution": lambda v: v + torch.distributions.Normal(0.0, 2.0).sample((3,)),
    "its location": lambda v: torch.distributions.Normal(v, 2.0).sample(),
    "as an array": lambda v: (v + 2 * torch.randn(3)).numpy(force=True).tolist(),
    "of several tensors": lambda v: last(
        x := [v.double()],
        noise := [torch.randn(3, dtype=torch.double)],
        torch._foreach_mul_(noise, 2.0),
        torch._foreach_add_(x, noise),
        x[0],
    ),
    "to": lambda v: v.cpu() + 2 * torch.randn(3).to("cpu", torch.float32),
    "copies": lambda v: v.cpu() + 2 * torch.randn(3).float().clone().detach().cpu(),
    "view as": lambda v: v + 2 * torch.randn(3, 1).view_as(v),
    "axes": lambda v: (v[None] + 2 * torch.randn(3).unsqueeze(0)).flatten(),
    "parts": lambda v: v + 2 * torch.split(torch.randn(6), [2, 3, 1])[1],
    "chunks": lambda v: v + 2 * torch.randn(6).chunk(2)[1],
    "joined": lambda v: v + 2 * torch.cat([torch.randn(1), torch.randn(2)]),
    "stacked": lambda v: v + torch.stack([2 * torch.randn(()) for _ in range(3)]),
    "in place": lambda v: last(
        noise := torch.randn(3), noise.mul_(4.0).div_(2), v + noise
    ),
    "of an array": lambda v: (
        v + torch.from_numpy(np.random.normal(size=3)).float().to(v) * 2  # noqa: NPY002
    ),
    "a tensor of an array": lambda v: (
        v + torch.tensor(np.random.normal(0, 2, 3), dtype=torch.float32)  # noqa: NPY002
    ),
    "as parameters": as_parameters,
}


@pytest.mark.parametrize("name", FULL)
def test_a_tensor_with_noise_is_a_release(name):
    assert level_of(of_tensors(FULL[name])) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "draw",
    [
        lambda p: torch.bernoulli(p),
        lambda p: torch.rand(2) < p,
        lambda p: torch.distributions.Bernoulli(p).sample(),
    ],
)
def test_coins_have_their_probabilities(draw):
    pair = compare(
        Trace(lambda v, rng: draw(torch.sigmoid(torch.tensor(v)))),
        [0.0, 1.0],
        [0.0, 2.0],
        np.random.default_rng(0),
    )
    p, q = (1 / (1 + np.exp(-np.array(v))) for v in ([0.0, 1.0], [0.0, 2.0]))
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(
        np.abs(np.log((1 - p[1]) / (1 - q[1]))), rel=1e-5
    )


def test_after_a_run_torch_is_as_before():
    def snapshot():
        return {
            (each.__name__, name): id(v)
            for each in (torch, torch.Tensor)
            for name, v in vars(each).items()
        }

    before = snapshot()
    Trace(lambda v, rng: added_in_place(torch.tensor(v))).record(
        [1.0, 2.0, 3.0], np.random.default_rng(0)
    )
    assert snapshot() == before


def test_after_a_run_a_default_device_is_heeded():
    with torch.device("meta"):
        torch.utils._device._device_constructors.cache_clear()
        Trace(lambda v, rng: torch.ones(2)).record(1.0, np.random.default_rng(0))
        assert torch.tensor([1.0]).is_meta


def by_attribute():
    weights = torch.randn(3, 1)
    weights.requires_grad = True
    return weights


INITIALISED = {
    "module": lambda: torch.nn.Sequential(
        torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1, bias=False)
    ),
    "xavier": lambda: torch.nn.init.xavier_uniform_(
        torch.nn.Parameter(torch.empty(3, 1))
    ),
    "parameter": lambda: torch.nn.Parameter(0.1 * torch.randn(3, 1)),
    "keyword": lambda: torch.randn(3, 1, requires_grad=True),
    "method": lambda: (0.1 * torch.randn(3, 1)).requires_grad_(),
    "attribute": by_attribute,
    "filled": lambda: last(
        w := torch.empty(3, 1), torch.nn.init.trunc_normal_(w), w.requires_grad_()
    ),
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
        return weights[0].detach() - 0.1 * (
            gradient / gradient.norm() + 2 * torch.randn_like(gradient)
        )

    data = torch.tensor(
        np.random.default_rng(1).normal(size=(5, 3)), dtype=torch.float32
    )
    pair = compare(
        Trace(train),
        data,
        data[1:] + 1,
        np.random.default_rng(0),
        claim=GaussianDP(2.0),
    )
    assert (pair.extent, pair.opaque, pair.differ) == ("full", [], None)
    assert [moved.first.law.scale for moved in pair.noisy if moved.distance] == [2.0]


def test_plain_runs_of_a_trace_are_in_no_mode_of_torch():
    outside = len(torch.overrides._get_current_function_mode_stack())
    trace = Trace(
        lambda v, rng: len(torch.overrides._get_current_function_mode_stack())
    )
    with trace:
        assert trace.record(1.0, np.random.default_rng(0)).output == outside + 1
        assert list(trace.outputs(1.0, 2, np.random.default_rng(0))) == [outside] * 2


def test_rounding_to_single_precision_breaks_no_claim_also_where_weights_begin_at_random():
    def train(v, rng):
        start = torch.nn.init.uniform_(torch.empty(2), -0.3, 0.7)
        return start - (torch.tensor(v) + torch.randn(2))

    pair = compare(
        Trace(train),
        [0.0, 0.0],
        [1.000001, 0.0],
        np.random.default_rng(0),
        claim=GaussianDP(1.0),
    )
    assert pair.share > 1
    assert not pair.proposes
