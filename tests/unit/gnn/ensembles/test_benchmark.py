"""The benchmark of trainers: what its bars count, and that its units run."""

import pytest

from benchmarks import trainers, trainers_correct, trainers_found
from benchmarks import trainers_speed as speed
from benchmarks.parts import Options, printed

TIMES = {
    speed.PLAIN: [6.0, 5.0],
    speed.LAYERS: [0.1, 0.05],
    speed.EXAMPLES: [0.5, 0.5],
    speed.HAND: [0.012, 0.008],
    speed.DRAWS: [0.002, 0.002],
    speed.GRAPHS: [0.01, 0.03],
}


def results(part, calls, correct):
    """Results of a whole run in which every part, every count of trainings, and every correct game is the same."""
    found = {}
    for key in trainers.units(Options(seed=1)):
        row = key.partition("/")[0]
        if row.startswith((speed.SPEED, speed.GROWTH)):
            found[key] = TIMES
        elif row.startswith((trainers_found.BROKEN, trainers_found.CORRECT)):
            broken = row.startswith(trainers_found.BROKEN) and calls is not None
            found[key] = {
                "verdict": "VIOLATED" if broken else "NOT_REFUTED",
                "trainings": 100,
                "named": broken,
                "said": "",
                "refuted_at": 50,
                "traced": 10,
                "cpu_seconds": 1.0,
            }
        elif row.startswith(trainers_correct.ROW):
            accused = trainers_correct.SEEDS if correct else 0
            found[key] = {
                "verdicts": ["NOT_REFUTED"] * trainers_correct.SEEDS,
                "accused": accused,
            }
        elif row.startswith(trainers.CORRECT):
            found[key] = {"calls": correct, "cpu_seconds": 1.0}
        elif row.startswith((trainers.FULL, trainers.FINAL, trainers.POISSON)):
            found[key] = {"part": part, "trainings": 20_000, "cpu_seconds": 1.0}
        else:
            found[key] = {"calls": calls, "cpu_seconds": 1.0}
    return found


def test_bars_are_met_where_everything_is():
    view = trainers.view(results(0.97, 100, None))
    assert [bar.met for bar in view.bars] == [True] * 14
    assert [bar.found for bar in view.bars[-2:]] == ["80.0 times", "562.5 times"]
    assert len(view.tables) == 5
    assert view.tables[-1].rows[-1] == ["nodes", "32", "50", "20,000"]


def slow(found):
    """The same with ensembles that are slower."""
    times = TIMES | {speed.LAYERS: [0.2, 0.2], speed.HAND: [0.02, 0.02]}
    return found | {speed.SPEED: times, speed.SINGLE: times}


def test_bars_are_missed_one_by_one():
    view = trainers.view(slow(results(0.93, None, 50)))
    assert [bar.met for bar in view.bars] == [
        False,
        True,
        False,
        False,
        False,
        False,
        True,
        *[False] * 7,
    ]


def test_a_part_of_the_games_decides_no_bar():
    whole = results(0.97, 100, None)
    some = {
        key: found
        for key, found in whole.items()
        if key.endswith("/0") and "μ = 2" not in key
    }
    assert [bar.met for bar in trainers.view(some).bars] == [
        None,
        True,
        None,
        None,
        None,
        True,
        *[None] * 8,
    ]


@pytest.mark.full
def test_a_unit_of_each_kind_runs():
    units = trainers.units(Options(seed=1, quick=True))
    found = units["no noise, step by step/0"]()
    assert 0 < found["calls"] <= 200
    bound = trainers.bound(f"{trainers.FULL}2", 100, 0)
    assert 0.3 < bound["part"] < 1
    assert units["last batch over its own size/0"]()["calls"] < 200
    times = printed(
        "gnn.ensembles.speed",
        "--json",
        *[
            "--models",
            "8",
            "--rows",
            "4",
            "--steps",
            "1",
            "--rounds",
            "1",
            "--kinds",
            *TIMES,
        ],
    )
    assert set(times) == set(TIMES)
    assert all(seconds > 0 for each in times.values() for seconds in each)
