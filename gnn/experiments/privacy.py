"""Which ε the audits of this project support for what was run, read from the ledger of claims."""

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
    """Return what the audits support for what was run, in a few words.

    An ε stands here only where a certificate covers it: the audit was made at the printed ε, or the experiment states what
    the audited claim gives at its parameters (``Guarantee.supports``). An audit at another ε is named with that ε.
    """
    if guarantee.printed is None:
        return NO_CLAIM
    if not guarantee.audit:
        return NOT_AUDITED
    line = ledger.lines.get(guarantee.audit)
    if line is None:
        return f"{NOT_AUDITED}: {guarantee.audit} is not in the ledger"
    verdict, claim = str(line["verdict"]), str(line["claim"])
    where = f"{line['row']}, {line['reading']}"
    if verdict == "CERTIFIED" and guarantee.supports is not None:
        return f"ε ≤ {bound(guarantee.supports, up=True)} ({where}: certified, there at {claim})"
    if verdict == "CERTIFIED":
        at = _level(claim)
        covered = at is not None and math.isclose(at, guarantee.printed)
        return (
            f"{line['found']} ({where}: certified)"
            if covered
            else f"{NOT_AUDITED} at this ε ({where}: certified at {claim})"
        )
    word = verdict.lower().replace("_", " ")
    return f"none ({where}: {word} at {claim}{', ' + line['found'] if verdict == 'VIOLATED' else ''})"


def _level(claim: str) -> float | None:
    found = _LEVEL.fullmatch(claim)
    return float(found[1]) if found else None
