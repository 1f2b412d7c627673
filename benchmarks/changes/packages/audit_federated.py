"""Audits of federated."""

from federated import DIMENSION, train
from hypothesis import strategies as st

from auditdp import Audit, Rows, ZeroConcentratedDP, audit, without_noise

CLIENT = st.lists(st.floats(-5, 5), min_size=DIMENSION, max_size=DIMENSION)


@audit
def model(rho=0.5):
    """The model is ρ-zCDP for a client."""
    clients = Rows(CLIENT, "add/remove", most=8, called="client")
    return Audit(train, ZeroConcentratedDP(rho), clients, controls=[without_noise(train)])
