"""Runs and time of a phase, which never exceed those of the phases around it."""

import math
import time

import numpy as np
import pytest

from auditdp.errors import ExhaustedError
from auditdp.mechanism.calls.allowance import Allowance, allowance, allowing
from auditdp.tracing import Trace
from tests.unit.mechanism.toys import calls_of, generator, noisy


def test_runs_count_for_every_phase_around():
    with allowing(100) as outer:
        with allowing(30) as inner:
            inner.spend(20)
        outer.spend(5)
        assert inner.made == 20
        assert outer.made == 25
        assert inner.left == 10
        assert outer.left == 75


def test_no_phase_has_more_runs_than_the_ones_around_it():
    with allowing(10) as outer, allowing(50) as inner:
        assert inner.left == 10
        with pytest.raises(ExhaustedError, match="11 runs"):
            inner.spend(11)
        assert outer.made == 0
        outer.most = 40
        assert inner.left == 40


def test_a_part_of_the_time_ends_with_it():
    with allowing(seconds=100) as outer, allowing(share=0.25) as inner:
        assert 24 < inner.seconds <= 25 < outer.seconds
        assert not inner.is_late
    with allowing(seconds=0) as late:
        assert late.is_late
        with pytest.raises(ExhaustedError, match="time"):
            late.spend(1)
    assert math.isinf(Allowance().seconds)


def test_affordable_runs_follow_from_the_time_of_those_so_far():
    with allowing() as unlimited:
        unlimited.spend(10)
        assert math.isinf(unlimited.affordable(0.5))
    with allowing(seconds=1_000) as limited:
        assert limited.affordable(0.5) == 0
        limited.spend(10)
        assert limited.affordable(0.5) > 10


def test_calls_and_traced_runs_are_counted():
    calls = calls_of(noisy)
    rng = generator(1)
    with allowing(60) as allowed:
        calls(1.0, 10, rng)
        calls.singly()(1.0, 5, rng)
        assert allowed.made == 15
        trace = Trace(noisy)
        trace.replay(2.0, trace.record(1.0, rng))
        assert allowed.made == 15 + trace.runs
        with pytest.raises(ExhaustedError):
            calls(1.0, 60, rng)
    assert allowance() is not allowed


def test_the_end_of_the_time_ends_a_batch_of_runs():
    def slow(value: float, rng: np.random.Generator) -> float:
        time.sleep(0.01)
        return value

    with allowing(seconds=0.1) as allowed, pytest.raises(ExhaustedError, match="time"):
        calls_of(slow)(1.0, 1_000, generator(1))
    assert 1 <= allowed.made <= 11
