"""A kind of evidence that is not of auditdp: a function and a line in the table are all that it takes."""

import pytest
from pydantic.dataclasses import dataclass

from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import PureDP
from auditdp.evidence.request import EvidenceRequest
from auditdp.record.budget import Budget
from auditdp.record.details import KINDS, Details, EvidenceKind
from auditdp.record.results import Evidence, RunRecord, Verdict
from auditdp.report.formats import render
from auditdp.testing import LaplaceMechanism

SETTINGS = Settings(alpha=0.01, budget=Budget(500), root_seed=1)


@dataclass(frozen=True, kw_only=True)
class NamesDetails(Details):
    """What a look at a name found."""

    letters: int = 0


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """A mechanism with a long name keeps no secrets."""
    letters = len(request.able.name)
    verdict = Verdict.VIOLATED if letters > 12 else Verdict.NOT_REFUTED
    return Evidence(
        "names",
        verdict,
        f"{letters} letters at α = {alpha:g}",
        details=NamesDetails(letters=letters),
    )


@pytest.fixture(autouse=True)
def names(monkeypatch):
    kind = EvidenceKind(
        f"{__name__}:gathered",
        NamesDetails,
        "Names",
        "how long a name is",
        sampled=True,
    )
    monkeypatch.setitem(KINDS, "names", kind)


def test_it_is_gathered_without_being_named_and_has_its_share_of_alpha():
    result = run_audit(
        Audit(LaplaceMechanism(2.0), PureDP(1.0), [(0.0, 1.0)]), SETTINGS
    )
    own = next(evidence for evidence in result.evidence if evidence.kind == "names")
    assert own.statement == "25 letters at α = 0.005"  # and half is for the game
    assert result.verdict is Verdict.VIOLATED


def test_an_audit_may_ask_for_it_alone():
    result = run_audit(
        Audit(LaplaceMechanism(2.0), PureDP(1.0), [(0.0, 1.0)], evidence=["names"]),
        SETTINGS,
    )
    assert [evidence.kind for evidence in result.evidence] == ["names"]


def test_reports_name_it():
    result = run_audit(
        Audit(LaplaceMechanism(2.0), PureDP(1.0), [(0.0, 1.0)], evidence=["names"]),
        SETTINGS,
    )
    record = RunRecord(1, "complete", {}, {}, "", "", [], [result])
    page = render(record, "html")
    assert "25 letters at α = 0.01" in page
    assert "Names" in page
