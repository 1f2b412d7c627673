"""The plots of the benchmark's page, in the style of the project's reports: one row a mechanism, marks by who."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from auditdp.report.html.plots import COLOURS, drawing, finish, log_ticks, new_axes
from auditdp.report.numbers import number
from auditdp.report.plain_text import shorten

WIDTH = 900
ROW = 24
MARKS = (
    ("o", "not-refuted"),
    ("s", "certified"),
    ("^", "inconclusive"),
    ("x", "violated"),
    ("D", "error"),
)
"""Marker and colour role of each series, in turn."""
Series = Mapping[str, Sequence[float | None]]


def ratios(names: Sequence[str], series: Series, bar: float) -> Markup:
    """Draw bounds as shares of the oracle's, one row a mechanism."""
    with drawing():
        figure, axes = _rows(names)
        axes.set_xlim(-0.03, 1.08)
        _line(axes, 1.0, len(names), "ink")
        _line(axes, bar, len(names), "violated", dashed=True)
        axes.text(
            bar - 0.004,
            -0.62,
            f"bar {bar:g}",
            ha="right",
            va="bottom",
            color=COLOURS["violated"],
        )
        axes.text(1.004, -0.62, "oracle", va="bottom", color=COLOURS["ink"])
        _marks(axes, series)
        axes.set_xlabel("lower bound on ε, as a share of the oracle's")
        return finish(
            figure,
            "Lower bounds as shares of the oracle's; the table below gives the same numbers.",
        )


def bounds(names: Sequence[str], series: Series, oracles: Sequence[float]) -> Markup:
    """Draw bounds in nats against the oracle's, one row a mechanism."""
    shown = [value for values in series.values() for value in values if value]
    low, high = min([*shown, *oracles]) / 1.5, max([*shown, *oracles]) * 1.5
    with drawing():
        figure, axes = _rows(names)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        log_ticks(axes, "x", low, high, number)
        for row, value in enumerate(oracles):
            axes.plot(
                [value, value],
                [row - 0.38, row + 0.38],
                color=COLOURS["ink"],
                linewidth=2,
            )
        _marks(
            axes,
            {
                name: [value or None for value in values]
                for name, values in series.items()
            },
        )
        axes.set_xlabel("lower bound on ε in nats")
        return finish(
            figure, "Lower bounds in nats against the oracle's, for every auditor."
        )


def factors(
    names: Sequence[str], series: Series, counts: Sequence[bool], most: float
) -> Markup:
    """Draw calls to refute as factors of the reference's, with a limit at the right edge."""
    right = 1.15 * most
    low = min(
        [0.7, *(0.9 * value for values in series.values() for value in values if value)]
    )
    with drawing():
        figure, axes = _rows(names, left=290)
        axes.set_xscale("log")
        axes.set_xlim(low, right)
        log_ticks(axes, "x", low, right, lambda value: f"{number(value)}×")
        _line(axes, 1.0, len(names), "ink")
        for label, counted in zip(axes.get_yticklabels(), counts, strict=True):
            label.set_color(COLOURS["ink" if counted else "skipped"])
        shown = {
            name: [None if value is None else min(value, most) for value in values]
            for name, values in series.items()
        }
        _marks(axes, shown)
        axes.set_xlabel("calls to refute, as a multiple of the true posterior's")
        return finish(
            figure,
            "Calls to refute as multiples of the true posterior's; the table gives the numbers.",
        )


def overheads(series: Mapping[str, Sequence[tuple[int, float]]], bar: float) -> Markup:
    """Draw the harness's share of time against calls."""
    every = [calls for points in series.values() for calls, _ in points]
    left, right = min(every) / 1.3, max(every) * 1.3
    heights = [bar, *(value for points in series.values() for _, value in points)]
    bottom, top = max(min(heights) / 1.5, 1e-3), 1.5 * max(heights)
    with drawing():
        figure, axes = new_axes(WIDTH, 300, left=60, right=190)
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.set_yscale("log")
        axes.set_ylim(bottom, top)
        log_ticks(axes, "x", left, right, number)
        log_ticks(axes, "y", bottom, top, number)
        axes.plot(
            [left, right],
            [bar, bar],
            color=COLOURS["violated"],
            linewidth=1.2,
            linestyle=(0, (5, 3)),
        )
        for (name, points), (marker, role) in zip(
            series.items(), _cycle(len(series)), strict=True
        ):
            axes.plot(
                *zip(*((x, max(y, bottom)) for x, y in points), strict=True),
                marker=marker,
                color=COLOURS[role],
                linewidth=1.2,
                label=name,
            )
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
        axes.set_xlabel("calls of the mechanism")
        axes.set_ylabel("CPU time in the harness / in the mechanism")
        return finish(
            figure, "CPU time in the harness over that in the mechanism, against calls."
        )


def _cycle(length: int) -> list[tuple[str, str]]:
    roles = (
        "not-refuted",
        "certified",
        "inconclusive",
        "violated",
        "error",
        "equivalent",
    )
    return [("os^xDv"[k % 6], roles[k % 6]) for k in range(length)]


def _rows(names: Sequence[str], *, left: float = 130) -> tuple[Figure, Axes]:
    figure, axes = new_axes(
        WIDTH, 90 + ROW * len(names), left=left, right=190, top=26, bottom=44
    )
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [shorten(name, 44) for name in names])
    axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
    return figure, axes


def _line(axes: Axes, at: float, rows: int, role: str, *, dashed: bool = False) -> None:
    style = (0, (5, 3)) if dashed else "-"
    axes.plot(
        [at, at],
        [rows - 0.4, -0.6],
        color=COLOURS[role],
        linewidth=1.2,
        linestyle=style,
    )


def _marks(axes: Axes, series: Series) -> None:
    """Plot the series with a legend; the first stands out, and the others are hollow."""
    for place, (name, values) in enumerate(series.items()):
        marker, role = MARKS[place % len(MARKS)]
        points = [
            (value, row)
            for row, value in enumerate(values)
            if value is not None and math.isfinite(value)
        ]
        face = COLOURS[role] if place == 0 or marker == "x" else "none"
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker,
            color=COLOURS[role],
            markerfacecolor=face,
            markersize=7,
            markeredgewidth=1.6,
            label=name,
        )
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handletextpad=0.4)
