"""The benchmark of trainers: what its bars count, and that its units run."""

import pytest

from benchmarks import trainers
from benchmarks.parts import Options

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

TIMES = {trainers.PLAIN: [6.0, 5.0], trainers.LAYERS: [0.1, 0.05], trainers.EXAMPLES: [0.5, 0.5]}


def results(part, calls, correct):
    """Results of a whole run in which every part, every count of trainings, and every correct game is the same."""
    found = {}
    for key in trainers.units(Options(seed=1)):
        row = key.partition("/")[0]
        if row == trainers.SPEED:
            found[key] = TIMES
        elif row == trainers.CORRECT:
            found[key] = {"calls": correct, "cpu_seconds": 1.0}
        elif row.startswith((trainers.FULL, trainers.FINAL, trainers.POISSON)):
            found[key] = {"part": part, "trainings": 20_000, "cpu_seconds": 1.0}
        else:
            found[key] = {"calls": calls, "cpu_seconds": 1.0}
    return found


def test_bars_are_met_where_everything_is():
    view = trainers.view(results(0.97, 100, None))
    assert [bar.met for bar in view.bars] == [True] * 5
    assert view.bars[-1].found == "80.0 times"
    assert len(view.tables) == 3


def test_bars_are_missed_one_by_one():
    view = trainers.view(results(0.93, None, 50) | {trainers.SPEED: TIMES | {trainers.LAYERS: [0.2, 0.2]}})
    assert [bar.met for bar in view.bars] == [False, True, False, False, False]


def test_a_part_of_the_games_decides_no_bar():
    whole = results(0.97, 100, None)
    some = {key: found for key, found in whole.items() if key.endswith("/0") and "μ = 2" not in key}
    assert [bar.met for bar in trainers.view(some).bars] == [None, True, None, None, None]


def test_a_unit_of_each_kind_runs():
    units = trainers.units(Options(seed=1, quick=True))
    found = units["no noise, step by step/0"]()
    assert 0 < found["calls"] <= 200
    bound = trainers._bound(f"{trainers.FULL}2", 100, 0)
    assert 0.3 < bound["part"] < 1
    times = trainers._speed(["--models", "8", "--steps", "1", "--rounds", "1"])
    assert set(times) == set(TIMES)
    assert all(seconds > 0 for each in times.values() for seconds in each)
