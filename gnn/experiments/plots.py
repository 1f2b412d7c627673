"""Plots like those of the sources, as Matplotlib writes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from auditdp.report.html.plots import COLOURS, Point, drawing, log_ticks, new_axes
from auditdp.report.numbers import number
from gnn.experiments.catalogue.honesty import EPSILONS
from gnn.experiments.cost import Line
from gnn.experiments.experiment import FORM, REPAIRED, Parameters, Plot, Value
from gnn.experiments.grid import plain
from gnn.experiments.summary import Row, Summary, constant

WIDTH, HEIGHT = 460, 300
COST_WIDTH = 420
"""Width of a figure of costs."""
COST_STEP = 0.13
"""Distance of the marks of a row, upwards; rows are 1 apart."""
COST_MARKS = (
    ("paper", "the paper's number", "x", "ink"),
    ("published", "published form", "o", "violated"),
    ("repaired", "repaired form, printed ε", "s", "certified"),
    ("unused", "best without the data", "^", "inconclusive"),
    ("clean", "non-private", "D", "soft"),
)
"""Marks on a line of a figure of costs: name, legend, marker, colour role."""
TICKS = 6  # so many values of a factor have a tick each
MARKS = tuple(
    zip(
        "os^xDv",
        ("not-refuted", "certified", "inconclusive", "violated", "error", "equivalent"),
        strict=True,
    )
)
"""Marker and colour role of the lines of a plot, in turn."""


def draw(content: Summary, *, folder: Path) -> list[tuple[str, str]]:
    """Write the plots of an experiment and return their files' names and contents.

    Lines are means over repetitions, bars one standard deviation; dashed is what the source prints.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{content.experiment.name}-[0-9]*.svg"):
        old.unlink()
    made: list[tuple[str, str]] = []
    for plot in content.experiment.plots:
        panels = list(
            dict.fromkeys(
                tuple(plain(row.parameters[name]) for name in plot.panels)
                for row in content.rows
            )
        )
        for panel in panels:
            rows = [
                row
                for row in content.rows
                if tuple(plain(row.parameters[name]) for name in plot.panels) == panel
            ]
            if not _is_line(plot, rows):
                continue
            name = f"{content.experiment.name}-{len(made) + 1}.svg"
            _write(plot, rows, content, folder / name)
            where = ", ".join(
                f"{factor} {value}"
                for factor, value in zip(plot.panels, panel, strict=True)
            )
            against = plot.x or content.experiment.metric(plot.metric).curve
            made.append(
                (
                    name,
                    f"{content.experiment.metric(plot.metric).label} against {against}"
                    + (where and f": {where}"),
                )
            )
    return made


def draw_costs(lines: Sequence[Line], *, folder: Path) -> dict[str, str]:
    """Write a figure of what honesty costs for each paper, and return their files by paper.

    A figure has a row for each mechanism on a data set and a panel for each ε; all have the same height.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("honesty*.svg"):
        old.unlink()
    places: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        mine = places.setdefault(line.paper, [])
        if (line.data, line.method) not in mine:
            mine.append((line.data, line.method))
    most = max(map(len, places.values()), default=0)
    made = {}
    for paper, rows in places.items():
        made[paper] = f"honesty-{paper.lower()}.svg"
        found = [line for line in lines if line.paper == paper]
        _write_cost(found, rows, height=66 + 23 * most, path=folder / made[paper])
    return made


def _write_cost(
    lines: Sequence[Line],
    rows: Sequence[tuple[str, str]],
    *,
    height: float,
    path: Path,
) -> None:
    with drawing():
        figure = Figure(figsize=(COST_WIDTH / 72, height / 72))
        panels = figure.subplots(1, len(EPSILONS), sharey=True, sharex=True)
        for axes, epsilon in zip(panels, EPSILONS, strict=True):
            for line in (line for line in lines if line.epsilon == epsilon):
                _cost_row(axes, line, -rows.index((line.data, line.method)))
            axes.set_title(f"ε = {number(epsilon)}")
            axes.set_xlabel("test accuracy")
        paper = lines[0].paper
        labels = [
            data if method == paper else f"{data}, {method.removeprefix(f'{paper}-')}"
            for data, method in rows
        ]
        panels[0].set_yticks([-k for k in range(len(rows))], labels)
        panels[0].set_ylim(0.6 - len(rows), 0.4)
        figure.tight_layout(rect=(0, 0, 1, 1))
        figure.savefig(
            path,
            format="svg",
            facecolor="white",
            metadata={"Date": None, "Creator": None},
        )


def _cost_row(axes: Axes, line: Line, height: float) -> None:
    """Marks of one mechanism, hollow where it predicts one class always; a bar is one standard deviation over seeds."""
    best = line.best_unused
    rows = {
        "published": line.published,
        "repaired": line.repaired,
        "unused": best and best[1],
        "clean": line.clean,
    }
    for k, (name, _, marker, role) in enumerate(COST_MARKS):
        row = rows.get(name)
        at = height + COST_STEP * (len(COST_MARKS) // 2 - k)
        if name == "paper" and line.printed is not None:
            axes.plot(
                [line.printed],
                [at],
                marker=marker,
                color=COLOURS[role],
                linestyle="",
                zorder=4,
            )
        elif row is not None:
            found, face = (
                row.measured["accuracy"],
                "white" if constant(row) else COLOURS[role],
            )
            style: dict[str, Any] = {
                "marker": marker,
                "markersize": 5,
                "markerfacecolor": face,
                "color": COLOURS[role],
            }
            axes.errorbar(
                [found.mean], [at], xerr=[found.sd or 0.0], capsize=2, **style
            )


def _is_line(plot: Plot, rows: Sequence[Row]) -> bool:
    """Return True if a line of a plot has two points; a table shows one point as well."""
    places: dict[tuple[Value | None, ...], set[Value]] = {}
    for row in rows:
        found = places.setdefault(_line_of(row.parameters, plot), set())
        if plot.metric in row.measured and plot.x:
            found.add(plain(row.parameters[plot.x]))
        found.update(x for x, _ in row.curves.get(plot.metric, ()))
    return any(len(found) > 1 for found in places.values())


def _write(plot: Plot, rows: Sequence[Row], content: Summary, path: Path) -> None:
    metric = content.experiment.metric(plot.metric)
    marks = dict(
        zip(
            dict.fromkeys(_value_of(row.parameters, plot) for row in content.rows),
            itertools.cycle(MARKS),
        )
    )
    lines = list(dict.fromkeys(_line_of(row.parameters, plot) for row in rows))
    with drawing():
        figure, axes = new_axes(WIDTH, HEIGHT, left=62)
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        drawn: list[Point] = []
        for line in lines:
            mine = [row for row in rows if _line_of(row.parameters, plot) == line]
            style = _style(*marks[line[0]], repaired=len(line) > 1)
            name = ", ".join(str(part) for part in line if part is not None)
            if metric.curve:
                points = sorted(
                    point for row in mine for point in row.curves.get(plot.metric, ())
                )
                axes.plot(*_columns(points), **style, label=name)
                drawn += points
            else:
                drawn += _line(axes, plot, mine, name, style)
        _ticks(axes, plot, drawn)
        if plot.diagonal:
            ends = (
                max(axes.get_xlim()[0], axes.get_ylim()[0]),
                min(axes.get_xlim()[1], axes.get_ylim()[1]),
            )
            axes.plot(
                ends, ends, color=COLOURS["soft"], linewidth=1, linestyle=(0, (1, 3))
            )
        axes.set_xlabel(plot.x or metric.curve)
        axes.set_ylabel(metric.label)
        if any(axes.get_legend_handles_labels()[1]):
            axes.legend(loc="best")
        figure.savefig(
            path,
            format="svg",
            facecolor="white",
            metadata={"Date": None, "Creator": None},
        )


def _line(
    axes: Axes, plot: Plot, rows: Sequence[Row], name: str, style: dict[str, Any]
) -> list[Point]:
    """Draw a metric of settings and the printed numbers against a factor."""
    found = [
        (row.parameters[plot.x], row.measured[plot.metric])
        for row in rows
        if plot.metric in row.measured
    ]
    x = [_place(value, k) for k, (value, _) in enumerate(found)]
    if x != [value for value, _ in found]:
        axes.set_xticks(x, [str(plain(value)) for value, _ in found])
    heights, bars = (
        [measured.mean for _, measured in found],
        [measured.sd or 0.0 for _, measured in found],
    )
    axes.errorbar(x, heights, yerr=bars, capsize=2, **style, label=name)
    printed = [
        (at, measured.published.mean)
        for at, (_, measured) in zip(x, found, strict=True)
        if measured.published
    ]
    if printed:
        dashed = style | {
            "linestyle": (0, (4, 3)),
            "markerfacecolor": "none",
            "linewidth": 1,
        }
        axes.plot(
            *_columns(printed), **dashed, label=f"{name}, paper" if name else "paper"
        )
    return [*zip(x, heights, strict=True), *printed]


def _style(marker: str, role: str, *, repaired: bool) -> dict[str, Any]:
    """One colour and marker for each value of the factor of lines; hollow and dotted for its repaired mechanism."""
    style: dict[str, Any] = {
        "marker": marker,
        "markersize": 4.5,
        "linewidth": 1.3,
        "color": COLOURS[role],
    }
    return style | (
        {"markerfacecolor": "white", "linestyle": (0, (1, 1.5))} if repaired else {}
    )


def _ticks(axes: Axes, plot: Plot, points: Sequence[Point]) -> None:
    """Ticks of logarithmic axes in the report's own way of writing numbers."""
    names: tuple[tuple[Literal["x", "y"], bool], ...] = (
        ("x", plot.log_x),
        ("y", plot.log_y),
    )
    for place, (name, logarithmic) in enumerate(names):
        values = sorted({point[place] for point in points if point[place] > 0})
        if name == "x" and plot.x and logarithmic and len(values) <= TICKS:
            axes.set_xticks(values, [number(value) for value in values])
            axes.xaxis.set_minor_locator(NullLocator())
        elif logarithmic and values:
            log_ticks(
                axes, name, min(values), max(values), lambda value: number(value, 2)
            )


def _value_of(parameters: Parameters, plot: Plot) -> Value | None:
    return plain(parameters[plot.lines]) if plot.lines else None


def _line_of(parameters: Parameters, plot: Plot) -> tuple[Value | None, ...]:
    """The value of the factor of lines, and the form where it is a repaired mechanism's."""
    repaired = parameters.get(FORM) == REPAIRED and FORM not in (
        plot.lines,
        *plot.panels,
    )
    return (
        (_value_of(parameters, plot), REPAIRED)
        if repaired
        else (_value_of(parameters, plot),)
    )


def _place(value: Value, rank: int) -> float:
    return (
        float(rank)
        if isinstance(value, str) or not math.isfinite(value)
        else float(value)
    )


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
