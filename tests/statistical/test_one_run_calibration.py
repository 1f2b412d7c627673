"""One training with many canaries.

It hardly ever refutes a claim that is true and tight, and finds a broken one.
"""

import pytest

from auditdp import AccountedDP, ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.numerics.streams import stream
from benchmarks.false_alarms_one_run import ALPHA, FALSE_ALARMS, TightCanaries, refuted

pytestmark = pytest.mark.statistical
REPEATS = 2_000
FEWER = {"accountant, 120 canaries": 200, "zCDP, 120 canaries": 200}
"""Audits of claims whose curve has to be computed for every level: in full only, since few of them could tell nothing."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.full) if name in FEWER else name
        for name in FALSE_ALARMS
    ],
)
def test_a_tight_claim_is_refuted_at_most_alpha_of_the_time(name, repeats):
    """Fails by chance with probability 1e-6 at most."""
    audits = repeats(FEWER.get(name, REPEATS), least=20)
    alarms = FALSE_ALARMS[name](audits, stream(0, "one run", name))
    assert alarms <= repeats.most(audits, ALPHA), (
        f"{name}: {alarms} of {audits} tight claims refuted at {ALPHA=}"
    )


BROKEN = {
    "ε": (PureDP(1.4), PureDP(1.0)),
    "(ε, δ)": (ApproxDP(2.0, 1e-3), ApproxDP(1.0, 1e-3)),
    "Gaussian": (GaussianDP(2.0), GaussianDP(1.0)),
    "accountant": (GaussianDP(2.0), AccountedDP(GaussianDP(1.0).delta_at)),
    "zCDP": (GaussianDP(3.0), ZeroConcentratedDP(0.5)),
}


@pytest.mark.dear
@pytest.mark.parametrize("name", BROKEN)
def test_a_claim_that_is_far_from_true_is_found(name, repeats):
    """Sixteen trainings find it every time; Gaussian DP of 1 is ½-zCDP."""
    (true, claimed), audits = BROKEN[name], repeats(2, least=1)
    found = refuted(
        TightCanaries(true),
        audits,
        stream(1, "one run", name),
        trainings=16,
        claimed=claimed,
    )
    assert found == audits
