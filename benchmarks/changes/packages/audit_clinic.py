"""Audits of clinic."""

from clinic import WEEKS, first_alarm, waiting_times
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit


@audit
def alarm(epsilon=1.0):
    """The alarm is ε-DP."""
    return Audit(first_alarm, PureDP(epsilon), Rows(st.integers(0, WEEKS - 1), "add/remove", most=12))


@audit
def waiting(epsilon=1.0):
    """The histogram is ε-DP."""
    return Audit(waiting_times, PureDP(epsilon), pairs=[([5, 20, 90], [5, 20]), ([5, 7], [5])])
