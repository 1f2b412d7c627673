"""Accounting evidence: verdicts of a cross-check, its record, and what it is about."""

import math

import pytest

from auditdp import AccountedDP, ApproxDP, Audit, GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.accountants import (
    RDP,
    AccountantError,
    GaussianCurve,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    Poisson,
    PoissonSubsampled,
    TopK,
)
from auditdp.errors import CollectionError
from auditdp.evidence.accounting import accounting_evidence
from auditdp.testing import Response
from tests.unit.evidence.toys import CERTIFIED, NOT_REFUTED, VIOLATED, audited

ACCOUNTANTS = [kind(1.0, 0.01, 100) for kind in (PLDLower, PLDUpper, RDP)]
LOWER, UPPER, _ = (accountant.epsilon_at(1e-5) for accountant in ACCOUNTANTS)
SAMPLED = math.log1p(0.01 * math.expm1(1.0))
POINTS = [(1.0, 0.1), (2.0, 0.01)]


@pytest.mark.parametrize(
    ("claim", "accountants", "verdict", "bounds"),
    [
        (
            ApproxDP(0.01, 1e-8),
            [PoissonSubsampled(1.0, 1e-6, 0.01)],
            VIOLATED,
            (SAMPLED, SAMPLED),
        ),
        # The tightest accountants decide.
        (ApproxDP(1.2 * UPPER, 1e-5), ACCOUNTANTS, CERTIFIED, (LOWER, UPPER)),
        (
            ApproxDP((LOWER + UPPER) / 2, 1e-5),
            ACCOUNTANTS,
            NOT_REFUTED,
            (LOWER, UPPER),
        ),
        # The bounds are about the claim's own parameter, and a curve has none.
        (GaussianDP(0.9), [GaussianCurve(1.0)], VIOLATED, (1.0, 1.0)),
        (
            AccountedDP(POINTS, quoted=0.05),
            [GaussianCurve(1.0)],
            VIOLATED,
            (None, None),
        ),
    ],
)
def test_verdicts_and_bounds(claim, accountants, verdict, bounds):
    found = accounting_evidence(claim, accountants)
    assert (found.kind, found.calls, found.verdict) == ("accounting", 0, verdict)
    assert (found.epsilon_lower, found.epsilon_upper) == (
        bounds if bounds[0] is None else pytest.approx(bounds)
    )

    refuted = found.counterexample is not None
    assert refuted == (verdict is VIOLATED)
    assert not refuted or "the claim allows" in found.counterexample.explanation

    names = [row.name.split("(")[0] for row in found.details.accountants]
    assert names == [type(each).__name__ for each in accountants]


def test_the_record_of_a_false_claim():
    claim = ApproxDP(0.01, 1e-8)
    found = accounting_evidence(claim, [PoissonSubsampled(1.0, 1e-6, 0.01)])
    assert "the claim allows 0.01" in found.counterexample.explanation
    assert found.details.delta == 1e-8

    assumed = ["add or remove one record", "batches: Poisson", "at rate 0.01", "given"]
    for text, assumption in zip(assumed, found.assumptions, strict=True):
        assert text in assumption
    (row,) = found.details.accountants

    assert (row.soundness, row.finding) == ("exact", "")
    assert row.source.startswith("Balle, Barthe & Gaboardi (2018)")


def test_accountants_that_fail_are_named(monkeypatch):
    def fails(self, *_):
        raise MemoryError

    for kind in (PLDUpper, PLDLower):
        monkeypatch.setattr(kind, "losses", fails)
    two = [PLDUpper(1.0, 0.1, 10), PLDLower(1.0, 0.1, 10)]
    match = r"no accountant answered: .*ran out of memory.*use fewer"
    with pytest.raises(AccountantError, match=match):
        accounting_evidence(ApproxDP(1.0, 1e-5), two)
    zcdp = audited(None, ZeroConcentratedDP(6.0), None, accountants=two)

    assert zcdp.verdict is CERTIFIED
    three = [*two, GaussianCurve(1.0)]
    step = Poisson(1.0, 0.1, 1)
    found = accounting_evidence(ApproxDP(9.0, 1e-5), three, about=step)

    assert found.verdict is CERTIFIED
    assert "no answer: PLDUpper" in found.statement
    assert len(found.details.findings) == 2
    assert found.details.findings[0].endswith(step.text)


THREE = OptimalComposition(1 / 3, 0.0, 3)
"""Any three parts of 1/3-DP, which lose 1 together."""


@pytest.mark.parametrize(
    ("mechanism", "about", "verdict"),
    [
        # The mechanism is 1/2-DP, and may be one of three parts that lose 1 at worst.
        (Response(0.5), None, NOT_REFUTED),
        (Response(0.5), THREE, VIOLATED),
        (None, None, VIOLATED),
        (None, TopK(3, 0.2), NOT_REFUTED),
    ],
)
def test_a_formula_is_about_the_worst_of_a_class_and_a_mechanism_may_be_better(
    mechanism, about, verdict
):
    pairs = None if mechanism is None else [(0, 1)]
    options = {"accountants": [THREE], "evidence": ["accounting"], "about": about}
    result = audited(mechanism, PureDP(0.7), pairs, **options)

    assert result.verdict is verdict
    if about == THREE:
        worst = "the worst of any 3 adaptive mechanisms of (0.333333, 0)-DP"
        assert result.counterexample.pair.startswith(worst)
    elif mechanism is not None:
        assert result.epsilon_lower is None
        better = "the mechanism is among them, and may lose less"
        assert better in " ".join(result.evidence[0].assumptions)
    elif about is not None:
        wider = "any 3 adaptive selections of bounded range 0.2"
        assert result.mechanism == wider


def test_a_description_needs_accountants():
    with pytest.raises(CollectionError, match="there are none"):
        Audit(Response(0.5), PureDP(1.0), [(0, 1)], about=TopK(3, 0.2))
