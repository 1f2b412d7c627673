"""No finding is believed of a mechanism that remembers its answers, however short the game and whatever the seed."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from auditdp import ApproxDP, PureDP, Verdict, check, unseeded
from auditdp.claims.claim import Claim
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

KEEP = 0.731
"""Probability that randomised response with ε = 1 tells the truth."""


def cached() -> Any:
    """Randomised response that draws from elsewhere and remembers each answer."""

    @functools.cache
    def answer(bit: int) -> int:
        return bit if random.random() < KEEP else 1 - bit

    return unseeded(lambda bit: answer(bit))


def undeclared() -> Any:
    """The same, declared as if it drew from the generator that it is given."""

    @functools.cache
    def answer(bit: int) -> int:
        return bit if random.random() < KEEP else 1 - bit

    return lambda bit, rng: answer(bit)


def kept() -> Any:
    """Randomised response that draws anew each time, and returns the answer that it gave first."""
    answers: dict[int, int] = {}

    def answer(bit: int, rng: np.random.Generator) -> int:
        drawn = bit if rng.random() < KEEP else 1 - bit
        return answers.setdefault(bit, drawn)

    return answer


def by_size() -> Any:
    """A count with noise that is kept for each input and number of outputs."""
    answers: dict[tuple[int, int], Any] = {}

    def count(value: int, size: int, *, rng: np.random.Generator) -> Any:
        return answers.setdefault((value, size), value + rng.laplace(size=size))

    return count


def one_noise() -> Any:
    """A count with noise that is drawn at the first call and kept for all inputs."""
    noise: list[float] = []

    def count(value: int) -> float:
        if not noise:
            noise.append(np.random.default_rng().laplace())
        return value + noise[0]

    return unseeded(count)


def last_one() -> Any:
    """Randomised response that remembers one answer, until another input comes."""
    remembered: list[tuple[int, int]] = []

    def answer(bit: int, rng: np.random.Generator) -> int:
        drawn = bit if rng.random() < KEEP else 1 - bit
        if not remembered or remembered[0][0] != bit:
            remembered[:] = [(bit, drawn)]
        return remembered[0][1]

    return answer


MAKERS = (cached, undeclared, kept, by_size, one_noise, last_one)


@pytest.mark.parametrize("calls", [80, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("make", MAKERS)
def test_a_mechanism_that_remembers_its_answers_is_never_violated(
    make: Callable[[], Any], calls: int
) -> None:
    verdicts = set()
    for seed in range(5):
        random.seed(seed)
        with contextlib.suppress(
            MechanismError
        ):  # which says at once that it keeps state
            verdicts.add(
                check(make(), PureDP(1.0), [(0, 1)], calls=calls, seed=seed).verdict
            )
    assert verdicts <= {Verdict.INCONCLUSIVE, Verdict.NOT_REFUTED}


@pytest.mark.parametrize("calls", [250, 500])
def test_a_mechanism_without_noise_is_violated(calls: int) -> None:
    found = check(lambda value, rng: value, PureDP(1.0), [(0, 1)], calls=calls)
    assert found.verdict is Verdict.VIOLATED
    assert found.calls <= calls
    assert not any(
        "process of its own" in text for text in found.evidence[0].assumptions
    )


def test_where_the_calls_do_not_show_independence_that_is_the_reason() -> None:
    found = check(lambda value, rng: value, PureDP(1.0), [(0, 1)], calls=400).evidence[
        0
    ]
    assert found.verdict is Verdict.VIOLATED
    made = Calls(as_mechanism(lambda value, rng: value))
    with allowing(1):
        again = believed(found, made, [0, 1], partial(stream, 1), 400)
        clean = believed(
            replace(found, verdict=Verdict.NOT_REFUTED),
            made,
            [0, 1],
            partial(stream, 1),
            400,
        )
    assert again.verdict is Verdict.INCONCLUSIVE
    assert "left" in again.statement
    assert clean.verdict is Verdict.NOT_REFUTED
    assert UNLOOKED in clean.assumptions


@pytest.mark.parametrize(
    "claim", [PureDP(0.1), PureDP(1.0), PureDP(4.0), ApproxDP(1.0, 0.1)], ids=str
)
def test_a_mechanism_that_keeps_the_claim_is_right_about_the_input_in_so_many_processes_seldom(
    claim: Claim,
) -> None:
    right = (1 + claim.delta_at(0.0)) / 2
    assert (
        right ** processes_to_check_memory(claim)
        <= MEMORY_ERROR
        < right ** (processes_to_check_memory(claim) - 1)
    )


def test_no_more_processes_are_made_than_the_most() -> None:
    assert (
        processes_to_check_memory(PureDP(20.0))
        == processes_to_check_memory(ApproxDP(1.0, 0.999))
        == MAX_PROCESSES
    )
