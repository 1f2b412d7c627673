"""Claims of ε = 0: evidence about a bound on total variation."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from auditdp import ApproxDP, FiniteLaw, PureDP
from auditdp.accountants import OptimalComposition
from auditdp.bounds import from_counts, from_guesses, from_outputs
from auditdp.errors import ConfigurationError
from tests.unit.evidence.toys import BIT, CERTIFIED, NOT_REFUTED, VIOLATED, audited


@dataclass(frozen=True)
class Reveals:
    """The bit with a probability, else 2: total variation is exactly that."""

    share: Fraction

    def __call__(self, data, size, *, rng):
        return np.where(rng.random(size) < self.share, data, 2)

    def distribution(self, data):
        return FiniteLaw([data, 2], [self.share, 1 - self.share])


@pytest.mark.parametrize(
    ("share", "claim", "verdict"),
    [
        (Fraction(1, 8), ApproxDP(0.0, 0.125), CERTIFIED),
        (Fraction(1, 7), ApproxDP(0.0, 0.125), VIOLATED),
        (Fraction(0), ApproxDP(0.0, 0.0), CERTIFIED),
        (Fraction(0), PureDP(0.0), CERTIFIED),
        (Fraction(1, 10**9), PureDP(0.0), VIOLATED),
    ],
)
def test_stated_laws_decide_total_variation_exactly(share, claim, verdict):
    result = audited(Reveals(share), claim, BIT, evidence=["exact"])
    assert result.verdict is verdict
    assert result.epsilon_upper == 0.0 or verdict is VIOLATED


@pytest.mark.dear
@pytest.mark.parametrize(
    ("share", "claim", "verdict"),
    [
        (0.2, ApproxDP(0.0, 0.1), VIOLATED),
        (0.1, ApproxDP(0.0, 0.1), NOT_REFUTED),
        (0.0, PureDP(0.0), NOT_REFUTED),
        (0.1, PureDP(0.0), VIOLATED),
    ],
)
def test_a_black_box_is_played_and_counted(share, claim, verdict):
    result = audited(Reveals(share).__call__, claim, [(0, 1)])
    assert result.verdict is verdict
    assert {"game", "counting"} <= {each.kind for each in result.evidence}
    assert result.epsilon_lower >= 0


@pytest.mark.parametrize(("delta", "verdict"), [(0.2, CERTIFIED), (0.05, VIOLATED)])
def test_accountants_decide_total_variation(delta, verdict):
    twice = [OptimalComposition(0.1, 0.01, 2)]
    result = audited(None, ApproxDP(0.0, delta), None, accountants=twice)
    assert result.verdict is verdict


def test_recorded_data_refute_a_claim_of_0():
    assert from_counts(18, 20, 4, 20, claim=0.0).refuted
    assert not from_counts(8, 20, 5, 20, claim=0.0, delta=0.2).refuted
    assert from_guesses(90, 100, claim=0.0).refuted
    assert not from_guesses(52, 100, claim=0.0).refuted
    with pytest.raises(ConfigurationError, match="claim > 0"):
        from_counts(80, 150, 50, 150, claim=0.0, parameter="mu")


@pytest.mark.full
def test_bets_do_not_refute_a_true_claim_of_0():
    first, second = np.random.default_rng(1).normal(size=(2, 300))
    assert not from_outputs(first, second, claim=0.0, method="bets").refuted
