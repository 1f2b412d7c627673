"""Audits of rents."""

from rents import DELTA, median_rent

from auditdp import ApproxDP, Audit, audit, without_noise

ALIKE = [700] * 45
LISTED = [
    ([*ALIKE, 700], [*ALIKE, 1900]),
    ([*ALIKE[:23], *range(750, 773)], [*ALIKE[:22], *range(750, 774)]),
    ([400] * 23 + [900] * 23, [400] * 22 + [900] * 24),
    ([700] * 24 + [710] * 22, [700] * 23 + [710] * 23),
]


@audit
def rent(epsilon=1.0):
    """The median is (ε, δ)-DP for a rent."""
    return Audit(median_rent, ApproxDP(epsilon, DELTA), LISTED, controls=[without_noise(median_rent)])
