"""Opacus' numbers as they are, defects among them.

The version of Opacus stands beside the numbers.
"""

import math
import re

import pytest

from auditdp import GaussianDP
from auditdp.accountants import OpacusGDP, OpacusPRV, OpacusRDP, PLDLower
from auditdp.errors import StoppedError

pytest.importorskip("opacus")


def test_known_values():
    """Opacus 1.6.0: σ = 1, q = .01, 1,000 steps, δ = 1e-5."""
    kinds = (OpacusRDP, OpacusPRV, OpacusGDP)
    found = [kind(1.0, 0.01, 1000).epsilon_at(1e-5) for kind in kinds]
    assert found == pytest.approx([2.101365, 1.838372, 1.617712], abs=1e-6)


def test_the_central_limit_underestimates():
    """The more so the less noise there is: σ = .6, q = .001, 1,000 steps."""
    for parameters, share in (((1.0, 0.01, 1000), 0.9), ((0.6, 0.001, 1000), 0.31)):
        bound = PLDLower(*parameters).epsilon_at(1e-5)
        assert OpacusGDP(*parameters).epsilon_at(1e-5) < share * bound


@pytest.mark.parametrize(
    "ask", [lambda a: a.epsilon_at(1e-5), lambda a: a.delta_at(1000.0)]
)
@pytest.mark.parametrize(("noise", "points"), [(0.11, 10**8), (1e-5, 10**17)])
def test_a_grid_that_takes_all_memory_is_refused(noise, points, ask):
    """σ = .11 took 13 GB."""
    with pytest.raises(StoppedError, match="points") as refusal:
        ask(OpacusPRV(noise, 0.01, 1000))
    needed = int(re.search(r"[\d,]+", str(refusal.value)).group().replace(",", ""))
    assert points / 2 < needed < 2 * points


def test_delta_is_the_inverse():
    assert OpacusRDP(1.0, 0.01, 1000).delta_at(2.1013652716) == pytest.approx(
        1e-5, rel=1e-6
    )
    prv = OpacusPRV(1.0, 0.1, 10)
    assert prv.epsilon_at(prv.delta_at(1.5)) == pytest.approx(1.5, abs=1e-6)
    gdp = OpacusGDP(1.0, 0.01, 1000)
    assert gdp.delta_at(gdp.epsilon_at(1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert gdp.delta_at(1.0) == GaussianDP(
        0.01 * math.sqrt(1000 * math.expm1(1.0))
    ).delta_at(1.0)
