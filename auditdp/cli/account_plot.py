"""Figures of the privacy curves of accountants, for ``auditdp account … --plot``.

This is a file of its own, since importing matplotlib takes longer than an answer.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from auditdp.accountants import Accountant, Opacus, Soundness
from auditdp.errors import ConfigurationError
from auditdp.files import write
from auditdp.report.html.plots import (
    COLOURS,
    Point,
    drawing,
    log_ticks,
    new_axes,
    plain_ticks,
)
from auditdp.report.numbers import number


class FigureSizes:
    """Sizes and ranges of a figure."""

    min_delta = 1e-10
    """Smallest δ that is drawn."""
    points = 80
    """Number of ε at which a curve is evaluated."""
    pixels = (640, 400)
    """Width and height in pixels, without the legend."""


DECADES = [10.0**-exponent for exponent in range(1, 11)]
LINES = {
    Soundness.EXACT: ("solid", 2.4),
    Soundness.UPPER: ("solid", 1.4),
    Soundness.LOWER: ((0, (5, 3)), 1.4),
    Soundness.UNPROVED: ((0, (1, 2)), 1.6),
    Soundness.APPROXIMATION: ((0, (1, 2)), 1.6),
}
"""Line style and width of a curve.

Exact curves and upper bounds are solid, lower bounds dashed, others dotted.
"""


def draw(
    accountants: Sequence[Accountant], path: Path, *, heading: str, sentence: str
) -> None:
    """Draw δ(ε) of every accountant, and write the figure to an SVG, PNG or HTML file.

    Args:
        accountants: The accountants.
        path: The file; its suffix chooses the format.
        heading: The title of an HTML page.
        sentence: The caption of an HTML page.

    Raises:
        ConfigurationError: If no accountant has a curve, or the file cannot be written.
    """
    curves = privacy_curves(accountants)
    if not curves:
        raise ConfigurationError(
            f"--plot {path}: no accountant has a δ between {FigureSizes.min_delta:g} and 1 to be drawn"
        )
    with drawing():
        figure = _figure(accountants, curves)
        if path.suffix == ".png":
            try:
                figure.savefig(path, dpi=200)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot write {path}: {error.strerror}; give another path"
                ) from error
            return
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    write(
        path,
        svg
        if path.suffix == ".svg"
        else _page(svg[svg.index("<svg") :], heading, sentence),
    )


def privacy_curves(accountants: Sequence[Accountant]) -> dict[str, list[Point]]:
    """Return the points (ε, δ) of each curve by the name of its accountant.

    Accountants with fewer than two points are left out. The curves end at 1.25 times
    the smallest ε at which a proved upper bound reaches the smallest δ of the figure.
    """
    reached = [_reach(a) for a in accountants if a.soundness.is_proof]
    right = 1.25 * min(
        (epsilon for epsilon in reached if 0 < epsilon < math.inf), default=1.0
    )
    found = {
        accountant.name: list(_points(accountant, right)) for accountant in accountants
    }
    return {name: points for name, points in found.items() if len(points) > 1}


def _reach(accountant: Accountant) -> float:
    """Return the ε at the smallest δ of the figure, or ∞ if the accountant fails.

    If the curve never falls to that δ, it is the ε at 1.001 times the lowest δ of the
    curve.
    """
    try:
        return accountant.epsilon_at(
            max(FigureSizes.min_delta, min(1.0, 1.001 * accountant.delta_at(math.inf)))
        )
    except Exception:
        # The table states the failure.
        return math.inf


def _points(accountant: Accountant, right: float) -> Iterator[Point]:
    """Yield the points (ε, δ) of a curve with ε up to ``right``.

    For Opacus, δ is found by a slow search. So its points are the ε at each power of
    ten of δ instead.
    """
    searches = isinstance(accountant, Opacus)
    for asked in (
        DECADES if searches else np.linspace(0.0, right, FigureSizes.points).tolist()
    ):
        try:
            point = (
                (accountant.epsilon_at(asked), asked)
                if searches
                else (asked, accountant.delta_at(asked))
            )
        except Exception:
            # There is no answer here, or none at all; the table states this.
            continue
        if 0 <= point[0] <= right and FigureSizes.min_delta <= point[1] <= 1:
            yield point


def _figure(
    accountants: Sequence[Accountant], curves: dict[str, list[Point]]
) -> Figure:
    width, height = FigureSizes.pixels
    drawn = [accountant for accountant in accountants if accountant.name in curves]
    figure, axes = new_axes(
        width, height + 17 * len(drawn), left=70, top=14 + 17 * len(drawn)
    )
    deltas = [delta for points in curves.values() for _, delta in points]
    axes.set_yscale("log")
    axes.set_xlim(
        0.0, max(epsilon for points in curves.values() for epsilon, _ in points)
    )
    axes.set_ylim(min(deltas) / 1.5, max(deltas) * 1.5)
    log_ticks(axes, "y", min(deltas), max(deltas), number)
    plain_ticks(axes.xaxis, 6)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ(ε)")
    roles = (
        "not-refuted",
        "certified",
        "violated",
        "inconclusive",
        "error",
        "equivalent",
        "skipped",
    )
    for index, accountant in enumerate(drawn):
        dashes, thickness = LINES[accountant.soundness]
        axes.plot(
            *zip(*curves[accountant.name], strict=True),
            color=COLOURS[roles[index % len(roles)]],
            # Points far apart are not joined, since a chord may lie below the curve.
            **(
                {"linestyle": "none", "marker": "o"}
                if isinstance(accountant, Opacus)
                else {"linestyle": dashes}
            ),
            markersize=4,
            linewidth=thickness,
            label=f"{accountant.name.partition('(')[0]} ({accountant.soundness})",
        )
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, labelspacing=0.3
    )
    return figure


def _page(svg: str, heading: str, sentence: str) -> str:
    title, caption = html.escape(heading), html.escape(sentence)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body style="font-family: sans-serif; max-width: 50em"><h1 style="font-size: 1.2em">{title}</h1>\n'
        f"<p>{caption}</p>\n{svg}</body></html>\n"
    )
