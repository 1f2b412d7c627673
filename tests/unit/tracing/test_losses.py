"""What a release loses where entries share a draw, and where some have none."""

import math

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")

SHARED = {
    "an index": lambda v, rng: v + rng.normal(0, 2.0, 3)[[0, 1, 1]],
    "tile": lambda v, rng: v + np.tile(rng.normal(0, 2.0, 1), 3),
    "broadcast_to": lambda v, rng: v + np.broadcast_to(rng.normal(0, 2.0, 1), 3),
    "torch's expand": lambda v, rng: torch.tensor(v) + torch.randn(1).expand(3),
    "torch's repeat": lambda v, rng: torch.tensor(v) + torch.randn(1).repeat(3),
    "Laplace noise": lambda v, rng: v + rng.laplace(0, 2.0, 3)[[0, 1, 1]],
}


@pytest.mark.parametrize("name", SHARED)
def test_entries_that_share_a_draw_hide_no_difference_between_them(name):
    pair = compare(
        Trace(SHARED[name]),
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, 2.0, 4.5]),
        np.random.default_rng(0),
    )
    assert pair.extent == "full"
    assert [moved.why for moved in pair.moved if moved.loss and any(moved.loss)] == [
        "reuse"
    ]


def test_entries_that_share_a_draw_and_move_alike_lose_what_one_of_them_does():
    def code(v, rng):
        return np.array([v, 2 * v]) + np.array([1.0, 2.0]) * rng.laplace(0, 2.0, 1)

    pair = compare(Trace(code), 0.0, 1.0, np.random.default_rng(0), claim=PureDP(1.0))
    assert pair.level == pytest.approx(0.5)
    assert not pair.findings


@pytest.mark.parametrize(("moved", "level"), [(0, 0.75), (1, math.inf)])
def test_an_entry_without_noise_loses_nothing_where_it_does_not_move(moved, level):
    def code(v, rng):
        return v + np.array([2.0, 0.0]) * rng.standard_normal(2)

    neighbour = np.zeros(2)
    neighbour[moved] = 1.5
    pair = compare(
        Trace(code),
        np.zeros(2),
        neighbour,
        np.random.default_rng(0),
        claim=GaussianDP(1.0),
    )
    assert pair.level == pytest.approx(level)
    assert pair.proposes == math.isinf(level)
