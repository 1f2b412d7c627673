"""Which paper a claim is from, so that what is known of one paper stands together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditdp.record.results import AuditResult

NO_PAPER = "Claims of no named paper"

_NAME = r"[A-Z][\w’'\-]+"
_PAPER = re.compile(rf"({_NAME}(?:(?:, | & | and ){_NAME})*(?: et al\.?)?) \(?((?:19|20)\d\d)\b")


def paper(source: str) -> str:
    """Return the authors and the year of the first paper that a source names.

    >>> paper("a reading of ours: Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949")
    'Sajadmanesh et al. 2023'
    """
    found = _PAPER.search(source)
    return f"{found[1]} {found[2]}" if found else NO_PAPER


def by_paper(results: Sequence[AuditResult]) -> dict[str, list[AuditResult]]:
    """Return the audits of each paper, in the order of the record; those of no paper come last."""
    groups: dict[str, list[AuditResult]] = {}
    for result in results:
        groups.setdefault(paper(result.claim.source if result.claim else ""), []).append(result)
    rest = groups.pop(NO_PAPER, [])
    return groups | ({NO_PAPER: rest} if rest else {})
