"""Noise that code changes in place: followed where that is seen, and else said to be opaque, as in a plain run."""

import importlib

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")
FIRST, SECOND = [1.0, 2.0, 3.0], [1.0, 2.0, 4.5]


def traced(function):
    torch.manual_seed(0)
    pair = compare(Trace(function), FIRST, SECOND, np.random.default_rng(0), claim=GaussianDP(9.0))
    torch.manual_seed(0)
    assert str(pair.first.output) == str(function(FIRST, np.random.default_rng(0)))
    return pair


def an_operator(v, rng):
    noise = rng.standard_normal(3)
    same = noise
    noise *= 2
    return v + same


def out(v, rng):
    noise = rng.standard_normal(3)
    np.multiply(noise, 2, out=noise)
    return v + noise


def out_of_a_sum(v, rng):
    noise = rng.normal(0, 2.0, 3)
    np.add(v, noise, out=noise)
    return noise


def a_copy(v, rng):
    noise = rng.normal(0, 2.0, 3)
    other = noise.copy()
    other *= 0
    return v + noise


def an_entry_that_does_not_move(v, rng):
    noise = rng.normal(0, 2.0, 3)
    noise[0] = 0.0
    return v + noise


def entries_of_other_noise(v, rng):
    noise = 2 * torch.randn(3)
    noise[1:] = 2 * torch.randn(2)
    return torch.tensor(v) + noise


def a_clone(v, rng):
    noise = 2 * torch.randn(3)
    other = noise.clone()
    other.zero_()
    return torch.tensor(v) + noise + other


@pytest.mark.parametrize(
    "function",
    [an_operator, out, out_of_a_sum, a_copy, an_entry_that_does_not_move, entries_of_other_noise, a_clone],
    ids=lambda function: function.__name__,
)
def test_what_is_seen_is_followed(function):
    pair = traced(function)
    assert (pair.extent, pair.is_bound, pair.proposes) == ("full", True, False)
    assert pair.level == pytest.approx(0.75)


def an_entry(v, rng):
    noise = rng.normal(0, 2.0, 3)
    noise[2] = 0.0
    return v + noise


def all_entries(v, rng):
    noise = 2 * torch.randn(3)
    noise.fill_(1.0)
    return torch.tensor(v) + noise


@pytest.mark.parametrize("function", [an_entry, all_entries])
def test_what_is_overwritten_is_no_noise(function):
    pair = traced(function)
    assert pair.extent == "full"
    assert pair.proposes


def by_a_slice(v, rng):
    noise = rng.normal(0, 2.0, 3)
    part = noise[2:]
    part *= 0
    return v + noise


def by_rows(v, rng):
    noise = rng.normal(0, 2.0, (2, 3))
    for row in noise:
        row *= 2
    return v + noise[0]


def by_a_view(v, rng):
    noise = 2 * torch.randn(3)
    noise.reshape(3, 1).mul_(0)
    return torch.tensor(v) + noise


def by_a_detached_one(v, rng):
    noise = 2 * torch.randn(3)
    noise.detach().mul_(0)
    return torch.tensor(v) + noise


@pytest.mark.parametrize("function", [by_a_slice, by_rows, by_a_view, by_a_detached_one])
def test_what_is_changed_by_a_view_is_opaque(function):
    pair = traced(function)
    assert pair.extent != "full"
    assert any("may have been changed in place" in why for _, why in pair.opaque)
    assert not pair.proposes


def test_what_a_module_draws_when_it_is_imported_is_no_draw_of_the_code(tmp_path, monkeypatch):
    module = tmp_path / "imported_late.py"
    module.write_text("import random\nNAME = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def code(v, rng):
        importlib.import_module(module.stem)
        return v + rng.normal(0, 2.0, 3)

    pair = compare(Trace(code), FIRST, SECOND, np.random.default_rng(0), claim=GaussianDP(9.0))
    assert (pair.is_bound, len(pair.first.draws)) == (True, 1)
