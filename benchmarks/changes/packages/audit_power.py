"""Audits of power."""

from hypothesis import strategies as st
from power import HOURS, curve

from auditdp import Audit, GaussianDP, Rows, audit, without_noise

HOUSEHOLD = st.lists(st.floats(0, 3), min_size=HOURS, max_size=HOURS)


@audit
def load(mu=1.0):
    """The curve is μ-GDP for a household."""
    return Audit(curve, GaussianDP(mu), Rows(HOUSEHOLD, "add/remove", most=6), controls=[without_noise(curve)])
