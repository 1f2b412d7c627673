"""Runs and time of a phase: counted where runs are made, and never more than the phases around it have."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from auditdp.errors import ExhaustedError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import Allowance, allowance, allowing
from auditdp.mechanism.protocol import as_mechanism
from auditdp.tracing import Trace


def noisy(value: float, rng: np.random.Generator) -> float:
    """Add noise."""
    return value + float(rng.laplace())


def test_runs_count_for_every_phase_around() -> None:
    with allowing(100) as outer:
        with allowing(30) as inner:
            inner.spend(20)
        outer.spend(5)
        assert (inner.made, outer.made) == (20, 25)
        assert (inner.left, outer.left) == (10, 75)


def test_no_phase_has_more_than_the_ones_around_it() -> None:
    with allowing(10) as outer, allowing(50) as inner:
        assert inner.left == 10
        with pytest.raises(ExhaustedError, match="11 runs"):
            inner.spend(11)
        assert outer.made == 0
        outer.most = 40
        assert inner.left == 40


def test_a_part_of_the_time_ends_with_it() -> None:
    with allowing(seconds=100) as outer, allowing(share=0.25) as inner:
        assert 24 < inner.seconds <= 25 < outer.seconds
        assert not inner.is_late
    with allowing(seconds=0) as late:
        assert late.is_late
        with pytest.raises(ExhaustedError, match="time"):
            late.spend(1)
    assert math.isinf(Allowance().seconds)


def test_how_many_runs_fit_into_the_time_follows_from_those_so_far() -> None:
    with allowing() as unlimited:
        unlimited.spend(10)
        assert math.isinf(unlimited.affordable(0.5))
    with allowing(seconds=1_000) as limited:
        assert limited.affordable(0.5) == 0
        limited.spend(10)
        assert limited.affordable(0.5) > 10


def test_calls_and_traced_runs_are_counted_where_they_are_made() -> None:
    calls, rng = Calls(as_mechanism(noisy)), np.random.default_rng(1)
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


def test_the_end_of_the_time_ends_a_batch_of_runs() -> None:
    def slow(value: float, rng: np.random.Generator) -> float:
        time.sleep(0.01)
        return value

    with allowing(seconds=0.1) as allowed, pytest.raises(ExhaustedError, match="time"):
        Calls(as_mechanism(slow))(1.0, 1_000, np.random.default_rng(1))
    assert 1 <= allowed.made <= 11
