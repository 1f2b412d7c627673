"""Draws of torch: coins, weights that are initialised, and steps of Opacus."""

import numpy as np
import pytest

from auditdp import GaussianDP
from auditdp.tracing import Trace
from tests.unit.tracing.toys import pair_of, record

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("made_on_device")


@pytest.mark.parametrize(
    "draw",
    [
        lambda p: torch.bernoulli(p),
        lambda p: torch.rand(2) < p,
        lambda p: torch.distributions.Bernoulli(p).sample(),
    ],
)
def test_coins_have_their_probabilities(draw):
    first = [0.0, 1.0]
    second = [0.0, 2.0]
    pair = pair_of(lambda v, rng: draw(torch.tensor(v).sigmoid()), first, second)
    p = 1 / (1 + np.exp(-1.0))
    q = 1 / (1 + np.exp(-2.0))
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(np.log((1 - p) / (1 - q)), rel=1e-5)


def test_after_a_run_torch_is_as_before():
    def snapshot():
        spaces = {"torch": vars(torch), "Tensor": vars(torch.Tensor)}
        return {
            (space, name): id(value)
            for space, names in spaces.items()
            for name, value in names.items()
        }

    before = snapshot()
    record(lambda v, rng: v + torch.randn(3).mul_(2.0))
    assert snapshot() == before


def test_after_a_run_a_default_device_is_heeded():
    with torch.device("meta"):
        torch.utils._device._device_constructors.cache_clear()
        record(lambda v, rng: torch.ones(2))
        assert torch.tensor([1.0]).is_meta


def linear(data):
    layer = torch.nn.Sequential(
        torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1, bias=False)
    )
    return list(layer.parameters()), layer(data[:, None])


def product(data, weights):
    return [weights], data @ weights


def by_attribute(data):
    weights = torch.randn(3, 1)
    weights.requires_grad = True
    return product(data, weights)


def by_filling(data):
    weights = torch.empty(3, 1)
    torch.nn.init.trunc_normal_(weights)
    return product(data, weights.requires_grad_())


def by_xavier(data):
    weights = torch.nn.Parameter(torch.empty(3, 1))
    return product(data, torch.nn.init.xavier_uniform_(weights))


def by_keyword(data):
    return product(data, torch.randn(3, 1, requires_grad=True))


def by_method(data):
    return product(data, (0.1 * torch.randn(3, 1)).requires_grad_())


@pytest.mark.parametrize(
    "model", [linear, by_attribute, by_filling, by_xavier, by_keyword, by_method]
)
def test_random_weights_are_public_and_have_gradients(model):
    def train(data, rng):
        weights, outputs = model(data)
        gradient = torch.autograd.grad(outputs.sum(), weights)[0]
        noisy = gradient / gradient.norm() + 2 * torch.randn_like(gradient)
        return weights[0].detach() - 0.1 * noisy

    rows = np.random.default_rng(1).normal(size=(5, 3))
    data = torch.tensor(rows, dtype=torch.float32)
    pair = pair_of(train, data, data[1:] + 1, GaussianDP(2.0))
    assert pair.extent == "full"
    assert not pair.opaque
    assert pair.differ is None
    assert [moved.first.law.scale for moved in pair.noisy if moved.distance] == [2.0]


def test_plain_runs_of_a_trace_are_in_no_mode_of_torch():
    def modes(v=0.0, rng=None):
        return len(torch.overrides._get_current_function_mode_stack())

    outside = modes()
    rng = np.random.default_rng(0)
    with Trace(modes) as trace:
        assert trace.record(1.0, rng).output == outside + 1
        assert list(trace.outputs(1.0, 2, rng)) == [outside] * 2


@pytest.mark.parametrize("secure", [False, True])
def test_a_step_of_opacus_is_a_release_at_its_line(secure):
    optimizers = pytest.importorskip("opacus.optimizers")

    def step(gradients, rng):
        weights = torch.nn.Parameter(torch.zeros(2))
        weights.grad_sample = torch.tensor(gradients)
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD([weights], lr=1.0),
            noise_multiplier=2.0,
            max_grad_norm=1.0,
            expected_batch_size=1,
            secure_mode=secure,
        )
        optimizer.step()
        return weights.detach().cpu().numpy()

    first = [[3.0, 4.0], [0.0, 0.5]]
    second = [[3.0, 4.0], [0.0, -0.5]]
    pair = pair_of(step, first, second, GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.level == pytest.approx(0.5, rel=1e-5)
    (release,) = pair.first.releases
    assert release.site.line == step.__code__.co_firstlineno + 10
