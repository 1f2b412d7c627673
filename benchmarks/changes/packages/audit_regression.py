"""Audits of regression."""

from hypothesis import strategies as st
from regression import line

from auditdp import Audit, PureDP, Rows, audit

NUMBER = st.floats(-1, 1) | st.floats(-20, 20)


@audit
def fitted(epsilon=1.0):
    """The line is ε-DP."""
    return Audit(line, PureDP(epsilon), Rows(st.tuples(NUMBER, NUMBER), "add/remove", most=10))
