from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import pytest

from auditdp.report import html, render
from auditdp.results import Evidence, Verdict

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
    assert len(render(large_record, "html").encode()) < 500_000


def test_every_audit_is_there(record, page):
    shown = "".join(page.text)
    for result in record.results:
        assert shown.count(result.id) >= 3, result.id


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
    order = [text.index(f'<a class="id" href="#audit-{index}"') for index in range(1, len(record.results) + 1)]
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


def test_an_interrupted_run_says_so(record):
    assert "This run is interrupted." in render(replace(record, status="interrupted"), "html")


def test_unknown_details_are_listed_only_where_they_are_plain_values(audit):
    evidence = Evidence("game", Verdict.NOT_REFUTED, "", details={"batch_size": 64, "trace": [1, 2, 3], "note": "x"})
    assert list(html._facts(evidence, audit("warner").claim)) == [("Batch size", "64"), ("Note", "x")]


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
