"""Audits of clusters."""

from clusters import centres
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise

POINT = st.tuples(st.floats(-2, 2), st.floats(-2, 2))


@audit
def two_centres(epsilon=1.0):
    """The centres are ε-DP for a point."""
    return Audit(centres, PureDP(epsilon), Rows(POINT, "add/remove", most=10), controls=[without_noise(centres)])
