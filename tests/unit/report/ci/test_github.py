from dataclasses import replace

from auditdp.report.forge import CommentLimits, commands
from tests.unit.report.scenarios import only


def test_nothing_is_said_of_a_clean_run(clean_record):
    undecided = ("INCONCLUSIVE", "SKIPPED")
    kept = [each for each in clean_record.results if each.verdict not in undecided]
    assert commands(only(*kept)) == ""


def test_no_more_than_github_shows_and_the_rest_is_counted(audit):
    many = [
        replace(audit("feature_rr"), id=f"audits/audit_{k}.py::x") for k in range(25)
    ]
    lines = commands(only(*many)).splitlines()
    assert len(lines) == CommentLimits.annotations
    assert lines[-1] == "::error title=auditdp::16 more are in the run's report"
