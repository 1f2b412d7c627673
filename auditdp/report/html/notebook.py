"""Results in a notebook: a card of HTML with its own styles, and plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import escape

from auditdp.record.results import AuditResult, ClaimRecord
from auditdp.report.html.pages import environment
from auditdp.report.html.plots import COLOURS, TICKS, PlotSize, interval_of, place
from auditdp.report.numbers import MISSING, level, symbol
from auditdp.report.plain_text import markdown, printable
from auditdp.report.terminal import key_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def card(result: AuditResult) -> str:
    """Return a result as HTML that can be inserted into any page."""
    template = environment().get_template("notebook.html.j2")
    numbers = key_numbers(result)
    return template.render(result=result, numbers=numbers, colours=COLOURS)


def printed(text: str) -> str:
    """Return lines of text as HTML that keeps their layout."""
    return f'<pre class="auditdp">{escape(printable(text, keep=chr(10)))}</pre>'


def printed_markdown(text: str) -> str:
    """Return lines of text as Markdown, each line as a paragraph."""
    return "\n\n".join(map(markdown, text.splitlines()))


def bar(done: int, of: int) -> str:
    """Return the progress of a check as HTML: ``done`` of ``of`` calls."""
    text = "checking"
    if done:
        text = f"{done:,} of {of:,} calls; an interrupt keeps what there is"
    return f'<progress max="{of}" value="{min(done, of)}"></progress> {text}'


def _axes(axes: Axes | None, height: float) -> Axes:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    _, new = pyplot.subplots(figsize=(6, height), layout="constrained")
    return new


def plot_interval(result: AuditResult, axes: Axes | None = None) -> Axes:
    """Draw the bounds of a result as multiples of its claim, and return the axes.

    A vertical line is the claim. Without ``axes``, new ones of Matplotlib are used.
    """
    axes = _axes(axes, height=1.4)
    interval = interval_of(result)
    shade = COLOURS["soft"]
    ticks = [place(ratio) for ratio in TICKS.values()]
    axes.set(xlim=(-4, PlotSize.interval_width + 4), ylim=(-1, 1), yticks=[])
    axes.set_xticks(ticks, list(TICKS))
    axes.axvline(place(1.0), color=COLOURS["ink"], linewidth=1.5)
    text = f"{result.verdict}: no bounds"
    if interval is not None:
        shade = COLOURS[interval.role]
        text = f"{result.verdict}: {interval.text}"
        ends = [interval.start, interval.end]
        # A dotted line has no upper end.
        if interval.open:
            axes.plot(ends, [0, 0], color=shade, linewidth=2, linestyle=(0, (1, 2)))
        else:
            axes.plot(ends, [0, 0], color=shade, linewidth=6)
        axes.plot(interval.mark, 0, "o", color=shade, markersize=9)
        if interval.detectable is not None:
            axes.plot(interval.detectable, 0, "|", color=shade, markersize=16)
    claim = MISSING
    if result.claim:
        claim = result.claim.text
    text = printable(f"{text}, claimed {claim}")
    axes.set_title(text, color=shade, fontsize=10, loc="left", parse_math=False)
    return axes


def plot_levels(
    points: Sequence[tuple[int, float]],
    claim: ClaimRecord | None,
    label: str,
    axes: Axes | None = None,
    *,
    stepwise: bool = False,
) -> Axes:
    """Draw certified lower bounds over an amount, and return the axes.

    Args:
        points: (amount, lower bound), with ascending amounts.
        claim: The claim, whose level is drawn as a dashed line.
        label: Name of the amount, such as "calls".
        axes: The axes to draw on; by default new ones of Matplotlib.
        stepwise: True to draw each bound as constant until the next amount.
    """
    axes = _axes(axes, height=3)
    amounts, levels = zip(*points, strict=True)
    ink = COLOURS["ink"]
    if stepwise:
        axes.plot(amounts, levels, color=ink, drawstyle="steps-post")
    else:
        axes.plot(amounts, levels, color=ink, marker="o")
    claimed = level(claim)
    # Without a level there is no line to compare with.
    if claim is not None and claimed is not None:
        name = f"claimed: {printable(claim.text)}"
        axes.axhline(claimed, color=COLOURS["soft"], linestyle="--", label=name)
        axes.legend(frameon=False, loc="lower right")
    axes.set(xlabel=label, ylabel=f"{symbol(claim)} at least", ylim=(0, None))
    return axes
