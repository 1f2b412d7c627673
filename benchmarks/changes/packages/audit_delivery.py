"""Audits of delivery."""

from delivery import quantile
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise


@audit
def ninety_percent(epsilon=1.0):
    """The quantile is ε-DP for a delivery."""
    minutes = Rows(st.integers(0, 150), "add/remove", most=20)
    return Audit(quantile, PureDP(epsilon), minutes, controls=[without_noise(quantile)])
