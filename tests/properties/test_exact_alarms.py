"""The benchmark sees wrong verdicts of exact evidence.

``tests/statistical/test_false_alarms.py`` counts them.
"""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from auditdp.record.results import Verdict
from benchmarks import false_alarms_exact
from benchmarks.false_alarms_exact import FALSE_ALARMS, true_epsilon

SLOW = ("envelopes with their laws", "graphs up to the order of nodes")


@pytest.mark.parametrize("verdict", [Verdict.CERTIFIED, Verdict.VIOLATED])
@pytest.mark.parametrize("name", [name for name in FALSE_ALARMS if name not in SLOW])
def test_a_wrong_verdict_would_be_counted(name, verdict, monkeypatch):
    monkeypatch.setattr(
        false_alarms_exact,
        "exact_evidence",
        lambda *_: SimpleNamespace(verdict=verdict),
    )
    assert 0 < FALSE_ALARMS[name](100, np.random.default_rng(0)) < 100


def test_the_oracle_has_the_loss_of_randomised_response():
    p, q = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    assert true_epsilon(p, q) == Decimal(3).ln()
    assert true_epsilon(p, q, Fraction(1, 4)) == Decimal(2).ln()
    assert true_epsilon(p, q, Fraction(1, 2)) == 0
    assert true_epsilon([*p, 0], [0, *p]) == Decimal("Infinity")
