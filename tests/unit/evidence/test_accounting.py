"""Accounting evidence: what a cross-check becomes in a record, and that it goes to JSON and back."""

import math

import pytest
from pydantic import TypeAdapter

from auditdp import Audit
from auditdp.accountants import (
    RDP,
    AccountantError,
    GaussianCurve,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    Poisson,
    PoissonSubsampled,
    ShuffledLower,
    TopK,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
)
from auditdp.errors import CollectionError
from auditdp.evidence.accounting import accounting_evidence
from auditdp.record.budget import Budget
from auditdp.record.results import Evidence, Verdict
from auditdp.testing import Response

ACCOUNTANTS = [kind(1.0, 0.01, 100) for kind in (PLDLower, PLDUpper, RDP)]


def test_a_false_claim_has_bounds_a_table_and_a_counterexample():
    evidence = accounting_evidence(
        ApproxDP(0.01, 1e-8), [PoissonSubsampled(1.0, 1e-6, 0.01)]
    )
    assert evidence.kind == "accounting"
    assert evidence.verdict is Verdict.VIOLATED
    assert (
        evidence.epsilon_lower
        == evidence.epsilon_upper
        == pytest.approx(math.log1p(0.01 * math.expm1(1.0)))
    )
    assert evidence.counterexample is not None
    assert "the claim allows 0.01" in evidence.counterexample.explanation
    assert evidence.assumptions == [
        "neighbours: add or remove one record",
        "batches: Poisson",
        "about: any (1, 1e-06)-DP mechanism on a sample (Poisson) at rate 0.01",
        "given its sensitivity: the mechanism is what the parameters say, in noise, sensitivity and number of uses",
    ]
    (row,) = evidence.details.accountants
    assert row.soundness == "exact"
    assert row.source.startswith("Balle, Barthe & Gaboardi (2018)")
    assert row.finding == ""


def test_a_true_claim_is_certified_by_the_tightest_proof():
    lower, upper, _ = (accountant.epsilon_at(1e-5) for accountant in ACCOUNTANTS)
    evidence = accounting_evidence(ApproxDP(1.2 * upper, 1e-5), ACCOUNTANTS)
    assert evidence.verdict is Verdict.CERTIFIED
    assert (evidence.epsilon_lower, evidence.epsilon_upper) == (lower, upper)
    assert evidence.counterexample is None
    assert evidence.calls == 0
    assert [row.name.split("(")[0] for row in evidence.details.accountants] == [
        "PLDLower",
        "PLDUpper",
        "RDP",
    ]
    assert evidence.details.delta == 1e-5


def test_between_the_bounds_nothing_is_decided():
    lower, upper, _ = (accountant.epsilon_at(1e-5) for accountant in ACCOUNTANTS)
    evidence = accounting_evidence(ApproxDP((lower + upper) / 2, 1e-5), ACCOUNTANTS)
    assert evidence.verdict is Verdict.NOT_REFUTED
    assert evidence.counterexample is None


def test_findings_are_told_and_decide_nothing():
    evidence = accounting_evidence(
        ApproxDP(5.0, 1e-5),
        [*ACCOUNTANTS, ShuffledLower(0.6, 1000)],
        about=Poisson(1.0, 0.01, 100),
    )
    assert evidence.verdict is Verdict.CERTIFIED
    assert evidence.statement.endswith("(1 finding about accountants)")
    assert (
        "is about DP-SGD in 1 shuffled epochs of 1,000 batches"
        in evidence.details.findings[0]
    )
    with pytest.raises(AccountantError, match="accountants of one thing"):
        accounting_evidence(
            ApproxDP(5.0, 1e-5), [*ACCOUNTANTS, ShuffledLower(0.6, 1000)]
        )


def test_a_level_is_bounded_by_values_of_the_claims_own_parameter():
    evidence = accounting_evidence(GaussianDP(0.9), [GaussianCurve(1.0)])
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.epsilon_lower == evidence.epsilon_upper == 1.0, "of μ, and not an ε"
    points = accounting_evidence(
        AccountedDP([(1.0, 0.1), (2.0, 0.01)], quoted=0.05), [GaussianCurve(1.0)]
    )
    assert points.verdict is Verdict.VIOLATED
    assert points.epsilon_lower is points.epsilon_upper is None
    assert "the claim allows" in points.counterexample.explanation


def test_where_all_accountants_fail_there_is_no_verdict(monkeypatch):
    def fails(self, *_):
        raise MemoryError

    for kind in (PLDUpper, PLDLower):
        monkeypatch.setattr(kind, "losses", fails)
    two, settings = (
        [PLDUpper(1.0, 0.1, 10), PLDLower(1.0, 0.1, 10)],
        Settings(alpha=0.05, budget=Budget(10), root_seed=1),
    )
    with pytest.raises(
        AccountantError, match=r"no accountant answered: .*ran out of memory.*use fewer"
    ):
        accounting_evidence(ApproxDP(1.0, 1e-5), two)
    assert (
        run_audit(
            Audit(None, ZeroConcentratedDP(6.0), accountants=two), settings
        ).verdict
        is Verdict.CERTIFIED
    )
    evidence = accounting_evidence(
        ApproxDP(9.0, 1e-5), [*two, GaussianCurve(1.0)], about=Poisson(1.0, 0.1, 1)
    )
    assert evidence.verdict is Verdict.CERTIFIED
    assert "no answer: PLDUpper" in evidence.statement
    assert evidence.details.findings[:2] == [
        f"{one.name}: is about {one.describes.text}; the claim is about {Poisson(1.0, 0.1, 1).text}"
        for one in two
    ]


def test_it_goes_to_json_and_back():
    evidence = accounting_evidence(
        PureDP(1.0), [GaussianCurve(1.0, count=10), RDP(1.0, 0.01, 10)]
    )
    adapter = TypeAdapter(Evidence)
    again = adapter.validate_json(adapter.dump_json(evidence))
    assert again.verdict is evidence.verdict
    assert again.epsilon_upper == math.inf
    assert again.details.accountants[0].epsilon == math.inf


def mechanism_audit(**about):
    """Randomised response on a bit, three times with ε = 1/3 each: accounted for as any three parts, 1 at δ = 0."""
    three = OptimalComposition(1 / 3, 0.0, 3)
    return Audit(
        mechanism=Response(0.5),
        claim=PureDP(0.7),
        pairs=[(0, 1)],
        accountants=[three],
        evidence=["accounting"],
        **about,
    )


def test_accountants_beside_a_mechanism_refute_nothing_that_is_not_said_of_it():
    """The mechanism is 1/2-DP, and may well be one of three parts that together are so: only their worst loses 1."""
    settings = Settings(alpha=0.05, budget=Budget(10), root_seed=1)
    result = run_audit(mechanism_audit(), settings)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.epsilon_lower is None
    assert any(
        "the mechanism is one of them, and maybe a better one" in message
        for message in result.evidence[0].assumptions
    )
    message = run_audit(
        mechanism_audit(about=OptimalComposition(1 / 3, 0.0, 3)), settings
    )
    assert message.verdict is Verdict.VIOLATED
    assert message.counterexample.pair.startswith(
        "the worst of any 3 adaptive mechanisms of (0.333333, 0)-DP, by Optimal"
    )


def test_a_formula_is_about_the_worst_of_what_is_described():
    settings = Settings(alpha=0.05, budget=Budget(10), root_seed=1)
    audit = Audit(None, PureDP(0.7), accountants=[OptimalComposition(1 / 3, 0.0, 3)])
    assert run_audit(audit, settings).verdict is Verdict.VIOLATED
    wider = Audit(
        None,
        PureDP(0.7),
        accountants=[OptimalComposition(1 / 3, 0.0, 3)],
        about=TopK(3, 0.2),
    )
    assert run_audit(wider, settings).verdict is Verdict.NOT_REFUTED
    assert (
        run_audit(wider, settings).mechanism
        == "any 3 adaptive selections of bounded range 0.2"
    )
    with pytest.raises(CollectionError, match="there are none"):
        Audit(Response(0.5), PureDP(1.0), [(0, 1)], about=TopK(3, 0.2))
