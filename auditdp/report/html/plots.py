"""The colours of plots by role; on a dark page the style sheet turns a plot's light colours into dark ones.

What the plots share: the style, axes of a given size, ticks, limits, and thinning of long paths.

This module loads Matplotlib, so it is imported only when a report with plots is made.

What an audit found against what is claimed, on one axis: geometry for a template, in multiples of the claim.

The plots beside each piece of evidence, drawn by Matplotlib without its global state.

Each function returns an image element, or None where there is nothing to draw.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from auditdp.record.details import (
    ClassOfInputs,
    EstimationDetails,
    ExactDetails,
    GameDetails,
    Scatter,
)
from auditdp.record.results import AuditResult, Verdict, details
from auditdp.report.numbers import as_float, bounds, level, number
from auditdp.report.plain_text import printable, shorten
from auditdp.report.sentences import role

COLOURS: dict[str, str] = {
    "ink": "#1c2024",
    "soft": "#5b6169",
    "rule": "#d9dce0",
    "violated": "#b3261e",
    "miscalibrated": "#a04000",
    "certified": "#1b6e3c",
    "not-refuted": "#1f5fa8",
    "equivalent": "#0b6b74",
    "inconclusive": "#8a5a00",
    "error": "#7a2f8f",
    "skipped": "#6a6f76",
}

FONT_SIZE = 11  # of the text in a plot, in points


Point = tuple[float, float]
T = TypeVar("T")

POINTS_PER_PATH = 60
WIDTH = (
    460  # of a plot beside its evidence, in points; shown at about one CSS pixel each
)
HEIGHT = 240
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_STYLE: Any = {  # its keys are a type of Matplotlib's own, which differs between versions
    "svg.hashsalt": "auditdp",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.size": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "axes.labelcolor": COLOURS["soft"],
    "axes.edgecolor": COLOURS["soft"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "grid.color": COLOURS["rule"],
    "grid.linewidth": 0.7,
    "xtick.color": COLOURS["soft"],
    "ytick.color": COLOURS["soft"],
    "xtick.labelsize": FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "xtick.bottom": False,
    "ytick.left": False,
    "text.color": COLOURS["ink"],
    "legend.frameon": False,
    "legend.fontsize": FONT_SIZE,
    "lines.solid_capstyle": "butt",
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with this report's settings, whatever the reader's own Matplotlib configuration says."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_axes(
    width: float,
    height: float,
    *,
    left: float = 52,
    right: float = 14,
    top: float = 12,
    bottom: float = 44,
) -> tuple[Figure, Axes]:
    """Return a figure of the given size with axes inside the given margins, all in points."""
    figure = Figure(figsize=(width / 72, height / 72))
    box = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - top - bottom) / height,
    )
    axes = figure.add_axes(box)
    axes.set_axisbelow(True)
    return figure, axes


def finish(figure: Figure, label: str) -> Markup:
    """Return the figure as an image element that holds the SVG as Matplotlib writes it, described by ``label``."""
    stream = io.BytesIO()
    figure.savefig(
        stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
    )
    data = base64.b64encode(stream.getvalue()).decode()
    return Markup(
        '<img class="plot" alt="{}" src="data:image/svg+xml;base64,{}">'
    ).format(label, data)


def log_ticks(
    axes: Axes, name: str, low: float, high: float, write: Callable[[float], str]
) -> None:
    """Ticks at 1, 2 and 5, or at powers of ten where there are many of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    stride = max(1, (last - first) // 6)
    ticks = [
        step * 10.0**exponent
        for exponent in range(first, last + 1, stride)
        for step in steps
    ]
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(inside if len(inside) > 1 else [low, high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def plain_ticks(axis: Axis, most: int) -> None:
    """Ticks at round numbers, so many steps at most, written as reports write them."""
    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def power_of_ten(exponent: float) -> str:
    """Write 10^exponent for a tick."""
    whole = round(exponent)
    return (
        number(10**whole)
        if 0 <= whole <= 3
        else "10" + str(whole).translate(SUPERSCRIPTS)
    )


def axis_limits(values: Sequence[float], logarithmic: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows all values with some room."""
    low, high = min(values), max(values)
    if logarithmic:
        return low / 1.25, high * 1.25
    pad = 0.05 * (high - low) or 1.0
    return low - pad, high + pad


def thin(path: list[Point], keep: float | None) -> list[Point]:
    """The last point of each of equally wide steps in log calls, the first point, and the one that refuted."""
    if len(path) <= POINTS_PER_PATH:
        return path
    start, end = math.log(path[0][0]), math.log(path[-1][0])
    steps: dict[int, Point] = {}
    for point in path:
        steps[
            int(
                (POINTS_PER_PATH - 2)
                * (math.log(point[0]) - start)
                / ((end - start) or 1.0)
            )
        ] = point
    kept = {path[0], *steps.values()} | {point for point in path if point[0] == keep}
    return [point for point in path if point in kept]


def thin_evenly(items: list[T], most: int = POINTS_PER_PATH) -> list[T]:
    """At most so many items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return items
    return [
        items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)
    ]


DECADES = 1.0
"""The axis reaches from a tenth of the claim to ten times it."""
INTERVAL_WIDTH = 200
"""Of the axis, in units of the drawing; the claim is in its middle."""

TICKS = {"⅒×": 0.1, "½×": 0.5, "1×": 1.0, "2×": 2.0, "10×": 10.0}
"""Multiples of the claim that the axis names."""


@dataclass(frozen=True)
class Interval:
    """A drawn interval.

    Attributes:
        start: Where the bar begins, 0 to ``WIDTH``.
        mark: Where the bound of the verdict stands.
        open: Whether nothing bounds the right end.
        detectable: Where a clean game would have refuted nine times in ten; None where it does not say.
        role: The name of its colour.
    """

    start: float
    end: float
    mark: float
    open: bool
    detectable: float | None
    role: str
    text: str


def interval_of(result: AuditResult) -> Interval | None:
    """Return what to draw of an audit; None where it claims no level of privacy or found no bound."""
    claimed, lower, upper = (
        level(result.claim),
        as_float(result.epsilon_lower),
        as_float(result.epsilon_upper),
    )
    if not claimed or not 0 < claimed < math.inf or (lower is None and upper is None):
        return None
    start = 0.0 if lower is None else place(lower / claimed)
    end = float(INTERVAL_WIDTH) if upper is None else place(upper / claimed)
    smallest = next(
        (
            s
            for game in details(result.evidence, GameDetails)
            if (s := game.detectable_epsilon) is not None
        ),
        None,
    )
    seen = (
        place(smallest / claimed)
        if smallest is not None and result.verdict is Verdict.NOT_REFUTED
        else None
    )
    return Interval(
        start=start,
        end=max(start, end),
        mark=end
        if result.verdict is Verdict.CERTIFIED and upper is not None
        else start
        if lower is not None
        else end,
        open=upper is None or math.isinf(upper),
        detectable=seen,
        role=role(result),
        text=bounds(result),
    )


def place(ratio: float) -> float:
    """Return where a multiple of the claim stands on the axis; what lies beyond an end stands there."""
    if ratio <= 0:
        return 0.0
    decades = math.log10(ratio) if math.isfinite(ratio) else DECADES
    return round(INTERVAL_WIDTH * (min(max(decades / DECADES, -1.0), 1.0) + 1) / 2, 1)


CLASSES_SHOWN = 24

SERIES = (
    ("o", "not-refuted"),
    ("x", "violated"),
    ("^", "certified"),
    ("s", "error"),
    ("D", "inconclusive"),
)
"""Marker and colour role of the series of a scatter plot, in turn."""


def wealth(game: GameDetails) -> Markup | None:
    """Draw the wealth of the bets against the calls spent, and the threshold at which the claim is refuted."""
    spent = _finite(game.wealth_path)
    first = min((calls for calls, _ in spent if calls > 0), default=1.0)
    path = [(max(calls, first / 2), log / math.log(10)) for calls, log in spent]
    if len(path) < 2:
        return None
    threshold, refuted_at = game.threshold, game.refuted_at
    path = thin(path, keep=refuted_at)
    heights = [height for _, height in path]
    top = max(
        [*heights, 0.0] + ([threshold / math.log(10)] if threshold is not None else [])
    )
    bottom = min([*heights, 0.0])
    with drawing():
        figure, axes = new_axes(WIDTH, HEIGHT, left=52)
        axes.set_xscale("log")
        left, right = path[0][0], max(path[-1][0], path[0][0] * 1.5)
        axes.set_xlim(left, right * 1.06)
        axes.set_ylim(
            bottom - 0.06 * (top - bottom + 1), top + 0.16 * (top - bottom + 1)
        )
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: power_of_ten(value))
        )
        log_ticks(axes, "x", left, right, number)
        axes.set_xlabel("calls of the mechanism")
        axes.set_ylabel("wealth")
        if threshold is not None:
            height = threshold / math.log(10)
            axes.plot(
                [left, right * 1.06],
                [height] * 2,
                color=COLOURS["violated"],
                linewidth=1.2,
                linestyle=(0, (5, 3)),
            )
            needed = f"1/α = {number(math.exp(min(threshold, 700)), 3)}"
            axes.annotate(
                needed,
                (left, height),
                (4, 4),
                textcoords="offset points",
                color=COLOURS["violated"],
            )
        axes.plot(*zip(*path, strict=True), color=COLOURS["not-refuted"], linewidth=1.8)
        if refuted_at is not None:
            crossing = min(path, key=lambda point: abs(point[0] - refuted_at))
            axes.plot(
                *crossing,
                "x",
                color=COLOURS["violated"],
                markersize=9,
                markeredgewidth=2.2,
            )
        ended = (
            f"refuted after {number(refuted_at)} calls"
            if refuted_at is not None
            else "the threshold is not reached"
        )
        return finish(figure, f"Wealth over calls: {ended}.")


def privacy_curves(exact: ExactDetails, *, logarithmic: bool) -> Markup | None:
    """Draw delta as a function of epsilon for the worst pair and for the claim."""
    curve, claimed = (
        sorted(_finite(points)) for points in (exact.curve or [], exact.claim_curve)
    )
    if logarithmic:
        curve, claimed = (
            [point for point in points if point[1] > 0] for points in (curve, claimed)
        )
    if len(curve) < 2 or curve[0][0] == curve[-1][0]:
        return None
    curve, claimed = thin_evenly(curve), thin_evenly(claimed)
    both = curve + claimed
    with drawing():
        figure, axes = new_axes(WIDTH, HEIGHT, left=70)
        axes.set_xlim(min(x for x, _ in both), max(x for x, _ in both))
        low, high = min(y for _, y in both), max(y for _, y in both)
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(low / 1.5, high * 1.5)
            log_ticks(axes, "y", low, high, number)
        else:
            axes.set_ylim(min(0.0, low), high * 1.08 or 1.0)
            plain_ticks(axes.yaxis, 4)
        plain_ticks(axes.xaxis, 6)
        axes.set_xlabel("ε")
        axes.set_ylabel("δ(ε)")
        axes.plot(
            *zip(*curve, strict=True),
            color=COLOURS["not-refuted"],
            linewidth=2.4,
            label="worst pair",
        )
        if len(claimed) > 1:
            dashes = (0, (5, 3))
            axes.plot(
                *zip(*claimed, strict=True),
                color=COLOURS["ink"],
                linestyle=dashes,
                linewidth=1.4,
                label="claim",
            )
        axes.legend(loc="lower left" if logarithmic else "upper right")
        return finish(
            figure,
            "Delta as a function of epsilon, for the worst pair and for the claim.",
        )


def classes(estimation: EstimationDetails) -> Markup | None:
    """Draw each class of inputs with its interval: the variance over its bound where there is one, else the bias."""
    ratios = [row for row in map(_ratio_row, estimation.classes) if row is not None]
    rows = ratios or [
        row for row in map(_class_row, estimation.classes) if row is not None
    ]
    if not rows:
        return None
    rows = thin_evenly(rows, CLASSES_SHOWN)
    margin = None if ratios else estimation.margin
    numbers = [value for _, *values in rows for value in values]
    reach = (
        1.12
        * max(
            [abs(value) for value in numbers] + [margin or 0.0, 1.0 if ratios else 0.0]
        )
        or 1.0
    )
    centre = 1.0 if ratios else 0.0
    with drawing():
        figure, axes = new_axes(WIDTH, 62 + 22 * len(rows), left=112)
        axes.set_xlim(0.0 if ratios else -reach, reach)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        if margin is not None and 0 < margin < math.inf:
            axes.axvspan(
                -margin, margin, color=COLOURS["equivalent"], alpha=0.14, linewidth=0
            )
        axes.plot(
            [centre, centre], [len(rows) - 0.4, -0.6], color=COLOURS["ink"], linewidth=1
        )
        for row, (_, low, middle, high) in enumerate(rows):
            apart = low > centre or (high < centre and not ratios)
            shade = COLOURS["violated" if apart else "not-refuted"]
            axes.plot([low, high], [row, row], color=shade, linewidth=2)
            axes.plot(
                [middle],
                [row],
                "x" if apart else "o",
                color=shade,
                markersize=7 if apart else 6,
                markeredgewidth=2,
            )
        axes.set_yticks(
            range(len(rows)), [shorten(printable(name), 18) for name, *_ in rows]
        )
        axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
        axes.grid(False, axis="y")
        plain_ticks(axes.xaxis, 5)
        axes.set_xlabel(
            "variance of the estimates / bound"
            if ratios
            else "mean of the estimates − truth"
        )
        what = "Variance over its bound" if ratios else "Bias of the estimates"
        return finish(
            figure,
            f"{what} by class of inputs, with intervals; the table gives the same numbers.",
        )


def scatter(description: Scatter, *, points: int) -> Markup | None:
    """Draw the series of a scatter plot, at most so many points in all."""
    logarithmic = bool(description.log)
    series: list[tuple[str, list[Point]]] = []
    for entry in description.series:
        inside = [
            point
            for point in _finite(entry.points)
            if not logarithmic or min(point) > 0
        ]
        if inside:
            series.append(
                (
                    entry.name,
                    thin_evenly(
                        sorted(inside), max(8, points // len(description.series))
                    ),
                )
            )
    if not series:
        return None
    everything = [point for _, inside in series for point in inside]
    with drawing():
        figure, axes = new_axes(
            WIDTH, 312 + 17 * len(series), left=64, top=14 + 17 * len(series)
        )
        limits = [
            axis_limits([point[axis] for point in everything], logarithmic)
            for axis in (0, 1)
        ]
        if description.diagonal:
            limits = [
                (min(limits[0][0], limits[1][0]), max(limits[0][1], limits[1][1]))
            ] * 2
        for name, (low, high) in zip("xy", limits, strict=True):
            axis = axes.xaxis if name == "x" else axes.yaxis
            if logarithmic:
                getattr(axes, f"set_{name}scale")("log")
            getattr(axes, f"set_{name}lim")(low, high)
            if logarithmic:
                log_ticks(axes, name, low, high, number)
            else:
                plain_ticks(axis, 5)
        if description.diagonal:
            axes.plot(
                *limits, color=COLOURS["soft"], linewidth=1, linestyle=(0, (5, 3))
            )
        for index, (name, inside) in enumerate(series):
            marker, role = SERIES[index % len(SERIES)]
            axes.plot(
                *zip(*inside, strict=True),
                marker,
                color=COLOURS[role],
                markerfacecolor="none",
                markersize=4.5,
                markeredgewidth=1.1,
                alpha=0.75,
                label=" "
                + shorten(
                    printable(name), 40
                ),  # a label that starts with "_" would be left out
            )
        axes.set_xlabel(shorten(printable(description.x_label), 60))
        axes.set_ylabel(shorten(printable(description.y_label), 45))
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            handletextpad=0.2,
            borderaxespad=0,
            labelspacing=0.3,
        )
        label = f"{description.y_label or 'y'} against {description.x_label or 'x'} for {len(series)} series."
        return finish(figure, printable(label))


def _finite(points: Iterable[tuple[float, float]]) -> list[Point]:
    """The finite points of a list of pairs."""
    return [
        (float(x), float(y)) for x, y in points if math.isfinite(x) and math.isfinite(y)
    ]


def _class_row(row: ClassOfInputs) -> tuple[str, float, float, float] | None:
    """A class's name and its bias: lower end, middle, upper end."""
    low, middle, high = (value - row.truth for value in (row.low, row.mean, row.high))
    return (
        (row.name, low, middle, high)
        if all(map(math.isfinite, (low, middle, high)))
        else None
    )


def _ratio_row(row: ClassOfInputs) -> tuple[str, float, float, float] | None:
    """The class's name and the interval and value of its variance over the bound, if it has one."""
    if not row.variance_bound:
        return None
    values = [
        value / row.variance_bound
        for value in (row.variance_low, row.variance, row.variance_high)
    ]
    return (
        (row.name, values[0], values[1], values[2])
        if all(map(math.isfinite, values))
        else None
    )
