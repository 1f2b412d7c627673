"""Trainers of torch, as people write them, on the processor and on a GPU."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from auditdp import GaussianDP  # noqa: E402
from auditdp.record.results import Verdict  # noqa: E402
from auditdp.training import (  # noqa: E402
    Training,
    audit_training,
    global_generators,
)

pytestmark = pytest.mark.usefixtures("made_on_device")


@pytest.fixture
def worlds():
    return torch.tensor([[1.0, 1.0], [0.2, -0.3]]), torch.tensor([[0.2, -0.3]])


def train(rows, clip=True):
    """One step from zeros with the loss -⟨w, x⟩, whose gradient is the row; noise from the global generator."""
    model = torch.nn.Linear(2, 1, bias=False)
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1) if clip else 5 * rows
    with torch.no_grad():
        model.weight.copy_(rows.sum(dim=0) + torch.randn(2))
    return model


def unclipped(rows):
    return train(rows, clip=False)


def by_its_own_generator(rows):
    """Three steps with noise for one, written into a buffer by a generator of the trainer's own."""
    generator = torch.Generator(rows.device).manual_seed(
        int(torch.randint(2**31, (), device="cpu"))
    )
    weights, noise = torch.zeros(2), torch.empty(2)
    for _ in range(3):
        noise.normal_(0, 1.0, generator=generator)
        clipped = torch.nn.functional.normalize(rows).sum(dim=0)
        weights -= 0.1 * (clipped + noise)  # wrong
    return weights


def test_a_model_is_read_by_its_weights_and_its_noise_is_that_of_the_seed(worlds):
    first, again, other = (
        Training(train)(worlds[0], np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert [*first] == ["weight"]
    assert isinstance(first["weight"], np.ndarray)
    assert np.array_equal(first["weight"], again["weight"])
    assert not np.array_equal(first["weight"], other["weight"])


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x.bfloat16(),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: x.to_sparse(),
        lambda x: x[None].to_sparse_csr(),
        lambda x: torch.complex(x, x).conj(),
        torch.nn.Parameter,
    ],
)
def test_tensors_of_any_kind_are_read(made):
    found = Training(lambda rows: made(rows.sum(0)))(
        torch.tensor([[1.0, 2.0], [0.0, 2.0]]), np.random.default_rng(0)
    )
    assert np.array_equal(np.ravel(found).real, [1, 4])


def test_global_generators_are_put_back():
    with torch.random.fork_rng():
        next_drawn = torch.rand(2)
    with global_generators(np.random.SeedSequence(0)):
        torch.rand(2)
    assert torch.equal(torch.rand(2), next_drawn)


def test_clipping_is_told_from_no_clipping(worlds):
    kept, refuted = (
        audit_training(f, GaussianDP(1.0), pairs=worlds, calls=250)
        for f in (train, unclipped)
    )
    assert (kept.verdict, refuted.verdict) == (Verdict.NOT_REFUTED, Verdict.VIOLATED)
    assert kept.history[-1][1] == kept.epsilon_lower


def test_the_line_of_too_little_noise_is_named(worlds):
    source, first = inspect.getsourcelines(by_its_own_generator)
    (wrong,) = (
        first + k for k, line in enumerate(source) if line.endswith("# wrong\n")
    )
    result = audit_training(by_its_own_generator, GaussianDP(0.5), pairs=worlds, seed=1)
    assert result.verdict is Verdict.VIOLATED
    assert wrong in {
        finding.line for finding in result.evidence[0].details.trace.findings
    }
