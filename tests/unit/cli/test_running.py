"""The end of a run, in its log and in its reports."""

from types import SimpleNamespace

from auditdp.cli import running
from auditdp.cli.run_options import RunOptions
from auditdp.record.results import AuditResult, LedgerEntry, RunRecord, Verdict
from auditdp.runner import log
from auditdp.runner.run_record import read_log


def test_the_log_and_the_reports_of_a_run_state_the_same_end(tmp_path, monkeypatch):
    """A report that is made from the log later is the same, whatever the clock says."""
    seconds = iter(range(60))
    for module in (running, log):
        monkeypatch.setattr(
            module, "now", lambda: f"2026-05-03T10:00:{next(seconds):02}+00:00"
        )
    result = AuditResult("a", Verdict.NOT_REFUTED, "no violation", alpha=0.05)
    tasks = [SimpleNamespace(id="a")]
    ledger = [LedgerEntry("a", "verdict", 0.05)]
    start = RunRecord(1, "running", {}, {}, "abc", "cpu", ledger, [], run="one")
    path = tmp_path / "run.jsonl"
    run = running._Run(
        RunOptions(log_path=path), SimpleNamespace(tasks=tasks), start, None, tasks
    )
    run.begin()
    run.go_on(SimpleNamespace(count=1, run=lambda tasks: [result]))
    assert run.record == read_log(path)
