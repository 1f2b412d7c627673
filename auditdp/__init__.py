"""auditdp: is a mechanism's claimed privacy guarantee true?

This module has the names that audits use; ``ARCHITECTURE.md`` lists the other modules.
Each name is imported at its first use, so that commands start quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditdp import bounds
    from auditdp.adjacency import (
        Adjacency,
        Alike,
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
    from auditdp.auditing.check import assert_private, check
    from auditdp.auditing.declaration import Audit
    from auditdp.auditing.decorator import audit, data_file
    from auditdp.auditing.mutated_draws import without_noise
    from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
    from auditdp.claims.estimates import Unbiased, VarianceAtMost
    from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
    from auditdp.errors import (
        AuditError,
        ControlSurvived,
        MiscalibrationWarning,
        NotConfirmed,
        PrivacyViolation,
        Skip,
    )
    from auditdp.mechanism.laws import (
        Envelope,
        FiniteLaw,
        GaussianLaw,
        LaplaceLaw,
        StepLaw,
    )
    from auditdp.mechanism.protocol import Mechanism, unseeded
    from auditdp.record.results import AuditResult, Verdict
    from auditdp.training import audit_training

__version__ = "0.1.0"

__all__ = [
    "AccountedDP",
    "Adjacency",
    "Alike",
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
    "NotConfirmed",
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

_NAMES = {
    "auditdp.adjacency": (
        "Adjacency Alike AnyValues Box Canaries Edges Fields NeighbourList NeighbourLists Neighbours Nodes "
        "Pair QueryAnswers Records Relationship Rows"
    ),
    "auditdp.auditing.check": "assert_private check",
    "auditdp.auditing.declaration": "Audit",
    "auditdp.auditing.decorator": "audit data_file",
    "auditdp.bounds": "bounds",
    "auditdp.claims.curves": "AccountedDP RenyiDP ZeroConcentratedDP",
    "auditdp.claims.estimates": "Unbiased VarianceAtMost",
    "auditdp.claims.statements": "ApproxDP GaussianDP PureDP",
    "auditdp.errors": "AuditError ControlSurvived MiscalibrationWarning NotConfirmed PrivacyViolation Skip",
    "auditdp.mechanism.laws": "Envelope FiniteLaw GaussianLaw LaplaceLaw StepLaw",
    "auditdp.mechanism.protocol": "Mechanism unseeded",
    "auditdp.auditing.mutated_draws": "without_noise",
    "auditdp.record.results": "AuditResult Verdict",
    "auditdp.training": "audit_training",
}
"""The public names, separated by spaces, by the module that defines them."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(_HOMES[name])
    found = globals()[name] = (
        home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    )
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
