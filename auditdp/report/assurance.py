"""What a clean run would have found: the sentence that stands in place of "nothing is worse"."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditdp.history.baseline.differences import SEEN
from auditdp.numerics.rounding import outwards
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report.numbers import count

NAMED = 4
"""Audits that are named."""


def assurance(record: RunRecord) -> str:
    """Return what the audits of a run that refuted nothing would have seen, and which of them would not; empty for none.

    The loss is one of every output of a pair that was played, as the power lines of games have it.
    """
    seeing = [result for result in record.results if result.power is not None]
    blind = [result for result in seeing if (result.power or 0.0) > SEEN]
    proved, tried = record.ended(Verdict.CERTIFIED), record.ended(Verdict.EQUIVALENT)
    parts = (
        [f"{count(proved, 'audit')} proved what is claimed, of the law or accountant that is stated"] if proved else []
    )
    parts += (
        [f"{count(tried, 'audit')} found an estimate within its margin, on the inputs that were tried"] if tried else []
    )
    if many := len(seeing) - len(blind):
        parts.append(
            f"a loss of {SEEN:g} times the claim, in every output of a pair that was played, would have been found nine "
            f"times in ten in {_these(many, others=bool(blind))}"
        )
    return "; ".join([*parts, *(_not(blind) if blind else [])])


def _these(many: int, *, others: bool) -> str:
    if others:
        return f"the other {count(many, 'audit')}" if many > 1 else "the other audit"
    return f"these {count(many, 'audit')}" if many > 1 else "this audit"


def _not(blind: Sequence[AuditResult]) -> list[str]:
    """Return which audits would not have seen that, with the remedies."""
    said = [f"{_name(result)} ({_sees(result)})" for result in blind[:NAMED]]
    more = [f"{len(blind) - NAMED} more"] if len(blind) > NAMED else []
    remedy = f"--budget level:{SEEN:g} has the calls that it takes"
    same = [_name(result) for result in blind if result.has_same_outputs]
    pairs = [f"{', '.join(same)}: give pairs of which the outputs differ"] if same else []
    calls = [remedy] if len(same) < len(blind) else []
    return [f"a loss of {SEEN:g} times the claim would have been missed in {', '.join([*said, *more])}", *pairs, *calls]


def _name(result: AuditResult) -> str:
    return f"`{result.id.rpartition('::')[2]}`"


def _sees(result: AuditResult) -> str:
    if result.has_same_outputs:
        return "both inputs of every pair have the same outputs"
    power = result.power or math.inf
    if power == math.inf:
        return "no size is known that it sees"
    return f"seen from {outwards(power, up=True, digits=2, against=SEEN)} times on"
