"""Records of the trace before a game, and of the mutants of a mechanism.

A trace lists the lines with noise and suspected faults; it is never evidence. A mutant
is the mechanism with one deliberate fault, and its fate shows whether the audit detects
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
    """One line of code that adds noise, with the noise of one family that it adds.

    ``moved`` and ``needed`` are the largest over the traced pairs. ``scale``, ``loss``
    and ``share`` are those of the pair on which the line loses most. An unknown loss
    counts as the largest one.
    """

    file: str
    """File of the line: its path from the working folder, or its name if the file lies
    elsewhere."""
    line: Count
    """Number of the line; 0 if it is unknown."""
    family: str
    """Family of the noise, such as 'Laplace'."""
    scale: str
    """Scale of the noise; empty if it has none, or if it is unknown."""
    moved: Number
    """Distance, in the norm of the noise, between the values to which the line adds
    noise on the two inputs, all values of a run together. For random events and
    choices, the difference of the logarithms of their probabilities."""
    loss: Number | None = None
    """Privacy loss of the line alone, as a value of the claim's parameter; None if the
    loss is unknown."""
    share: Number | None = None
    """Privacy loss of the line alone, as a multiple of the claim; None if unknown."""
    needed: Number | None = None
    """Scale of the noise that the claim needs for the distance ``moved`` alone; None if
    one number cannot express it."""
    always: ClassVar[Collection[str]] = ("loss", "share")


@dataclass(frozen=True, kw_only=True)
class TracedFinding(Row):
    """A suspected fault at one line of code, on one of the pairs that show it.

    ``family``, ``scale``, ``moved`` and ``needed`` describe the noise of the line on
    ``pair``, as in ``TracedLine``. They are None if the line has no noise with a scale.
    """

    kind: str
    """Name of the fault, such as 'scale' for a scale of noise that depends on the data;
    ``auditdp.tracing.Finding`` lists all names."""
    file: str
    """File of the line: its path from the working folder, or its name if the file lies
    elsewhere; empty if the fault is about the output."""
    line: Count
    """Number of the line; 0 if the fault is about the output."""
    sentence: str
    """Description of the fault."""
    read_off: bool
    """True if the trace understood all code that the finding depends on; otherwise the
    line is only a place to check."""
    confirmed: bool = False
    """True if runs with other draws confirmed the finding; False for a suspicion."""
    pair: str
    """The traced pair with the largest loss among those with this finding. If
    ``read_off`` is true, only pairs on which it is true count."""
    pairs: Count = 1
    """Number of traced pairs with this finding."""
    family: str | None = None
    """Family of the noise, such as 'Laplace'."""
    scale: str | None = None
    """Scale of the noise."""
    moved: Number | None = None
    """Distance between the values to which the line adds noise on the two inputs, as in
    ``TracedLine``."""
    needed: Number | None = None
    """Scale that the claim needs for the distance ``moved`` alone; None if one number
    cannot express it."""

    @property
    def located(self) -> str:
        """The file and the sentence; with a remark if it is only a suspicion."""
        text = self.sentence
        if self.file:
            text = f"{self.file}: {text}"
        if not self.confirmed:
            text += " (a suspicion: runs with other draws did not confirm it)"
        return text


@dataclass(frozen=True, kw_only=True)
class GameTrace(Row):
    """The record of the traces before a game, which suggested pairs for it."""

    pairs: Count
    """Number of traced pairs."""
    runs: Count
    """Number of runs of the mechanism for the trace; the game makes no bets on them."""
    extent: str
    """Part of the code that the traces understood: 'full', 'part' or 'none'."""
    is_bound: bool = False
    """True if the loss of the releases bounded that of the output in all traced runs,
    and for the pair with the largest loss also in runs with other draws."""
    share: Number | None = None
    """Loss of all releases together on the pair with the largest loss, as a multiple of
    the claim; infinite if a difference has no noise, and None if nothing was traced."""
    pair: str = ""
    """The pair with the largest loss; empty if no pair has a loss."""
    played: bool = False
    """True if the ratio of the traced laws was a forecaster of the game."""
    lines: list[TracedLine] = field(default_factory=list)
    findings: list[TracedFinding] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    """Sentences on code that the traces did not understand."""


class Fate(StrEnum):
    """The outcome of a mutant, which is the mechanism with one fault."""

    KILLED = "killed"
    """Evidence refuted the mutant, or showed that it loses more than its stated law."""
    REJECTED = "rejected"
    """The harness refused the mutant's outputs; this counts as killed."""
    SURVIVED = "survived"
    """No evidence refuted the mutant, and nothing proves that it satisfies the claim."""
    EQUIVALENT = "equivalent"
    """The mutant satisfies the claim, or does the same as the mechanism, for the recorded
    reason. It is not counted."""
    INVALID = "invalid"
    """The mutant crashes, so nobody could overlook the fault; it is not counted."""


@dataclass(frozen=True)
class MutantResult:
    """A mutant and its fate, with the evidence or the argument in ``statement``."""

    name: str
    operator: str
    description: str
    fate: Fate
    statement: str = ""
    calls: Count = 0


@dataclass(frozen=True)
class Mutation:
    """The fates of all mutants of an audit's mechanism."""

    mutants: list[MutantResult] = field(default_factory=list)
    """All mutants, whatever their fate."""

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
