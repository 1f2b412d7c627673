"""``auditdp explain``: what a verdict says, what it does not say, and what to do about it."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from auditdp.cli.common import app, tell
from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.record.results import Verdict
from auditdp.report.formats import WIDTH
from auditdp.report.wording import MEANINGS, REMEDIES


@app.command(short_help="Say what a verdict means, and what to do about it.")
def explain(verdict: Annotated[str, typer.Argument(metavar="VERDICT", help="Such as NOT_REFUTED.")]) -> None:
    """Say what a verdict means, and what to do about it.

    Raises:
        ConfigurationError: If there is no such verdict.
    """
    name = verdict.upper().replace(" ", "_").replace("-", "_")
    if name not in [*Verdict]:
        raise ConfigurationError(f"unknown verdict {verdict!r}; {did_you_mean(name, [*Verdict])}")
    paragraphs = [MEANINGS[Verdict(name)], f"What to do: {REMEDIES[Verdict(name)]}"]
    tell("\n\n".join([name, *(textwrap.fill(text, WIDTH) for text in paragraphs)]))
