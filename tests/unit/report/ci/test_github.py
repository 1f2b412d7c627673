from __future__ import annotations

import re
from dataclasses import replace

from auditdp.report.forge import CommentLimits, commands

COMMAND = re.compile(
    r"^::(error|warning|notice) ((?:file=[^,:]+,line=\d+,)?title=[^,:]+)::(.+)$"
)


def test_every_line_is_a_command_whatever_audits_are_called(record):
    lines = commands(record).splitlines()
    parsed = [COMMAND.match(line) for line in lines]
    assert all(parsed), lines
    assert len([m for m in parsed if m[1] == "error"]) == sum(
        r.is_finding or r.verdict == "ERROR" for r in record.results
    )


def test_nothing_is_said_of_a_clean_run(clean_record, audit):
    kept = [
        result
        for result in clean_record.results
        if result.verdict not in ("INCONCLUSIVE", "SKIPPED")
    ]
    assert commands(replace(clean_record, results=kept, alpha_ledger=[])) == ""


def test_no_more_than_github_shows_and_the_rest_is_counted(record, audit):
    many = [
        replace(audit("feature_rr"), id=f"audits/audit_{k}.py::x") for k in range(25)
    ]
    lines = commands(replace(record, results=many, alpha_ledger=[])).splitlines()
    assert len(lines) == CommentLimits.annotations
    assert lines[-1] == "::error title=auditdp::16 more are in the run's report"
