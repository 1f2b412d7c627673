"""The terminal's report: its columns, widths and styles, and the sentences that snapshots do not reach."""

import re
from dataclasses import replace

import pytest

from auditdp.record.results import (
    AuditResult,
    Counterexample,
    Evidence,
    Verdict,
)
from auditdp.report import terminal
from auditdp.report.plain_text import printable
from auditdp.report.sentences import rare_leaks
from tests.unit.report.scenarios import (
    BY_NAME,
    CERTIFIED,
    CLAIM,
    VIOLATED,
    miscalibrated,
    only,
)

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def summary(record):
    return " ".join(terminal.summary(record).split())


@pytest.mark.parametrize(
    ("result", "start"),
    [
        (BY_NAME["graphpub_degrees"], "\x1b[32mVIOLATED as declared"),
        (
            BY_NAME["sparse_vector_without_query_noise"],
            "\x1b[1;31mNOT_REFUTED",
        ),
        (
            replace(miscalibrated(), expected="miscalibration"),
            "\x1b[32mMISCALIBRATED as declared",
        ),
    ],
)
def test_a_verdict_has_the_colour_of_what_it_means(result, start):
    assert terminal.line(result, colour=True).startswith(start)


def test_of_a_text_of_megabytes_the_ends_are_shown():
    long = terminal.line(replace(BY_NAME["dp_sgd"], summary="x" * 3_000_000))
    assert "…" in long
    assert len(long) < 15_000


def test_a_finding_that_was_not_confirmed_says_so():
    found = Counterexample(pair="0 | 1", explanation="Wealth 320.", confirmed=False)
    text = terminal.line(replace(VIOLATED, counterexample=found))
    assert "Not confirmed on fresh randomness." in text


@pytest.mark.parametrize(
    ("verdicts", "status", "message"),
    [
        (["SKIPPED"], "complete", "Nothing was audited, so this is not a clean run. 1"),
        (
            ["SKIPPED", "ERROR"],
            "complete",
            "this is not a clean run. 1 audit was skipped and 1 audit ended with",
        ),
        (
            ["CERTIFIED", "ERROR"],
            "complete",
            "This is not a clean run: 1 audit ended with an error; nothing is known about the",
        ),
        (
            ["CERTIFIED", "SKIPPED", "SKIPPED"],
            "complete",
            "stated law or accountant. 2 audits were skipped; nothing is known about",
        ),
        (
            ["CERTIFIED"],
            "interrupted",
            "This is not a clean run: it is interrupted, and audits are missing",
        ),
        ([], "interrupted", "Nothing was audited, so this is not a clean run."),
    ],
)
def test_only_what_was_audited_makes_a_clean_run(verdicts, status, message):
    results = [replace(CERTIFIED, verdict=Verdict(verdict)) for verdict in verdicts]
    text = summary(only(*results, status=status))
    assert message in text
    assert ("A clean run means" in text) == ("accountant" in message)


@pytest.mark.parametrize("width", [20, 23, 41, 59, 60, 100, 200])
def test_no_width_crashes_and_only_ids_commands_and_long_words_run_over(record, width):
    text = terminal.report(record, width=width)
    assert STYLE.sub("", terminal.report(record, width=width, colour=True)) == text
    for row in text.split("\n"):
        long = re.search(r"::|\\u003a:|auditdp r[eu]", row)
        assert len(row) <= width or long, row
    for result in record.results:
        assert printable(result.id) in text


def styled(text):
    """Return the pieces of text in each style."""
    found = {}
    pieces = re.findall(r"\x1b\[([1-9][0-9;]*)m(.*?)\x1b\[0m", text, re.DOTALL)
    for style, content in pieces:
        found.setdefault(style, []).append(content)
    return found


@pytest.mark.parametrize("width", [40, 120])
def test_a_style_ends_where_it_is_meant_to(record, width):
    finding = styled(terminal.line(VIOLATED, colour=True, width=width))
    assert finding.pop("1;31") == ["VIOLATED"]
    assert set(finding) == {"2", "1"}  # labels are dim, and the command is bold
    assert "P(u" not in str(finding)
    dim = styled(terminal.summary(record, colour=True, width=width))["2"]
    for content in dim:
        assert set(content.strip()) <= {"─"} or len(content.split()) <= 2
    assert "root seed" in " ".join(dim)


def test_an_inconclusive_audit_does_not_hide_what_refutes_it():
    accounting = Evidence(
        "accounting",
        Verdict.VIOLATED,
        "its loss is 2",
        counterexample=Counterexample("the worst of 3 releases", "2 > 1"),
    )
    torn = replace(
        CERTIFIED,
        verdict=Verdict.INCONCLUSIVE,
        evidence=[*CERTIFIED.evidence, accounting],
    )
    lines = terminal.line(torn).split("\n")
    assert "    refuted      accounting: VIOLATED, its loss is 2" in lines
    assert "    pair         the worst of 3 releases" in lines
    assert any(row.startswith("    reproduce") for row in lines)
    assert "1 claim refuted, not confirmed" in summary(only(torn))


def test_the_slowest_audits_are_listed(record):
    times = [0.5, 1.5, 40.0, 3.0, *[0.1] * 9]
    results = [
        replace(r, seconds=s) for r, s in zip(record.results, times, strict=True)
    ]
    slowest = " ".join(
        f"{text} s {results[k].id}"
        for k, text in ((2, "40.0"), (3, "3.00"), (1, "1.50"))
    )
    assert f"slowest {slowest} alpha" in summary(replace(record, results=results))
    quick = [replace(result, seconds=0.1) for result in results]
    assert "slowest" not in summary(replace(record, results=quick))


ONE_INPUT = "an output that only one of two neighbours gives, if it occurs once in"


@pytest.mark.parametrize(
    ("shares", "phrases"),
    [
        (
            [0.005, 0.001],
            [
                "ε = 2 if the leak is in outputs that occur once in 200 calls",
                f"{ONE_INPUT} 1,000 calls",
            ],
        ),
        ([0.9, 0.01], [f"{ONE_INPUT} 100 calls"]),
        ([1.0, 0.7], ["no leak that is in rare outputs only"]),
    ],
)
def test_the_power_line_names_what_is_rare(shares, phrases):
    details = {"detectable_rarely": shares}
    game = Evidence("game", Verdict.NOT_REFUTED, "clean", details=details)
    result = AuditResult(
        "a.py::a", Verdict.NOT_REFUTED, "clean", claim=CLAIM, evidence=[game]
    )
    assert rare_leaks(result) == phrases
