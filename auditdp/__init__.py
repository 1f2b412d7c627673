"""auditdp: is a mechanism's claimed privacy guarantee true?

The vocabulary that audits are written in; everything else lives in the modules that ``ARCHITECTURE.md`` names.
"""

from auditdp.adjacency import (
    AnyValues,
    Box,
    EdgeDP,
    EdgeLDP,
    ListsLDP,
    Neighbours,
    NodeDP,
    Pair,
    QueryAnswers,
    Records,
    Relationship,
)
from auditdp.assertion import assert_private
from auditdp.audit import Audit, audit, data_file
from auditdp.claims import ApproxDP, GaussianDP, PureDP
from auditdp.errors import AuditError, PrivacyViolation, Skip
from auditdp.evidence.estimation import Unbiased, VarianceAtMost
from auditdp.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
from auditdp.mechanism import Mechanism
from auditdp.results import Verdict

__version__ = "0.1.0"

__all__ = [
    "AnyValues",
    "ApproxDP",
    "Audit",
    "AuditError",
    "Box",
    "EdgeDP",
    "EdgeLDP",
    "Envelope",
    "FiniteLaw",
    "GaussianDP",
    "GaussianLaw",
    "LaplaceLaw",
    "ListsLDP",
    "Mechanism",
    "Neighbours",
    "NodeDP",
    "Pair",
    "PrivacyViolation",
    "PureDP",
    "QueryAnswers",
    "Records",
    "Relationship",
    "Skip",
    "StepLaw",
    "Unbiased",
    "VarianceAtMost",
    "Verdict",
    "assert_private",
    "audit",
    "data_file",
]
