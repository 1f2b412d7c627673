"""What counting says of mutants whose loss is known, and what it leaves open."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auditdp import AnyValues, Edges, Pair
from auditdp.adjacency import Neighbours
from auditdp.mutation import counted as module
from auditdp.mutation.counted import FIRST_RUNS, _lower, counted
from auditdp.numerics.randomness import stream
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response

BIT = AnyValues((0, 1))


def streams(purpose, number):
    return stream(11, purpose, number)


def test_a_loss_within_the_claim_is_seen_to_be():
    found = counted(Response(1.0), BIT, 1.5, 0.0, streams)
    assert found.lower < 1.0 < found.upper <= 1.5
    assert found.keeps
    assert not found.breaks
    assert (found.inputs, found.outputs) == (2, 2)
    assert 0 < found.delta < 0.01, "a third output may be too rare to have been seen"
    assert f"with δ = {found.delta:.2g}" in found.statement
    assert found.calls == 2 * found.runs


def test_a_loss_beyond_the_claim_is_seen_to_be_and_on_which_pair():
    def second(data, size, *, rng):
        return (data[1] ^ (rng.random(size) >= 1 / (1 + np.exp(-1.0)))).astype(np.int8)

    found = counted(second, AnyValues(((0, 0), (1, 0), (0, 1))), 0.8, 0.0, streams)
    assert found.breaks
    assert not found.keeps
    assert 0.8 < found.lower < 1.0 < found.upper
    assert found.pair.data[1] != found.pair.neighbour[1]
    assert found.statement.startswith("counting 8,192 runs on each of 3 inputs shows a loss")


def test_what_is_too_near_to_the_claim_is_left_open(monkeypatch):
    monkeypatch.setattr(module, "LOOKS", 2)
    found = counted(Response(1.0), BIT, 1.01, 0.0, streams)
    assert found.lower < 1.01 < found.upper
    assert not found.keeps
    assert not found.breaks
    assert "leaves its loss between" in found.statement
    assert found.runs == 4 * FIRST_RUNS


def test_an_output_that_an_input_cannot_give_leaves_no_upper_bound():
    found = counted(lambda data, size, *, rng: np.full(size, data, np.int8), BIT, 50.0, 0.0, streams)
    assert found.upper == math.inf
    assert found.lower > 5


def test_outputs_of_other_inputs_bound_no_pair():
    """Two pairs that share no output: each is judged by its own."""

    def apart(data, size, *, rng):
        return 10 * (data // 2) + Response(1.0)(data % 2, size, rng=rng)

    class Two(Neighbours):
        def exhaustive(self):
            return self.pairs()

    found = counted(apart, Two([Pair(0, 1), Pair(2, 3)]), 1.5, 0.0, streams)
    assert found.lower < 1.0 < found.upper <= 1.5
    assert found.keeps
    assert found.outputs == 4


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (LaplaceMechanism(1.0), AnyValues((0.0, 1.0))),  # every output is another one
        (lambda data, size, *, rng: rng.integers(0, 2, size), Edges(40)),  # neighbours beyond counting
    ],
    ids=["many outputs", "many inputs"],
)
def test_nothing_is_said_where_there_is_too_much_to_count(mechanism, adjacency):
    assert counted(mechanism, adjacency, 1.0, 0.0, streams) is None


def test_counting_depends_on_its_randomness_alone():
    assert str(counted(Response(1.0), BIT, 1.5, 0.0, streams)) == str(counted(Response(1.0), BIT, 1.5, 0.0, streams))


def test_a_claimed_delta_is_spent():
    """Revealed with probability .05: at δ = .06 the claim is seen to be kept, at δ = 0 no ε holds."""
    found = counted(LeakyResponse(1.0, 0.05), BIT, 1.5, 0.06, streams)
    assert found.keeps
    assert found.delta == 0.06
    assert counted(LeakyResponse(1.0, 0.05), BIT, 1.5, 0.0, streams).upper == math.inf


@pytest.mark.statistical
def test_the_lower_bound_is_wrong_no_more_often_than_it_says():
    """Counts of three outputs under two inputs, 2,000 times, at an error of .2: at most 400 are expected.

    500 is beyond 5 standard deviations (18) of that: 2e-8 by normality. Bonferroni makes it rarer, yet not as rare as never.
    """
    rng = np.random.default_rng(3)
    p = np.array([[0.5, 0.3, 0.2], [0.25, 0.35, 0.4]])
    truth = np.abs(np.log(p[0] / p[1])).max()
    wrong = sum(_lower(rng.multinomial(300, p), 300, np.array([[0], [1]]), 0.2)[0] > truth for _ in range(2_000))
    assert 0 < wrong < 500
