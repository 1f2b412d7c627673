"""What a run found, and what it could not have found, by what is claimed: the table that a report opens with."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report.numbers import bound
from auditdp.report.standing import AS_DECLARED, Standing, standing

COLUMNS: dict[str, Sequence[Standing]] = {
    "Findings": (Standing.FINDING,),
    "Not confirmed": (Standing.UNCONFIRMED,),
    "Refuted, as declared": AS_DECLARED,
    "Proved": (Standing.CERTIFIED,),
    "Equivalent": (Standing.EQUIVALENT,),
    "Not refuted": (Standing.NOT_REFUTED,),
    "Nothing known": (Standing.UNDECIDED, Standing.INCONCLUSIVE, Standing.ERROR, Standing.SKIPPED),
}


@dataclass(frozen=True)
class ClaimSummary:
    """What became of the claims of one kind.

    Attributes:
        missed: Which losses may be there all the same.
    """

    claimed: str
    counts: Sequence[int]
    missed: str


def summary(record: RunRecord) -> list[ClaimSummary]:
    """Return what became of the claims of each kind, those with most audits first, and a last row for all of them."""
    kinds = Counter(_kind(result) for result in record.results)
    rows = [_row(kind, [r for r in record.results if _kind(r) == kind]) for kind, _ in kinds.most_common()]
    return [*rows, _row("all", record.results, len(record.missing))]


def _row(claimed: str, results: Sequence[AuditResult], missing: int = 0) -> ClaimSummary:
    found = Counter(standing(result) for result in results)
    counts = [sum(found[each] for each in of) for of in COLUMNS.values()]
    return ClaimSummary(claimed, [*counts[:-1], counts[-1] + missing], _missed(results))


def _missed(results: Sequence[AuditResult]) -> str:
    """Say from which loss on clean games would have seen one, where they played."""
    powers = [result.power or math.inf for result in results if result.verdict is Verdict.NOT_REFUTED]
    known = sorted(power for power in powers if power < math.inf)
    ends = dict.fromkeys(bound(power, up=True, digits=2) for power in (*known[:1], *known[-1:]))
    parts = [f"below {' to '.join(ends)}×"] if known else []
    return "; ".join([*parts, *([f"any in {len(powers) - len(known):,}"] if len(powers) > len(known) else [])])


def _kind(result: AuditResult) -> str:
    """Return the kind of a claim in words.

    >>> _kind(AuditResult("a.py::b", Verdict.ERROR, "it crashed"))
    'not told'
    """
    words = re.findall(r"[A-Z]+[a-z]*", result.claim.kind) if result.claim else []
    return " ".join([*words[:1], *(word if word.isupper() else word.lower() for word in words[1:])]) or "not told"
