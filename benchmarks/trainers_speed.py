"""Speed of trainings: ensembles beside a plain loop (``gnn.ensembles.speed``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.parts import Bar, Result, Table, median, printed, spread

SPEED, SINGLE, GROWTH = "throughput", "throughput, single precision", "growth, "
PLAIN, EXAMPLES, LAYERS, HAND = (
    "plain loop, one model at a time",
    "ensemble, gradients of examples",
    "ensemble, gradients by layers",
    "ensemble, by hand",
)
DRAWS, GRAPHS = "noise and batches alone", "ensemble of GCN, gradients of nodes"
FASTER, FASTER_BY_HAND = 50.0, 500.0
GROWING = {
    "models": [HAND, 64, 512, 4096, 16384],
    "hidden units": [HAND, 4, 16, 64, 256],
    "nodes": [GRAPHS, 4, 8, 16, 32],
}
MODELS = {"hidden units": 1024, "nodes": 64}
OPTIONS = {"models": "--models", "hidden units": "--hidden", "nodes": "--rows"}


def _speed(arguments: list[str]) -> Result:
    """Return the seconds per training of each loop and round, measured in a process of its own."""
    return printed("gnn.ensembles.speed", "--json", *arguments)


def units(*, quick: bool) -> dict[str, partial[Result]]:
    """One unit for each precision, and one for each number that grows and each of its values."""
    fewer = ["--models", "256", "--steps", "2", "--rounds", "1"] if quick else []
    single = ["--dtype", "float32", "--kinds", PLAIN, HAND, DRAWS]
    made = {SPEED: partial(_speed, fewer), SINGLE: partial(_speed, [*single, *fewer])}
    for name, (kind, *values) in GROWING.items():
        for value in values[:1] if quick else values:
            models = ["--models", str(MODELS[name])] if name in MODELS else []
            arguments = [
                "--kinds",
                str(kind),
                *models,
                *fewer,
                OPTIONS[name],
                str(value),
            ]
            made[f"{GROWTH}{name} = {value}"] = partial(_speed, arguments)
    return made


def ratios(times: Result, name: str) -> list[float]:
    """Return the ratio of trainings a second of a loop to the plain one, by rounds."""
    return [plain / ours for plain, ours in zip(times[PLAIN], times[name], strict=True)]


def bars(groups: Mapping[str, list[Result]]) -> list[Bar]:
    """Compare the ensembles with their bars: by torch.func, and by hand."""
    found = {
        name: median(ratios(groups[SPEED][0], name))
        for name in (EXAMPLES, LAYERS)
        if SPEED in groups
    }
    func = max(found.values(), default=None)
    hand = max(
        (
            median(ratios(groups[unit][0], HAND))
            for unit in (SPEED, SINGLE)
            if unit in groups
        ),
        default=None,
    )
    return [
        Bar(
            f"An ensemble of 4,096 models trains {least:g} times as many a second as a plain loop {how} (median of rounds)",
            None if ratio is None else ratio >= least,
            "not measured" if ratio is None else f"{ratio:.1f} times",
        )
        for least, how, ratio in (
            (FASTER, "by torch.func", func),
            (FASTER_BY_HAND, "by hand", hand),
        )
    ]


def tables(groups: Mapping[str, list[Result]]) -> list[Table]:
    """Return the throughput of each loop, and how that of ensembles grows."""
    lines = []
    for unit, precision in ((SPEED, "double"), (SINGLE, "single")):
        if unit in groups:
            for name, seconds in groups[unit][0].items():
                times = spread(ratios(groups[unit][0], name), "{:.1f}".format)
                lines.append([name, precision, f"{1 / median(seconds):,.0f}", times])
    growth = []
    for name, (kind, *values) in GROWING.items():
        for value in values:
            if runs := groups.get(f"{GROWTH}{name} = {value}"):
                seconds = median(runs[0][str(kind)])
                growth.append(
                    [name, f"{value:,}", f"{1 / seconds:,.0f}", f"{1e6 * seconds:,.0f}"]
                )
    return [
        Table(
            "Throughput of MLPs of 16-16-2, batches of 32, ten steps, 4,096 models",
            ["Loop", "Precision", "Trainings a second", "Times the plain loop"],
            lines,
            note="Processor time on one thread, medians over rounds that alternate: python -m gnn.ensembles.speed.",
        ),
        Table(
            "How throughput grows",
            ["What", "Value", "Trainings a second", "µs a training"],
            growth,
            note=(
                "Double precision, one thread. Models and hidden units: by hand, as above, hidden units with 1,024 models. "
                "Nodes: 64 GCN of two layers and 16 hidden units, with the gradient of each node of a ring."
            ),
        ),
    ]
