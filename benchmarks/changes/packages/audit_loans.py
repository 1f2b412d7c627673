"""Audits of loans."""

from hypothesis import strategies as st
from loans import DELTA, popular

from auditdp import ApproxDP, Audit, Rows, audit, without_noise

READER = st.lists(st.sampled_from(["Emma", "Faust", "Hamlet", "Ulysses"]), max_size=5)


@audit
def titles(epsilon=1.0):
    """The titles are (ε, δ)-DP for a reader."""
    return Audit(
        popular, ApproxDP(epsilon, DELTA), Rows(READER, "add/remove", most=60), controls=[without_noise(popular)]
    )
