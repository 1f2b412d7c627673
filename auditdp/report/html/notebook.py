"""A result as a notebook shows it: a line, a card of HTML that needs nothing around it, and the bounds as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import escape

from auditdp.record.results import AuditResult, ClaimRecord, Verdict
from auditdp.report.html.cards import audit_view
from auditdp.report.html.pages import environment
from auditdp.report.html.plots import COLOURS, TICKS, interval_of, place
from auditdp.report.html.plots import INTERVAL_WIDTH as WIDTH
from auditdp.report.numbers import MISSING, level, symbol
from auditdp.report.plain_text import markdown, printable
from auditdp.report.sentences import BEYOND, counted, detectable, rarely
from auditdp.report.terminal import key_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def card(result: AuditResult) -> str:
    """Return a result as HTML that stands alone in a page of somebody else's."""
    clean = result.verdict is Verdict.NOT_REFUTED
    template = environment().get_template("notebook.html.j2")
    return template.render(
        view=audit_view(result, {}, address=""),
        numbers=key_numbers(result),
        rest=", and ".join(rarely(result)) if clean else "",
        beyond=BEYOND if clean and detectable(result) else "",
        counted=counted(result),
        colours=COLOURS,
    )


def printed(text: str) -> str:
    """Return lines as HTML that shows them as they are."""
    return f'<pre class="auditdp">{escape(printable(text, keep=chr(10)))}</pre>'


def printed_markdown(text: str) -> str:
    """Return lines as Markdown, a paragraph each."""
    return "\n\n".join(map(markdown, text.splitlines()))


def bar(done: int, of: int) -> str:
    """Return how far a check is."""
    text = (
        f"{done:,} of {of:,} calls; an interrupt keeps what there is"
        if done
        else "checking"
    )
    return f'<progress max="{of}" value="{min(done, of)}"></progress> {text}'


def plot_interval(result: AuditResult, axes: Axes | None = None) -> Axes:
    """Draw the bounds of a result in multiples of its claim, with the claim as a line."""
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(6, 1.4), layout="constrained")
    interval, claim = interval_of(result), result.claim
    shade = COLOURS[interval.role if interval else "soft"]
    axes.set(
        xlim=(-4, WIDTH + 4),
        ylim=(-1, 1),
        yticks=[],
        xticks=[place(ratio) for ratio in TICKS.values()],
    )
    axes.set_xticklabels(list(TICKS))
    axes.axvline(place(1.0), color=COLOURS["ink"], linewidth=1.5)
    if interval is not None:
        style = (0, (1, 2)) if interval.open else "solid"
        axes.plot(
            [interval.start, interval.end],
            [0, 0],
            color=shade,
            linewidth=2 if interval.open else 6,
            linestyle=style,
        )
        axes.plot([interval.mark], [0], "o", color=shade, markersize=9)
        if interval.detectable is not None:
            axes.plot(
                [interval.detectable],
                [0],
                "|",
                color=shade,
                markersize=16,
                markeredgewidth=2,
            )
    text = f"{result.verdict}: {interval.text if interval else 'no bounds'}, claimed {claim.text if claim else MISSING}"
    axes.set_title(
        printable(text), color=shade, fontsize=10, loc="left", parse_math=False
    )
    return axes


def plot_levels(
    points: Sequence[tuple[int, float]],
    claim: ClaimRecord | None,
    label: str,
    axes: Axes | None = None,
    *,
    stepwise: bool = False,
) -> Axes:
    """Draw certified levels against what they were certified from, with the claim as a dashed line.

    Args:
        points: (how much, level), increasing.
        claim: The claim, whose level is drawn.
        label: What there is how much of.
        axes: Where to draw; Matplotlib's own new axes unless given.
        stepwise: Whether a level stands until the next one is reached.
    """
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    across, up = zip(*points, strict=True)
    style = {"drawstyle": "steps-post"} if stepwise else {"marker": "o"}
    axes.plot(across, up, color=COLOURS["ink"], **style)  # type: ignore[arg-type]
    if claim is not None and (claimed := level(claim)) is not None:
        axes.axhline(
            claimed,
            color=COLOURS["soft"],
            linestyle="--",
            label=f"claimed: {printable(claim.text)}",
        )
        axes.legend(frameon=False, loc="lower right")
    axes.set(xlabel=label, ylabel=f"{symbol(claim)} at least", ylim=(0, None))
    return axes
