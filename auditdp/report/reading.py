"""What a trace read off the code, as reports say it: the line of a finding, and which line of clean code uses how much."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditdp.record.details import GameDetails
from auditdp.record.results import REFUTATIONS, AuditResult, ClaimRecord, Place, Verdict, details
from auditdp.record.traces import GameTrace, TracedFinding, TracedLine
from auditdp.report.numbers import MISSING, as_float, bound, count, level, number, symbol
from auditdp.report.text import printable, shorten

MOST = 3
"""Findings of a trace that are said of one audit."""
NEARLY = 0.95
"""A share of the claim from which on nothing is said to be left."""
WHOLE = 1 + 1e-5
"""The share of all of the claim, up to rounding in single precision."""
NOT_UNDERSTOOD = "not understood"
"""Stands for a loss that the trace does not know."""
LONG = 300
"""Characters of a sentence of a trace."""


def traced(result: AuditResult) -> GameTrace | None:
    """Return what a trace said of an audit; None where its code was not traced."""
    return next((game.trace for game in details(result.evidence, GameDetails) if game.trace is not None), None)


def read_off(result: AuditResult) -> list[TracedFinding]:
    """Return what a trace read off the code of a claim that evidence refutes, first what names a line."""
    trace = traced(result)
    if trace is None or result.verdict not in REFUTATIONS:
        return []
    found = sorted((each for each in trace.findings if each.read_off), key=lambda each: not each.line)
    return found[:MOST]


def proposed(result: AuditResult) -> list[tuple[str, TracedFinding]]:
    """Return suspicions of a trace that no bet has shown, each with its label. They are no evidence of a loss.

    Where the claim is not refuted, these are the findings that runs with other draws confirmed, except losses, which a
    notice states. A run that differs from the parameters of its accountant is listed with every verdict.
    """
    trace = traced(result)
    found = [] if trace is None else trace.findings
    other = [each for each in found if each.kind != "loss" and each.confirmed]
    open_ones = [("suspicion", each) for each in other if result.verdict is Verdict.NOT_REFUTED]
    steps = [("accountant", each) for each in found if each.kind == "steps"]
    return [*steps[:MOST], *open_ones[:MOST]]


def said(result: AuditResult) -> list[str]:
    """Return what was read off as sentences, with their files and with the pair where it is not the counterexample's."""
    shown = result.counterexample
    return [
        each.located + ("" if shown is None or shown.pair == each.pair else f"; on the pair {shorten(each.pair, LONG)}")
        for each in read_off(result)
    ]


def line_of(result: AuditResult) -> Place | None:
    """Return the line that a finding is about; None where none was read off in a file of the project.

    A trace names files of elsewhere without their folder.
    """
    own = {place.file for place in (result.mechanism_at, result.audit_at) if place is not None}
    for finding in read_off(result):
        if finding.line > 0 and ("/" in finding.file or finding.file in own):
            return Place(finding.file, finding.line)
    return None


def looked_at(trace: GameTrace) -> str:
    """Return the scope of a trace.

    >>> looked_at(GameTrace(pairs=4000, runs=8000, extent="full"))
    '4,000 pairs and 8,000 runs looked at'
    """
    extent = {"full": "", "part": ", traced in part", "none": ", not traced"}.get(trace.extent, "")
    return f"{count(trace.pairs, 'pair')} and {count(trace.runs, 'run')} looked at{extent}"


def at_most(result: AuditResult) -> str:
    """Return the most that clean code was seen to lose, and what that leaves of the claim; empty where that is not known."""
    trace, claimed = traced(result), level(result.claim)
    share = as_float(trace.share) if trace is not None else None
    if trace is None or result.verdict is not Verdict.NOT_REFUTED or not trace.is_bound or share is None:
        return ""
    if not 0 <= share <= WHOLE:  # where records are drawn the loss is smaller than that of a run
        return ""
    if (as_float(result.epsilon_lower) or 0.0) > share * (claimed or 0.0):
        return ""  # other evidence certifies that the output loses more
    alone = claimed is not None and result.claim is not None and not result.claim.delta  # else a share is no level
    loss = bound(share * (claimed or 0) if alone else share, up=True)
    most = f"{symbol(result.claim)} = {loss}" if alone else f"{loss} of the claim"
    rest = f"; {math.floor(100 * (1 - share))}% of the budget is unused" if share < NEARLY else ""
    return f"at most {most} on {looked_at(trace)}{rest}"


def columns(claim: ClaimRecord | None) -> list[str]:
    """Return what stands above the columns of ``rows``."""
    return ["Line", "Noise", "Scale", "Moved at most", f"{symbol(claim)} lost", "Share of the claim"]


def aligned(cells: Sequence[Sequence[str]], longest: int) -> list[str]:
    """Return the lines of a table in plain text, each cell at most so long."""
    shown = [[shorten(printable(cell), longest) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


def rows(lines: Sequence[TracedLine]) -> list[list[str]]:
    """Return each line at which noise enters, as cells."""
    return [
        [
            f"{row.file}:{row.line}" if row.line else "unknown",
            row.family,
            row.scale or MISSING,
            number(row.moved),
            *(NOT_UNDERSTOOD if value is None else number(value) for value in (row.loss, row.share)),
        ]
        for row in lines
    ]
