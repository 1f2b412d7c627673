from __future__ import annotations

import re
from dataclasses import replace

import pytest

from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Verdict,
)
from auditdp.report import terminal
from auditdp.report.plain_text import printable
from auditdp.report.sentences import rare_leaks


def lines(result, **options):
    return terminal.line(result, **options).split("\n")


def test_a_certificate_is_one_line(audit):
    assert lines(replace(audit("warner_rr"), seconds=0.69)) == [
        "CERTIFIED     audits/audit_edges.py::warner_rr  1-DP          ε = 1             20,510 calls  0.69 s"
    ]


def test_a_clean_game_says_what_it_would_have_refuted(audit):
    assert lines(replace(audit("::dprr"), seconds=1.35)) == [
        "NOT_REFUTED   audits/audit_edges.py::dprr       1-DP          0.871 ≤ ε         20,890 calls  1.35 s",
        "    would find   nine times in ten: ε = 1.083 (randomised response). Smaller or rarer leaks may be",
        "                 missed; more calls find more.",
    ]


def test_a_violation_is_spelled_out(audit):
    result = replace(audit("feature_rr"), calls=1680, seconds=0.21)
    assert lines(result) == [
        "VIOLATED      audits/audit_features.py::feature_rr[theta=record]",
        "                                                1-DP          1.312 ≤ ε          1,680 calls  0.21 s",
        "    claimed in   Tran et al. 2022, Theorem 3",
        "    in short     There are outputs after which whoever sees them guesses rightly at least 78 times",
        "                 of 100 which of the two inputs was used; the claim allows 73 after any output (a",
        "                 certified bound).",
        "    pair         z  = (0.00, 0.00, 1.00)",
        "                 z' = (0.00, 1.00, 1.00)",
        "    output       u = (1, 5, 5)",
        "    because      P(u | z) = 0.0127 and P(u | z') = 0.0508: a ratio of 4.00, where e^1 = 2.72 is",
        "                 allowed.",
        "    reproduce    auditdp replay 'audits/audit_features.py::feature_rr[theta=record]' --seed 20240611",
    ]


def test_a_declared_violation_reads_as_success(audit):
    declared = audit("graphpub")
    first, *_ = lines(declared)
    assert first == "VIOLATED as declared audits/audit_edges.py::graphpub_degrees"
    assert "ε = ∞" in terminal.line(declared)
    green = terminal.line(declared, colour=True)
    assert green.startswith("\x1b[32mVIOLATED as declared")


def test_a_missed_declared_violation_reads_as_failure(audit):
    missed = audit("sparse_vector")
    assert (
        "    missed       A violation is declared here, and it was not found."
        in lines(missed)
    )
    assert terminal.line(missed, colour=True).startswith("\x1b[1;31mNOT_REFUTED")


def test_a_surviving_control_is_named(audit):
    assert lines(audit("lap_graph"))[1:3] == [
        "    control      Survived: LapGraph without noise on |E| ended NOT_REFUTED after 20,000 calls:",
        "                 Wealth 0.31 at the end.",
    ]


def test_a_crash_shows_its_traceback_and_a_skip_its_reason(audit):
    assert (
        "                 MechanismError: expected 64 outputs, got an array of shape (63, 2)"
        in lines(audit("dp_sgd"))
    )
    assert (
        lines(audit("lpgnn"))[-1]
        == "    reason       Needs a CUDA device, and there is none here."
    )


def test_of_a_text_of_megabytes_the_ends_are_shown(audit):
    shown = terminal.line(replace(audit("dp_sgd"), summary="x" * 3_000_000))
    assert "…" in shown
    assert len(shown) < 15_000


def test_a_finding_that_was_not_confirmed_says_so(audit):
    found = Counterexample(pair="0 | 1", explanation="Wealth 320.", confirmed=False)
    assert "Not confirmed on fresh randomness." in terminal.line(
        replace(audit("feature_rr"), counterexample=found)
    )


def test_numbers_of_different_audits_stand_in_columns(record):
    rows = [
        row
        for row in terminal.report(record).split("\n")
        if row.endswith(" s") and " call" in row
    ]
    assert len(rows) == sum(
        result.calls > 0 for result in record.results
    )  # nothing is said of no calls
    assert {len(row) for row in rows} == {terminal.WIDTH}
    assert {row.index(" call") for row in rows} <= {
        86,
        87,
    }  # 'calls' and, for one, 'call'


def test_the_summary(record):
    text = terminal.summary(replace(record, seconds=27.7))
    assert text.split("\n")[1:] == [
        "13 audits of 9 privacy claims in 27.7 s · 1 skipped · 1 ended with an error",
        "     4  findings",
        "     2  claims refuted, as declared",
        "     2  proved",
        "     1  equivalent on the inputs that were tried",
        "     2  not refuted",
        "     1  error",
        "     1  skipped",
        "",
        "verdicts     4 VIOLATED, 2 CERTIFIED, 3 NOT_REFUTED, 1 EQUIVALENT, 1 INCONCLUSIVE, 1 ERROR, 1",
        "             SKIPPED",
        "slowest      14.9 s  audits/audit_features.py::multi_bit_rectifier",
        "             5.01 s  audits/audit_edges.py::dprr_degree_is_unbiased",
        "             2.60 s  audits/audit_edges.py::lap_graph",
        "             1.95 s  audits/audit_classic.py::sparse_vector_without_query_noise",
        "             1.35 s  audits/audit_edges.py::dprr",
        "alpha        0.03516 is the most that the probability of a wrong finding can be: game 0.02812 (9",
        "             shares), confirmation 0.007031 (9 shares)",
        "root seed    20240611",
        "revision     4f1c2d7e9b",
        "device       cpu, 16 cores",
        "",
    ]


def test_a_clean_run_says_that_nothing_was_found_and_what_that_means(clean_record):
    lines = terminal.summary(clean_record).split("\n")
    assert "     0  findings" in lines
    text = " ".join(lines[-5:])
    assert (
        "no violation beyond those that they declare, each within its stated scope, pairs and budget; it does not"
        in text
    )
    assert "would have been found nine times in ten in these 2 audits." in text


def test_an_interrupted_run_says_so(record):
    assert "this run is interrupted: audits are missing" in terminal.summary(
        replace(record, status="interrupted")
    )


def miscalibrated(result, **changes):
    """Make an audit one whose calibration is refuted beside a clean game."""
    calibration = Evidence(
        "sensitivity",
        Verdict.MISCALIBRATED,
        "The noise is calibrated to l1 sensitivity 1, but two neighbours need 2: the calibration is refuted",
        counterexample=Counterexample(
            "0 | 2", "Before the noise the first input gives 0 and the second 2"
        ),
    )
    return replace(
        result,
        verdict=Verdict.MISCALIBRATED,
        evidence=[*result.evidence, calibration],
        counterexample=calibration.counterexample,
        seconds=1.35,
        **changes,
    )


def test_a_refuted_calibration_says_what_it_means_and_what_is_known_of_the_claim(audit):
    shown = lines(miscalibrated(audit("::dprr")))
    assert shown[0].startswith("MISCALIBRATED audits/audit_edges.py::dprr ")
    assert shown[1:-1] == [
        "    claimed in   Hidano & Murakami 2022, Proposition 2",
        "    pair         0 | 2",
        "    because      Before the noise the first input gives 0 and the second 2",
        "    means        The noise is calibrated to less than two neighbours need: the argument for the",
        "                 claim fails; the claim itself may still hold. Calibrate the noise to what",
        "                 neighbours need, or argue for the claim without this sensitivity.",
        "    the claim    NOT_REFUTED: 20,382 calls over 6 pairs did not refute the claim.",
    ]
    assert shown[-1].startswith("    reproduce ")


def test_a_declared_miscalibration_reads_as_success_and_is_counted_as_what_it_is(
    record, audit
):
    declared = miscalibrated(audit("::dprr"), expected="miscalibration")
    assert lines(declared)[0].startswith(
        "MISCALIBRATED as declared audits/audit_edges.py::dprr"
    )
    assert terminal.line(declared, colour=True).startswith(
        "\x1b[32mMISCALIBRATED as declared"
    )
    text = terminal.summary(replace(record, results=[declared]))
    assert "     0  findings\n     1  calibration refuted, as declared" in text
    missed = replace(audit("::dprr"), expected="miscalibration")
    assert (
        "    missed       A miscalibration is declared here, and it was not found."
        in lines(missed)
    )


@pytest.mark.parametrize(
    ("verdicts", "status", "message"),
    [
        (
            ["SKIPPED"],
            "complete",
            "Nothing was audited, so this is not a clean run. 1 audit was skipped; nothing is",
        ),
        (
            ["SKIPPED", "ERROR"],
            "complete",
            "this is not a clean run. 1 audit was skipped and 1 audit ended with",
        ),
        (
            ["CERTIFIED", "ERROR"],
            "complete",
            "This is not a clean run: 1 audit ended with an error; nothing is known of what",
        ),
        (
            ["CERTIFIED", "SKIPPED", "SKIPPED"],
            "complete",
            "accountant that is stated. 2 audits were skipped; nothing is known of",
        ),
        (
            ["CERTIFIED"],
            "interrupted",
            "This is not a clean run: it is interrupted, and audits are missing",
        ),
        ([], "interrupted", "Nothing was audited, so this is not a clean run."),
    ],
)
def test_only_what_was_audited_makes_a_clean_run(
    record, audit, verdicts, status, message
):
    results = [
        replace(audit("warner_rr"), verdict=Verdict(verdict)) for verdict in verdicts
    ]
    text = " ".join(
        terminal.summary(
            replace(record, results=results, status=status, alpha_ledger=[])
        ).split()
    )
    assert message in text
    assert ("A clean run means" in text) == (
        verdicts == ["CERTIFIED", "SKIPPED", "SKIPPED"]
    )


def test_a_run_without_all_its_results_says_how_many_there_are(record):
    some = replace(record, results=record.results[:3], status="interrupted")
    text = " ".join(terminal.summary(some).split())
    assert f"3 of {some.planned} audits, " in text
    assert some.planned == len(
        {r.id for r in some.results} | {entry.audit for entry in some.alpha_ledger}
    )
    assert "this run is interrupted: audits are missing" in text


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [*range(20, 60, 3), *range(60, 201, 20)])
def test_no_width_crashes_and_only_ids_commands_and_long_words_run_over(
    record, width, colour
):
    text = re.sub(
        r"\x1b\[[0-9;]*m", "", terminal.report(record, width=width, colour=colour)
    )
    for row in text.split("\n"):
        assert (
            len(row) <= width
            or "::" in row
            or "\\u003a:" in row
            or "auditdp re" in row
            or "auditdp ru" in row
        ), row
    for result in record.results:
        assert text.count(printable(result.id)) >= 1


def styled(text):
    """What is written in each style."""
    found = {}
    for style, content in re.findall(
        r"\x1b\[([1-9][0-9;]*)m(.*?)\x1b\[0m", text, re.DOTALL
    ):
        found.setdefault(style, []).append(content)
    return found


@pytest.mark.parametrize("width", [40, 70, 120])
def test_a_style_ends_where_it_is_meant_to(record, audit, width):
    finding = styled(terminal.line(audit("feature_rr"), colour=True, width=width))
    assert finding.pop("1;31") == ["VIOLATED"]
    assert set(finding) == {"2", "1"}  # labels are dim, and the command is bold
    assert all(
        "P(u" not in content for contents in finding.values() for content in contents
    )
    text = terminal.summary(record, colour=True, width=width)
    dim = styled(text)["2"]
    assert all(
        set(content.strip()) <= {"─"} or len(content.split()) <= 2 for content in dim
    )
    assert "root seed" in " ".join(dim)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == terminal.summary(record, width=width)


def test_an_inconclusive_audit_does_not_hide_what_refutes_it(record, audit):
    accounting = Evidence(
        "accounting",
        Verdict.VIOLATED,
        "its loss is 2",
        counterexample=Counterexample("the worst of 3 releases", "2 > 1"),
    )
    torn = replace(
        audit("warner"),
        verdict=Verdict.INCONCLUSIVE,
        evidence=[*audit("warner").evidence, accounting],
    )
    shown = lines(torn)
    assert "    refuted      accounting: VIOLATED, its loss is 2" in shown
    assert "    pair         the worst of 3 releases" in shown
    assert any(row.startswith("    reproduce") for row in shown)
    assert "1  claim refuted, not confirmed" in terminal.summary(
        replace(record, results=[torn])
    )


def test_the_slowest_audits_are_listed(record):
    times = [0.5, 1.5, 40.0, 3.0, *[0.1] * 9]
    results = [
        replace(r, seconds=s) for r, s in zip(record.results, times, strict=True)
    ]
    text = " ".join(terminal.summary(replace(record, results=results)).split())
    ids = [r.id for r in results]
    assert f"slowest 40.0 s {ids[2]} 3.00 s {ids[3]} 1.50 s {ids[1]} alpha" in text
    quick = [replace(r, seconds=0.1) for r in record.results]
    assert "slowest" not in terminal.summary(replace(record, results=quick))


@pytest.mark.parametrize(
    ("shares", "phrases"),
    [
        (
            [0.005, 0.001],
            [
                "ε = 2 where the leak is in outputs that come once in 200 calls",
                "an output that only one of two neighbours gives, if it comes once in 1,000 calls",
            ],
        ),
        (
            [0.9, 0.01],
            [
                "an output that only one of two neighbours gives, if it comes once in 100 calls"
            ],
        ),
        ([1.0, 0.7], ["no leak that only rare outputs show"]),
    ],
)
def test_the_power_line_names_what_is_rare(shares, phrases):
    result = AuditResult(
        id="audits/audit_a.py::a",
        verdict=Verdict.NOT_REFUTED,
        summary="clean",
        claim=ClaimRecord("PureDP", "1-DP", "bits", epsilon=1.0),
        evidence=[
            Evidence(
                "game",
                Verdict.NOT_REFUTED,
                "clean",
                details={"detectable_rarely": shares},
            )
        ],
    )
    assert rare_leaks(result) == phrases
