from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import Counterexample, Place
from auditdp.report.forge import MARK, CommentLimits, pull_request

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def test_findings_come_first_and_everything_else_is_folded(record, audit):
    text = pull_request(record)
    assert text.startswith(f"{MARK}\n### Privacy audits: ✕ ")
    findings = [
        result
        for result in record.results
        if result.is_finding and "nasty" not in result.id
    ]
    first = text.index("<details>")
    for result in findings:
        assert text.index(f"`{result.id}`") < first
        assert f"`{result.reproduce}`" in text
    assert (
        text.index("#### Findings")
        < text.index("#### Crashed")
        < text.index("#### Undecided")
        < first
    )
    assert "dp\\_sgd" in text[first:]


def test_it_renders_to_lists_and_a_table_and_nothing_else(record, audit):
    html = MARKDOWN.render(pull_request(record))
    assert html.count("<table>") == 1
    assert html.count("<tr>") == 1 + len(record.results)
    assert "<pre>" not in html
    assert "<script" not in html
    assert html.count("<details>") == html.count("</details>") == 1


def test_it_says_what_is_new_of_a_baseline(record, audit):
    one, other, third = audit("feature_rr"), audit("gaussian"), audit("dp_appr_em_row")
    one = replace(one, mechanism_at=Place("features.py", 4))
    known = [
        Difference(one.id, Kind.FINDING, one.summary, one),
        Difference(other.id, Kind.WEAKER, "control 'x' is no longer refuted", other),
        Difference(
            third.id, Kind.STRONGER, "NOT_REFUTED in the baseline, CERTIFIED now", third
        ),
        Difference("audits/a.py::gone", Kind.GONE, "there is no such audit any more"),
        Difference(
            "audits/a.py::elsewhere", Kind.NOT_RUN, "the run was asked for other audits"
        ),
    ]
    text = pull_request(
        replace(record, results=[one, other, third], alpha_ledger=[]), known
    )
    assert "### Privacy audits: ✕ 1 new finding in 3 audits; ▼ 2 weaker; " in text
    assert "at `features.py:4`" in text
    order = [
        "#### Findings",
        "#### Weaker than the baseline",
        "audits/a.py::gone",
        "#### New and stronger audits",
    ]
    assert [text.index(part) for part in order] == sorted(
        text.index(part) for part in order
    )
    assert "elsewhere" not in text
    accepted = pull_request(
        replace(record, results=[one], alpha_ledger=[]),
        [Difference(one.id, Kind.ACCEPTED, "see 12", one)],
    )
    assert (
        "### Privacy audits: 0 new findings in 1 audit; 1 accepted finding\n"
        in accepted
    )
    assert "<summary>1 accepted finding</summary>" in accepted
    assert "see 12" in accepted


def test_a_clean_run_says_what_that_means(clean_record):
    text = pull_request(clean_record)
    assert "0 findings in 7 audits" in text
    assert "does not mean that the mechanisms are private" in " ".join(text.split())


@pytest.mark.dear
@pytest.mark.parametrize("many", [1, 40, 4000])
def test_it_is_never_longer_than_github_takes(record, audit, many):
    long = Counterexample(
        pair="1, " * 5000, explanation="so " * 5000, output="2 " * 5000
    )
    results = [
        replace(audit("feature_rr"), id=f"audits/audit_{k}.py::x", counterexample=long)
        for k in range(many)
    ]
    text = pull_request(replace(record, results=results, alpha_ledger=[]))
    assert len(text) <= CommentLimits.comment_characters
    assert ("left out, for want of room" in text) == (many > 1)
    assert text.count("<details>") == text.count("</details>")
    assert text.rstrip().endswith("</sub>")


def test_nothing_audited_is_said(record, audit):
    skipped = replace(audit("lpgnn_ensemble"))
    assert "### Privacy audits: Nothing was audited; 1 skipped" in pull_request(
        replace(record, results=[skipped], alpha_ledger=[])
    )
