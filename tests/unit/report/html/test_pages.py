from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import matplotlib
import pytest

from auditdp.record.results import Counterexample, Evidence, Published, Verdict
from auditdp.report.facts import contains_phrase, evidence_facts
from auditdp.report.formats import render
from auditdp.report.html import pages as html
from auditdp.report.html.cards import file_name
from auditdp.report.html.pages import COLUMNS, NO_PAPER, summary
from auditdp.report.numbers import number
from auditdp.report.sentences import by_standing

SUMS = b"1f  a.py\n2e  b.py\n"
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


SEARCH = f"<script>\n{files('auditdp.report.html').joinpath('search.js').read_text(encoding='utf-8').rstrip()}</script>\n"


def without_search(text):
    """An index without the one script that it has, which is ours."""
    assert text.count(SEARCH) == 1
    return text.replace(SEARCH, "")


@pytest.fixture
def text(whole_page):
    return without_search(whole_page)


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
    assert not any(
        name.startswith("on") for _, attributes in page.elements for name in attributes
    )


def test_the_search_is_there_for_those_with_scripts_alone(page, whole_page):
    ids = {attributes.get("id"): attributes for _, attributes in page.elements}
    assert (
        set(re.findall(r'getElementById\("(\w+)"\)', SEARCH))
        == {"search", "searching", "sought"}
        <= set(ids)
    )
    assert "hidden" in ids["searching"]
    assert [
        attributes["for"]
        for tag, attributes in page.elements
        if tag in ("label", "output") and "for" in attributes
    ] == [*("search", "search")]
    assert ".all tbody tr" in SEARCH
    assert '<table class="all">' in whole_page
    screen_only = re.findall(
        r"@media screen \{ \.unsought \{ display: none; \} \}", whole_page
    )
    assert len(screen_only) == whole_page.count(".unsought {") == 1


def test_two_renders_are_byte_identical(record, whole_page):
    assert render(record, "html") == whole_page


def test_the_readers_matplotlib_settings_change_nothing(record, whole_page):
    with matplotlib.rc_context(
        {
            "font.size": 20,
            "svg.fonttype": "path",
            "axes.facecolor": "pink",
            "text.usetex": True,
        }
    ):
        assert render(record, "html") == whole_page


def without_plots(monkeypatch, record, **options):
    """The files of a report, without what takes long to draw."""
    monkeypatch.setattr(html, "evidence_views", lambda result, plots: [])
    return html.pages(record, index="index.html", folder="pages", **options)


def test_the_index_of_218_audits_is_light(monkeypatch, large_record):
    results = [
        replace(
            large_record.results[k % 40],
            id=f"audits/audit_of_a_paper_{k % 9}.py::mechanism_with_a_name_{k}",
        )
        for k in range(218)
    ]
    made = without_plots(
        monkeypatch, replace(large_record, results=results, alpha_ledger=[])
    )
    findings = sum(result.is_finding for result in results)
    assert findings > 60
    assert (
        len(made["index.html"].encode()) < 300_000 + 3_000 * findings
    )  # a card for each finding
    declared = [
        replace(
            r,
            expected="violation" if r.verdict is Verdict.VIOLATED else "holds",
            controls=[],
        )
        for r in results
    ]
    made = without_plots(
        monkeypatch, replace(large_record, results=declared, alpha_ledger=[])
    )
    assert not any(result.is_finding for result in declared)
    assert len(made["index.html"].encode()) < 300_000


def test_every_audit_is_there(record, page):
    shown = "".join(page.text)
    for result in record.results:
        assert shown.count(result.id) >= 2, result.id


def test_beside_a_proof_there_are_no_plots_that_show_nothing(large_record, audit):
    proved, played = audit("warner"), audit("::sparse_vector")
    curved = replace(audit("::dp_appr"), evidence=audit("::gaussian").evidence[:1])
    page = Page(
        render(
            replace(large_record, results=[proved, played, curved], alpha_ledger=[]),
            "html",
        )
    )
    assert [
        attributes["alt"].partition(":")[0].partition(",")[0]
        for attributes in page.all("img")
    ] == [
        "Wealth over calls",
        "Delta as a function of epsilon",
    ]


def test_a_statement_is_not_said_again_beside_it(audit):
    evidence = Evidence(
        "game",
        Verdict.NOT_REFUTED,
        "1,200 calls did not refute the claim; ε = 1.083 would have been.",
        calls=1200,
        details={"detectable_epsilon": 1.083, "went_on": "after 600"},
    )
    claim = audit("warner").claim
    assert dict(evidence_facts(evidence, claim, already_shown=evidence.statement)) == {
        "Went on": "after 600"
    }
    assert dict(evidence_facts(evidence, claim)) == {
        "Went on": "after 600",
        "Calls": "1,200 calls",
        "Would have refuted, 9 times in 10": "ε = 1.083",
    }
    assert not contains_phrase("after 21,200 calls, 1.0834, 2 pairsome", "1,200 calls")
    assert not contains_phrase("ε = 1.0834", "1.083")
    assert contains_phrase("ε = 1.083, or so", "1.083")


def test_only_forecasters_that_won_are_named(audit):
    rows = [
        {"name": f"f{k}", "log_wealth": log}
        for k, log in enumerate((-3.0, 0.001, 2.0, 9.0, 1.0, 3.0))
    ]
    evidence = Evidence(
        "game",
        Verdict.NOT_REFUTED,
        "",
        details={"forecasters": rows, "forecasters_played": 70},
    )
    assert list(evidence_facts(evidence, None)) == [
        ("Best forecasters, of 70", "f3 (8,103); f5 (20.1); f2 (7.39)")
    ]
    lost = Evidence("game", Verdict.NOT_REFUTED, "", details={"forecasters": rows[:2]})
    assert list(evidence_facts(lost, None)) == []


def test_nothing_is_loaded(text, page):
    assert not {"script", "link", "iframe", "object", "image", "foreignobject"} & {
        tag for tag, _ in page.elements
    }
    for tag, attributes in page.elements:
        assert attributes.get("href", "#").startswith("#")
        if "src" in attributes:
            assert tag == "img"
            kind, _, data = attributes["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            assert b"<script" not in base64.b64decode(data, validate=True)
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
    assert len(page.all("img")) == 13
    assert all(attributes["alt"] for attributes in page.all("img"))
    drawn = page.all("svg")
    assert all(
        attributes.get("aria-hidden") == "true" or attributes["aria-label"]
        for attributes in drawn
    )
    assert sum("aria-label" in attributes for attributes in drawn) > 8
    assert all(
        attributes.get("scope") in ("col", "row") for attributes in page.all("th")
    )
    assert len(page.all("figcaption")) == len(page.all("figure"))


def test_drawings_take_their_colours_from_the_page(text):
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.search(r"#[0-9a-f]{6}\b", plots)
    defined = set(re.findall(r"(--[a-z-]+):", text))
    assert set(re.findall(r"var\((--[a-z-]+)\)", text)) <= defined


def test_findings_come_first(text, record):
    ordered = [result for results in by_standing(record).values() for result in results]
    table = text.index('<h2 id="verdicts"')
    order = [
        text.index(f'<th scope="row"><a href="#audit-{file_name(result.id)}"', table)
        for result in ordered
    ]
    assert order == sorted(order)
    cards = [text.index(f'id="finding-{k}"') for k in range(1, 5)]
    assert cards == sorted(cards)
    assert cards[-1] < text.index("Errors</h3>") < text.index('id="declared"') < table
    assert text.index("::<wbr>sparse_vector_without_query_noise") < text.index(
        "GraphPub with noisy degrees, as published."
    )


def test_a_finding_is_a_card_in_plain_words(page):
    shown = " ".join("".join(page.text).split())
    for sentence in (
        "FeatureRR(epsilon=1, bins=5, theta='record') is 1-DP. No outputs are more than e^1 = 2.718 times as likely on one "
        "input as on its neighbour. Neighbours: value LDP. Stated in Tran et al. 2022, Theorem 3.",
        "There are outputs after which whoever sees them guesses rightly at least 78 times of 100 which of the two "
        "inputs was used; the claim allows 73 after any output (a certified bound).",
        "Found 1.312 ≤ ε; the axis shows multiples of what is claimed (1-DP, at 1×).",
    ):
        assert sentence in shown


def test_what_holds_instead_stands_on_the_card(record, audit):
    refuted, repair = audit("feature_rr"), audit("warner")
    published = Published("FeatureRR", repairs=refuted.id, cost="twice the variance")
    results = [refuted, replace(repair, published=published)]
    shown = "".join(
        Page(render(replace(record, results=results, alpha_ledger=[]), "html")).text
    )
    shown = " ".join(shown.split())
    assert (
        "What holds instead. CERTIFIED: Warner's randomised response, bit by bit. Cost: twice the variance"
        in shown
    )


def test_what_is_as_declared_has_one_colour(page):
    declared = [
        attributes["class"]
        for attributes in page.all("b")
        if "declared" in attributes.get("class", "")
    ]
    assert declared
    assert all(name.endswith(" declared") for name in declared)
    rules = (
        html.files("auditdp.report.html")
        .joinpath("report.css")
        .read_text(encoding="utf-8")
    )
    assert ".verdict.declared, .refuted { color: var(--certified); }" in rules
    cards = [
        attributes["class"]
        for attributes in page.all("div")
        if attributes.get("class", "").startswith("card")
    ]
    assert "card declared" in cards
    assert (
        ".card.declared, .card.miscalibrated, .card.certified, .card.equivalent { border-left-color: var(--certified); }"
        in rules
    )


def test_declared_violations_are_grouped_by_paper_and_say_what_they_are(text):
    section = text[
        text.index('<section aria-labelledby="declared">') : text.index(
            '<section aria-labelledby="verdicts">'
        )
    ]
    assert "<summary>Xu et al. 2024 " in section
    assert f"<summary>{NO_PAPER} " in section
    message = " ".join(re.sub("<[^>]+>", "", section).split())
    assert (
        "GraphPub with noisy degrees, as published. 4-DP, found ε = ∞; counterexample"
        in message
    )
    assert "audits/audit_edges.py" not in message


def test_a_report_says_when_by_whom_and_of_what(record):
    told = replace(
        record,
        started="2026-11-23T09:05:00+01:00",
        project="counts",
        author="R. Viewer",
    )
    shown = " ".join(
        "".join(Page(render(replace(told, results=[]), "html")).text).split()
    )
    assert "counts · Privacy verification report" in shown
    assert "23 November 2026, 09:05 UTC+01:00, answered for by R. Viewer." in shown
    untold = " ".join(
        "".join(Page(render(replace(record, results=[]), "html")).text).split()
    )
    assert "Time not recorded." in untold
    assert "Answered for bynot told" in untold


def test_a_report_shows_what_it_is_made_from(record):
    made = html.pages(
        replace(record, results=[], sources={"a.py": "1f", "b.py": "2e"}),
        index="i.html",
        folder="pages",
    )
    shown = " ".join("".join(Page(without_search(made["i.html"])).text).split())
    assert hashlib.sha256(made["pages/record.json"].encode()).hexdigest() in shown
    assert (
        f"2 files, SHA-256 of the list that sha256sum makes of them {hashlib.sha256(SUMS).hexdigest()}"
        in shown
    )
    assert "numpy2.1.3" in shown.replace(" ", "")


def test_it_opens_with_what_was_found_and_what_was_not_by_what_is_claimed(record):
    *rows, total = summary(record)
    assert {row.claimed for row in rows} >= {"Pure DP", "Gaussian DP", "not told"}
    assert [sum(row.counts[k] for row in rows) for k in range(len(COLUMNS))] == list(
        total.counts
    )
    assert sum(total.counts) == len(record.results)
    assert total.counts[0] == sum(result.is_finding for result in record.results)
    some = next(result for result in record.results if result.power is not None)
    assert (
        summary(replace(record, results=[some]))[-1].missed
        == f"below {number(some.power, 2)}×"
    )
    assert summary(replace(record, results=[]))[-1].counts[-1] == len(
        replace(record, results=[]).missing
    )


def test_names_in_backticks_are_code():
    shown = html.coded("a loss in `count` or ``sum``, <b> and a lone `")
    assert (
        shown
        == "a loss in <code>count</code> or <code>sum</code>, &lt;b&gt; and a lone `"
    )


def test_a_report_of_some_of_the_planned_audits_says_which_are_missing(record):
    some = replace(record, results=record.results[:2], status="interrupted")
    text = render(some, "html")
    shown = " ".join("".join(Page(text).text).split())
    assert (
        f"This run is interrupted. 2 of {some.planned} audits have a result." in shown
    )
    assert f"0 findings in 2 of {some.planned} audits" in shown
    assert all(
        name.rpartition("::")[2].partition("[")[0] in shown for name in some.missing
    )


def test_names_of_pages_are_plain_and_no_two_are_the_same():
    ids = [
        "audits/a.py::b",
        "audits/A.py::b",
        "audits/a.py::B",
        "a.py::b",
        "other/a.py::b",
        "audits/a/b.py::c",
        "audits/a-b.py::c",
    ]
    ids += [
        "audits/a.py::b[x=1]",
        "audits/a.py::b[x=2]",
        "audits/" + "long" * 99 + ".py::b",
        "../../etc/passwd",
        "audits/a.py::\ud800",
    ]
    names = [file_name(name).lower() for name in ids]
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[\w-]+", name) and len(name) < 100 for name in names)


def test_what_a_reader_must_know_is_said(page):
    shown = " ".join("".join(page.text).split())
    for sentence in (
        "4 findings in 13 audits",
        "The claim is violated, and the audit does not declare that it is.",
        "A violation is declared here, and it was not found.",
        "A control survived: LapGraph without noise on |E| ended NOT_REFUTED after 20,000 calls",
        "1 audit ended with an error.",
        "What a clean run means, and what it does not",
        "Not refuted is never “private”",
        "auditdp replay 'audits/audit_features.py::feature_rr[theta=record]' --seed 20240611",
        "ε = ∞",
    ):
        assert sentence in shown


def test_a_clean_run_claims_no_more_than_it_may(clean_record):
    shown = " ".join("".join(Page(render(clean_record, "html")).text).split())
    assert "0 findings in 7 audits" in shown
    assert "it does not mean that the mechanisms are private" in shown


def test_a_refuted_calibration_is_not_shown_as_a_refuted_claim(record, audit):
    clean = audit("::dprr")
    calibration = Evidence(
        "sensitivity",
        Verdict.MISCALIBRATED,
        "calibrated to 1",
        counterexample=Counterexample("0 | 2", "needs 2"),
    )
    result = replace(
        clean,
        verdict=Verdict.MISCALIBRATED,
        summary="calibrated to 1. Of the claim itself: NOT_REFUTED",
        evidence=[*clean.evidence, calibration],
        counterexample=calibration.counterexample,
    )
    record = replace(record, alpha_ledger=[])
    shown = " ".join(
        "".join(Page(render(replace(record, results=[result]), "html")).text).split()
    )
    assert "1 finding in 1 audit" in shown
    assert (
        "The audit does not declare this. Calibrate the noise to what neighbours need, or argue"
        in shown
    )
    assert "Counterexample to the calibration" in shown
    assert "the argument for the claim fails; the claim itself may still hold" in shown
    declared = replace(record, results=[replace(result, expected="miscalibration")])
    shown = " ".join("".join(Page(render(declared, "html")).text).split())
    assert "Known to be false, and shown again" in shown
    assert "; miscalibration" in shown
    assert "a miscalibration: this audit succeeds by finding it" in shown


def test_a_page_of_skipped_audits_is_not_that_of_a_clean_run(record, audit):
    shown = " ".join(
        "".join(
            Page(render(replace(record, results=[audit("lpgnn")]), "html")).text
        ).split()
    )
    assert (
        "Nothing was audited, so this is not a clean run. 1 audit was skipped" in shown
    )
    assert "0 findings" not in shown
    assert "No undeclared violation" not in shown


def test_an_interrupted_run_says_so(record):
    assert "This run is interrupted." in render(
        replace(record, status="interrupted"), "html"
    )


def test_unknown_details_are_listed_only_where_they_are_plain_values(audit):
    evidence = Evidence(
        "game",
        Verdict.NOT_REFUTED,
        "",
        details={"batch_size": 64, "steps": [1, 2, 3], "note": "x"},
    )
    assert list(evidence_facts(evidence, audit("warner").claim)) == [
        ("Batch size", "64"),
        ("Note", "x"),
    ]


NUMBERS = (
    "n",
    "truth",
    "mean",
    "low",
    "high",
    "variance",
    "variance_low",
    "variance_high",
)
CLASS = {"class": "a", **dict.fromkeys(NUMBERS, 2)}


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("game", {}),
        ("game", {"wealth_path": [[0, 0], [0, 1]]}),
        (
            "game",
            {
                "wealth_path": [[5, 1e6], [6, "inf"], [7, -1e6]],
                "threshold": 1e5,
                "refuted_at": 7,
            },
        ),
        ("game", {"wealth_path": [[10 + k, 0.0] for k in range(1000)], "threshold": 3}),
        ("game", {"detectable_epsilon": "inf", "pairs": [{"pair": "", "calls": 0}]}),
        ("exact", {"curve": [[0, 0], [0, 0]]}),
        ("exact", {"curve": [[0, 0.0], [1, 0.0]], "claim_curve": [[0, 0.0], [1, 0.0]]}),
        ("estimation", {"classes": [{**CLASS, "truth": "inf"}], "margin": "inf"}),
        (
            "estimation",
            {
                "classes": [{**CLASS, "low": 1.0, "high": 1.0, "variance": 0.0}],
                "margin": 0,
            },
        ),
        ("estimation", {"scatter": {"series": []}}),
        (
            "counting",
            {
                "scatter": {
                    "series": [{"points": [[0, 1], [1, "nan"]]}],
                    "log": True,
                    "diagonal": True,
                }
            },
        ),
        (
            "of another version",
            {
                "scatter": {"series": [{"name": "_hidden", "points": [[1, 1]]}]},
                "trace": [[1], 2],
            },
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_extreme_details_are_no_crash(record, audit, kind, details):
    evidence = Evidence(kind, Verdict.NOT_REFUTED, "Nothing.", details=details)
    for claim in (audit("warner").claim, audit("::gaussian").claim, None):
        Page(
            render(
                replace(
                    record,
                    results=[
                        replace(audit("::dprr"), claim=claim, evidence=[evidence])
                    ],
                ),
                "html",
            )
        )


def test_no_report_draws_more_plots_than_it_has_time_for(record, monkeypatch):
    whole = render(record, "html").count('<img class="plot"')
    assert whole > 3
    assert "plots are drawn" not in render(record, "html")
    monkeypatch.setattr(html, "MOST_PLOTS", 2)
    few = render(record, "html")
    assert 2 <= few.count('<img class="plot"') < whole
    assert "Only the first 2 plots are drawn" in few
