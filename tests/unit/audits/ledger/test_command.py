"""``python -m audits.ledger``: from records to the pages."""

import json
import sys
from dataclasses import replace

import pytest

from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Evidence,
    LedgerEntry,
    Published,
    RunRecord,
    Verdict,
)
from audits.ledger import command as ledger
from audits.papers import PAPERS

AUDIT = "audits/audit_edges.py::warner_rr"


def result(verdict, audit=AUDIT):
    evidence = Evidence(
        "exact", verdict, "as computed", epsilon_lower=1.0, epsilon_upper=1.0
    )
    claim = ClaimRecord("PureDP", "1-DP", "edge LDP", epsilon=1.0)
    return AuditResult(
        audit, verdict, "as computed", claim=claim, evidence=[evidence], published=Published("Warner RR", "as stated"),
        reproduce=f"auditdp run {audit}", parameters={"epsilon": 1.0},
    )  # fmt: skip


def record(*results):
    shares = [LedgerEntry(r.id, "verdict", 0.01) for r in results]
    return RunRecord(1, "complete", {}, {}, "abc", "here", shares, list(results))


@pytest.fixture
def files(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(
        record(
            result(Verdict.SKIPPED), result(Verdict.CERTIFIED, "audits/x.py::y")
        ).to_json()
    )
    second.write_text(record(result(Verdict.CERTIFIED)).to_json())
    return first, second


def test_of_an_audit_that_ran_twice_the_later_result_counts(files):
    found = {r.id: r.verdict for r in ledger.merged(files).results}
    assert found == {AUDIT: Verdict.CERTIFIED, "audits/x.py::y": Verdict.CERTIFIED}


OVERVIEWS = ("claims", "claims-newer")


def test_it_writes_the_overview_a_page_a_paper_and_everything_as_json(
    files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        sys, "argv", ["ledger", *map(str, files), "-o", str(tmp_path / "out")]
    )
    ledger.main()
    for name, key in (("claims.md", "dprr"), ("claims-newer.md", "blink")):
        overview = (tmp_path / "out" / name).read_text()
        assert "Partial" in overview
        assert f"claims/{key}.md" in overview
        assert len(overview.splitlines()) <= 180
    for paper in PAPERS:
        page = (tmp_path / "out" / "claims" / f"{paper.key}.md").read_text()
        assert page.count('<a id="') == sum(not s.unaudited for s in paper.statements)
        assert all(
            f'<a id="{s.key}"' in page for s in paper.statements if not s.unaudited
        )
        assert f"claims/{paper.key}.html#" in "".join(
            (tmp_path / "out" / f"{o}.html").read_text() for o in OVERVIEWS
        )
        html = (tmp_path / "out" / "claims" / f"{paper.key}.html").read_text()
        assert all(
            f'<a id="{s.key}"' in html for s in paper.statements if not s.unaudited
        )
    lines = {
        line["audit"]: line
        for line in json.loads((tmp_path / "out" / "claims.json").read_text())["claims"]
    }
    assert lines[AUDIT]["statement_key"] == "dprr-rr"
    printed = capsys.readouterr().out
    assert "no statement names audits/x.py::y" in printed
    assert "PROVED" in printed.splitlines()[0]


@pytest.mark.parametrize("status", ["interrupted", "complete"])
def test_a_ledger_of_a_part_is_refused(status, tmp_path, monkeypatch):
    whole = record(
        result(Verdict.CERTIFIED), result(Verdict.CERTIFIED, "audits/x.py::y")
    )
    part = replace(whole, status=status, results=whole.results[:1])
    (tmp_path / "run.json").write_text(part.to_json())
    monkeypatch.setattr(
        sys, "argv", ["ledger", str(tmp_path / "run.json"), "-o", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit, match="1 of its audits have no result"):
        ledger.main()
    assert not (tmp_path / "out").exists()


def test_a_proof_does_not_hide_a_violation(files, tmp_path):
    violated = replace(record(result(Verdict.VIOLATED)), revision="x")
    ledger.write(violated, tmp_path)
    assert (
        "Warner's RR, ε-edge LDP: VIOLATED"
        in (tmp_path / "claims" / "dprr.md").read_text()
    )
