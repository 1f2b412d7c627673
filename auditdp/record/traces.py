"""What a trace of the code says: the lines at which noise enters, and what it proposes. It is no evidence."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import ClassVar

from pydantic.dataclasses import dataclass

from auditdp.record.rows import Count, Number, Row


@dataclass(frozen=True, kw_only=True)
class TracedLine(Row):
    """What one line releases, each number the largest over the pairs.

    Attributes:
        file: Its file, relative to the working folder where it lies below.
        line: Its number; 0 where nobody knows.
        family: Of its noise, such as 'Laplace'.
        scale: Of its noise where it loses most; empty where it has none.
        moved: How far its values moved in one run, in the norm of the noise; of events and choices, by which logarithm.
        loss: What it loses alone, in the parameter of the claim; None where a law is not known.
        share: The same as a multiple of the claim.
        needed: The scale of the noise that the claim needs for that move alone, where one number says it.
    """

    file: str
    line: Count
    family: str
    scale: str
    moved: Number
    loss: Number | None = None
    share: Number | None = None
    needed: Number | None = None
    always: ClassVar[Collection[str]] = ("loss", "share")


@dataclass(frozen=True, kw_only=True)
class TracedFinding(Row):
    """A proposal, on the pair where it shows most.

    Attributes:
        kind: As ``auditdp.tracing.Finding`` has it.
        file: As above; empty where it is about the output.
        line: Its number; 0 where it is about the output.
        read_off: Whether the trace understood all that it rests on; else it is where to look.
        pairs: On how many pairs it was found.
        family: Of the noise of that line, where it has noise; so the next three, which are those of the pair.
        moved: How far the values of the line moved.
        needed: The scale that the claim needs for that move alone, where one number says it.
    """

    kind: str
    file: str
    line: Count
    sentence: str
    read_off: bool
    pair: str
    pairs: Count = 1
    family: str | None = None
    scale: str | None = None
    moved: Number | None = None
    needed: Number | None = None


@dataclass(frozen=True, kw_only=True)
class GameTrace(Row):
    """What a trace said before a game, by which pairs were chosen.

    Attributes:
        runs: Runs of the mechanism for that, which are no calls of the game.
        extent: Whether the code was traced in 'full', in 'part', or not at all ('none').
        is_bound: Whether the loss of the releases bounds that of the output on all these pairs, as far as a trace shows.
        share: The loss of all releases on the pair that loses most, as a multiple of the claim; infinite where something got
            round the noise.
        pair: That pair; empty where none was traced.
        played: Whether the replayed ratio was a forecaster of the game.
    """

    pairs: Count
    runs: Count
    extent: str
    is_bound: bool = False
    share: Number | None = None
    pair: str = ""
    played: bool = False
    lines: list[TracedLine] = field(default_factory=list)
    findings: list[TracedFinding] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
