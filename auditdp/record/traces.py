"""Records of a trace: the lines with noise, and the suspected faults.

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
    """The releases of one line; each number is the largest over the pairs."""

    file: str
    """Its file, relative to the working folder where it lies below."""
    line: Count
    """Its number; 0 where nobody knows."""
    family: str
    """Family of the noise, such as 'Laplace'."""
    scale: str
    """Scale of the noise at the largest loss; empty without a scale."""
    moved: Number
    """Change of the values of one run, in the norm of the noise; for events and choices,
    the change of the logarithm of their probability."""
    loss: Number | None = None
    """Loss of the line alone, in the parameter of the claim; None if a law is unknown.
    """
    share: Number | None = None
    """Loss of the line alone, as a multiple of the claim."""
    needed: Number | None = None
    """Scale of the noise that the claim needs for that change alone, if one number
    expresses it."""
    always: ClassVar[Collection[str]] = ("loss", "share")


@dataclass(frozen=True, kw_only=True)
class TracedFinding(Row):
    """A suspected fault, on the pair with the largest loss."""

    kind: str
    """The kind, as in ``auditdp.tracing.Finding``."""
    file: str
    """Its file, relative to the working folder where it lies below; empty where it is about the output."""
    line: Count
    """Its number; 0 where it is about the output."""
    sentence: str
    read_off: bool
    """True if the trace understood everything that the finding rests on; otherwise it is a
    place to check."""
    confirmed: bool = False
    """True if runs with other draws confirmed it; otherwise it is a suspicion."""
    pair: str
    pairs: Count = 1
    """Number of pairs with the finding."""
    family: str | None = None
    """Family of the noise of that line, if it has noise; this, ``scale``, ``moved`` and
    ``needed`` are those of the pair."""
    scale: str | None = None
    moved: Number | None = None
    """Change of the values of the line."""
    needed: Number | None = None
    """Scale that the claim needs for that change alone, if one number expresses it."""

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
    """The trace before a game, by which its pairs were chosen."""

    pairs: Count
    runs: Count
    """Runs of the mechanism for the trace, which are no calls of the game."""
    extent: str
    """The traced part of the code: 'full', 'part' or 'none'."""
    is_bound: bool = False
    """True if the loss of the releases bounds that of the output, by one run of each pair,
    and by runs with other draws of the pair with the largest loss."""
    share: Number | None = None
    """Loss of all releases on the pair with the largest loss, as a multiple of the claim;
    infinite if a difference has no noise."""
    pair: str = ""
    """The pair that loses most; empty where none was traced."""
    played: bool = False
    """True if the replayed ratio was a forecaster of the game."""
    lines: list[TracedLine] = field(default_factory=list)
    findings: list[TracedFinding] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)


class Fate(StrEnum):
    """The outcome of a mutant, which is the mechanism with one fault."""

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
    """The outcome of an audit of the mutants of its mechanism."""

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
