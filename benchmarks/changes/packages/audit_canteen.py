"""Audits of canteen."""

from canteen import DISHES, plan
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise


@audit
def menu(epsilon=1.0):
    """The plan is ε-DP for a vote."""
    votes = Rows(st.sampled_from(DISHES), "replace", least=1, most=10, called="vote")
    return Audit(plan, PureDP(epsilon), votes, controls=[without_noise(plan)])
