"""What the plots share: the style, axes of a given size, ticks, limits, and thinning of long paths.

This module loads Matplotlib, so it is imported only when a report with plots is made.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from auditdp.report.html.svg import COLOURS, FONT_SIZE
from auditdp.report.numbers import number

Point = tuple[float, float]
T = TypeVar("T")

POINTS_PER_PATH = 60
WIDTH = 460  # of a plot beside its evidence, in points; shown at about one CSS pixel each
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
    width: float, height: float, *, left: float = 52, right: float = 14, top: float = 12, bottom: float = 44
) -> tuple[Figure, Axes]:
    """Return a figure of the given size with axes inside the given margins, all in points."""
    figure = Figure(figsize=(width / 72, height / 72))
    box = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    axes = figure.add_axes(box)
    axes.set_axisbelow(True)
    return figure, axes


def finish(figure: Figure, label: str) -> Markup:
    """Return the figure as an image element that holds the SVG as Matplotlib writes it, described by ``label``."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    data = base64.b64encode(stream.getvalue()).decode()
    return Markup('<img class="plot" alt="{}" src="data:image/svg+xml;base64,{}">').format(label, data)


def log_ticks(axes: Axes, name: str, low: float, high: float, write: Callable[[float], str]) -> None:
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


def plain_ticks(axis: Axis, most: int) -> None:
    """Ticks at round numbers, so many steps at most, written as reports write them."""
    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def power_of_ten(exponent: float) -> str:
    """Write 10^exponent for a tick."""
    whole = round(exponent)
    return number(10**whole) if 0 <= whole <= 3 else "10" + str(whole).translate(SUPERSCRIPTS)


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
        steps[int((POINTS_PER_PATH - 2) * (math.log(point[0]) - start) / ((end - start) or 1.0))] = point
    kept = {path[0], *steps.values()} | {point for point in path if point[0] == keep}
    return [point for point in path if point in kept]


def thin_evenly(items: list[T], most: int = POINTS_PER_PATH) -> list[T]:
    """At most so many items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return items
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]
