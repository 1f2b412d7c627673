"""Entries of a baseline: the claim of an audit, its verdict, and its strength.

Claims are computed, by accountants or from parameters, and a processor with other
instructions computes other last digits. So two claims are equal if their texts are
equal except for numbers, and their numbers differ by no more than floating point
explains. A digest of the digits cannot decide that, and one of rounded digits neither:
a number may lie where it is rounded up on one machine and down on another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
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
"""Significant digits of calls (rounded down) and of bounds (rounded outwards)."""
CLAIMED_DIGITS = 9
"""Significant digits of the numbers of a claim."""
STRENGTH = {
    Verdict.CERTIFIED: 3,
    Verdict.EQUIVALENT: 3,
    Verdict.NOT_REFUTED: 2,
    Verdict.INCONCLUSIVE: 1,
    Verdict.SKIPPED: 0,
}
"""Rank of each verdict that refutes nothing; a larger number is a stronger result."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Accepted:
    """A finding that the project accepts.

    Attributes:
        reason: Why the project accepts it.
        expires: The last day of the acceptance, or None if it does not end.
    """

    reason: str
    expires: date | None = None


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """A claim and its neighbours, in the form in which two runs are compared.

    Attributes:
        claim: The claim, as reports write it.
        adjacency: The adjacency, as reports write it, with a long domain shortened.
        numbers: The numbers of the claim, such as its ε and δ, or the points of its
            curve, rounded to nine digits; empty if they are not known.
        digest: The digest of the whole adjacency; empty if an earlier version wrote the
            record, or if no inputs are given.
    """

    claim: str = ""
    adjacency: str = ""
    numbers: tuple[float, ...] = ()
    digest: str = ""

    @classmethod
    def of(cls, claim: ClaimRecord | None) -> Claimed:
        """Return a recorded claim for comparison, or an empty one for None."""
        if claim is None:
            return Claimed()
        # A claim has one of these parameters, or none.
        parameters = [getattr(claim, name) for name in SYMBOLS]
        curve = chain.from_iterable(claim.curve)
        given = [*parameters, claim.delta, claim.level, *curve]
        numbers = tuple(
            float(f"{float(number):.{CLAIMED_DIGITS}g}")
            for number in given
            if number is not None
        )
        return Claimed(
            claim=claim.text,
            adjacency=claim.adjacency,
            numbers=numbers,
            digest=claim.digest,
        )

    def same(self, other: Claimed) -> bool:
        """Return True if both claims and their neighbours are equal up to rounding.

        If ``numbers`` of both claims are known, the numbers in the texts of the claims
        are not compared, since they are the same numbers after rounding.
        """
        if not self.same_neighbours(other):
            return False
        if not self.numbers or not other.numbers:
            return same_text(self.claim, other.claim)
        if _without_numbers(self.claim) != _without_numbers(other.claim):
            return False
        if len(self.numbers) != len(other.numbers):
            return False
        # The values of δ on a curve are noise below 1e-12.
        near = 0.0
        if len(self.numbers) > 2:
            near = 1e-12
        pairs = zip(self.numbers, other.numbers, strict=True)
        return all(same_number(a, b, near=near) for a, b in pairs)

    def same_neighbours(self, other: Claimed) -> bool:
        """Return True if both claims have the same neighbours.

        The texts of the adjacencies are compared. The digests are compared, too, if
        both claims have one.
        """
        digests = {self.digest, other.digest} - {""}
        return len(digests) < 2 and same_text(self.adjacency, other.adjacency)


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("#", text)


def same_text(one: str, other: str) -> bool:
    """Return True if two texts are equal, with a tolerance of 1e-5 for their numbers.

    The tolerance is relative. It allows another last digit of numbers with six digits.

    >>> same_text("at most 0.333333", "at most 0.333334"), same_text("3 nodes", "4 nodes")
    (True, False)
    """
    if _without_numbers(one) != _without_numbers(other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-5) for a, b in pairs)


@dataclass(frozen=True, kw_only=True)
class Entry(Claimed):
    """The entry of one audit in a baseline; its fields are the keys of the file.

    Attributes:
        id: The id of the audit.
        verdict: The verdict of the audit.
        expect: The fault that the audit declares, such as "violation", or "holds".
        at_least: Lower bound on the parameter of the claim, rounded down, or None.
        at_most: Upper bound on the parameter of the claim, rounded up, or None.
        counted: Upper bound (ε, δ) on the privacy loss of the inputs played, from the
            counts of their outputs, rounded up; None without one.
        told_apart: (p, q), from counts: an event has probability at least p on one
            input played and at most q on its neighbour. p is rounded down, and q up.
            None without such an event.
        sees: The smallest loss that a game without a finding would have refuted nine
            times in ten, as a multiple of the claim, rounded up; infinite if there is
            no such loss of a known size. None if the result has no such loss
            (``AuditResult.power``).
        evidence: The kinds of evidence that were gathered.
        controls: Names of the broken twins that were refuted.
        calls: Number of calls, rounded down. Calls whose number depends on the drawn
            outputs are left out.
        accepted: The acceptance of the audit's finding, or None.
    """

    id: str
    verdict: Verdict
    expect: str = "holds"
    at_least: float | None = None
    at_most: float | None = None
    counted: tuple[float, float] | None = None
    told_apart: tuple[float, float] | None = None
    sees: float | None = None
    evidence: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    calls: int = 0
    accepted: Accepted | None = None


def entry_of(result: AuditResult, accepted: Accepted | None = None) -> Entry:
    """Return the entry of a result in a baseline."""
    counting = next(details(result.evidence, CountingDetails), CountingDetails())
    about_played = [e for e in result.evidence if e.known.subject is Subject.PLAYED]
    counted = None
    if about_played:
        counted = about_played[0].epsilon_upper
    # A control that survived shows nothing that a later run could lose.
    refuted = [control.name for control in result.controls if not control.survived]
    # Chance decides these calls, so they cannot be compared between runs.
    drawn = sum(each.calls for each in result.evidence if decided_by_data(each))
    # An infinite loss stays infinite: the audit detects nothing.
    sees = None
    if result.power is not None:
        sees = _outward(result.power, up=True) or math.inf
    return Entry(
        id=result.id,
        verdict=result.verdict,
        expect=result.expected,
        evidence=tuple(sorted({each.kind for each in result.evidence})),
        controls=tuple(sorted(refuted)),
        calls=rounded_down(result.calls - drawn),
        at_least=_outward(result.epsilon_lower, up=False),
        at_most=_outward(result.epsilon_upper, up=True),
        counted=_both(
            _outward(counted, up=True),
            _outward(counting.delta_upper, up=True),
        ),
        told_apart=_both(
            _outward(counting.event_at_least, up=False),
            _outward(counting.event_at_most, up=True),
        ),
        sees=sees,
        accepted=accepted,
        **vars(Claimed.of(result.claim)),
    )


def decided_by_data(evidence: Evidence) -> bool:
    """Return True if the number of calls of an evidence depends on drawn outputs."""
    game = evidence.details
    sought = isinstance(game, GameDetails) and game.calls_to_find is not None
    return evidence.known.by_data or sought


def rounded_down(calls: int) -> int:
    """Return a number of calls rounded down to two significant digits.

    >>> rounded_down(62_517), rounded_down(7)
    (62000, 7)
    """
    scale = int(10 ** max(0, len(str(calls)) - DIGITS))
    return calls // scale * scale


def _outward(value: float | None, *, up: bool) -> float | None:
    """Return a bound rounded outwards to two significant digits.

    Args:
        value: The bound, or None.
        up: True for an upper bound, False for a lower one.

    Returns:
        The bound, or None if ``value`` is None or NaN, or bounds nothing: an upper
        bound of infinity, or a lower bound of at most 0.
    """
    if value is None or math.isnan(value):
        return None
    if (up and value == math.inf) or (not up and value <= 0):
        return None
    short = value
    directed = ROUND_FLOOR
    if up:
        directed = ROUND_CEILING
    for rounding in (ROUND_HALF_EVEN, directed):
        context = Context(prec=DIGITS, rounding=rounding)
        short = float(context.create_decimal_from_float(value))
        # A bound may differ from a short number by rounding alone.
        if math.isclose(short, value, rel_tol=1e-9):
            break
    return short


def _both(one: float | None, other: float | None) -> tuple[float, float] | None:
    if one is None or other is None:
        return None
    return (one, other)


def covered(record: RunRecord) -> Callable[[str], bool]:
    """Return a function of an audit's id: True if the run selected this audit.

    A known audit no longer exists if the function returns True for its id, and the run
    neither planned it nor has a result for it or its file. For a run that selected
    audits by a keyword the function always returns False, since such a selection does
    not show which audits exist. The same holds for a selection by a change, unless the
    run recorded the targets among which it selected.
    """
    arguments: Mapping[str, Any] = record.arguments
    by_change = arguments.get("changed_since") and "among" not in arguments
    if arguments.get("keyword") or by_change:
        return lambda identifier: False
    among = below(arguments.get("among", arguments.get("paths", ["."])))
    left_out = {*arguments.get("left_out", ())}
    return lambda identifier: identifier not in left_out and among(identifier)


def below(targets: Iterable[str]) -> Callable[[str], bool]:
    """Return a function of an audit's id: True if it belongs to one of the targets.

    Args:
        targets: Folders, files, or ids of audits. Relative paths start at the working
            folder. An audit belongs to each folder above its file.
    """
    paths = [_relative(str(path)) for path in targets]

    def among(identifier: str) -> bool:
        file = identifier.partition("::")[0]
        return any(
            path in (".", identifier, file) or file.startswith(f"{path}/")
            for path in paths
        )

    return among


def _relative(path: str) -> str:
    # Ids have paths from the working folder.
    whole = Path(path).absolute()
    if not whole.is_relative_to(Path.cwd()):
        return path
    return whole.relative_to(Path.cwd()).as_posix()
