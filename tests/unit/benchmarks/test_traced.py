"""The second set of ordinary code: what it marks, and what its measurement counts."""

import inspect

import numpy as np
import pytest

from benchmarks import traced
from benchmarks.parts import Options
from benchmarks.traced import ALL, BROKEN, CASES, CORRECT, RECORDER
from benchmarks.traced_case import MARK, ROUND, lines_marked


def long_statement(data, rng):
    total = sum(float(each) ** 2 for each in data) + sum(
        float(each) for each in data
    )  # here
    for each in data:  # here
        total += each
    return total


def test_a_mark_is_for_its_whole_statement():
    first = long_statement.__code__.co_firstlineno
    marked = lines_marked(long_statement, MARK)
    assert marked == {first + k for k in (1, 2, 3, 4)}


def test_there_are_sixty_and_six_each_with_a_name_of_its_own():
    assert (len(BROKEN), len(CORRECT), len(RECORDER)) == (40, 20, 6)
    assert len(CASES) == len(ALL) == len(traced.units(Options(1)))


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_a_case_runs_on_its_first_pair(case):
    pairs = (
        case.pairs
        if isinstance(case.pairs, list)
        else [(p.data, p.neighbour) for p in case.pairs.pairs()]
    )
    for data in pairs[0]:
        given = (
            (np.random.default_rng(0),)
            if "rng" in inspect.signature(case.function).parameters
            else ()
        )
        case.function(data, *given)


def test_a_broken_one_has_a_reason_and_a_line_where_noise_is_to_blame():
    for case in (*BROKEN, *RECORDER):
        assert case.kinds
        assert case.marked or ROUND in case.kinds, case.name
    assert not any(case.kinds or case.marked for case in CORRECT)


def test_a_run_is_counted_with_its_reason_and_line():
    run = traced.judge(CASES["daily active"], 1)
    assert (run["true"], run["line"], run["proposed"], run["extent"]) == (
        True,
        True,
        ["loss"],
        "full",
    )
    assert 2 <= run["runs"] <= traced.RUNS
    assert not traced.judge(CASES["daily active"], 1, most=1)["true"]
    assert traced.judge(CASES["cities"], 1)["line"] is None
    correct = traced.judge(CASES["correct: noisy state"], 1, most=8)
    assert (correct["true"], correct["proposed"]) == (False, [])


def test_the_page_counts_what_was_proposed():
    found = {
        "extent": "full",
        "runs": 2,
        "said": "",
        "opaque": [],
        "cpu_seconds": 0.1,
        "line": None,
    }
    results = {
        name: found
        | {
            "true": not name.startswith("correct: "),
            "proposed": [] if name.startswith("correct: ") else ["loss"],
        }
        for name in CASES
    }
    bars = traced.view(results).bars
    assert [bar.met for bar in bars] == [True, True, None]
    assert "0 of 20 proposed" in bars[2].found
    missed = {name: run | {"true": False} for name, run in results.items()}
    assert traced.view(missed).bars[0].met is False
