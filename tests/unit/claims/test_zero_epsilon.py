"""Claims of ε = 0: what evidence makes of a bound on total variation, and of a mechanism that says nothing."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Audit, PureDP
from auditdp.accountants import OptimalComposition
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.bounds import from_counts, from_guesses, from_outputs
from auditdp.errors import ConfigurationError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict

BITS = AnyValues((0, 1))
SETTINGS = Settings(alpha=0.05, budget=Budget(4_000), root_seed=1)


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
        (Fraction(1, 10), ApproxDP(0.0, 0.125), Verdict.CERTIFIED),
        (Fraction(1, 8), ApproxDP(0.0, 0.125), Verdict.CERTIFIED),
        (Fraction(1, 7), ApproxDP(0.0, 0.125), Verdict.VIOLATED),
        (Fraction(0), PureDP(0.0), Verdict.CERTIFIED),
        (Fraction(0), ApproxDP(0.0, 0.0), Verdict.CERTIFIED),
        (Fraction(1, 10**9), PureDP(0.0), Verdict.VIOLATED),
    ],
)
def test_stated_laws_decide_total_variation_exactly(share, claim, verdict):
    result = run_audit(Audit(Reveals(share), claim, BITS, evidence=["exact"]), SETTINGS)
    assert result.verdict is verdict
    assert result.epsilon_upper == 0.0 or verdict is Verdict.VIOLATED


@pytest.mark.dear
@pytest.mark.parametrize(
    ("share", "claim", "verdict"),
    [
        (0.1, ApproxDP(0.0, 0.1), Verdict.NOT_REFUTED),
        (0.2, ApproxDP(0.0, 0.1), Verdict.VIOLATED),
        (0.0, PureDP(0.0), Verdict.NOT_REFUTED),
        (0.1, PureDP(0.0), Verdict.VIOLATED),
    ],
)
def test_a_black_box_is_played_and_counted(share, claim, verdict):
    def reveals(data, size, *, rng):
        return np.where(rng.random(size) < share, data, 2)

    result = run_audit(Audit(reveals, claim, [(0, 1)]), SETTINGS)
    assert result.verdict is verdict
    assert {"game", "counting"} <= {evidence.kind for evidence in result.evidence}
    assert result.epsilon_lower >= 0


@pytest.mark.full
def test_accountants_and_recorded_data():
    audit = Audit(
        None, ApproxDP(0.0, 0.2), accountants=[OptimalComposition(0.1, 0.01, 2)]
    )
    assert run_audit(audit, SETTINGS).verdict is Verdict.CERTIFIED
    audit = Audit(
        None, ApproxDP(0.0, 0.05), accountants=[OptimalComposition(0.1, 0.01, 2)]
    )
    assert run_audit(audit, SETTINGS).verdict is Verdict.VIOLATED
    assert from_counts(80, 150, 50, 150, claim=0.0).refuted
    assert not from_counts(80, 150, 50, 150, claim=0.0, delta=0.2).refuted
    assert not from_guesses(52, 100, claim=0.0).refuted
    assert from_guesses(90, 100, claim=0.0).refuted
    rng = np.random.default_rng(1)
    assert not from_outputs(
        rng.normal(size=300), rng.normal(size=300), claim=0.0, method="bets"
    ).refuted
    with pytest.raises(ConfigurationError, match="claim > 0"):
        from_counts(80, 150, 50, 150, claim=0.0, parameter="mu")
