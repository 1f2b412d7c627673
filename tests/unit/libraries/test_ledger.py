"""The ledger of libraries, from records that are written down here."""

import json
from dataclasses import replace
from pathlib import Path

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
from libraries import confirm, ledger
from libraries.written import WRITTEN

ROOT = Path(__file__).resolve().parents[3]


def result(
    name="audit_x.py::laplace",
    verdict=Verdict.NOT_REFUTED,
    lower=0.5,
    kind="game",
    **more,
):
    given = {
        "claim": ClaimRecord(
            "PureDP",
            "1-DP",
            "pairs given by hand",
            "its documentation",
            epsilon=1.0,
            delta=0.0,
        ),
        "evidence": [Evidence(kind, verdict, "")],
        "published": Published("noise 1.2", "Laplace"),
        "log_e_value": 3.0,
        "calls": 2000,
        "cpu_seconds": 1.26,
    }
    return AuditResult(
        f"libraries/{name}", verdict, "", epsilon_lower=lower, **{**given, **more}
    )


def record(*results, status="complete"):
    shares = [LedgerEntry(one.id, "verdict", 0.05 / len(results)) for one in results]
    return RunRecord(1, status, {"budget": "quick"}, {}, "", "", shares, list(results))


def cells(text, start):
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_a_mechanism_has_its_verdict_ratio_calls_and_seconds():
    shown = cells(ledger.ledger(record(result(lower=0.6789)), {}), "Laplace")
    assert shown == [
        "Laplace",
        "1-DP",
        "pairs given by hand",
        "NOT_REFUTED",
        "0.67",
        "2,000",
        "1.3",
    ]


def test_listed_pairs_are_described_as_in_the_audit_or_printed():
    listed = ClaimRecord("PureDP", "1-DP", "pairs as given (1)", epsilon=1.0)
    assert (
        ledger.neighbours(
            result(claim=listed, description="A sum; one row is replaced.\n\nFalse.")
        )
        == "one row is replaced"
    )
    shown = [
        Evidence(
            "game",
            Verdict.NOT_REFUTED,
            "",
            details={"pairs": [{"pair": "0.0 | 1.0", "calls": 8}]},
        )
    ]
    assert (
        ledger.neighbours(result(claim=listed, description="A number.", evidence=shown))
        == "0.0 \\| 1.0"
    )
    searched = ClaimRecord(
        "PureDP", "1-DP", "one row added or removed (0 to 4 rows, list)", epsilon=1.0
    )
    assert ledger.neighbours(result(claim=searched)) == "one row added or removed"


def test_a_lower_bound_is_set_against_the_level_that_was_claimed():
    claim = ClaimRecord("ZeroConcentratedDP", "0.5-zCDP", "", parameter="rho", rho=0.5)
    assert ledger.ratio(result(lower=1.0, claim=claim)) == "2.00"
    assert ledger.ratio(result(lower=None)) == "–"
    assert ledger.ratio(result(lower=1.9999)) == "1.99"  # never up


@pytest.mark.parametrize(
    ("found", "message"),
    [(True, "VIOLATED, confirmed"), (False, "VIOLATED, not confirmed")],
)
def test_a_violation_says_whether_it_was_found_again(found, message):
    broken = result(verdict=Verdict.VIOLATED)
    assert (
        cells(ledger.ledger(record(broken), {broken.id: found}), "Laplace")[3]
        == message
    )


def test_a_violation_leads_to_its_page_and_a_clean_run_to_none():
    name = f"audit_x.py::{next(iter(WRITTEN))}"
    assert (
        ledger.name(result(name, Verdict.VIOLATED))
        == f"[Laplace](libraries/{next(iter(WRITTEN.values()))}.md)"
    )
    assert ledger.name(result(name)) == "Laplace"


def test_every_page_is_there_with_a_script_beside_it():
    folder = ROOT / "reports" / "libraries"
    for page in {*WRITTEN.values(), "bingham"}:
        text = (folder / f"{page}.md").read_text(encoding="utf-8")
        assert f"{page}.py" in text
        assert (folder / f"{page}.py").is_file()


def test_libraries_old_versions_and_accountants_have_tables_of_their_own():
    old = result(
        "old/audit_x.py::laplace_bits", published=Published("noise 0.1", "bits")
    )
    formula = result(
        "audit_accountants.py::pld",
        Verdict.CERTIFIED,
        kind="accounting",
        epsilon_upper=0.75,
        log_e_value=None,
    )
    text = ledger.ledger(record(result(), old, formula), {})
    assert "1 mechanisms of 1 libraries" in text
    assert cells(text, "noise 0.1")[1:3] == ["its documentation", "bits"]
    assert cells(text, "noise 1.2, Laplace")[2:4] == ["CERTIFIED", "0.5 ≤ ε ≤ 0.75"]


def test_the_command_writes_the_ledger_and_refuses_half_a_run(tmp_path, monkeypatch):
    broken = result(verdict=Verdict.VIOLATED)
    run, found = tmp_path / "run.json", tmp_path / "confirmed.jsonl"
    found.write_text(json.dumps({"audit": broken.id, "confirmed": True}) + "\n")
    monkeypatch.setattr(
        "sys.argv", ["ledger", str(run), "--confirmed", str(found), "-o", str(tmp_path)]
    )
    run.write_text(record(broken, status="interrupted").to_json())
    with pytest.raises(SystemExit, match="finish the run"):
        ledger.main()
    run.write_text(record(broken).to_json())
    ledger.main()
    assert "VIOLATED, confirmed" in (tmp_path / "libraries.md").read_text(
        encoding="utf-8"
    )


def test_only_violations_that_were_drawn_are_confirmed_and_at_a_thousandth(
    tmp_path, monkeypatch
):
    broken = result(verdict=Verdict.VIOLATED)
    computed = replace(
        result("audit_accountants.py::gdp", Verdict.VIOLATED), log_e_value=None
    )
    run, out, asked = tmp_path / "run.json", tmp_path / "confirmed.jsonl", []
    run.write_text(record(broken, computed, result("audit_x.py::clean")).to_json())
    monkeypatch.setattr(confirm, "confirm", lambda *given: asked.append(given) or True)
    monkeypatch.setattr("sys.argv", ["confirm", str(run), "-o", str(out)])
    confirm.main()
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["audit"], line["confirmed"]) == (broken.id, True)
    assert line["alpha"] == pytest.approx(5e-5)
    assert [given[1].id for given in asked] == [broken.id]
    assert asked[0][2:] == (line["alpha"], line["seed"])


@pytest.mark.parametrize(("code", "found"), [(1, True), (0, False), (3, False)])
def test_the_exit_code_of_confirm_is_the_finding(monkeypatch, code, found):
    calls = []

    def run(command, **given):
        calls.append(command)
        return type("Ended", (), {"returncode": code})()

    monkeypatch.setattr(confirm.subprocess, "run", run)
    assert confirm.confirm(Path("run.json"), result(), 5e-5, 7) is found
    assert calls[0][1:] == (
        [
            "-m",
            "auditdp",
            "confirm",
            result().id,
            "--run",
            "run.json",
            "--budget",
            "standard",
            "--alpha",
            "5e-05",
            "--seed",
            "7",
        ]
    )
