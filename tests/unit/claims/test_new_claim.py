"""A claim that is not of auditdp: a class and a line in the table suffice.

Those of auditdp are in every table.
"""

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
from auditdp.claims.claim import Claim
from auditdp.claims.statements import CLAIMS
from auditdp.record.results import SYMBOLS, ClaimRecord, RunRecord
from auditdp.report.formats import render
from auditdp.testing import LaplaceMechanism
from tests.unit.evidence.toys import CERTIFIED, NOT_REFUTED, VIOLATED, audited


@dataclass(frozen=True)
class SteppedDP(Claim):
    """(epsilon, 1/100) and (2 epsilon, 0)."""

    epsilon: float
    source: str = field(default="", kw_only=True)
    delta: ClassVar[float | None] = None
    recorded_by: ClassVar[tuple[str, ...]] = ("epsilon",)
    alternative: ClassVar[str] = "the worst of both"

    @property
    def is_its_points(self):
        return True

    def statements(self):
        return np.array([[self.epsilon, 0.01], [2 * self.epsilon, 0.0]])

    def __str__(self):
        return f"{self.epsilon:g}-stepped DP"


def test_every_claim_of_auditdp_is_in_the_table_and_public_and_in_the_reference():
    own = {}
    for module in iter_modules(claims.__path__):
        for each in vars(import_module(f"{claims.__name__}.{module.name}")).values():
            is_claim = isinstance(each, type) and issubclass(each, Claim)
            if is_claim and dataclasses.is_dataclass(each):
                own[each.__name__] = each
    assert own == CLAIMS
    assert set(own) <= set(auditdp.__all__)

    recorded = {place.name for place in dataclasses.fields(ClaimRecord)} & set(SYMBOLS)
    assert {each.parameter for each in own.values()} <= recorded

    page = Path(__file__).parents[3] / "docs/pages/api/claims.md"
    text = page.read_text(encoding="utf-8")
    for name, each in own.items():
        assert f"::: {each.__module__}.{name}\n" in text


@pytest.fixture
def stepped(monkeypatch):
    monkeypatch.setitem(CLAIMS, "SteppedDP", SteppedDP)
    return SteppedDP(0.5)


def result(claim, scale):
    return audited(LaplaceMechanism(scale), claim, [(0.0, 1.0)], budget=2_000)


def test_it_is_refuted_with_a_bound_and_reports_name_it(stepped):
    found = result(stepped, 0.5)
    assert found.verdict is VIOLATED
    assert found.epsilon_lower > stepped.level

    record = RunRecord(1, "complete", {}, {}, "", "", [], [found])
    text = " ".join(render(RunRecord.from_json(record.to_json()), "terminal").split())
    assert "0.5-stepped DP" in text
    assert "the claim allows 62" in text


def test_a_mechanism_that_keeps_it_is_not_refuted(stepped):
    assert result(stepped, 2.0).verdict is NOT_REFUTED


@pytest.mark.parametrize(("each", "verdict"), [(0.25, CERTIFIED), (0.6, VIOLATED)])
def test_accountants_decide_it(each, verdict, stepped):
    assert cross_check(stepped, [OptimalComposition(each, 0.0, 2)]).verdict is verdict
