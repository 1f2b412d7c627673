"""Audits of abtest."""

from abtest import summary
from hypothesis import strategies as st

from auditdp import Audit, GaussianDP, Rows, audit

USER = st.fixed_dictionaries({"arm": st.sampled_from(["a", "b"]), "purchases": st.integers(0, 40)})


@audit
def experiment(mu=1.0):
    """The summary is μ-GDP."""
    return Audit(summary, GaussianDP(mu), Rows(USER, "add/remove", most=10))
