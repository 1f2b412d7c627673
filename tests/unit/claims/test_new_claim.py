"""A claim that is not of auditdp: a class and a line in the table suffice. Those of auditdp are in every table."""

import dataclasses
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar

import numpy as np
import pytest

import auditdp
from auditdp import claims
from auditdp.accountants import OptimalComposition, cross_check
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.claim import Claim, check_positive
from auditdp.claims.statements import CLAIMS
from auditdp.errors import ClaimError
from auditdp.record.budget import Budget
from auditdp.record.results import SYMBOLS, AuditResult, ClaimRecord, RunRecord, Verdict
from auditdp.report.formats import render
from auditdp.testing import LaplaceMechanism


@dataclass(frozen=True)
class SteppedDP(Claim):
    """(epsilon, 1/100) and (2 epsilon, 0)."""

    epsilon: float
    source: str = field(default="", kw_only=True)
    delta: ClassVar[float | None] = None
    recorded_by: ClassVar[tuple[str, ...]] = ("epsilon",)
    alternative: ClassVar[str] = "the worst of both"

    def __post_init__(self):
        check_positive("SteppedDP", "epsilon", self.epsilon)

    @property
    def is_its_points(self):
        return True

    def statements(self):
        return np.array([[self.epsilon, 0.01], [2 * self.epsilon, 0.0]])

    def __str__(self):
        return f"{self.epsilon:g}-stepped DP"


def test_every_claim_of_auditdp_is_in_the_table_and_public_and_in_the_reference():
    modules = [
        import_module(f"{claims.__name__}.{module.name}")
        for module in iter_modules(claims.__path__)
    ]
    made = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
    }
    own = {
        each.__name__: each
        for each in made
        if issubclass(each, Claim) and dataclasses.is_dataclass(each)
    }
    assert own == CLAIMS
    assert set(own) <= set(auditdp.__all__)
    recorded = {place.name for place in dataclasses.fields(ClaimRecord)} & set(SYMBOLS)
    assert {each.parameter for each in own.values()} <= recorded
    page = (Path(__file__).parents[3] / "docs/pages/api/claims.md").read_text(
        encoding="utf-8"
    )
    assert [
        name
        for name, each in own.items()
        if f"::: {each.__module__}.{name}\n" not in page
    ] == []


@pytest.fixture
def stepped(monkeypatch):
    monkeypatch.setitem(CLAIMS, "SteppedDP", SteppedDP)
    return SteppedDP(0.5)


def audited(claim, scale: float) -> AuditResult:
    audit = Audit(LaplaceMechanism(scale), claim, [(0.0, 1.0)])
    return run_audit(audit, Settings(alpha=0.01, budget=Budget(4_000), root_seed=1))


def test_it_is_refuted_with_a_bound_on_its_parameter(stepped):
    found = audited(stepped, scale=0.5)
    assert found.verdict is Verdict.VIOLATED
    assert found.epsilon_lower > stepped.level


def test_a_mechanism_that_keeps_it_is_not_refuted(stepped):
    assert audited(stepped, scale=2.0).verdict is Verdict.NOT_REFUTED


def test_reports_say_what_it_means_to_who_guesses(stepped):
    found = audited(stepped, scale=0.5)
    record = RunRecord(1, "complete", {}, {}, "", "", [], [found])
    text = " ".join(render(RunRecord.from_json(record.to_json()), "terminal").split())
    assert "0.5-stepped DP" in text
    assert "the claim allows 62" in text


@pytest.mark.parametrize(
    ("each", "verdict"), [(0.25, Verdict.CERTIFIED), (0.6, Verdict.VIOLATED)]
)
def test_accountants_decide_it(each, verdict, stepped):
    assert cross_check(stepped, [OptimalComposition(each, 0.0, 2)]).verdict is verdict


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ClaimError, match="SteppedDP: expected finite epsilon > 0"):
        SteppedDP(-1.0)
