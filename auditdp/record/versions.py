"""The record of a comparison of an audit's mechanism in two revisions of the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from auditdp.record.json_fields import Count, Probability


class LawChange(StrEnum):
    """The outcome of a comparison of two versions of a mechanism."""

    CHANGED = "changed"
    """Bets distinguished the outputs of both versions."""
    DRAWS = "draws otherwise"
    """Traces of both versions differ, and bets did not distinguish their outputs."""
    UNSEEN = "unseen"
    """Neither traces nor bets showed a difference."""
    FAILED = "not compared"
    """The versions could not be compared, for the reason given."""


@dataclass(frozen=True)
class VersionsResult:
    """Comparison of an audit's mechanism with that of another revision.

    Both versions run on the same inputs, and texts are sentences for reports.
    """

    revision: str
    """The other revision: the requested name, and its commit."""
    change: LawChange
    mechanism: str = ""
    lines: list[str] = field(default_factory=list)
    """Sentences on the differences between the traces of both versions, one for each
    line of code; the last one may state the number of lines that are left out."""
    outputs: str = ""
    """The part of the output, and the input, by which bets distinguished both versions;
    empty if they did not."""
    loss: str = ""
    """The changed privacy loss of the releases, by the traces; empty if unchanged."""
    worse: str = ""
    """Why, by the traces, this version breaks the claim and the other one satisfies it;
    empty if nothing suggests that."""
    reason: str = ""
    """Why the versions were not compared, or the bets ended early; else empty."""
    inputs: Count = 0
    """Number of pairs of inputs on which both versions are traced."""
    calls: Count = 0
    """Number of calls for the bets."""
    alpha: Probability | None = None
    """Upper limit of the probability that bets distinguish versions with the same law;
    None if no bets were made."""

    @property
    def differs(self) -> bool:
        """True if a trace or bets found a difference."""
        return self.change in (LawChange.CHANGED, LawChange.DRAWS)

    @property
    def text(self) -> str:
        """The whole comparison in one sentence, for a reader who knows the audit."""
        # The other fields of a failed comparison are empty.
        if self.change is LawChange.FAILED:
            return f"not compared with {self.revision}: {self.reason}"
        looked = f"{self.inputs:,} inputs traced, {self.calls:,} calls"
        if self.change is LawChange.UNSEEN:
            return f"no difference from {self.revision} was found ({looked})"
        head = f"the releases of `{self.mechanism}` have changed since {self.revision}"
        if self.change is LawChange.DRAWS:
            head = (
                f"`{self.mechanism}` draws otherwise than in {self.revision}; no bets "
                f"distinguished the outputs ({looked})"
            )
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
