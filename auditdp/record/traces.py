"""Records of traces and of mutants in a result.

A trace records the lines with noise, and proposes faults; it is never evidence. A
mutant is the mechanism with one fault, and its fate shows whether the audit detects
that fault.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from enum import StrEnum
from typing import ClassVar

from pydantic.dataclasses import dataclass

from auditdp.record.json_fields import Count, Number, Row


@dataclass(frozen=True, kw_only=True)
class TracedLine(Row):
    """What one line releases, each number the largest over the pairs."""

    file: str
    """Its file, relative to the working folder where it lies below."""
    line: Count
    """Its number; 0 where nobody knows."""
    family: str
    """Of its noise, such as 'Laplace'."""
    scale: str
    """Of its noise where it loses most; empty where it has none."""
    moved: Number
    """How far its values moved in one run, in the norm of the noise; of events and choices, by which logarithm."""
    loss: Number | None = None
    """What it loses alone, in the parameter of the claim; None where a law is not known."""
    share: Number | None = None
    """What it loses alone, as a multiple of the claim."""
    needed: Number | None = None
    """The scale of the noise that the claim needs for that move alone, where one number says it."""
    always: ClassVar[Collection[str]] = ("loss", "share")


@dataclass(frozen=True, kw_only=True)
class TracedFinding(Row):
    """A proposal, on the pair where it shows most."""

    kind: str
    """As ``auditdp.tracing.Finding`` has it."""
    file: str
    """Its file, relative to the working folder where it lies below; empty where it is about the output."""
    line: Count
    """Its number; 0 where it is about the output."""
    sentence: str
    read_off: bool
    """Whether the trace understood all that it rests on; else it is where to look."""
    confirmed: bool = False
    """Whether runs with other draws confirmed it; else it is a suspicion."""
    pair: str
    pairs: Count = 1
    """On how many pairs it was found."""
    family: str | None = None
    """Of the noise of that line, where it has noise; this, ``scale``, ``moved`` and ``needed`` are those of the pair."""
    scale: str | None = None
    moved: Number | None = None
    """How far the values of the line moved."""
    needed: Number | None = None
    """The scale that the claim needs for that move alone, where one number says it."""

    @property
    def located(self) -> str:
        """The sentence with its file; a suspicion if no runs confirmed it."""
        text = self.sentence
        if self.file:
            text = f"{self.file}: {text}"
        if not self.confirmed:
            text += " (a suspicion: runs with other draws did not confirm it)"
        return text


@dataclass(frozen=True, kw_only=True)
class GameTrace(Row):
    """What a trace said before a game, by which pairs were chosen."""

    pairs: Count
    runs: Count
    """Runs of the mechanism for the trace, which are no calls of the game."""
    extent: str
    """Whether the code was traced in 'full', in 'part', or not at all ('none')."""
    is_bound: bool = False
    """Whether the loss of the releases bounds that of the output, as far as one run of each pair shows, and runs with other
    draws of the pair that loses most.
    """
    share: Number | None = None
    """The loss of all releases on the pair that loses most, as a multiple of the claim; infinite where something got round
    the noise.
    """
    pair: str = ""
    """The pair that loses most; empty where none was traced."""
    played: bool = False
    """Whether the replayed ratio was a forecaster of the game."""
    lines: list[TracedLine] = field(default_factory=list)
    findings: list[TracedFinding] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)


class Fate(StrEnum):
    """What became of a mutant, which is the mechanism with one fault."""

    KILLED = "killed"
    """The audit's evidence refuted the claim for it, or showed that it loses more than its stated law."""
    REJECTED = "rejected"
    """The harness refused its outputs; counts as killed."""
    SURVIVED = "survived"
    """Nothing refuted it, and nothing proves that it keeps the claim."""
    EQUIVALENT = "equivalent"
    """It keeps the claim, for the reason given; does not count."""
    INVALID = "invalid"
    """It crashes, so nobody could overlook it; does not count."""


@dataclass(frozen=True)
class MutantResult:
    """A mutant and what became of it, with the evidence, or the argument."""

    name: str
    operator: str
    description: str
    fate: Fate
    statement: str = ""
    calls: Count = 0


@dataclass(frozen=True)
class Mutation:
    """How an audit did against the mutants of its mechanism."""

    mutants: list[MutantResult] = field(default_factory=list)
    """Every mutant."""

    def of(self, *fates: Fate) -> list[MutantResult]:
        """Return the mutants with one of these fates."""
        return [mutant for mutant in self.mutants if mutant.fate in fates]

    @property
    def killed(self) -> int:
        """Number of killed or rejected mutants."""
        return len(self.of(Fate.KILLED, Fate.REJECTED))

    @property
    def counted(self) -> int:
        """Number of mutants that are neither equivalent nor invalid."""
        return self.killed + len(self.of(Fate.SURVIVED))
