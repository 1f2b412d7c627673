"""Audits of payroll."""

from hypothesis import strategies as st
from payroll import mean_salary, median_salary

from auditdp import Audit, PureDP, Rows, audit

SALARIES = Rows(st.floats(0, 300).map(lambda x: round(x, 1)), "add/remove", least=1, most=8)


@audit
def mean(epsilon=1.0):
    """The mean salary is ε-DP."""
    return Audit(mean_salary, PureDP(epsilon), SALARIES)


@audit
def median(epsilon=1.0):
    """The median salary is ε-DP."""
    return Audit(median_salary, PureDP(epsilon), SALARIES)
