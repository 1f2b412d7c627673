"""Audits of census."""

from census import REGIONS, table
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Rows, audit, without_noise

DISTRICTS = [district for members in REGIONS.values() for district in members]


@audit
def census_table(epsilon=1.0):
    """The table is ε-DP for a person."""
    people = Rows(st.sampled_from(DISTRICTS), "add/remove", most=10, called="person")
    return Audit(table, PureDP(epsilon), people, controls=[without_noise(table)])
