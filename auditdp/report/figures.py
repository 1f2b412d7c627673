"""The plots of the HTML report, drawn by Matplotlib without its global state.

Each function returns an inline SVG, or None where there is nothing to draw. This module loads Matplotlib, so it is
imported only when a report with plots is made.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from auditdp.report.numbers import as_float, bounds, level, number
from auditdp.report.standing import role, verdict_label
from auditdp.report.svg import COLOURS, FONT_SIZE, inline
from auditdp.report.text import printable, short_names, shorten
from auditdp.results import AuditResult, Verdict

Point = tuple[float, float]
T = TypeVar("T")

POINTS_PER_PATH = 60
CLASSES_SHOWN = 24
WIDTH = 460  # of a plot beside its evidence, in points; shown at about one CSS pixel each
HEIGHT = 240
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SERIES = (("o", "not-refuted"), ("x", "violated"), ("^", "certified"), ("s", "error"), ("D", "inconclusive"))
"""Marker and colour role of the series of a scatter plot, in turn."""

MARKERS: dict[Verdict, tuple[str, bool]] = {
    Verdict.VIOLATED: ("x", True),
    Verdict.CERTIFIED: ("s", True),
    Verdict.NOT_REFUTED: ("o", False),
    Verdict.EQUIVALENT: ("o", True),
    Verdict.INCONCLUSIVE: ("D", False),
}
"""Marker of a verdict and whether it is filled."""

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


def overview(results: Sequence[AuditResult], *, prefix: str) -> str | None:
    """Draw what each audit of a privacy claim found, as a multiple of what is claimed; one row each."""
    shown = [result for result in results if (level(result.claim) or 0) > 0]
    if not shown:
        return None
    left, right = _ratio_limits(shown)
    names = [shorten(printable(name), 34) for name in short_names([result.id for result in shown])]
    with drawing():
        figure, axes = _axes(900, 56 + 24 * len(shown), left=225, right=310, bottom=44)
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        _log_ticks(axes, "x", left, right, lambda value: f"{number(value)}×")
        axes.set_yticks(range(len(shown)), names)
        axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
        axes.grid(False, axis="y")
        axes.plot([1, 1], [len(shown) - 0.4, -0.6], color=COLOURS["ink"], linewidth=1.2)
        axes.set_xlabel("bounds found, as a multiple of what is claimed (1× is the claim)")
        for row, result in enumerate(shown):
            _overview_row(axes, row, result, left, right)
        label = f"Bounds found by {len(shown)} audits against their claims; the table below gives the same numbers."
        return _finish(figure, prefix, label)


def wealth(details: dict[str, Any], *, prefix: str) -> str | None:
    """Draw the wealth of the bets against the calls spent, and the threshold at which the claim is refuted."""
    spent = _points(details.get("wealth_path"))
    first = min((calls for calls, _ in spent if calls > 0), default=1.0)
    path = [(max(calls, first / 2), log / math.log(10)) for calls, log in spent]
    if len(path) < 2:
        return None
    threshold, refuted_at = as_float(details.get("threshold")), as_float(details.get("refuted_at"))
    path = _thin(path, keep=refuted_at)
    heights = [height for _, height in path]
    top = max([*heights, 0.0] + ([threshold / math.log(10)] if threshold is not None else []))
    bottom = min([*heights, 0.0])
    with drawing():
        figure, axes = _axes(WIDTH, HEIGHT, left=52)
        axes.set_xscale("log")
        left, right = path[0][0], max(path[-1][0], path[0][0] * 1.5)
        axes.set_xlim(left, right * 1.06)
        axes.set_ylim(bottom - 0.06 * (top - bottom + 1), top + 0.16 * (top - bottom + 1))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
        _log_ticks(axes, "x", left, right, number)
        axes.set_xlabel("calls of the mechanism")
        axes.set_ylabel("wealth")
        if threshold is not None:
            height = threshold / math.log(10)
            axes.plot(
                [left, right * 1.06], [height] * 2, color=COLOURS["violated"], linewidth=1.2, linestyle=(0, (5, 3))
            )
            needed = f"1/α = {number(math.exp(min(threshold, 700)), 3)}"
            axes.annotate(needed, (left, height), (4, 4), textcoords="offset points", color=COLOURS["violated"])
        axes.plot(*zip(*path, strict=True), color=COLOURS["not-refuted"], linewidth=1.8)
        if refuted_at is not None:
            crossing = min(path, key=lambda point: abs(point[0] - refuted_at))
            axes.plot(*crossing, "x", color=COLOURS["violated"], markersize=9, markeredgewidth=2.2)
        ended = (
            f"refuted after {number(refuted_at)} calls" if refuted_at is not None else "the threshold is not reached"
        )
        return _finish(
            figure, prefix, f"Wealth of the bets against the claim over the calls of the mechanism: {ended}."
        )


def privacy_curves(details: dict[str, Any], *, logarithmic: bool, prefix: str) -> str | None:
    """Draw delta as a function of epsilon for the worst pair and for the claim."""
    curve, claimed = (sorted(_points(details.get(key))) for key in ("curve", "claim_curve"))
    if logarithmic:
        curve, claimed = ([point for point in points if point[1] > 0] for points in (curve, claimed))
    if len(curve) < 2 or curve[0][0] == curve[-1][0]:
        return None
    curve, claimed = _thin_evenly(curve), _thin_evenly(claimed)
    both = curve + claimed
    with drawing():
        figure, axes = _axes(WIDTH, HEIGHT, left=70)
        axes.set_xlim(min(x for x, _ in both), max(x for x, _ in both))
        low, high = min(y for _, y in both), max(y for _, y in both)
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(low / 1.5, high * 1.5)
            _log_ticks(axes, "y", low, high, number)
        else:
            axes.set_ylim(min(0.0, low), high * 1.08 or 1.0)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axes.set_xlabel("ε")
        axes.set_ylabel("δ(ε)")
        axes.plot(*zip(*curve, strict=True), color=COLOURS["not-refuted"], linewidth=2.4, label="worst pair")
        if len(claimed) > 1:
            dashes = (0, (5, 3))
            axes.plot(*zip(*claimed, strict=True), color=COLOURS["ink"], linestyle=dashes, linewidth=1.4, label="claim")
        axes.legend(loc="lower left")
        return _finish(figure, prefix, "Delta as a function of epsilon, for the worst pair and for the claim.")


def classes(details: dict[str, Any], *, prefix: str) -> str | None:
    """Draw each class of inputs with its interval: the variance over its bound where there is one, else the bias."""
    entries = _list(details.get("classes"))
    ratios = [row for row in map(_ratio_row, entries) if row is not None]
    rows = ratios or [row for row in map(_class_row, entries) if row is not None]
    if not rows:
        return None
    rows = _thin_evenly(rows, CLASSES_SHOWN)
    margin = None if ratios else as_float(details.get("margin"))
    numbers = [value for _, *values in rows for value in values]
    reach = 1.12 * max([abs(value) for value in numbers] + [margin or 0.0, 1.0 if ratios else 0.0]) or 1.0
    centre = 1.0 if ratios else 0.0
    with drawing():
        figure, axes = _axes(WIDTH, 62 + 22 * len(rows), left=112)
        axes.set_xlim(0.0 if ratios else -reach, reach)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        if margin is not None and 0 < margin < math.inf:
            axes.axvspan(-margin, margin, color=COLOURS["equivalent"], alpha=0.14, linewidth=0)
        axes.plot([centre, centre], [len(rows) - 0.4, -0.6], color=COLOURS["ink"], linewidth=1)
        for row, (_, low, middle, high) in enumerate(rows):
            apart = low > centre or (high < centre and not ratios)
            shade = COLOURS["violated" if apart else "not-refuted"]
            axes.plot([low, high], [row, row], color=shade, linewidth=2)
            axes.plot(
                [middle], [row], "x" if apart else "o", color=shade, markersize=7 if apart else 6, markeredgewidth=2
            )
        axes.set_yticks(range(len(rows)), [shorten(printable(name), 18) for name, *_ in rows])
        axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
        axes.grid(False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axes.set_xlabel("variance of the estimates / bound" if ratios else "mean of the estimates − truth")
        what = "Variance over its bound" if ratios else "Bias of the estimates"
        return _finish(figure, prefix, f"{what} by class of inputs, with intervals; the table gives the same numbers.")


def scatter(details: dict[str, Any], *, points: int, prefix: str) -> str | None:
    """Draw the series of ``details["scatter"]``, at most so many points in all."""
    description = details.get("scatter")
    if not isinstance(description, dict):
        return None
    logarithmic = bool(description.get("log"))
    series: list[tuple[str, list[Point]]] = []
    described = [entry for entry in _list(description.get("series")) if isinstance(entry, dict)]
    for entry in described:
        inside = [point for point in _points(entry.get("points")) if not logarithmic or min(point) > 0]
        if inside:
            series.append((str(entry.get("name", "")), _thin_evenly(sorted(inside), max(8, points // len(described)))))
    if not series:
        return None
    everything = [point for _, inside in series for point in inside]
    with drawing():
        figure, axes = _axes(WIDTH, 312 + 17 * len(series), left=64, top=14 + 17 * len(series))
        limits = [_limits([point[axis] for point in everything], logarithmic) for axis in (0, 1)]
        if description.get("diagonal"):
            limits = [(min(limits[0][0], limits[1][0]), max(limits[0][1], limits[1][1]))] * 2
        for name, (low, high) in zip("xy", limits, strict=True):
            axis = axes.xaxis if name == "x" else axes.yaxis
            if logarithmic:
                getattr(axes, f"set_{name}scale")("log")
            getattr(axes, f"set_{name}lim")(low, high)
            if logarithmic:
                _log_ticks(axes, name, low, high, number)
            else:
                axis.set_major_locator(MaxNLocator(nbins=5))
                axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        if description.get("diagonal"):
            axes.plot(*limits, color=COLOURS["soft"], linewidth=1, linestyle=(0, (5, 3)))
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
                label=" " + shorten(printable(name), 40),  # a label that starts with "_" would be left out
            )
        axes.set_xlabel(shorten(printable(str(description.get("x_label", ""))), 60))
        axes.set_ylabel(shorten(printable(str(description.get("y_label", ""))), 45))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), handletextpad=0.2, borderaxespad=0, labelspacing=0.3)
        label = f"{description.get('y_label', 'y')} against {description.get('x_label', 'x')} for {len(series)} series."
        return _finish(figure, prefix, printable(label))


def _overview_row(axes: Axes, row: int, result: AuditResult, left: float, right: float) -> None:
    claimed = level(result.claim) or 1.0
    shade = COLOURS[role(result)]
    lower, upper = (as_float(value) for value in (result.epsilon_lower, result.epsilon_upper))
    start = left if lower is None else min(max(lower / claimed, left), right)
    end = right if upper is None else min(max(upper / claimed, left), right)
    verdict = verdict_label(result).replace("_", " ")
    for offset, text in ((14, bounds(result)), (165, verdict)):
        axes.annotate(text, (right, row), (offset, 0), textcoords="offset points", va="center", color=shade)
    if result.verdict not in MARKERS or (lower is None and upper is None):
        axes.text(math.sqrt(left * right), row, "no bounds", ha="center", va="center", color=COLOURS["soft"])
        return
    if upper is None:
        axes.plot([start, end], [row, row], color=shade, linewidth=1.2, linestyle=(0, (1, 3)))
    elif end > start:
        axes.plot([start, end], [row, row], color=shade, linewidth=5, alpha=0.35)
    marker, filled = MARKERS[result.verdict]
    at = end if result.verdict is Verdict.CERTIFIED else start
    face = shade if filled else "none"
    axes.plot([at], [row], marker, color=shade, markerfacecolor=face, markersize=8, markeredgewidth=2)
    for evidence in result.evidence:
        smallest = as_float(evidence.details.get("detectable_epsilon"))
        if result.verdict is Verdict.NOT_REFUTED and smallest is not None and smallest / claimed < right:
            axes.plot([smallest / claimed], [row], "|", color=shade, markersize=12, markeredgewidth=2)


def _ratio_limits(results: Sequence[AuditResult]) -> tuple[float, float]:
    """Limits of the overview's axis: all finite multiples, at least from a quarter to four and at most six decades."""
    ratios = [1.0]
    for result in results:
        for value in (as_float(result.epsilon_lower), as_float(result.epsilon_upper)):
            if value is not None and 0 < value < math.inf:
                ratios.append(value / (level(result.claim) or 1.0))
    return max(1e-3, min(0.25, min(ratios) / 1.4)), min(1e3, max(4.0, max(ratios) * 1.6))


def _axes(
    width: float, height: float, *, left: float = 52, right: float = 14, top: float = 12, bottom: float = 44
) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / 72, height / 72))
    box = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    axes = figure.add_axes(box)
    axes.set_axisbelow(True)
    return figure, axes


def _finish(figure: Figure, prefix: str, label: str) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return inline(stream.getvalue(), prefix=prefix, label=label)


def _log_ticks(axes: Axes, name: str, low: float, high: float, write: Callable[[float], str]) -> None:
    """Ticks at 1, 2 and 5, or at powers of ten where there are many of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    stride = max(1, (last - first) // 6)
    ticks = [step * 10.0**exponent for exponent in range(first, last + 1, stride) for step in steps]
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(inside if len(inside) > 1 else [low, high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def _power(exponent: float) -> str:
    whole = round(exponent)
    return number(10**whole) if 0 <= whole <= 3 else "10" + str(whole).translate(SUPERSCRIPTS)


def _limits(values: Sequence[float], logarithmic: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if logarithmic:
        return low / 1.25, high * 1.25
    pad = 0.05 * (high - low) or 1.0
    return low - pad, high + pad


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _points(value: object) -> list[Point]:
    """The finite points of a list of pairs."""
    points = []
    for entry in _list(value):
        pair = [as_float(coordinate) for coordinate in _list(entry)[:2]]
        finite = [coordinate for coordinate in pair if coordinate is not None and math.isfinite(coordinate)]
        if len(finite) == 2:
            points.append((finite[0], finite[1]))
    return points


def _class_row(entry: object) -> tuple[str, float, float, float] | None:
    """A class's name and its bias: lower end, middle, upper end."""
    if not isinstance(entry, dict):
        return None
    truth, mean = as_float(entry.get("truth")), as_float(entry.get("mean"))
    if truth is None or mean is None:
        return None
    low, high = as_float(entry.get("low")), as_float(entry.get("high"))
    values = [(mean if value is None else value) - truth for value in (low, mean, high)]
    return (str(entry.get("class", "")), values[0], values[1], values[2]) if all(map(math.isfinite, values)) else None


def _ratio_row(entry: object) -> tuple[str, float, float, float] | None:
    """The class's name and the interval and value of its variance over the bound, if it has one."""
    if not isinstance(entry, dict):
        return None
    values = [as_float(entry.get(key)) for key in ("variance_low", "variance", "variance_high", "variance_bound")]
    if any(value is None or not math.isfinite(value) for value in values) or not values[3]:
        return None
    low, middle, high, bound = (value or 0.0 for value in values)
    return str(entry.get("class", "")), low / bound, middle / bound, high / bound


def _thin(path: list[Point], keep: float | None) -> list[Point]:
    """The last point of each of equally wide steps in log calls, the first point, and the one that refuted."""
    if len(path) <= POINTS_PER_PATH:
        return path
    start, end = math.log(path[0][0]), math.log(path[-1][0])
    steps: dict[int, Point] = {}
    for point in path:
        steps[int((POINTS_PER_PATH - 2) * (math.log(point[0]) - start) / ((end - start) or 1.0))] = point
    kept = {path[0], *steps.values()} | {point for point in path if point[0] == keep}
    return [point for point in path if point in kept]


def _thin_evenly(items: list[T], most: int = POINTS_PER_PATH) -> list[T]:
    """At most so many items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return items
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]
