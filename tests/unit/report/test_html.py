from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import pytest

from auditdp.report import html
from auditdp.report.facts import facts, says
from auditdp.report.formats import render
from auditdp.results import Counterexample, Evidence, Verdict

VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}


class Page(HTMLParser):
    """The elements of a page; fails where they are not properly nested."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Note an element and open it."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note an element that has no content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """Close the innermost element, which must be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Note text that a reader sees."""
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag):
        """Return the attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def text(record):
    return render(record, "html")


@pytest.fixture
def page(text):
    return Page(text)


def test_names_are_escaped_everywhere(text, page):
    assert page.all("script") == []
    assert "<b>name" not in text
    assert "<script" not in text
    assert "&lt;script&gt;alert(" in text
    assert "{{ 7*7 }}" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_two_renders_are_byte_identical(record, text):
    assert render(record, "html") == text


def test_the_readers_matplotlib_settings_change_nothing(record, text):
    with matplotlib.rc_context(
        {"font.size": 20, "svg.fonttype": "path", "axes.facecolor": "pink", "text.usetex": True}
    ):
        assert render(record, "html") == text


def test_forty_audits_stay_small(large_record):
    assert len(render(large_record, "html").encode()) < 240_000


def test_every_audit_is_there(record, page):
    shown = "".join(page.text)
    for result in record.results:
        assert shown.count(result.id) >= 2, result.id


def test_what_many_audits_have_in_common_is_said_once(record, large_record):
    said = "One draw in the game stands for one run of the mechanism."
    assumed = [replace(entry, assumptions=[said]) for entry in large_record.results[0].evidence]
    results = [replace(result, evidence=assumed, mechanism="") for result in large_record.results]
    text = render(replace(large_record, results=results), "html")
    assert text.count(said) == 1
    assert text.count('Rests on <a href="#rests-1">1</a>') == sum(len(result.evidence) for result in results)
    alone = render(replace(record, results=[replace(results[0])]), "html")
    assert f"Rests on {said}" in alone
    assert "rests-1" not in alone


def test_a_command_is_left_out_only_where_the_common_one_is_the_same(large_record):
    results = [
        replace(result, reproduce=f"auditdp run {result.id} --seed 7", counterexample=None)
        for result in large_record.results
    ]
    results[3] = replace(results[3], reproduce=results[3].reproduce + " -P epsilon=2")
    text = render(replace(large_record, results=results), "html")
    assert text.count("auditdp run") == 2
    assert "auditdp run AUDIT --seed 7" in text
    assert results[3].reproduce in text


def test_many_audits_leave_out_what_is_beside_a_proof_and_say_so(large_record, audit):
    proved, played = audit("warner"), audit("::sparse_vector")
    for many in (5, 40):
        results = [replace(proved, id=f"a.py::{k}") for k in range(many)] + [played, audit("::dp_appr")]
        page = Page(render(replace(large_record, results=results), "html"))
        assert len(page.all("svg")) == 1 + (2 * many if many == 5 else 0) + 2
        assert ("Left out" in "".join(page.text)) == (many == 40)


def test_a_statement_is_not_said_again_beside_it(audit):
    evidence = Evidence(
        "game",
        Verdict.NOT_REFUTED,
        "1,200 calls did not refute the claim; ε = 1.083 would have been.",
        calls=1200,
        details={"detectable_epsilon": 1.083, "scope": "2 pairs"},
    )
    claim = audit("warner").claim
    assert dict(facts(evidence, claim, said=evidence.statement)) == {"Scope": "2 pairs"}
    assert dict(facts(evidence, claim)) == {
        "Scope": "2 pairs",
        "Calls": "1,200",
        "Would have refuted, 9 times in 10": "ε = 1.083",
    }
    assert not says("after 21,200 calls, 1.0834, 2 pairsome", "1,200 calls")
    assert not says("ε = 1.0834", "1.083")
    assert says("ε = 1.083, or so", "1.083")


def test_only_forecasters_that_won_are_named(audit):
    rows = [{"name": f"f{k}", "log_wealth": log} for k, log in enumerate((-3.0, 0.001, 2.0, 9.0, 1.0, 3.0, None))]
    evidence = Evidence("game", Verdict.NOT_REFUTED, "", details={"forecasters": rows, "forecasters_played": 70})
    assert list(facts(evidence, None)) == [("Best forecasters, of 70", "f3 (8,103); f5 (20.1); f2 (7.39)")]
    lost = Evidence("game", Verdict.NOT_REFUTED, "", details={"forecasters": rows[:2]})
    assert list(facts(lost, None)) == []


def test_nothing_is_loaded(text, page):
    assert not {"script", "link", "img", "iframe", "object", "image", "foreignobject"} & {
        tag for tag, _ in page.elements
    }
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("href", "aria-labelledby"):
            if name in attributes:
                assert attributes[name].removeprefix("#") in ids


def test_plots_and_tables_can_be_read_without_seeing(page):
    assert len(page.all("svg")) == 16
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in page.all("svg"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.all("th"))
    assert len(page.all("figcaption")) == len(page.all("figure"))


def test_plots_take_their_colours_from_the_page(text):
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.search(r"#[0-9a-f]{6}\b", plots)
    defined = set(re.findall(r"(--[a-z-]+):", text))
    assert set(re.findall(r"var\((--[a-z-]+)\)", text)) <= defined


def test_findings_come_first(text, record):
    table = text.index('<h2 id="verdicts"')
    order = [text.index(f'<a class="id" href="#audit-{index}"', table) for index in range(1, len(record.results) + 1)]
    assert order == sorted(order)
    headings = [heading for heading in html.HEADINGS.values() if f"{heading}</" in text]
    assert headings[0] == "Findings: to be looked at"
    assert [text.index(f"{heading}</") for heading in headings] == sorted(text.index(f"{h}</") for h in headings)
    assert text.index("::<wbr>sparse_vector_without_query_noise") < text.index("::<wbr>graphpub_degrees")


def test_what_a_reader_must_know_is_said(page):
    shown = " ".join("".join(page.text).split())
    for sentence in (
        "4 findings in 13 audits",
        "The claim is violated, and the audit does not declare that it is.",
        "A violation is declared here, and it was not found.",
        "A control survived: LapGraph without noise on |E| ended NOT_REFUTED after 20,000 calls",
        "1 audit crashed.",
        "What a clean run means, and what it does not",
        "Not refuted is never “private”",
        "auditdp replay 'audits/audit_features.py::feature_rr[theta=record]' --seed 20240611",
        "ε = ∞",
    ):
        assert sentence in shown


def test_a_clean_run_claims_no_more_than_it_may(clean_record):
    shown = " ".join("".join(Page(render(clean_record, "html")).text).split())
    assert "No findings in 7 audits" in shown
    assert "it does not mean that the mechanisms are private" in shown


def test_a_refuted_calibration_is_not_shown_as_a_refuted_claim(record, audit):
    clean = audit("::dprr")
    calibration = Evidence(
        "sensitivity", Verdict.MISCALIBRATED, "calibrated to 1", counterexample=Counterexample("0 | 2", "needs 2")
    )
    result = replace(
        clean,
        verdict=Verdict.MISCALIBRATED,
        summary="calibrated to 1. Of the claim itself: NOT_REFUTED",
        evidence=[*clean.evidence, calibration],
        counterexample=calibration.counterexample,
    )
    shown = " ".join("".join(Page(render(replace(record, results=[result]), "html")).text).split())
    assert "1 finding in 1 audit" in shown
    assert "The audit does not declare this. Calibrate the noise to what neighbours need, or argue" in shown
    assert "Counterexample to the calibration" in shown
    assert "the argument for the claim fails; the claim itself may still hold" in shown
    declared = replace(record, results=[replace(result, expected="miscalibration")])
    shown = " ".join("".join(Page(render(declared, "html")).text).split())
    assert "Declared miscalibrations, found again" in shown
    assert "a miscalibration: this audit succeeds by finding it" in shown


def test_a_page_of_skipped_audits_is_not_that_of_a_clean_run(record, audit):
    shown = " ".join("".join(Page(render(replace(record, results=[audit("lpgnn")]), "html")).text).split())
    assert "Nothing was audited, so this is not a clean run. 1 audit was skipped" in shown
    assert "No findings" not in shown
    assert "No undeclared violation" not in shown


def test_an_interrupted_run_says_so(record):
    assert "This run is interrupted." in render(replace(record, status="interrupted"), "html")


def test_unknown_details_are_listed_only_where_they_are_plain_values(audit):
    evidence = Evidence("game", Verdict.NOT_REFUTED, "", details={"batch_size": 64, "trace": [1, 2, 3], "note": "x"})
    assert list(facts(evidence, audit("warner").claim)) == [("Batch size", "64"), ("Note", "x")]


@pytest.mark.parametrize(
    "details",
    [
        {"wealth_path": "nonsense", "threshold": "high", "refuted_at": [3]},
        {"wealth_path": [[0, 0], [0, 1]], "threshold": None, "refuted_at": None},
        {"wealth_path": [[5, 1e6], [6, None], [7, -1e6], [7.5]], "threshold": 1e5, "refuted_at": 7},
        {"wealth_path": [[10 + k / 1000, 0.0] for k in range(1000)], "threshold": 3},
        {"curve": 3, "claim_curve": None},
        {"curve": [[0, 0], [0, 0]], "claim_curve": []},
        {"curve": [[0, 0.0], [1, 0.0]], "claim_curve": [[0, 0.0], [1, 0.0]]},
        {"classes": [1, None, {}, {"class": None, "truth": "inf", "mean": 1}], "margin": "inf"},
        {"classes": [{"class": "a", "n": 3, "truth": 0.0, "mean": 0.0, "low": 0.0, "high": 0.0}], "margin": 0},
        {"scatter": {"series": None}},
        {"scatter": {"series": [{"points": [[0, 1], [1, None]]}, 3], "log": True, "diagonal": True}},
        {"scatter": {"series": [{"name": "_hidden", "points": [[1, 1]]}], "diagonal": True}},
        {"pairs": 12, "forecasters": {"a": 1}, "confirmation": True, "scope": ["x"], "worst_pair": [[0], [1]]},
        {"pairs": [{"pair": [0, 1]}], "confirmation": {"confirmed": False}, "detectable_epsilon": "inf"},
    ],
)
@pytest.mark.filterwarnings("error")
def test_incomplete_details_are_no_crash(record, audit, details):
    evidence = Evidence("game", Verdict.NOT_REFUTED, "Nothing.", details=details)
    for claim in (audit("warner").claim, audit("::gaussian").claim, None):
        Page(render(replace(record, results=[replace(audit("::dprr"), claim=claim, evidence=[evidence])]), "html"))
