"""The cost of the trainers: an epoch beside a plain loop, and the largest graphs.

Each measurement has a process of its own, so that its memory is its own. Units need the extra ``torch`` and the data folder
that AUDITDP_DATA names; without these the part has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.parts import (
    Bar,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    median,
    printed,
    spread,
)

DATA_VARIABLE = "AUDITDP_DATA"
PLAIN = "plain loop, dense features"
EPOCH = "Epoch of GCN on Cora"
LPGNN, DPAR, FEATURES, BANDWIDTH = (
    "LPGNN on Facebook",
    "DPAR on Physics",
    "Multi-bit and KProp on Physics",
    "KProp on Physics",
)
SECONDS = 300.0
GIB = 4.0


@dataclass(frozen=True)
class Measurement:
    """A command that prints JSON.

    Args:
        module: What is run with ``python -m``.
        arguments: In full.
        quick: In a quick run.
    """

    module: str
    arguments: Sequence[str]
    quick: Sequence[str]


MEASUREMENTS = {
    EPOCH: Measurement(
        "gnn.speed", ("--json",), ("--json", "--rounds", "2", "--epochs", "5")
    ),
    LPGNN: Measurement(
        "gnn.scale",
        ("lpgnn-facebook", "--threads", "2"),
        ("lpgnn-facebook", "--epochs", "5"),
    ),
    DPAR: Measurement(
        "gnn.scale",
        ("dpar-physics", "--threads", "2"),
        ("dpar-physics", "--epochs", "1"),
    ),
    FEATURES: Measurement(
        "gnn.scale", ("features-physics", "--threads", "2"), ("features-physics",)
    ),
    BANDWIDTH: Measurement(
        "gnn.scale", ("kprop-bandwidth", "--threads", "1"), ("kprop-bandwidth",)
    ),
}


def measure(name: str, *, quick: bool) -> Result:
    """Return the output of a measurement.

    Raises:
        RuntimeError: If its process fails, with the end of what it says.
    """
    given = MEASUREMENTS[name]
    return printed(given.module, *(given.quick if quick else given.arguments))


def units(options: Options) -> Mapping[str, partial[Result]]:
    """A unit for each measurement; none without torch or the data folder."""
    if find_spec("torch") is None or not os.environ.get(DATA_VARIABLE):
        return {}
    return {name: partial(measure, name, quick=options.quick) for name in MEASUREMENTS}


def ratios(times: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Return the seconds of every loop over those of the plain one in the same round."""
    return {
        name: [a / b for a, b in zip(found, times[PLAIN], strict=True)]
        for name, found in times.items()
    }


def dense_gib(nodes: float) -> float:
    """Return the size of a dense n × n matrix of float32, in GiB."""
    return 4 * nodes**2 / 2**30


def view(results: Results) -> View:
    """Return the measurements, and whether each bar was met."""
    return View(
        _bars(results),
        [
            table
            for table in (_epochs(results), _large(results), _bandwidth(results))
            if table
        ],
    )


def _bars(results: Results) -> list[Bar]:
    epochs = (
        {name: median(found) for name, found in ratios(results[EPOCH]).items()}
        if EPOCH in results
        else {}
    )
    ours = {name: value for name, value in epochs.items() if name != PLAIN}
    lpgnn, dpar, features = (results.get(name) for name in (LPGNN, DPAR, FEATURES))
    return [
        Bar(
            "An epoch of the trainer is no slower than torch-geometric's plain loop of the same model (median of rounds)",
            max(ours.values()) <= 1 if ours else None,
            "; ".join(f"{name}: {value:.3f} of it" for name, value in ours.items())
            or "not measured",
        ),
        Bar(
            f"LPGNN on Facebook, 22,470 nodes and 500 epochs, takes at most {SECONDS:g} s on two cores",
            lpgnn["seconds"] <= SECONDS if lpgnn else None,
            f"{lpgnn['seconds']:.0f} s" if lpgnn else "not measured",
        ),
        Bar(
            "DPAR on Physics, end to end, takes less memory than a dense n × n matrix alone",
            dpar["peak memory"] < dense_gib(dpar["nodes"]) if dpar else None,
            f"{dpar['peak memory']:.2f} GiB of {dense_gib(dpar['nodes']):.2f} GiB"
            if dpar
            else "not measured",
        ),
        Bar(
            f"Multi-bit and KProp on Physics, 34,493 × 8,415, take at most {GIB:g} GiB",
            features["peak memory"] <= GIB if features else None,
            f"{features['peak memory']:.2f} GiB" if features else "not measured",
        ),
    ]


def _epochs(results: Results) -> Table | None:
    if EPOCH not in results:
        return None
    times, relative = results[EPOCH], ratios(results[EPOCH])
    lines = [
        [
            name,
            spread([1e3 * t for t in times[name]], "{:.2f}".format),
            spread(relative[name], "{:.3f}".format),
        ]
        for name in times
    ]
    return Table(
        "An epoch of GCN on Cora",
        ["Loop", "ms", "of the plain loop"],
        lines,
        note="Processor time on one thread, medians with extremes over rounds that alternate; each epoch has a validation.",
    )


def _large(results: Results) -> Table | None:
    lines = [
        _line(name, results[name])
        for name in (LPGNN, DPAR, FEATURES)
        if name in results
    ]
    if not lines:
        return None
    return Table(
        "Large graphs, a process each",
        ["Measurement", "epochs", "s", "CPU s", "peak memory, GiB", "test accuracy"],
        lines,
        note="Peak memory is that of the process, libraries included. LPGNN and DPAR start from the raw graph.",
    )


def _line(name: str, found: Mapping[str, Any]) -> list[str]:
    accuracy = f"{found['accuracy']:.3f}" if "accuracy" in found else "–"
    numbers = [
        f"{found['epochs']:.0f}",
        f"{found['seconds']:.1f}",
        f"{found['cpu seconds']:.1f}",
    ]
    return [name, *numbers, f"{found['peak memory']:.2f}", accuracy]


def _bandwidth(results: Results) -> Table | None:
    if BANDWIDTH not in results:
        return None
    found = results[BANDWIDTH]
    moved, copied = found["bytes a second"], found["copied a second"]
    return Table(
        "A step of KProp on Physics with 32 units",
        ["Measurement", "GB/s", "of a copy"],
        [
            [
                "KProp: operator and x read once, result written once",
                f"{moved / 1e9:.2f}",
                f"{moved / copied:.3f}",
            ],
            ["Copy of 256 MiB", f"{copied / 1e9:.2f}", "1"],
        ],
        note="On a GPU: python -m gnn.scale kprop-bandwidth --device cuda.",
    )


PART = Part("gnn", "Graph neural networks", units, view, alone=True)
