"""A kind of evidence that is not of auditdp.

A function and a line in the table are all that it takes.
"""

import pytest
from pydantic.dataclasses import dataclass

from auditdp import PureDP
from auditdp.record.details import KINDS, Details, EvidenceKind
from auditdp.record.results import Evidence, RunRecord
from auditdp.report.formats import render
from auditdp.testing import LaplaceMechanism
from tests.unit.evidence.toys import NOT_REFUTED, VIOLATED, audited


@dataclass(frozen=True, kw_only=True)
class NamesDetails(Details):
    """The length of a name."""

    letters: int = 0


def gathered(request, alpha):
    """A mechanism with a long name keeps no secrets."""
    letters = len(request.able.name)
    verdict = VIOLATED if letters > 12 else NOT_REFUTED
    statement = f"{letters} letters at α = {alpha:g}"
    return Evidence("names", verdict, statement, details=NamesDetails(letters=letters))


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


def result(**options):
    pairs = [(0.0, 1.0)]
    return audited(LaplaceMechanism(2.0), PureDP(1.0), pairs, budget=500, **options)


def test_it_is_gathered_without_being_named_and_has_its_share_of_alpha():
    found = result()
    own = next(each for each in found.evidence if each.kind == "names")
    # The other half of α is for the game.
    assert own.statement == "25 letters at α = 0.005"
    assert found.verdict is VIOLATED


def test_it_is_gathered_alone_and_named_in_reports():
    found = result(evidence=["names"])
    assert [each.kind for each in found.evidence] == ["names"]

    page = render(RunRecord(1, "complete", {}, {}, "", "", [], [found]), "html")
    assert "25 letters at α = 0.01" in page
    assert "Names" in page
