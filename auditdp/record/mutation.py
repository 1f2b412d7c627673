"""What became of the mutants of a mechanism, as a result holds it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from pydantic.dataclasses import dataclass

from auditdp.record.rows import Count


class Fate(StrEnum):
    """What became of a mutant, which is the mechanism with one fault."""

    KILLED = "killed"
    """The audit's evidence refuted the claim for it, or showed that it loses more than its stated law."""
    REJECTED = "rejected"
    """The harness refused its outputs; counts as killed."""
    SURVIVED = "survived"
    """Nothing refuted it, and nothing shows that it keeps the claim."""
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
        """How many mutants were killed or rejected."""
        return len(self.of(Fate.KILLED, Fate.REJECTED))

    @property
    def counted(self) -> int:
        """How many mutants count: those that are neither equivalent nor invalid."""
        return self.killed + len(self.of(Fate.SURVIVED))
