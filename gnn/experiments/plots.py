"""Plots like those of the sources, as Matplotlib writes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from auditdp.report.canvas import drawing, new_axes
from auditdp.report.svg import COLOURS
from gnn.experiments.experiment import FORM, Parameters, Plot, Value
from gnn.experiments.grid import plain
from gnn.experiments.summary import Row, Summary

WIDTH, HEIGHT = 460, 300
MARKS = tuple(
    zip("os^xDv", ("not-refuted", "certified", "inconclusive", "violated", "error", "equivalent"), strict=True)
)
"""Marker and colour role of the lines of a plot, in turn."""


def draw(content: Summary, *, folder: Path) -> list[tuple[str, str]]:
    """Write the plots of an experiment and return, for each, its file's name and what it shows.

    Lines are means over repetitions, bars one standard deviation; dashed is what the source prints.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[tuple[str, str]] = []
    for plot in content.experiment.plots:
        panels = list(dict.fromkeys(tuple(plain(row.parameters[name]) for name in plot.panels) for row in content.rows))
        for panel in panels:
            rows = [row for row in content.rows if tuple(plain(row.parameters[name]) for name in plot.panels) == panel]
            if not any(plot.metric in (*row.measured, *row.curves) for row in rows):
                continue
            name = f"{content.experiment.name}-{len(made) + 1}.svg"
            _write(plot, rows, content, folder / name)
            where = ", ".join(f"{factor} {value}" for factor, value in zip(plot.panels, panel, strict=True))
            against = plot.x or content.experiment.metric(plot.metric).curve
            made.append(
                (name, f"{content.experiment.metric(plot.metric).label} against {against}" + (where and f": {where}"))
            )
    return made


def _write(plot: Plot, rows: Sequence[Row], content: Summary, path: Path) -> None:
    metric = content.experiment.metric(plot.metric)
    with drawing():
        figure, axes = new_axes(WIDTH, HEIGHT, left=62)
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        lines = list(dict.fromkeys(_line_of(row.parameters, plot) for row in rows))
        for line, (marker, role) in zip(lines, itertools.cycle(MARKS)):
            mine = [row for row in rows if _line_of(row.parameters, plot) == line]
            name = ", ".join(map(str, line))
            if metric.curve:
                points = [point for row in mine for point in row.curves.get(plot.metric, ())]
                axes.plot(*_columns(points), marker=marker, markersize=4, linewidth=1, color=COLOURS[role], label=name)
            else:
                _line(axes, plot, mine, name, marker=marker, colour=COLOURS[role])
        if plot.diagonal:
            ends = max(axes.get_xlim()[0], axes.get_ylim()[0]), min(axes.get_xlim()[1], axes.get_ylim()[1])
            axes.plot(ends, ends, color=COLOURS["soft"], linewidth=1, linestyle=(0, (1, 3)))
        axes.set_xlabel(plot.x or metric.curve)
        axes.set_ylabel(metric.label)
        if lines != [()]:
            axes.legend(loc="best")
        figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})


def _line(axes: Axes, plot: Plot, rows: Sequence[Row], name: str, *, marker: str, colour: str) -> None:
    found = [(row.parameters[plot.x], row.measured[plot.metric]) for row in rows if plot.metric in row.measured]
    x = [_place(value, k) for k, (value, _) in enumerate(found)]
    if any(isinstance(value, str) for value, _ in found):
        axes.set_xticks(x, [str(value) for value, _ in found])
    axes.errorbar(
        x,
        [measured.mean for _, measured in found],
        yerr=[measured.sd or 0.0 for _, measured in found],
        marker=marker,
        markersize=5,
        linewidth=1.4,
        capsize=2,
        color=colour,
        label=name,
    )
    printed = [(at, measured.published.mean) for at, (_, measured) in zip(x, found, strict=True) if measured.published]
    if printed:
        axes.plot(
            *_columns(printed), marker=marker, markersize=4, linewidth=1, linestyle=(0, (4, 3)), color=colour,
            markerfacecolor="none", label=f"{name}, paper".lstrip(", "),
        )  # fmt: skip


def _line_of(parameters: Parameters, plot: Plot) -> tuple[Value, ...]:
    """The value of the factor of lines, and the form where it is a repaired mechanism's."""
    line = (plain(parameters[plot.lines]),) if plot.lines else ()
    form = parameters.get(FORM)
    repaired = () if form is None or FORM in (plot.lines, *plot.panels) or form == "published" else (form,)
    return (*line, *repaired)


def _place(value: Value, rank: int) -> float:
    return float(rank) if isinstance(value, str) or not math.isfinite(value) else float(value)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    ordered = sorted(points)
    return [x for x, _ in ordered], [y for _, y in ordered]
