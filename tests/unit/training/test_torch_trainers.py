"""Trainers of torch, as people write them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from auditdp import GaussianDP  # noqa: E402
from auditdp.record.results import Verdict  # noqa: E402
from auditdp.training import Training, audit_training  # noqa: E402

WORLDS = (torch.tensor([[1.0, 1.0], [0.2, -0.3]]), torch.tensor([[0.2, -0.3]]))


def train(rows, clip=True):
    """One step from zeros with the loss -⟨w, x⟩, whose gradient is the row; noise from the global generator."""
    model = torch.nn.Linear(2, 1, bias=False)
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1) if clip else 5 * rows
    with torch.no_grad():
        model.weight.copy_(rows.sum(dim=0) + torch.randn(2))
    return model


def unclipped(rows):
    return train(rows, clip=False)


def test_a_model_is_read_by_its_weights_and_its_noise_is_that_of_the_seed():
    before = torch.get_rng_state()
    first, again, other = (Training(train)(WORLDS[0], np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert [*first] == ["weight"]
    assert isinstance(first["weight"], np.ndarray)
    assert np.array_equal(first["weight"], again["weight"])
    assert not np.array_equal(first["weight"], other["weight"])
    assert torch.equal(torch.get_rng_state(), before)


def test_clipping_is_told_from_no_clipping():
    kept, refuted = (audit_training(f, GaussianDP(1.0), pairs=WORLDS, calls=250) for f in (train, unclipped))
    assert (kept.verdict, refuted.verdict) == (Verdict.NOT_REFUTED, Verdict.VIOLATED)
    assert kept.history[-1][1] == kept.epsilon_lower
