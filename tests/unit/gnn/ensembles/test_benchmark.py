"""The benchmark of trainers: its bars, and a unit of each kind."""

from benchmarks import trainers, trainers_correct, trainers_found
from benchmarks import trainers_speed as speed
from benchmarks.parts import Options

TIMES = {
    speed.PLAIN: [6.0, 5.0],
    speed.LAYERS: [0.1, 0.05],
    speed.EXAMPLES: [0.5, 0.5],
    speed.HAND: [0.012, 0.008],
    speed.DRAWS: [0.002, 0.002],
    speed.GRAPHS: [0.01, 0.03],
}
SLOW = TIMES | {speed.LAYERS: [0.2, 0.2], speed.HAND: [0.02, 0.02]}


def results(part, calls, correct, times=TIMES):
    """A whole run: every part, number of calls and correct game is the same."""
    found = {}
    seeds = trainers_correct.SEEDS
    verdict = "NOT_REFUTED" if calls is None else "VIOLATED"
    for key in trainers.units(Options(seed=1)):
        row = key.partition("/")[0]
        result = {"calls": calls, "part": part, "trainings": 100, "cpu_seconds": 1.0}
        result |= {"refuted_at": 50, "traced": 10, "said": ""}
        result |= {"verdict": "NOT_REFUTED", "named": False}
        if row.startswith((speed.SPEED, speed.GROWTH)):
            result = times
        elif row.startswith(trainers_found.BROKEN):
            result |= {"verdict": verdict, "named": calls is not None}
        elif row.startswith(trainers_correct.ROW):
            result["verdicts"] = ["NOT_REFUTED"] * seeds
            result["accused"] = seeds if correct else 0
        elif row.startswith(trainers.CORRECT):
            result["calls"] = correct
        found[key] = result

    return found


def met(found):
    return [bar.met for bar in trainers.view(found).bars]


def test_bars_are_met_or_missed_one_by_one():
    assert met(results(0.97, 100, None)) == [True] * 14

    missed = met(results(0.93, None, 50, SLOW))
    # The certified parts at μ = 1 and the speed of one kind have lower bars.
    assert [number for number, each in enumerate(missed) if each] == [1, 6]

    found = [bar.found for bar in trainers.view(results(0.97, 100, None)).bars]
    assert found[-2:] == ["80.0 times", "562.5 times"]
