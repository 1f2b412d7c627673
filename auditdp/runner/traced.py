"""What a trace reads off the mechanism of one audit, on some of its pairs, as plain data that JSON holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from auditdp.record.rows import Count, Number
from auditdp.record.traces import TracedFinding, TracedLine


@dataclass(frozen=True)
class TracedAudit:
    """What a trace reads off an audit's mechanism.

    Attributes:
        parameter: The parameter of the claim in which losses are.
        pairs: How many pairs were looked at.
        generated: How many of these are not listed.
        bounded: On how many the loss that is read off bounds that of the output, as far as a trace shows.
        level: The largest loss of all releases of a pair together.
        findings: Those that are read off first.
        result: All of it in one line.
        size: The parameters that were traced, where the audit tries several: the first at which anything is read off.
    """

    claim: str
    parameter: str
    pairs: Count
    generated: Count
    bounded: Count
    level: Number
    lines: Sequence[TracedLine]
    findings: Sequence[TracedFinding]
    opaque: Sequence[str]
    result: str
    size: str = ""


TRACED: TypeAdapter[TracedAudit] = TypeAdapter(TracedAudit)
