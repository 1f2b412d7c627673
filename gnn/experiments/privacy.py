"""The ε that the audits of this project support for a run, from the ledger of claims."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditdp.errors import ConfigurationError
from auditdp.report.numbers import bound, number
from gnn.experiments.experiment import Guarantee

NO_CLAIM = "no claim"
NOT_AUDITED = "not audited"
_AT_LEAST = re.compile(r"([0-9.,e+-]+) ≤ ε")
_LEVEL = re.compile(r"\(?([0-9.e+-]+)(?:, [0-9.e+-]+\))?-DP")


@dataclass(frozen=True)
class Ledger:
    """The lines of ``reports/claims.json`` by the id of their audit."""

    lines: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Return the ledger in a file; one without lines where there is no file.

        Raises:
            ConfigurationError: If the file is no ledger of claims.
        """
        if not path.is_file():
            return cls({})
        try:
            claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
            return cls({claim["audit"]: claim for claim in claims})
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(
                f"{path} is no ledger of claims ({error}); make it with: python -m audits.ledger"
            ) from error


def printed(guarantee: Guarantee) -> str:
    """Return the ε that the source prints, as a reader sees it."""
    return NO_CLAIM if guarantee.printed is None else number(guarantee.printed)


def supported(guarantee: Guarantee, ledger: Ledger) -> str:
    """Return a short statement of the audits about the printed ε.

    The first of its audits that refutes the printed ε counts, then the first that refutes another one, then the first. An ε
    stands here only where a certificate covers it: the audit was made at the printed ε, or the experiment states what the
    audited claim gives at its parameters (``Guarantee.supports``), or a closed form bounds what a refuted claim loses
    (``Guarantee.at_most``). An audit at another ε is named with that ε.
    """
    if guarantee.printed is None:
        return NO_CLAIM
    if not guarantee.audits:
        return NOT_AUDITED
    missing = [audit for audit in guarantee.audits if audit not in ledger.lines]
    if missing:
        return f"{NOT_AUDITED}: {missing[0]} is not in the ledger"
    lines = [ledger.lines[audit] for audit in guarantee.audits]
    for test in (_refutes, _violated):
        for line in lines:
            if test(line, guarantee.printed):
                return _refutation(line, guarantee)
    return _certificate(lines[0], guarantee)


def _violated(line: Mapping[str, Any], _: float) -> bool:
    return line["verdict"] == "VIOLATED"


def _refutes(line: Mapping[str, Any], printed: float) -> bool:
    """Return True if an audit refutes the printed ε with at most that budget."""
    claimed, lost = _level(str(line["claim"])), _lost(str(line["found"]))
    return (
        _violated(line, printed)
        and claimed is not None
        and claimed <= printed * (1 + 1e-9)
        and lost > printed
    )


def _refutation(line: Mapping[str, Any], guarantee: Guarantee) -> str:
    what = f"{line['row']}, {line['reading']}: violated at {line['claim']}, {line['found']}"
    printed = guarantee.printed or 0.0
    if _refutes(line, printed):
        return f"refuted ({what})"
    if guarantee.at_most is not None:
        return f"ε ≤ {bound(guarantee.at_most, up=True)}, by a closed form, and not the printed one ({what})"
    return f"none at this ε, the claim is refuted at another ({what})"


def _certificate(line: Mapping[str, Any], guarantee: Guarantee) -> str:
    verdict, claim = str(line["verdict"]), str(line["claim"])
    where = f"{line['row']}, {line['reading']}"
    if verdict != "CERTIFIED":
        return f"none ({where}: {verdict.lower().replace('_', ' ')} at {claim})"
    if guarantee.supports is not None:
        return f"ε ≤ {bound(guarantee.supports, up=True)} ({where}: certified, there at {claim})"
    at = _level(claim)
    covered = at is not None and math.isclose(at, guarantee.printed or 0.0)
    return (
        f"{line['found']} ({where}: certified)"
        if covered
        else f"{NOT_AUDITED} at this ε ({where}: certified at {claim})"
    )


def _level(claim: str) -> float | None:
    found = _LEVEL.fullmatch(claim)
    return float(found[1]) if found else None


def _lost(found: str) -> float:
    """Return the largest lower bound on ε of an audit; 0 without one."""
    if found == "ε = ∞":
        return math.inf
    at_least = _AT_LEAST.match(found)
    return float(at_least[1].replace(",", "")) if at_least else 0.0
