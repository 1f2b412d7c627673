"""Audits of bikes."""

from bikes import STATIONS, departures
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise

RIDER = st.lists(st.tuples(st.sampled_from(STATIONS), st.integers(0, 23)), max_size=8)


@audit
def trips(epsilon=1.0):
    """The numbers of trips are ε-DP for a rider."""
    return Audit(departures, PureDP(epsilon), Rows(RIDER, "add/remove", most=8), controls=[without_noise(departures)])
