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
        Edges,
        Fields,
        NeighbourList,
        NeighbourLists,
        Neighbours,
        Nodes,
        Pair,
        QueryAnswers,
        Records,
        Relationship,
        Rows,
    )
    from auditdp.auditing.assertion import assert_private
    from auditdp.auditing.checking import Checked, check
    from auditdp.auditing.declaration import Audit, audit, data_file
    from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
    from auditdp.claims.estimates import Unbiased, VarianceAtMost
    from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
    from auditdp.errors import AuditError, MiscalibrationWarning, PrivacyViolation, Skip
    from auditdp.mechanism.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
    from auditdp.mechanism.protocol import Mechanism, unseeded
    from auditdp.record.results import Verdict

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
    "Edges",
    "Envelope",
    "Fields",
    "FiniteLaw",
    "GaussianDP",
    "GaussianLaw",
    "LaplaceLaw",
    "Mechanism",
    "MiscalibrationWarning",
    "NeighbourList",
    "NeighbourLists",
    "Neighbours",
    "Nodes",
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
    "ApproxDP": "auditdp.claims.statements",
    "Audit": "auditdp.auditing.declaration",
    "AuditError": "auditdp.errors",
    "Box": "auditdp.adjacency",
    "Canaries": "auditdp.adjacency",
    "Checked": "auditdp.auditing.checking",
    "Edges": "auditdp.adjacency",
    "NeighbourList": "auditdp.adjacency",
    "Envelope": "auditdp.mechanism.laws",
    "Fields": "auditdp.adjacency",
    "FiniteLaw": "auditdp.mechanism.laws",
    "AccountedDP": "auditdp.claims.curves",
    "GaussianDP": "auditdp.claims.statements",
    "RenyiDP": "auditdp.claims.curves",
    "ZeroConcentratedDP": "auditdp.claims.curves",
    "GaussianLaw": "auditdp.mechanism.laws",
    "LaplaceLaw": "auditdp.mechanism.laws",
    "NeighbourLists": "auditdp.adjacency",
    "Mechanism": "auditdp.mechanism.protocol",
    "MiscalibrationWarning": "auditdp.errors",
    "Neighbours": "auditdp.adjacency",
    "Nodes": "auditdp.adjacency",
    "Pair": "auditdp.adjacency",
    "PrivacyViolation": "auditdp.errors",
    "PureDP": "auditdp.claims.statements",
    "QueryAnswers": "auditdp.adjacency",
    "Records": "auditdp.adjacency",
    "Relationship": "auditdp.adjacency",
    "Rows": "auditdp.adjacency",
    "Skip": "auditdp.errors",
    "StepLaw": "auditdp.mechanism.laws",
    "Unbiased": "auditdp.claims.estimates",
    "VarianceAtMost": "auditdp.claims.estimates",
    "Verdict": "auditdp.record.results",
    "assert_private": "auditdp.auditing.assertion",
    "audit": "auditdp.auditing.declaration",
    "check": "auditdp.auditing.checking",
    "data_file": "auditdp.auditing.declaration",
    "unseeded": "auditdp.mechanism.protocol",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'auditdp' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
