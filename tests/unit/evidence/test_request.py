"""No finding counts about a mechanism that remembers its answers."""

import contextlib
import functools
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from auditdp import ApproxDP, PureDP, check, unseeded
from auditdp.errors import MechanismError
from auditdp.evidence.request import (
    MAX_PROCESSES,
    MEMORY_ERROR,
    UNLOOKED,
    believed,
    processes_to_check_memory,
)
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import allowing
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from tests.unit.evidence.toys import INCONCLUSIVE, NOT_REFUTED, VIOLATED

KEEP = 0.731
"""Probability that randomised response with ε = 1 returns the bit."""


def elsewhere():
    """Randomised response that draws from elsewhere and remembers each answer."""

    @functools.cache
    def answer(bit):
        return bit if random.random() < KEEP else 1 - bit

    return answer


def cached():
    answer = elsewhere()
    return unseeded(lambda bit: answer(bit))


def undeclared():
    """It is declared as if it drew from the generator that it is given."""
    answer = elsewhere()
    return lambda bit, rng: answer(bit)


def by_size():
    """A count with noise that is kept for each input and number of outputs."""
    answers = {}

    def count(value, size, *, rng):
        return answers.setdefault((value, size), value + rng.laplace(size=size))

    return count


def one_noise():
    """A count with noise that is drawn at the first call and kept for all inputs."""

    @functools.cache
    def noise():
        return np.random.default_rng().laplace()

    return unseeded(lambda value: value + noise())


def last_one():
    """Randomised response that remembers one answer, until another input comes."""
    remembered = {}

    def answer(bit, rng):
        drawn = bit if rng.random() < KEEP else 1 - bit
        if bit not in remembered:
            remembered.clear()
            remembered[bit] = drawn
        return remembered[bit]

    return answer


@pytest.mark.parametrize("calls", [80, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("make", [cached, undeclared, by_size, one_noise, last_one])
def test_a_mechanism_that_remembers_its_answers_is_never_violated(make, calls, repeats):
    for seed in range(repeats(5, least=2)):
        random.seed(seed)
        # An error says at once that it keeps state.
        with contextlib.suppress(MechanismError):
            found = check(make(), PureDP(1.0), [(0, 1)], calls=calls, seed=seed)
            assert found.verdict in {INCONCLUSIVE, NOT_REFUTED}


def same(value, rng):
    return value


def test_independence_that_the_calls_do_not_show_makes_a_finding_inconclusive():
    result = check(same, PureDP(1.0), [(0, 1)], calls=250)
    (found,) = result.evidence
    assert result.verdict is found.verdict is VIOLATED
    assert result.calls <= 250
    assert "process of its own" not in " ".join(found.assumptions)

    calls, streams = Calls(as_mechanism(same)), partial(stream, 1)
    with allowing(1):
        again = believed(found, calls, [0, 1], streams, 400)
        clean = replace(found, verdict=NOT_REFUTED)
        clean = believed(clean, calls, [0, 1], streams, 400)
    assert again.verdict is INCONCLUSIVE
    assert "left" in again.statement
    assert clean.verdict is NOT_REFUTED
    assert UNLOOKED in clean.assumptions


@pytest.mark.parametrize(
    "claim", [PureDP(0.1), PureDP(1.0), PureDP(4.0), ApproxDP(1.0, 0.1)], ids=str
)
def test_the_processes_that_all_guess_right_with_a_small_probability(claim):
    """A mechanism that keeps the claim is hardly ever right in all of them."""
    right = (1 + claim.delta_at(0.0)) / 2
    number = processes_to_check_memory(claim)
    assert right**number <= MEMORY_ERROR < right ** (number - 1)


@pytest.mark.parametrize("claim", [PureDP(20.0), ApproxDP(1.0, 0.999)])
def test_the_number_of_processes_has_a_limit(claim):
    assert processes_to_check_memory(claim) == MAX_PROCESSES
