"""Audits of covariance."""

from covariance import DELTA, moments
from hypothesis import strategies as st

from auditdp import ApproxDP, Audit, Rows, audit

MEASURED = st.floats(-2, 2)


@audit
def second_moments(epsilon=0.9):
    """The moments are (ε, δ)-DP."""
    return Audit(moments, ApproxDP(epsilon, DELTA), Rows(st.tuples(MEASURED, MEASURED), "add/remove", most=8))
