"""The accountants' benchmark compares errors, widths and costs of tools.

Each tool runs in a process of its own.
"""

import pytest

from benchmarks.accountants import OURS, alone, training, view

GOOD = {"low": 1.0, "high": 1.0005, "cpu_seconds": 0.1, "megabytes": 20.0}


def met(own, peer):
    return [
        bar.met
        for bar in view(
            {"training/0": {"tools": {OURS: own, "dp-accounting": peer}}}
        ).bars
    ]


@pytest.mark.parametrize(
    ("own", "peer", "bars"),
    [
        ({}, {}, [True, True, True]),
        ({}, {"low": 1.1, "high": 1.2}, [False, True, True]),
        ({"low": 0.9}, {}, [True, False, True]),
        ({"megabytes": 500.0}, {}, [True, True, False]),
        ({"cpu_seconds": 3.0}, {"low": 0.0, "high": 2.0}, [True, True, False]),
        ({"cpu_seconds": 3.0}, {"high": float("inf")}, [None, True, None]),
    ],
)
def test_the_bars(own, peer, bars):
    assert met(GOOD | own, GOOD | peer) == bars


def test_no_answer_is_not_a_good_one():
    assert met({"error": "MemoryError: "}, GOOD) == [True, False, False]


def test_trainings_are_the_same_each_time_and_in_range():
    assert training(1, 2) == training(1, 2) != training(1, 3)
    noise, rate, steps, delta = training(1, 2)
    assert 0.6 <= noise <= 4
    assert 1e-5 <= rate <= 0.05
    assert 50 <= steps <= 25_000
    assert 1e-10 <= delta <= 1e-4


def test_a_tool_answers_or_fails_in_a_process_of_its_own():
    found = alone(
        lambda noise, rate, steps, delta: (noise, rate + steps), (1.0, 0.5, 2, 1e-5)
    )
    assert (found["low"], found["high"]) == (1.0, 2.5)

    def fails(*parameters):
        raise ValueError(parameters)

    assert alone(fails, (1.0, 0.5, 2, 1e-5))["error"].startswith("ValueError: (1.0")
