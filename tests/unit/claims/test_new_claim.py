"""A claim that is not of auditdp: a class and a line in the table are all that it takes."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from auditdp.auditing.declaration import Audit
from auditdp.auditing.judging import run_audit
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim, check_positive
from auditdp.claims.statements import CLAIMS
from auditdp.errors import ClaimError
from auditdp.record.results import AuditResult, RunRecord, Verdict
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

    def statements(self):
        return np.array([[self.epsilon, 0.01], [2 * self.epsilon, 0.0]])

    def __str__(self):
        return f"{self.epsilon:g}-stepped DP"


@pytest.fixture
def stepped(monkeypatch):
    monkeypatch.setitem(CLAIMS, "SteppedDP", SteppedDP)
    return SteppedDP(0.5)


def audited(claim, scale: float) -> AuditResult:
    audit = Audit(LaplaceMechanism(scale), claim, [(0.0, 1.0)])
    return run_audit(audit, Settings(alpha=0.01, calls=4_000, root_seed=1))


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
    assert "the claim allows 63" in text


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ClaimError, match="SteppedDP: expected finite epsilon > 0"):
        SteppedDP(-1.0)
