"""A part of the benchmark: units of work, and a view of their results."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from auditdp.mechanism.protocol import Array, Mechanism, name_of
from auditdp.report.numbers import as_float

ALPHA = 0.05

Rng = np.random.Generator
Check = Callable[[int, Rng], int]
"""Returns the number of false alarms among repeats with given randomness."""
Result = dict[str, Any]
Results = Mapping[str, Result]


@dataclass(frozen=True)
class Options:
    """The options of a run; results with other options are not mixed with it.

    Attributes:
        seed: Root seed of all randomness.
        repeats: Repeats in place of a part's own number, or None.
        quick: Fewer repeats and smaller budgets, to see that everything works; such figures say so.
    """

    seed: int
    repeats: int | None = None
    quick: bool = False


@dataclass(frozen=True)
class Table:
    """A table for readers: the first column names the row, the others are right-aligned where they hold numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar and whether it was met; ``met`` is None where it was not measured in full."""

    text: str
    met: bool | None
    found: str


@dataclass(frozen=True)
class Plot:
    """A function that draws, and its caption."""

    draw: Callable[[], Markup]
    caption: str


@dataclass(frozen=True)
class View:
    """The presentation of a part's results."""

    bars: Sequence[Bar]
    tables: Sequence[Table]
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """One part of the benchmark.

    Attributes:
        name: What the command line calls it.
        title: What the page calls it.
        units: Gives the units of work of a run by key, "row" or "row/number"; each is called once, in any process, and
            returns plain data.
        view: Reads the results of the units that there are, by key; a unit that failed is missing.
        alone: Whether units must not run beside each other, because they time themselves.
    """

    name: str
    title: str
    units: Callable[[Options], Mapping[str, Callable[[], Result]]]
    view: Callable[[Results], View]
    alone: bool = False


@dataclass(eq=False)
class BlackBox:
    """A mechanism with its law hidden, and a clock of the CPU seconds that are spent inside it."""

    mechanism: Mechanism
    cpu_seconds: float = field(default=0.0, init=False)

    @property
    def name(self) -> str:
        """The mechanism's own name."""
        return name_of(self.mechanism)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the output of the mechanism."""
        started = time.process_time()
        outputs = self.mechanism(data, size, rng=rng)
        self.cpu_seconds += time.process_time() - started
        return outputs


def grouped(results: Results) -> dict[str, list[Result]]:
    """Return the results of every row: keys are "row" or "row/number"."""
    groups: dict[str, list[Result]] = {}
    for key, result in results.items():
        groups.setdefault(row_of(key), []).append(result)
    return groups


def printed(module: str, *arguments: str) -> Result:
    """Return the JSON output of a module in a process of its own.

    Raises:
        RuntimeError: If its process fails, with the end of what it says.
    """
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[1:])} failed: {done.stderr.strip()[-500:]}"
        )
    found: Result = json.loads(done.stdout)
    return found


def row_of(key: str) -> str:
    """Return the row that a unit belongs to."""
    return key.partition("/")[0]


def median(values: Sequence[Any]) -> float:
    """Return the median of numbers that may have been through JSON."""
    return statistics.median(
        value for value in map(as_float, values) if value is not None
    )


def spread(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Return the median, and the extremes where they differ from it as written."""
    low, middle, high = write(min(values)), write(median(values)), write(max(values))
    return middle if low == middle == high else f"{middle} ({low}–{high})"
