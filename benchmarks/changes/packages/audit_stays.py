"""Audits of stays."""

from hypothesis import strategies as st
from stays import summary

from auditdp import Audit, PureDP, Rows, audit, without_noise


@audit
def length_of_stay(epsilon=1.0):
    """The summary is ε-DP for a patient."""
    patients = Rows(st.integers(0, 60), "add/remove", most=10, called="patient")
    return Audit(summary, PureDP(epsilon), patients, controls=[without_noise(summary)])
