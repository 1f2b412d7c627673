"""auditdp: is a mechanism's claimed privacy guarantee true?

The vocabulary that audits are written in; everything else lives in the modules that ``ARCHITECTURE.md`` names. A name is
imported when it is first asked for, so that a command which needs little of it starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditdp.adjacency import (
        AnyValues,
        Box,
        Canaries,
        EdgeDP,
        EdgeLDP,
        Fields,
        ListsLDP,
        Neighbours,
        NodeDP,
        Pair,
        QueryAnswers,
        Records,
        Relationship,
        Rows,
    )
    from auditdp.assertion import assert_private
    from auditdp.checking import Checked, check
    from auditdp.claims import ApproxDP, GaussianDP, PureDP
    from auditdp.curve_claims import AccountedDP, RenyiDP, ZeroConcentratedDP
    from auditdp.declaration import Audit, audit, data_file
    from auditdp.errors import AuditError, MiscalibrationWarning, PrivacyViolation, Skip
    from auditdp.evidence.promises import Unbiased, VarianceAtMost
    from auditdp.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
    from auditdp.mechanism import Mechanism, unseeded
    from auditdp.results import Verdict

__version__ = "0.1.0"

__all__ = [
    "AccountedDP",
    "AnyValues",
    "ApproxDP",
    "Audit",
    "AuditError",
    "Box",
    "Canaries",
    "Checked",
    "EdgeDP",
    "EdgeLDP",
    "Envelope",
    "Fields",
    "FiniteLaw",
    "GaussianDP",
    "GaussianLaw",
    "LaplaceLaw",
    "ListsLDP",
    "Mechanism",
    "MiscalibrationWarning",
    "Neighbours",
    "NodeDP",
    "Pair",
    "PrivacyViolation",
    "PureDP",
    "QueryAnswers",
    "Records",
    "Relationship",
    "RenyiDP",
    "Rows",
    "Skip",
    "StepLaw",
    "Unbiased",
    "VarianceAtMost",
    "Verdict",
    "ZeroConcentratedDP",
    "assert_private",
    "audit",
    "check",
    "data_file",
    "unseeded",
]

_HOMES = {
    "AnyValues": "auditdp.adjacency",
    "ApproxDP": "auditdp.claims",
    "Audit": "auditdp.declaration",
    "AuditError": "auditdp.errors",
    "Box": "auditdp.adjacency",
    "Canaries": "auditdp.adjacency",
    "Checked": "auditdp.checking",
    "EdgeDP": "auditdp.adjacency",
    "EdgeLDP": "auditdp.adjacency",
    "Envelope": "auditdp.laws",
    "Fields": "auditdp.adjacency",
    "FiniteLaw": "auditdp.laws",
    "AccountedDP": "auditdp.curve_claims",
    "GaussianDP": "auditdp.claims",
    "RenyiDP": "auditdp.curve_claims",
    "ZeroConcentratedDP": "auditdp.curve_claims",
    "GaussianLaw": "auditdp.laws",
    "LaplaceLaw": "auditdp.laws",
    "ListsLDP": "auditdp.adjacency",
    "Mechanism": "auditdp.mechanism",
    "MiscalibrationWarning": "auditdp.errors",
    "Neighbours": "auditdp.adjacency",
    "NodeDP": "auditdp.adjacency",
    "Pair": "auditdp.adjacency",
    "PrivacyViolation": "auditdp.errors",
    "PureDP": "auditdp.claims",
    "QueryAnswers": "auditdp.adjacency",
    "Records": "auditdp.adjacency",
    "Relationship": "auditdp.adjacency",
    "Rows": "auditdp.adjacency",
    "Skip": "auditdp.errors",
    "StepLaw": "auditdp.laws",
    "Unbiased": "auditdp.evidence.promises",
    "VarianceAtMost": "auditdp.evidence.promises",
    "Verdict": "auditdp.results",
    "assert_private": "auditdp.assertion",
    "audit": "auditdp.declaration",
    "check": "auditdp.checking",
    "data_file": "auditdp.declaration",
    "unseeded": "auditdp.mechanism",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'auditdp' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
