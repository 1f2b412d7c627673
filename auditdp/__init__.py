"""auditdp: is a mechanism's claimed privacy guarantee true?

The vocabulary that audits are written in; everything else lives in the modules that ``ARCHITECTURE.md`` names. A name is
imported when it is first asked for, so that a command which needs little of it starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditdp import bounds
    from auditdp.adjacency import (
        Adjacency,
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
    from auditdp.auditing.checking import check
    from auditdp.auditing.declaration import Audit, audit, data_file
    from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
    from auditdp.claims.estimates import Unbiased, VarianceAtMost
    from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
    from auditdp.errors import AuditError, ControlSurvived, MiscalibrationWarning, PrivacyViolation, Skip
    from auditdp.mechanism.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
    from auditdp.mechanism.protocol import Mechanism, unseeded
    from auditdp.mutation.draws import without_noise
    from auditdp.record.results import AuditResult, Verdict
    from auditdp.training import audit_training

__version__ = "0.1.0"

__all__ = [
    "AccountedDP",
    "Adjacency",
    "AnyValues",
    "ApproxDP",
    "Audit",
    "AuditError",
    "AuditResult",
    "Box",
    "Canaries",
    "ControlSurvived",
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
    "audit_training",
    "bounds",
    "check",
    "data_file",
    "unseeded",
    "without_noise",
]

_HOMES = {
    "AccountedDP": "auditdp.claims.curves",
    "Adjacency": "auditdp.adjacency",
    "AnyValues": "auditdp.adjacency",
    "ApproxDP": "auditdp.claims.statements",
    "Audit": "auditdp.auditing.declaration",
    "AuditError": "auditdp.errors",
    "AuditResult": "auditdp.record.results",
    "Box": "auditdp.adjacency",
    "Canaries": "auditdp.adjacency",
    "ControlSurvived": "auditdp.errors",
    "Edges": "auditdp.adjacency",
    "Envelope": "auditdp.mechanism.laws",
    "Fields": "auditdp.adjacency",
    "FiniteLaw": "auditdp.mechanism.laws",
    "GaussianDP": "auditdp.claims.statements",
    "GaussianLaw": "auditdp.mechanism.laws",
    "LaplaceLaw": "auditdp.mechanism.laws",
    "Mechanism": "auditdp.mechanism.protocol",
    "MiscalibrationWarning": "auditdp.errors",
    "NeighbourList": "auditdp.adjacency",
    "NeighbourLists": "auditdp.adjacency",
    "Neighbours": "auditdp.adjacency",
    "Nodes": "auditdp.adjacency",
    "Pair": "auditdp.adjacency",
    "PrivacyViolation": "auditdp.errors",
    "PureDP": "auditdp.claims.statements",
    "QueryAnswers": "auditdp.adjacency",
    "Records": "auditdp.adjacency",
    "Relationship": "auditdp.adjacency",
    "RenyiDP": "auditdp.claims.curves",
    "Rows": "auditdp.adjacency",
    "Skip": "auditdp.errors",
    "StepLaw": "auditdp.mechanism.laws",
    "Unbiased": "auditdp.claims.estimates",
    "VarianceAtMost": "auditdp.claims.estimates",
    "Verdict": "auditdp.record.results",
    "ZeroConcentratedDP": "auditdp.claims.curves",
    "assert_private": "auditdp.auditing.assertion",
    "audit": "auditdp.auditing.declaration",
    "audit_training": "auditdp.training",
    "bounds": "auditdp.bounds",
    "check": "auditdp.auditing.checking",
    "data_file": "auditdp.auditing.declaration",
    "unseeded": "auditdp.mechanism.protocol",
    "without_noise": "auditdp.mutation.draws",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from auditdp.errors import renamed

        return renamed(__name__, name)
    home = import_module(_HOMES[name])
    found = globals()[name] = home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
