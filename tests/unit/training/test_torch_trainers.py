"""Trainers of torch, as people write them, on the processor and on a GPU."""

import inspect

import numpy as np
import pytest

from auditdp import GaussianDP
from auditdp.record.results import Verdict
from auditdp.training import Training, audit_training, global_generators

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("made_on_device")


def worlds():
    return torch.tensor([[1.0, 1.0], [0.2, -0.3]]), torch.tensor([[0.2, -0.3]])


def release(rows):
    model = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(rows.sum(dim=0) + torch.randn(2))
    return model


def clipped(rows):
    """Return one step from zeros with the loss -⟨w, x⟩, whose gradient is the row."""
    return release(rows / rows.norm(dim=1, keepdim=True).clamp(min=1))


def unclipped(rows):
    return release(5 * rows)


# The noise of three steps is that for one, in a buffer, from a generator of its own.
def by_its_own_generator(rows):
    seed = int(torch.randint(2**31, (), device="cpu"))
    generator = torch.Generator(rows.device).manual_seed(seed)
    weights = torch.zeros(2)
    noise = torch.empty(2)
    for _ in range(3):
        noise.normal_(0, 1.0, generator=generator)
        gradient = torch.nn.functional.normalize(rows).sum(dim=0)
        weights -= 0.1 * (gradient + noise)  # wrong
    return weights


def test_a_model_releases_its_weights_with_the_noise_of_the_seed():
    rows, _ = worlds()
    first, again, other = (
        Training(clipped)(rows, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert [*first] == ["weight"]
    assert isinstance(first["weight"], np.ndarray)
    assert np.array_equal(first["weight"], again["weight"])
    assert not np.array_equal(first["weight"], other["weight"])


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.bfloat16(),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: x.to_sparse(),
        lambda x: x[None].to_sparse_csr(),
        lambda x: torch.complex(x, x).conj(),
        torch.nn.Parameter,
    ],
)
def test_tensors_of_any_kind_become_arrays(convert):
    rows = torch.tensor([[1.0, 2.0], [0.0, 2.0]])
    rng = np.random.default_rng(0)
    found = Training(lambda rows: convert(rows.sum(0)))(rows, rng)
    assert np.array_equal(np.ravel(found).real, [1, 4])


def test_global_generators_are_put_back():
    with torch.random.fork_rng():
        next_drawn = torch.rand(2)
    with global_generators(np.random.SeedSequence(0)):
        torch.rand(2)
    assert torch.equal(torch.rand(2), next_drawn)


def test_a_trainer_without_clipping_is_refuted():
    result = audit_training(
        clipped, GaussianDP(1.0), pairs=worlds(), controls=[unclipped], calls=200
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.history[-1][1] == result.epsilon_lower


def test_the_line_of_too_little_noise_is_named():
    source, first = inspect.getsourcelines(by_its_own_generator)
    (wrong,) = [k for k, line in enumerate(source, first) if "# wrong" in line]
    claim = GaussianDP(0.5)
    result = audit_training(by_its_own_generator, claim, pairs=worlds(), seed=1)
    assert result.verdict is Verdict.VIOLATED
    found = result.evidence[0].details.trace.findings
    assert wrong in {finding.line for finding in found}
