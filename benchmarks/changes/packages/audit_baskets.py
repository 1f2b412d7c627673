"""Audits of baskets."""

from baskets import revenue
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise

BASKET = st.lists(st.sampled_from(["bread", "cheese", "stamps", "wine"]), max_size=6)


@audit
def sales(epsilon=1.0):
    """The revenues are ε-DP for a customer."""
    customers = Rows(BASKET, "add/remove", most=8, called="customer")
    return Audit(revenue, PureDP(epsilon), customers, controls=[without_noise(revenue)])
