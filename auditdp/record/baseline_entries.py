"""What a baseline keeps of an audit: what it is about, its verdict, and how much it looked at.

What is claimed of whom, as records of different machines are compared: by its numbers, and not by their last digits.

Claims are computed, by accountants or from parameters, and a processor with other instructions computes other last digits.
So two claims are the same where their texts are the same but for numbers, and their numbers are the same but for what
floating point may change. A digest of digits cannot show that, and one of rounded digits neither: a number may lie where it
is rounded up or down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from auditdp.numerics.rounding import same_number
from auditdp.record.details import CountingDetails, GameDetails, Subject
from auditdp.record.results import (
    SYMBOLS,
    AuditResult,
    ClaimRecord,
    Evidence,
    RunRecord,
    Verdict,
    details,
)

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
        verdict: What it ended with.
        expect: What it declares to find.
        evidence: Kinds of evidence that were gathered.
        controls: Broken twins that were refuted.
        calls: Calls of the mechanism that the audit and its budget decide, rounded down.
        bounds: What the claim's parameter lies between, rounded outwards; None where there is no bound.
        numbers: The numbers of the claim; none where they are not known.
        digest: The digest of the whole adjacency; empty where it is not known, or no inputs are given.
        counted: (ε, δ) of the inputs played, by counting, rounded up.
        told_apart: What an event has at least on one input played, and at most on its neighbour, by counting.
        sees: The smallest loss that a clean game would have refuted nine times in ten, as a multiple of the claim, rounded
            up; None where that is not known.
        accepted: Why a finding is lived with; None where none is.
    """

    id: str
    claim: str
    adjacency: str
    verdict: Verdict
    expect: str = "holds"
    evidence: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    calls: int = 0
    bounds: tuple[float | None, float | None] = (None, None)
    numbers: tuple[float, ...] = ()
    digest: str = ""
    counted: tuple[float, float] | None = None
    told_apart: tuple[float, float] | None = None
    sees: float | None = None
    accepted: Accepted | None = None

    @property
    def claimed(self) -> Claimed:
        """What it is about."""
        return Claimed(self.claim, self.adjacency, self.numbers, self.digest)


def entry_of(result: AuditResult, accepted: Accepted | None = None) -> Entry:
    """Return what a baseline keeps of a result."""
    claimed = Claimed.of(result.claim)
    counting = next(details(result.evidence, CountingDetails), CountingDetails())
    upper = next(
        (e.epsilon_upper for e in result.evidence if e.known.subject is Subject.PLAYED),
        None,
    )
    return Entry(
        id=result.id,
        claim=claimed.text,
        adjacency=claimed.adjacency,
        verdict=result.verdict,
        expect=result.expected,
        evidence=tuple(sorted({evidence.kind for evidence in result.evidence})),
        controls=tuple(
            sorted(control.name for control in result.controls if not control.survived)
        ),
        calls=rounded_down(
            result.calls
            - sum(each.calls for each in result.evidence if decided_by_data(each))
        ),
        bounds=(
            _outward(result.epsilon_lower, up=False),
            _outward(result.epsilon_upper, up=True),
        ),
        numbers=claimed.numbers,
        digest=claimed.digest,
        counted=_both(
            _outward(upper, up=True), _outward(counting.delta_upper, up=True)
        ),
        told_apart=_both(
            _outward(counting.event_at_least, up=False),
            _outward(counting.event_at_most, up=True),
        ),
        sees=None
        if result.power is None
        else _outward(result.power, up=True) or math.inf,
        accepted=accepted,
    )


def decided_by_data(evidence: Evidence) -> bool:
    """Return whether the outputs decide how many calls an evidence makes: whether any, or on how many pairs."""
    seen = evidence.details
    return evidence.known.by_data or (
        isinstance(seen, GameDetails) and seen.calls_to_find is not None
    )


def rounded_down(calls: int) -> int:
    """Return a number of calls with two significant digits, at most as large.

    >>> rounded_down(62_517), rounded_down(7)
    (62000, 7)
    """
    scale = int(10 ** max(0, len(str(calls)) - DIGITS))
    return calls // scale * scale


def _outward(value: float | None, *, up: bool) -> float | None:
    """Return a bound with two significant digits that is not tighter; a bound that says nothing is none."""
    if (
        value is None
        or math.isnan(value)
        or (up and value == math.inf)
        or (not up and value <= 0)
    ):
        return None
    if math.isinf(value) or value == 0:
        return value
    places = DIGITS - 1 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**places
    near = round(scaled)
    whole = (
        near
        if math.isclose(scaled, near, rel_tol=1e-9)
        else (math.ceil if up else math.floor)(scaled)
    )
    return float(f"{whole}e{-places}")


def _both(one: float | None, other: float | None) -> tuple[float, float] | None:
    return None if one is None or other is None else (one, other)


def covered(record: RunRecord) -> Callable[[str], bool]:
    """Return whether a run was to audit an id, had it been there: what was left out on purpose is not gone."""
    arguments: Mapping[str, Any] = record.arguments
    if arguments.get("keyword") or (
        arguments.get("changed_since") and "among" not in arguments
    ):
        return lambda identifier: False
    among = below(arguments.get("among", arguments.get("paths", ["."])))
    left_out = {*arguments.get("left_out", ())}
    return lambda identifier: identifier not in left_out and among(identifier)


def below(targets: Iterable[str]) -> Callable[[str], bool]:
    """Return whether an id is one of some folders, files or ids."""
    paths = [_relative(str(path)) for path in targets]

    def among(identifier: str) -> bool:
        file = identifier.partition("::")[0]
        return any(
            path in (".", identifier, file) or file.startswith(f"{path}/")
            for path in paths
        )

    return among


def _relative(path: str) -> str:
    """Return a path as ids have it: from the working folder, where it lies below that."""
    whole = Path(path).absolute()
    return (
        whole.relative_to(Path.cwd()).as_posix()
        if whole.is_relative_to(Path.cwd())
        else path
    )


SAME_IN_TEXT = 1e-5
"""Relative difference of two numbers that are the same, rounded to six digits in a text."""
NOISE = 1e-12
"""Difference up to which two numbers of a curve are the same: a δ below it is noise."""
CLAIMED_DIGITS = 9
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Claimed:
    """What is claimed of whom; not where it was published, nor how it was audited.

    Attributes:
        text: The claim, as reports write it.
        adjacency: Which inputs are neighbours, as reports write it; a long domain is cut there.
        numbers: The numbers of the claim, one or two, or those of a curve; none where they are not known.
        digest: The digest of the whole adjacency; empty where an earlier version wrote the record, and where no inputs are
            given.
    """

    text: str = ""
    adjacency: str = ""
    numbers: tuple[float, ...] = ()
    digest: str = ""

    @classmethod
    def of(cls, claim: ClaimRecord | None) -> Claimed:
        """Return a claim as it is compared; an audit that was skipped states none."""
        if claim is None:
            return cls()
        parameters = (
            getattr(claim, name) for name in SYMBOLS
        )  # of which a claim has one
        given = (
            *parameters,
            claim.delta,
            claim.level,
            *chain.from_iterable(claim.curve),
        )
        numbers = tuple(
            float(f"{float(number):.{CLAIMED_DIGITS}g}")
            for number in given
            if number is not None
        )
        return cls(claim.text, claim.adjacency, numbers, claim.digest)

    def same(self, other: Claimed) -> bool:
        """Return whether two claims are the same but for what floating point may change.

        Where both have their numbers, those in the text of the claim are not compared: they are the same ones, rounded.
        """
        if not self.same_neighbours(other):
            return False
        if not self.numbers or not other.numbers:
            return same_text(self.text, other.text)
        near = NOISE if len(self.numbers) > 2 else 0.0
        return (
            _NUMBER.sub("#", self.text) == _NUMBER.sub("#", other.text)
            and len(self.numbers) == len(other.numbers)
            and all(
                same_number(a, b, near=near)
                for a, b in zip(self.numbers, other.numbers, strict=True)
            )
        )

    def same_neighbours(self, other: Claimed) -> bool:
        """Return whether two claims are about the same neighbours; without both digests their texts alone are compared."""
        digests = {self.digest, other.digest} - {""}
        return len(digests) < 2 and same_text(self.adjacency, other.adjacency)


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are the same but for the last of six digits of the numbers in them.

    >>> same_text("changes by at most 0.333333", "changes by at most 0.333334"), same_text("3 nodes", "4 nodes")
    (True, False)
    """
    return _NUMBER.sub("#", one) == _NUMBER.sub("#", other) and all(
        math.isclose(float(a), float(b), rel_tol=SAME_IN_TEXT)
        for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    )
