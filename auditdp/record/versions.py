"""Records of a comparison of an audit's mechanism with that of another revision."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from auditdp.record.json_fields import Count, Probability


class LawChange(StrEnum):
    """The outcome of a comparison of the laws of the outputs."""

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
    """The requested revision, and its commit."""
    change: LawChange
    mechanism: str = ""
    lines: list[str] = field(default_factory=list)
    """Differences between the traces of both, line by line."""
    outputs: str = ""
    """The part of the output, and the input, by which bets distinguished both versions;
    empty if they did not."""
    loss: str = ""
    """The change of the privacy loss of the releases, by the traces; empty if it is the
    same."""
    worse: str = ""
    """Reason why this revision breaks the claim, which the other one satisfies by its
    trace; empty if there is none."""
    reason: str = ""
    inputs: Count = 0
    calls: Count = 0
    alpha: Probability | None = None
    """Probability that bets distinguish versions with the same law."""

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
