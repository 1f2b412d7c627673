"""Audits of sessions."""

from sessions import report

from auditdp import Audit, PureDP, audit

PAIRS = [([3, 12, 0], [3, 12]), ([12, 15, 20, 2, 11], [15, 20, 2, 11])]


@audit
def daily(epsilon=1.0):
    """The report is ε-DP."""
    return Audit(report, PureDP(epsilon), PAIRS)
