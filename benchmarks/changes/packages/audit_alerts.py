"""Audits of alerts."""

from alerts import DAYS, alerts
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise

HOUSEHOLD = st.lists(st.integers(0, DAYS - 1), unique=True)


@audit
def water(epsilon=1.0):
    """The alerts are ε-DP for a household, with all of its days."""
    return Audit(alerts, PureDP(epsilon), Rows(HOUSEHOLD, "add/remove", most=12), controls=[without_noise(alerts)])
