"""What a trace reads off the mechanism of one audit, on some of its pairs, as plain data that JSON holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from auditdp.record.details import Count, Number


@dataclass(frozen=True)
class TracedLine:
    """What one line releases, each number the largest over the pairs.

    Attributes:
        file: Its file, relative to the working folder where it lies below.
        line: Its number; 0 where nobody knows.
        family: Of its noise.
        scale: Of its noise where it loses most; empty where it has none.
        moved: How far its values moved in one run, in the norm of the noise; of events and choices, by which logarithm.
        loss: What it loses alone, in the parameter of the claim; None where a law is not known.
        share: The same as a multiple of the claim.
    """

    file: str
    line: Count
    family: str
    scale: str
    moved: Number
    loss: Number | None
    share: Number | None


@dataclass(frozen=True)
class TracedFinding:
    """A finding, on the pair where it shows most.

    Attributes:
        kind: As ``auditdp.tracing.Finding`` has it.
        file: As above; empty where it is about the output.
        line: Its number; 0 where it is about the output.
        sentence: What it is.
        read_off: Whether the trace understood all that it rests on; else it is where to look.
        pair: The pair.
        pairs: On how many pairs it was found.
    """

    kind: str
    file: str
    line: Count
    sentence: str
    read_off: bool
    pair: str
    pairs: Count


@dataclass(frozen=True)
class TracedAudit:
    """What a trace reads off an audit's mechanism.

    Attributes:
        claim: The claim.
        parameter: The parameter of the claim in which losses are.
        pairs: How many pairs were looked at.
        generated: How many of these are not listed.
        bounded: On how many the loss that is read off bounds that of the output, as far as a trace shows.
        level: The largest loss of all releases of a pair together.
        lines: By line, in the order of the code.
        findings: Those that are read off first.
        opaque: What is not understood.
        result: All of it in one line.
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


TRACED: TypeAdapter[TracedAudit] = TypeAdapter(TracedAudit)
