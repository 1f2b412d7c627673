"""Plots of evidence, and the interval of an audit's bounds around its claim.

A plot is an image element of HTML, drawn by Matplotlib with settings that do not depend
on those of the user. On a dark page the style sheet inverts its light colours. An
``Interval`` has only coordinates, which a template draws.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
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
from auditdp.record.results import AuditResult, Verdict
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
"""Colours of text, lines and verdicts, by name."""

Point = tuple[float, float]
T = TypeVar("T")


class PlotSize:
    """Sizes of plots. A unit of length is 1/72 inch, displayed as one CSS pixel."""

    width = 460
    """Width of a plot."""
    height = 240
    """Height of a plot."""
    points = 60
    """Largest number of points of a curve."""
    interval_width = 200
    """Length of the axis of an interval, from 0.1 to 10 times the claim."""


DASHED = (0, (5, 3))

# The type of the keys is Matplotlib's own, and differs between its versions.
_STYLE: Any = {
    # Without a salt, the ids in an SVG are random, and equal records differ.
    "svg.hashsalt": "auditdp",
    "svg.fonttype": "none",
    # Names with dollar signs are no mathematics.
    "text.parse_math": False,
    "font.size": 11,
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
    "xtick.bottom": False,
    "ytick.left": False,
    "text.color": COLOURS["ink"],
    "legend.frameon": False,
    "lines.solid_capstyle": "butt",
}


@contextmanager
def drawing() -> Iterator[None]:
    """Use Matplotlib with the settings of reports inside the block, not the user's."""
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
    """Return a figure of the given size, and its axes inside the four margins.

    All lengths are in 1/72 inch.
    """
    figure = Figure(figsize=(width / 72, height / 72))
    across = (width - left - right) / width
    up = (height - top - bottom) / height
    axes = figure.add_axes((left / width, bottom / height, across, up))
    axes.set_axisbelow(True)
    return figure, axes


def finish(figure: Figure, label: str) -> Markup:
    """Return a figure as an image element with its SVG; ``label`` describes it."""
    stream = io.BytesIO()
    # Without its date, equal records give equal reports.
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
    """Set the ticks of a logarithmic axis, "x" or "y", between two values.

    They are at 1, 2 and 5 times powers of ten. If the axis has more than three decades,
    they are at powers of ten alone, and in equal steps if there are too many. If fewer
    than two of these are on the axis, the ticks are its ends. ``write`` returns the
    text of a tick.
    """
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    # Ticks of many decades would overlap.
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    exponents = range(first, last + 1, max(1, (last - first) // 6))
    ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    axis: Axis = axes.yaxis
    if name == "x":
        axis = axes.xaxis
    if len(inside) < 2:
        inside = [low, high]
    axis.set_major_locator(FixedLocator(inside))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def plain_ticks(axis: Axis, most: int) -> None:
    """Set at most ``most`` + 1 ticks of an axis, at round numbers."""
    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def power_of_ten(exponent: float) -> str:
    """Return 10^exponent as the text of a tick; the exponent is rounded.

    >>> power_of_ten(3.0), power_of_ten(-12.0)
    ('1,000', '10⁻¹²')
    """
    whole = round(exponent)
    if 0 <= whole <= 3:
        return number(10**whole)
    return "10" + str(whole).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def thin_evenly(items: list[T], most: int = PlotSize.points) -> list[T]:
    """Return at most ``most`` items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return items
    step = (len(items) - 1) / (most - 1)
    return [items[round(index * step)] for index in range(most)]


TICKS = {"⅒×": 0.1, "½×": 0.5, "1×": 1.0, "2×": 2.0, "10×": 10.0}
"""Ticks of the axis of an interval: their texts and the multiples of the claim."""


@dataclass(frozen=True)
class Interval:
    """The bounds of an audit on a logarithmic axis of multiples of the claim.

    Places are from 0 to ``PlotSize.interval_width``; see ``place``.

    Attributes:
        start: Place of the lower bound; 0 if there is none.
        end: Place of the upper bound; the right end of the axis if there is none.
        mark: Place of the marked bound. It is the upper one for a proof, or if there is
            no lower one, and otherwise the lower one.
        open: True if there is no finite upper bound.
        detectable: Place of the loss that a clean game refutes nine times in ten; None
            if it is unknown, or with another verdict than NOT_REFUTED.
        role: Name of its colour in ``COLOURS``.
        text: The bounds as text.
    """

    start: float
    end: float
    mark: float
    open: bool
    detectable: float | None
    role: str
    text: str


def interval_of(result: AuditResult) -> Interval | None:
    """Return the interval of an audit's bounds.

    Returns:
        The interval; None if the audit claims no finite level of privacy above 0, or
        found no bound.
    """
    claimed = level(result.claim)
    lower = as_float(result.epsilon_lower)
    upper = as_float(result.epsilon_upper)
    if not claimed or not 0 < claimed < math.inf or lower is None is upper:
        return None
    start = 0.0 if lower is None else place(lower / claimed)
    end = float(PlotSize.interval_width) if upper is None else place(upper / claimed)
    mark = start
    proved = result.verdict is Verdict.CERTIFIED and upper is not None
    if proved or lower is None:
        mark = end
    # A game that refuted or proved nothing else is described by its power.
    detectable = None
    game = result.game_details
    if result.verdict is Verdict.NOT_REFUTED and game is not None:
        loss = game.detectable_epsilon
        detectable = None if loss is None else place(loss / claimed)
    return Interval(
        start=start,
        end=max(start, end),
        mark=mark,
        open=upper is None or math.isinf(upper),
        detectable=detectable,
        role=role(result),
        text=bounds(result),
    )


def place(ratio: float) -> float:
    """Return the place of a multiple of the claim on the axis of an interval.

    The axis is logarithmic from 0.1 to 10. A multiple beyond it is placed at its end.
    """
    decades = 1.0
    if math.isfinite(ratio):
        decades = math.log10(min(max(ratio, 0.1), 10.0))
    return round(PlotSize.interval_width * (decades + 1) / 2, 1)


def wealth(game: GameDetails) -> Markup | None:
    """Return a plot of a game's wealth over its calls, with the refuting threshold.

    Returns:
        The plot; None if fewer than two points of the path are recorded.
    """
    spent = _finite(game.wealth_path)
    if len(spent) < 2:
        return None
    # A logarithmic axis has no place for the stake before the first call.
    first = min((calls for calls, _ in spent if calls > 0), default=1.0)
    path = [(max(calls, first / 2), log / math.log(10)) for calls, log in spent]
    ended = "the threshold is not reached"
    with drawing():
        figure, axes = new_axes(PlotSize.width, PlotSize.height)
        across, up = zip(*thin_evenly(path), strict=True)
        axes.plot(across, up, color=COLOURS["not-refuted"], linewidth=1.8)
        axes.set(xscale="log", xlabel="calls of the mechanism", ylabel="wealth")
        axes.margins(y=0.15)
        if game.threshold is not None:
            height = game.threshold / math.log(10)
            shade = COLOURS["violated"]
            axes.axhline(height, color=shade, linewidth=1.2, linestyle=DASHED)
            axes.annotate(
                f"1/α = {number(math.exp(min(game.threshold, 700)), 3)}",
                (0, height),
                (4, 4),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                color=shade,
            )
        refuted_at = game.refuted_at
        if refuted_at is not None:
            ended = f"refuted after {number(refuted_at)} calls"
            crossing = min(path, key=lambda point: abs(point[0] - refuted_at))
            axes.plot(*crossing, "x", color=COLOURS["violated"], markersize=9)
        log_ticks(axes, "x", across[0], across[-1], number)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: power_of_ten(value))
        )
        return finish(figure, f"Wealth over calls: {ended}.")


def privacy_curves(exact: ExactDetails, *, logarithmic: bool) -> Markup | None:
    """Return a plot of δ as a function of ε, for the worst pair and for the claim.

    Args:
        exact: The details with both curves.
        logarithmic: True for a logarithmic axis of δ. Points with ε or δ of 0 are then
            left out.

    Returns:
        The plot; None if the worst pair's curve has no two points that can be drawn and
        have different ε.
    """
    curve = sorted(_finite(exact.curve or [], positive=logarithmic))
    claimed = sorted(_finite(exact.claim_curve, positive=logarithmic))
    if len(curve) < 2 or curve[0][0] == curve[-1][0]:
        return None
    with drawing():
        figure, axes = new_axes(PlotSize.width, PlotSize.height, left=70)
        drawn = zip(*thin_evenly(curve), strict=True)
        axes.plot(
            *drawn, color=COLOURS["not-refuted"], linewidth=2.4, label="worst pair"
        )
        if len(claimed) > 1:
            drawn = zip(*thin_evenly(claimed), strict=True)
            axes.plot(*drawn, color=COLOURS["ink"], linestyle=DASHED, label="claim")
        axes.margins(x=0)
        axes.set(xlabel="ε", ylabel="δ(ε)")
        if not logarithmic:
            axes.set_ylim(bottom=0)
        _set_ticks(axes, "y", logarithmic)
        plain_ticks(axes.xaxis, 6)
        axes.legend()
        return finish(
            figure,
            "Delta as a function of epsilon, for the worst pair and for the claim.",
        )


def _set_ticks(axes: Axes, name: str, logarithmic: bool) -> None:
    axis: Axis = axes.yaxis
    if name == "x":
        axis = axes.xaxis
    if not logarithmic:
        plain_ticks(axis, 5)
        return
    getattr(axes, f"set_{name}scale")("log")
    low, high = getattr(axes, f"get_{name}lim")()
    log_ticks(axes, name, low, high, number)


def classes(estimation: EstimationDetails) -> Markup | None:
    """Return a plot with an interval for each class of inputs of an estimation.

    The interval is of the variance over its bound if any class has a bound, and
    otherwise of the bias. Of many classes, 24 are drawn.

    Returns:
        The plot; None if there are no finite intervals.
    """
    ratios = list(filter(None, map(_ratio_row, estimation.classes)))
    rows = ratios or list(filter(None, map(_class_row, estimation.classes)))
    if not rows:
        return None
    rows = thin_evenly(rows, 24)
    label = "mean of the estimates − truth"
    title = "Bias of the estimates"
    if ratios:
        label = "variance of the estimates / bound"
        title = "Variance over its bound"
    centre = 0.0
    if ratios:
        centre = 1.0
    margin = estimation.margin
    with drawing():
        figure, axes = new_axes(PlotSize.width, 62 + 22 * len(rows), left=112)
        if not ratios and margin is not None and 0 < margin < math.inf:
            shade = COLOURS["equivalent"]
            axes.axvspan(-margin, margin, color=shade, alpha=0.14, linewidth=0)
        axes.axvline(centre, color=COLOURS["ink"], linewidth=1)
        for row, (_, low, middle, high) in enumerate(rows):
            # A variance below its bound is no fault.
            is_off = low > centre or (high < centre and not ratios)
            shade, marker = COLOURS["not-refuted"], "o"
            if is_off:
                shade, marker = COLOURS["violated"], "x"
            axes.plot([low, high], [row, row], color=shade, linewidth=2)
            axes.plot(middle, row, marker, color=shade)
        if ratios:
            axes.set_xlim(left=0)
        names = [shorten(printable(name), 18) for name, *_ in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.set(xlabel=label, ylim=(len(rows) - 0.4, -0.6))
        axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
        axes.grid(False, axis="y")
        plain_ticks(axes.xaxis, 5)
        description = f"{title} by class of inputs, with intervals"
        return finish(figure, f"{description}; the table gives the same numbers.")


MARKERS = {
    "o": "not-refuted",
    "x": "violated",
    "^": "certified",
    "s": "error",
    "D": "inconclusive",
}
"""Markers of a scatter plot, one for each series in turn, with names of colours."""


def scatter(description: Scatter, *, points: int) -> Markup | None:
    """Return a scatter plot with about ``points`` points in all series together.

    At least 8 points of each series are drawn, or all points of a shorter series.

    Returns:
        The plot; None if no point can be drawn.
    """
    logarithmic = bool(description.log)
    series = []
    for entry in description.series:
        inside = sorted(_finite(entry.points, positive=logarithmic))
        if inside:
            each = max(8, points // len(description.series))
            series.append((entry.name, thin_evenly(inside, each)))
    if not series:
        return None
    legend = 17 * len(series)
    with drawing():
        figure, axes = new_axes(PlotSize.width, 312 + legend, left=64, top=14 + legend)
        for index, (name, inside) in enumerate(series):
            marker, colour = list(MARKERS.items())[index % len(MARKERS)]
            axes.plot(
                *zip(*inside, strict=True),
                marker,
                color=COLOURS[colour],
                markerfacecolor="none",
                markersize=4.5,
                alpha=0.75,
                # Matplotlib leaves out a label that starts with "_".
                label=f" {shorten(printable(name), 40)}",
            )
        for name in "xy":
            _set_ticks(axes, name, logarithmic)
        # Points above and below equality are compared on axes of one range.
        if description.diagonal:
            ends = [*axes.get_xlim(), *axes.get_ylim()]
            whole = (min(ends), max(ends))
            axes.plot(whole, whole, color=COLOURS["soft"], linestyle=DASHED)
            axes.set(xlim=whole, ylim=whole)
            for name in "xy":
                _set_ticks(axes, name, logarithmic)
        axes.set_xlabel(shorten(printable(description.x_label), 60))
        axes.set_ylabel(shorten(printable(description.y_label), 45))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
        pair = f"{description.y_label or 'y'} against {description.x_label or 'x'}"
        return finish(figure, printable(f"{pair} for {len(series)} series."))


def _finite(points: Iterable[Point], *, positive: bool = False) -> list[Point]:
    """Return the finite points; with ``positive`` only those with both numbers > 0."""
    numbers = [(float(x), float(y)) for x, y in points]
    finite = [point for point in numbers if all(map(math.isfinite, point))]
    return [point for point in finite if not positive or min(point) > 0]


Row = tuple[str, float, float, float]


def _class_row(row: ClassOfInputs) -> Row | None:
    """Return the name of a class, and the lower end, mean and upper end of its bias.

    The result is None if one of these is not finite.
    """
    values = (row.low - row.truth, row.mean - row.truth, row.high - row.truth)
    if all(map(math.isfinite, values)):
        return (row.name, *values)
    return None


def _ratio_row(row: ClassOfInputs) -> Row | None:
    """Return the name of a class, and its variance over the bound of the variance.

    The ratio is given as its lower end, estimate and upper end. The result is None if
    the class has no bound, or if one of these is not finite.
    """
    limit = row.variance_bound
    if not limit:
        return None
    values = (row.variance_low / limit, row.variance / limit, row.variance_high / limit)
    if all(map(math.isfinite, values)):
        return (row.name, *values)
    return None
