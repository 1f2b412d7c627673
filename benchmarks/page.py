"""The benchmark's page: one self-contained HTML file with inline plots, in the style of the verification report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from auditdp.report.numbers import count, duration
from auditdp.report.plain_text import printable
from benchmarks.parts import Part, View


@dataclass(frozen=True)
class Section:
    """One part, ready to be written.

    Attributes:
        part: The part.
        view: What it has to say, or None where nothing of it was run.
        stamps: When and by which commands its results were made.
        failures: What went wrong, by unit.
        cpu_seconds: CPU time of all its units.
        reduced: Whether any result is of a quick run.
    """

    part: Part
    view: View | None
    stamps: Sequence[dict[str, Any]]
    failures: dict[str, str]
    cpu_seconds: float
    reduced: bool


def page(sections: Sequence[Section]) -> str:
    """Return the page."""
    environment = Environment(
        loader=PackageLoader("benchmarks", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            value if isinstance(value, Markup) else printable(str(value), keep="\n")
        ),
    )
    environment.filters |= {"count": count, "duration": duration}
    stamps = [stamp for section in sections for stamp in section.stamps]
    bars = [
        (section, bar)
        for section in sections
        if section.view
        for bar in section.view.bars
    ]
    css = (
        files("auditdp.report.html").joinpath("report.css").read_text(encoding="utf-8")
    )
    return environment.get_template("bench.html.j2").render(
        sections=sections,
        bars=bars,
        met=sum(bar.met is True for _, bar in bars),
        open=sum(bar.met is None for _, bar in bars),
        reduced=[section.part.title.lower() for section in sections if section.reduced],
        latest=max(stamps, key=lambda stamp: stamp["date"], default=None),
        environments=_distinct([stamp["environment"] for stamp in stamps]),
        css=Markup(css),
        drawn={
            section.part.name: [
                (plot.draw(), plot.caption) for plot in section.view.plots
            ]
            for section in sections
            if section.view
        },
    )


def markdown(sections: Iterable[Section]) -> str:
    """Return the tables and bars of some parts as Markdown, each with the command that made it."""
    lines: list[str] = []
    for section in sections:
        if section.view is None:
            continue
        for stamp in section.stamps:
            lines.append(
                f"`{stamp['command']}`, at revision {stamp['revision']}, {section.cpu_seconds:,.0f} CPU seconds:"
            )
        for table in section.view.tables:
            marks = ["---", *["---:"] * (len(table.columns) - 1)]
            rows = [
                [text.replace("|", r"\|").replace("\n", " ") for text in row]
                for row in table.rows
            ]
            lines += ["", f"**{table.title}.** {table.note}".rstrip(), ""]
            lines += [
                f"| {' | '.join(cells)} |" for cells in (table.columns, marks, *rows)
            ]
        lines += ["", *(f"- {bar.text}: {bar.found}" for bar in section.view.bars), ""]
    return "\n".join(lines)


def _distinct(items: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [item for k, item in enumerate(items) if item not in items[:k]]
