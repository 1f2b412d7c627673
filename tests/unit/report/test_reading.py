"""What a trace read off the code, in every report: the line, the value, the scale and what would be enough."""

import json
from dataclasses import replace

import numpy as np
import pytest

from auditdp.claims.statements import PureDP
from auditdp.record.details import GameDetails
from auditdp.record.results import Place, Verdict
from auditdp.record.traces import GameTrace, TracedFinding, TracedLine
from auditdp.report import terminal
from auditdp.report.facts import tables
from auditdp.report.forge import commands, pull_request
from auditdp.report.formats import render
from auditdp.report.guesses import (
    at_most,
    line_of,
    suspicions,
    trace_scope,
    trace_sentences,
    understood_findings,
)
from auditdp.report.html.cards import evidence_views
from auditdp.report.html.pages import pages
from auditdp.report.machine_readable import sarif
from auditdp.tracing import Trace, compare, compare_versions

SENTENCE = "line 31 adds Laplace noise of scale 1 to a value that moves by 3; 1-DP needs scale 3"
FINDING = TracedFinding(
    kind="loss",
    file="src/ages.py",
    line=31,
    sentence=SENTENCE,
    read_off=True,
    confirmed=True,
    pair="[3] | [0]",
)
LOOK = replace(
    FINDING, line=40, sentence="line 40: draws differ", read_off=False, confirmed=False
)
ROUND = replace(
    FINDING,
    kind="round",
    file="",
    line=0,
    sentence="outputs differ although all noisy values are equal",
)
LINES = [
    TracedLine(
        file="src/ages.py",
        line=30,
        family="coin",
        scale="",
        moved=0.0,
        loss=0.0,
        share=0.0,
    ),
    TracedLine(
        file="src/ages.py",
        line=31,
        family="Laplace",
        scale="2",
        moved=1.04,
        loss=0.52,
        share=0.52,
        needed=1.04,
    ),
]


def with_trace(result, **fields):
    """A result whose game, the only evidence, has a trace."""
    trace = GameTrace(pairs=4000, runs=8012, extent="full", lines=LINES, **fields)
    game = replace(result.evidence[-1], kind="game", details=GameDetails(trace=trace))
    return replace(result, evidence=[game])


@pytest.fixture
def broken(audit):
    found = with_trace(audit("feature_rr"), share=3.0, findings=[ROUND, FINDING, LOOK])
    shown = replace(found.counterexample, pair=FINDING.pair)
    return replace(
        found,
        counterexample=shown,
        mechanism_at=Place("src/ages.py", 25),
        audit_at=Place("audits/audit_f.py", 7),
    )


@pytest.fixture
def clean(audit):
    return replace(
        with_trace(audit("::dprr"), share=0.52, is_bound=True), epsilon_lower=0.1
    )


def test_what_is_read_off_comes_with_the_line_first_and_where_to_look_is_left_out(
    broken, clean
):
    assert understood_findings(broken) == [FINDING, ROUND]
    assert understood_findings(clean) == []


def test_a_proposal_that_no_evidence_confirmed_is_not_said_of_clean_code(broken):
    assert understood_findings(replace(broken, verdict=Verdict.NOT_REFUTED)) == []


def test_what_no_bet_has_shown_is_said_as_that_and_what_was_not_run_as_told_always(
    broken, clean
):
    assert suspicions(broken) == suspicions(clean) == []
    unshown = replace(broken, verdict=Verdict.NOT_REFUTED)
    assert suspicions(unshown) == [("suspicion", ROUND)]
    assert (
        suspicions(with_trace(unshown, findings=[replace(ROUND, confirmed=False)]))
        == []
    )
    steps = replace(LOOK, kind="steps")
    assert suspicions(with_trace(broken, share=3.0, findings=[steps, FINDING])) == [
        ("accountant", steps)
    ]
    assert f"suspicion {ROUND.sentence}" in " ".join(terminal.line(unshown).split())


def test_the_pair_is_said_where_the_counterexample_is_on_another(broken):
    other = with_trace(broken, findings=[replace(FINDING, pair="[4] | [0]"), ROUND])
    assert trace_sentences(other) == [
        f"src/ages.py: {SENTENCE}; on the pair [4] | [0]",
        ROUND.sentence,
    ]
    assert "; on the pair [4] | [0]" in " ".join(terminal.line(other).split())


def test_a_finding_that_no_runs_confirmed_is_a_suspicion(broken):
    (sentence,) = trace_sentences(
        with_trace(broken, findings=[replace(FINDING, confirmed=False)])
    )
    assert sentence.startswith(f"src/ages.py: {SENTENCE} (a suspicion")


def test_the_line_is_the_location_and_the_fingerprint_is_that_of_the_audit(
    record, broken
):
    without = replace(broken, evidence=[])
    found, plain = (
        json.loads(sarif(replace(record, results=[result])))["runs"][0]["results"][0]
        for result in (broken, without)
    )
    where = found["locations"][0]["physicalLocation"]
    assert (where["artifactLocation"]["uri"], where["region"]["startLine"]) == (
        "src/ages.py",
        31,
    )
    assert plain["locations"][0]["physicalLocation"]["region"]["startLine"] == 25
    assert found["partialFingerprints"] == plain["partialFingerprints"]
    related = [
        place["physicalLocation"]["region"]["startLine"]
        for place in found["relatedLocations"]
    ]
    assert related == [25, 7]
    assert [place["message"]["text"] for place in found["relatedLocations"]] == [
        "the mechanism",
        "the audit",
    ]
    assert f"Read off: src/ages.py: {SENTENCE}" in found["message"]["text"]


@pytest.mark.parametrize(
    ("file", "expected"),
    [("src/other.py", True), ("ages.py", False), ("numeric.py", False), ("", False)],
)
def test_a_file_whose_folder_is_not_known_is_no_location(broken, file, expected):
    """A trace names files outside the working folder by their name alone."""
    moved = with_trace(broken, findings=[replace(FINDING, file=file)])
    assert (line_of(moved) is not None) == expected
    own = replace(moved, mechanism_at=Place("ages.py", 3))
    assert (line_of(own) is not None) == (expected or file == "ages.py")


def test_annotation_comment_and_terminal_name_the_line(record, broken):
    made = replace(record, results=[broken])
    line = commands(made).splitlines()[0]
    assert line.startswith("::error file=src/ages.py,line=31,")
    assert SENTENCE.replace("%", "%25") in line
    comment = pull_request(made)
    assert "at `src/ages.py:31`" in comment
    assert f"- read off: src/ages.py: {SENTENCE}" in comment.replace("\\", "")
    text = " ".join(terminal.line(broken).split())
    assert f"read off src/ages.py: {SENTENCE}" in text
    assert "line 40" not in text


def test_pages_show_the_line_and_the_table(record, broken, clean):
    made = pages(replace(record, results=[broken]), index="i.html", folder="f")
    page = "".join(made.values())
    assert f"<b>Read off:</b> src/ages.py: {SENTENCE}." in page
    for result in (broken, clean):
        (evidence,) = evidence_views(result, plots=False)
        assert ("Traced", "4,000 pairs and 8,012 runs looked at") in evidence.facts
        table = next(
            table
            for table in tables(evidence.evidence, result.claim)
            if table.title == "Lines at which noise enters"
        )
        assert table.columns == [
            "Line",
            "Noise",
            "Scale",
            "Moved at most",
            "ε lost",
            "Share of the claim",
        ]
        assert table.rows[1] == [
            "src/ages.py:31",
            "Laplace",
            "2",
            "1.04",
            "0.52",
            "0.52",
        ]
    assert SENTENCE in broken._repr_html_()


def test_no_loss_is_bounded_below_what_the_result_certifies(clean):
    assert at_most(replace(clean, epsilon_lower=0.5))
    assert not at_most(replace(clean, epsilon_lower=0.53))


def test_clean_code_says_what_it_uses_and_what_is_left(clean):
    said = "at most ε = 0.52 on 4,000 pairs and 8,012 runs looked at; 48% of the budget is unused"
    assert at_most(clean) == said
    assert said in " ".join(terminal.line(clean).split())
    assert said in clean._repr_html_()
    assert "releases" not in terminal.line(clean)
    shown = terminal.line(clean, verbose=True)
    assert (
        "Line            Noise    Scale  Moved at most  ε lost  Share of the claim"
        in shown
    )
    assert "src/ages.py:31  Laplace  2      1.04           0.52    0.52" in shown


@pytest.mark.parametrize(
    "fields", [{"share": 0.5}, {"share": 1.4, "is_bound": True}, {"is_bound": True}]
)
def test_a_share_that_bounds_nothing_is_not_said(audit, fields):
    result = with_trace(audit("::dprr"), **fields)
    assert at_most(result) == ""
    assert "looked at" in terminal.line(result, verbose=True)


def test_of_a_claim_with_a_delta_a_share_is_no_epsilon(clean):
    approximate = replace(clean, claim=replace(clean.claim, delta=1e-5))
    assert at_most(approximate).startswith("at most 0.52 of the claim on 4,000 pairs")


def test_a_share_of_all_leaves_nothing(audit):
    assert "unused" not in at_most(
        replace(
            with_trace(audit("::dprr"), share=1.0, is_bound=True), epsilon_lower=0.1
        )
    )


def test_part_of_the_code_is_said(audit):
    trace = GameTrace(
        pairs=1, runs=2, extent="part", opaque=["line 3: noise is rounded"]
    )
    assert trace_scope(trace) == "1 pair and 2 runs looked at, traced in part"


def test_json_has_all_of_it(record, broken):
    found = json.loads(render(replace(record, results=[broken]), "json"))
    trace = found["results"][0]["evidence"][0]["details"]["trace"]
    assert trace["findings"][1]["sentence"] == SENTENCE


def test_a_notebook_shows_a_trace_as_it_is_printed():
    def noisy(v, rng):
        return {"<b>": v["x"] + rng.laplace(), **({"<i>": 1} if v["x"] > 1 else {})}

    pair = compare(
        Trace(noisy), {"x": 1}, {"x": 2}, np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert "<i>" in str(pair)
    assert "&lt;i&gt;" in pair._repr_html_()
    assert "<i>" not in pair._repr_html_() + pair._repr_markdown_()
    versions = compare_versions(noisy, noisy, {"x": 1}, np.random.default_rng(0))
    assert "no release differs" in versions._repr_html_()
