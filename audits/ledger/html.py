"""The ledger's pages as HTML: the same Markdown, set by a library, in the style of the report, with the inputs drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from auditdp.record.results import RunRecord, Verdict
from auditdp.report.html.drawings import Words, drawing, inputs
from auditdp.report.html.pages import environment
from auditdp.report.plain_text import printable
from audits.ledger.pages import TITLE, overview, page
from audits.ledger.statements import Paper

_COLOURS = {
    verdict.value: verdict.value.lower().replace("_", "-") for verdict in Verdict
} | {
    "PROVED": "certified",
    "OUT OF RANGE": "miscalibrated",
    "SLIP": "miscalibrated",
}
_VERDICT = re.compile(rf"\b({'|'.join(_COLOURS)})\b")


def overview_html(
    record: RunRecord,
    papers: Sequence[Paper],
    *,
    title: str = TITLE,
    folder: str = "claims",
) -> str:
    """Return the overview, with links to the HTML pages in ``folder``."""
    return _document(
        overview(record, papers, title=title, folder=folder, suffix=".html"), title
    )


def page_html(record: RunRecord, paper: Paper, *, back: str) -> str:
    """Return the page of a paper; ``back`` is the overview's address."""
    return _document(page(record, paper, drawn=_drawn), paper.title, back=back)


def _document(markdown: str, title: str, *, back: str = "") -> str:
    # What is marked safe is the setter's own markup: every text in the Markdown was escaped when it was put there.
    content = Markup(_setter().render(markdown))
    return (
        _templates()
        .get_template("ledger.html.j2")
        .render(title=title, back=back, content=content)
    )


def _drawn(pair: str, output: str) -> list[str]:
    """A block of HTML with both inputs and the output, where any can be drawn; Markdown ends it at an empty line."""
    found = inputs(pair)
    if found is None or isinstance(found.first, Words):
        return []
    shown = drawing(output) if output else None
    text = (
        _templates()
        .get_template("ledger_pair.html.j2")
        .render(found=found, output=shown)
    )
    return [line for line in text.splitlines() if line.strip()]


@cache
def _templates() -> Environment:
    """The templates of reports, and those of the ledger beside this file."""
    reports = environment()
    own = FileSystemLoader(Path(__file__).parent)
    return reports.overlay(
        loader=ChoiceLoader(
            [loader for loader in (own, reports.loader) if loader is not None]
        )
    )


@cache
def _setter() -> Any:
    """CommonMark with tables that scroll on their own and verdicts in their colours; raw blocks are the pages' own."""
    setter = MarkdownIt("commonmark", {"html": True}).enable("table")
    for name, tag in (
        ("table_open", '<div class="scroll"><table>'),
        ("table_close", "</table></div>"),
    ):
        setter.add_render_rule(name, lambda *_, tag=tag: tag)
    setter.add_render_rule("text", _text)
    return setter


def _text(_: Any, tokens: Sequence[Any], index: int, *__: Any) -> str:
    text = Markup.escape(printable(tokens[index].content))
    return _VERDICT.sub(lambda m: f'<span class="{_COLOURS[m[1]]}">{m[1]}</span>', text)
