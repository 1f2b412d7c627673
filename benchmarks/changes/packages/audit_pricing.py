"""Audits of pricing."""

from hypothesis import strategies as st
from pricing import HIGHEST, sale

from auditdp import Audit, PureDP, Rows, audit


@audit
def auction(epsilon=1.0):
    """Price and number are ε-DP."""
    return Audit(sale, PureDP(epsilon), Rows(st.integers(0, HIGHEST), "add/remove", least=1, most=25))
