"""What a baseline keeps of an audit: what it is about, what it said, and how much it looked at."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from auditdp.results import AuditResult, ClaimRecord, RunRecord, Verdict

DIGITS = 2
"""Significant digits of calls and of bounds; both are rounded so that they promise less."""
STRENGTH = {
    Verdict.CERTIFIED: 3,
    Verdict.EQUIVALENT: 3,
    Verdict.NOT_REFUTED: 2,
    Verdict.INCONCLUSIVE: 1,
    Verdict.SKIPPED: 0,
}
"""Which of two verdicts that refute nothing says more."""


@dataclass(frozen=True)
class Accepted:
    """A finding that the project lives with.

    Attributes:
        reason: Why.
        expires: The last day on which it is accepted; None for no such day.
    """

    reason: str
    expires: date | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of one audit.

    Attributes:
        id: Its id.
        claim: What is claimed, as reports write it.
        adjacency: Which inputs are neighbours.
        fingerprint: Digest of claim and adjacency with all their digits.
        verdict: What it ended with.
        expect: What it declares to find.
        evidence: Kinds of evidence that were gathered.
        controls: Broken twins that were refuted.
        calls: Calls of the mechanism, rounded down.
        bounds: What the claim's parameter lies between, rounded outwards; None where there is no bound.
        accepted: Why a finding is lived with; None where none is.
    """

    id: str
    claim: str
    adjacency: str
    fingerprint: str
    verdict: Verdict
    expect: str = "holds"
    evidence: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    calls: int = 0
    bounds: tuple[float | None, float | None] = (None, None)
    accepted: Accepted | None = None


def entry_of(result: AuditResult, accepted: Accepted | None = None) -> Entry:
    """Return what a baseline keeps of a result."""
    claim = result.claim
    return Entry(
        id=result.id,
        claim=claim.text if claim else "",
        adjacency=claim.adjacency if claim else "",
        fingerprint=fingerprint(claim),
        verdict=result.verdict,
        expect=result.expected,
        evidence=tuple(sorted({evidence.kind for evidence in result.evidence})),
        controls=tuple(sorted(control.name for control in result.controls if not control.survived)),
        calls=rounded_down(result.calls),
        bounds=(_outward(result.epsilon_lower, up=False), _outward(result.epsilon_upper, up=True)),
        accepted=accepted,
    )


def fingerprint(claim: ClaimRecord | None) -> str:
    """Return a digest of what is claimed of whom; not of where it was published, nor of how it was audited."""
    if claim is None:
        return ""
    parts: list[Any] = [claim.kind, claim.text, claim.adjacency, claim.parameter]
    parts += [
        None if value is None else repr(float(value)) for value in (claim.epsilon, claim.delta, claim.mu, claim.rho)
    ]
    parts += [[f"{float(value):.6g}" for value in point] for point in claim.curve]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def rounded_down(calls: int) -> int:
    """Return a number of calls with two significant digits, at most as large.

    >>> rounded_down(62_517), rounded_down(7)
    (62000, 7)
    """
    scale = int(10 ** max(0, len(str(calls)) - DIGITS))
    return calls // scale * scale


def _outward(value: float | None, *, up: bool) -> float | None:
    """Return a bound with two significant digits that is not tighter; a bound that says nothing is none."""
    if value is None or math.isnan(value) or (up and value == math.inf) or (not up and value <= 0):
        return None
    if math.isinf(value) or value == 0:
        return value
    places = DIGITS - 1 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**places
    near = round(scaled)
    whole = near if math.isclose(scaled, near, rel_tol=1e-9) else (math.ceil if up else math.floor)(scaled)
    return float(f"{whole}e{-places}")


def covered(record: RunRecord) -> Callable[[str], bool]:
    """Return whether a run was to audit an id, had it been there: what was left out on purpose is not gone."""
    arguments: Mapping[str, Any] = record.arguments
    paths = [_relative(str(path)) for path in arguments.get("paths", ["."])]
    selected = bool(arguments.get("keyword") or arguments.get("changed_since"))

    def asked(identifier: str) -> bool:
        file = identifier.partition("::")[0]
        return not selected and any(path in (".", identifier, file) or file.startswith(f"{path}/") for path in paths)

    return asked


def _relative(path: str) -> str:
    """Return a path as ids have it: from the working folder, where it lies below that."""
    whole = Path(path).absolute()
    return whole.relative_to(Path.cwd()).as_posix() if whole.is_relative_to(Path.cwd()) else path
