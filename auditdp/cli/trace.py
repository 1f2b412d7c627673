"""``auditdp trace``: what a trace reads off one audit's mechanism, without an audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import NOTHING, AnswerFormat, app, say, tell
from auditdp.cli.inspect import answer_about
from auditdp.record.results import SYMBOLS
from auditdp.report.reading import aligned, columns, rows

if TYPE_CHECKING:
    from auditdp.runner.traced import TracedAudit

PAIRS = 30
SECONDS = 300.0
CELL = 60
"""Characters of a cell of the table of lines."""


@app.command(short_help="Read off one mechanism which line loses what.")
def trace(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An audit's id.")],
    pairs: Annotated[int, typer.Option("--pairs", help="Pairs to generate beyond those listed.", min=0)] = PAIRS,
    seed: Annotated[int, typer.Option("--seed", help="Seed of pairs and runs.", min=0)] = 0,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds that it may take.")] = SECONDS,
    output: Annotated[AnswerFormat, typer.Option("--format", help="How to print it.")] = AnswerFormat.text,
) -> None:
    """Read off an audit's mechanism which line adds which noise, how far its value moves, and what that loses.

    A trace proposes and proves nothing, so the exit code is 0 whatever it reads; the audit decides.
    """
    from auditdp.runner.plan import PlanOptions
    from auditdp.runner.traced import TRACED

    options = PlanOptions(root_seed=seed, timeout=timeout)
    item, answer = answer_about(identifier, "trace", pairs, options=options)
    if "skipped" in answer:
        say(f"SKIPPED {item.id}: {answer['skipped']}")
        raise typer.Exit(NOTHING)
    found: TracedAudit = answer["trace"]
    if output is AnswerFormat.json:
        tell(json.dumps({"id": item.id, **TRACED.dump_python(found, mode="json")}, indent=2))
    else:
        tell("\n".join(_text(item.id, found)))


def _text(identifier: str, found: TracedAudit) -> list[str]:
    heads = [
        *map(str.lower, columns(None)[:4]),
        f"{SYMBOLS.get(found.parameter, found.parameter)} lost",
        "share of the claim",
    ]
    listed = found.pairs - found.generated
    at = f" at {found.size}" * bool(found.size)
    lines = [identifier, f"claim {found.claim}{at}; {listed} listed and {found.generated} generated pairs", ""]
    if found.lines:
        lines += [*aligned([heads, *rows(found.lines)], CELL), ""]
    for finding in found.findings:
        kind = "confirmed" if finding.confirmed else "suspicion" if finding.read_off else "where to look"
        at = f" ({finding.file})" if finding.file else ""
        lines += [f"{kind}: {finding.sentence}{at}; on {finding.pairs} of {found.pairs} pairs, such as {finding.pair}"]
    lines += [f"opaque: {sentence}" for sentence in found.opaque]
    return [*lines, *[""] * bool(found.findings or found.opaque), found.result]
