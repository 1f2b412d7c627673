"""What a trace reads off the mechanism of one audit, on some of its pairs, as plain data that JSON holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from auditdp.record.rows import Count, Number
from auditdp.record.traces import TracedFinding, TracedLine


@dataclass(frozen=True)
class TracedAudit:
    """What a trace reads off an audit's mechanism."""

    claim: str
    parameter: str
    """The parameter of the claim in which losses are."""
    pairs: Count
    generated: Count
    """How many of these are not listed."""
    bounded: Count
    """On how many the loss that is read off bounds that of the output, as far as a trace shows."""
    level: Number
    """The largest loss of all releases of a pair together."""
    lines: Sequence[TracedLine]
    findings: Sequence[TracedFinding]
    """Those that are read off first."""
    opaque: Sequence[str]
    result: str
    """All of it in one line."""
    size: str = ""
    """The parameters that were traced, where the audit tries several: the first at which anything is read off."""


TRACED: TypeAdapter[TracedAudit] = TypeAdapter(TracedAudit)
