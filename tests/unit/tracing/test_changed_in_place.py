"""Noise that code changes in place: followed where that is seen, and else said to be opaque, as in a plain run."""

import importlib

import numpy as np
import pytest

from tests.unit.tracing.idioms import last, level_of, of_tensors, torch, traced


def an_operator(v, rng):
    noise = rng.standard_normal(3)
    same = noise
    noise *= 2
    return v + same


def a_copy(v, rng):
    noise = rng.normal(0, 2.0, 3)
    other = noise.copy()
    other *= 0
    return v + noise


def an_entry(place):
    def code(v, rng):
        noise = rng.normal(0, 2.0, 3)
        noise[place] = 0.0
        return v + noise

    return code


def entries_of_other_noise(v):
    noise = 2 * torch.randn(3)
    noise[1:] = 2 * torch.randn(2)
    return v + noise


FOLLOWED = {
    "an operator": an_operator,
    "out": lambda v, rng: last(
        n := rng.standard_normal(3), np.multiply(n, 2, out=n), v + n
    ),
    "out of a sum": lambda v, rng: last(
        n := rng.normal(0, 2.0, 3), np.add(v, n, out=n), n
    ),
    "a copy": a_copy,
    "an entry that does not move": an_entry(0),
    "entries of other noise": of_tensors(entries_of_other_noise),
    "a clone": of_tensors(
        lambda v: last(
            n := 2 * torch.randn(3), other := n.clone(), other.zero_(), v + n + other
        )
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_seen_is_followed(name):
    assert level_of(FOLLOWED[name]) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "function",
    [
        an_entry(2),
        lambda v, rng: last(n := 2 * torch.randn(3), n.fill_(1.0), torch.tensor(v) + n),
    ],
)
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


VIEWS = {
    "a slice": by_a_slice,
    "rows": by_rows,
    "a shape": of_tensors(
        lambda v: last(n := 2 * torch.randn(3), n.reshape(3, 1).mul_(0), v + n)
    ),
    "a detached one": of_tensors(
        lambda v: last(n := 2 * torch.randn(3), n.detach().mul_(0), v + n)
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_changed_by_a_view_is_opaque(name):
    pair = traced(VIEWS[name])
    assert pair.extent != "full"
    assert any("may have been changed in place" in why for _, why in pair.opaque)
    assert not pair.proposes


def test_bytes_that_are_read_as_numbers_of_another_type_are_opaque():
    pair = traced(of_tensors(lambda v: v + torch.randn(3).view(torch.int32)))
    assert (pair.extent, pair.proposes) == ("part", False)


def test_what_a_module_draws_when_it_is_imported_is_no_draw_of_the_code(
    tmp_path, monkeypatch
):
    module = tmp_path / "imported_late.py"
    module.write_text("import random\nNAME = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def code(v, rng):
        importlib.import_module(module.stem)
        return v + rng.normal(0, 2.0, 3)

    pair = traced(code)
    assert (pair.is_bound, len(pair.first.draws)) == (True, 1)
