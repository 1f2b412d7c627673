"""Audits of meters."""

from hypothesis import strategies as st
from meters import DAYS, running_totals

from auditdp import Audit, PureDP, Rows, audit


@audit
def totals(epsilon=1.0):
    """The running totals are ε-DP."""
    return Audit(running_totals, PureDP(epsilon), Rows(st.integers(0, 3), "replace", least=DAYS, most=DAYS))
