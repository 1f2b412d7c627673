"""Comparison of an audit's mechanism with that of another revision of the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from auditdp.record.json_fields import Count, Probability


class LawChange(StrEnum):
    """What became of the law of the outputs, as far as was seen."""

    CHANGED = "changed"
    """Bets on the version that ran distinguished the outputs of both."""
    DRAWS = "draws otherwise"
    """The code draws or computes otherwise, and no bets distinguished the outputs."""
    UNSEEN = "unseen"
    """Neither traces nor bets saw a difference."""
    FAILED = "not compared"
    """The code of the other revision could not be run beside this one."""


@dataclass(frozen=True)
class VersionsResult:
    """An audit's mechanism beside that of another revision, on the same inputs."""

    revision: str
    """The revision, as it was asked for, and its commit."""
    change: LawChange
    mechanism: str = ""
    lines: list[str] = field(default_factory=list)
    """What traces of both read off, line by line."""
    outputs: str = ""
    """What bets told apart: which part of the output, on which input; empty where they told nothing."""
    loss: str = ""
    """How much more, or less, the releases lose than those of the other revision, by the traces; empty where that is the
    same.
    """
    worse: str = ""
    """Why the claim, which the other revision keeps by its trace, is not kept any more by that of this one; empty where
    nothing says so.
    """
    reason: str = ""
    inputs: Count = 0
    calls: Count = 0
    alpha: Probability | None = None
    """Probability that bets tell apart versions of the same law."""

    @property
    def differs(self) -> bool:
        """True if a trace or bets found a difference."""
        return self.change in (LawChange.CHANGED, LawChange.DRAWS)

    @property
    def text(self) -> str:
        """All of it in one sentence, for a reader who knows the audit."""
        # The other fields of a failed comparison are empty.
        if self.change is LawChange.FAILED:
            return f"not compared with {self.revision}: {self.reason}"
        looked = f"{self.inputs:,} inputs traced, {self.calls:,} calls"
        if self.change is LawChange.UNSEEN:
            return f"no difference from {self.revision} was seen ({looked})"
        head = f"what `{self.mechanism}` releases has changed since {self.revision}"
        if self.change is LawChange.DRAWS:
            head = f"`{self.mechanism}` draws otherwise than in {self.revision}; no bets told the outputs apart ({looked})"
        return "; ".join(
            part
            for part in (
                head,
                self.outputs,
                *self.lines,
                self.loss,
                self.worse,
                self.reason,
            )
            if part
        )
