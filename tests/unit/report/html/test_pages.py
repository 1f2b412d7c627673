import base64
import hashlib
import re
from dataclasses import replace
from importlib.resources import files

import matplotlib
import pytest

from auditdp.record.results import Evidence, Verdict
from auditdp.report.facts import contains_phrase, evidence_facts
from auditdp.report.formats import render
from auditdp.report.html import pages as html
from auditdp.report.html.cards import file_name
from auditdp.report.html.pages import COLUMNS, summary
from auditdp.report.numbers import number
from tests.unit.report.scenarios import BY_NAME, CERTIFIED, CLEAN, only
from tests.unit.report.test_snapshots import Page

SCRIPT = files("auditdp.report.html").joinpath("search.js").read_text(encoding="utf-8")
SEARCH = f"<script>\n{SCRIPT.rstrip()}</script>\n"


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


def test_the_search_is_there_for_those_with_scripts_alone(page, whole_page):
    ids = {attributes.get("id"): attributes for _, attributes in page.elements}
    used = set(re.findall(r'getElementById\("(\w+)"\)', SEARCH))
    assert used == {"search", "searching", "sought"} <= set(ids)
    assert "hidden" in ids["searching"]
    labels = page.all("label") + page.all("output")
    assert {each["for"] for each in labels if "for" in each} == {"search"}
    assert ".all tbody tr" in SEARCH
    assert '<table class="all">' in whole_page
    on_screen = "@media screen { .unsought { display: none; } }"
    assert whole_page.count(on_screen) == whole_page.count(".unsought {") == 1


def test_two_renders_are_byte_identical_whatever_matplotlib_is_set_to(
    record, whole_page
):
    settings = {"font.size": 20, "svg.fonttype": "path", "text.usetex": True}
    with matplotlib.rc_context({**settings, "axes.facecolor": "pink"}):
        assert render(record, "html") == whole_page


def test_the_index_of_218_audits_is_light(monkeypatch, large_record):
    # The pages take long to draw.
    monkeypatch.setattr(html, "evidence_views", lambda result, plots: [])

    def size(results):
        made = html.pages(only(*results), index="index.html", folder="pages")
        return len(made["index.html"].encode())

    results = [
        replace(
            large_record.results[k % 40],
            id=f"audits/audit_of_a_paper_{k % 9}.py::mechanism_with_a_name_{k}",
        )
        for k in range(218)
    ]
    findings = sum(result.is_finding for result in results)
    assert findings > 60
    # Each finding has a card.
    assert size(results) < 300_000 + 3_000 * findings
    expected = {Verdict.VIOLATED: "violation"}
    declared = [
        replace(each, expected=expected.get(each.verdict, "holds"), controls=[])
        for each in results
    ]
    assert not any(result.is_finding for result in declared)
    assert size(declared) < 300_000


def test_beside_a_proof_there_are_no_plots_that_show_nothing():
    played = BY_NAME["sparse_vector_without_query_noise"]
    curve = BY_NAME["gaussian"].evidence[:1]
    curved = replace(BY_NAME["dp_appr_em_row"], evidence=curve)
    page = Page(render(only(CERTIFIED, played, curved), "html"))
    titles = [re.split("[:,]", each["alt"])[0] for each in page.all("img")]
    assert titles == ["Wealth over calls", "Delta as a function of epsilon"]


def facts(details, claim=None, said="", **options):
    evidence = Evidence("game", Verdict.NOT_REFUTED, said, details=details, **options)
    return dict(evidence_facts(evidence, claim, already_shown=said))


def test_a_statement_is_not_repeated_beside_it():
    said = "1,200 calls did not refute the claim; ε = 1.083 would have been."
    details = {"detectable_epsilon": 1.083, "went_on": "after 600"}
    assert facts(details, CERTIFIED.claim, said, calls=1200) == {"Went on": "after 600"}
    assert facts(details, CERTIFIED.claim, calls=1200) == {
        "Went on": "after 600",
        "Calls": "1,200 calls",
        "Would have refuted, with probability 9 in 10": "ε = 1.083",
    }
    assert not contains_phrase("after 21,200 calls, 1.0834, 2 pairsome", "1,200 calls")
    assert not contains_phrase("ε = 1.0834", "1.083")
    assert contains_phrase("ε = 1.083, or so", "1.083")


def test_only_forecasters_that_won_and_plain_details_are_named():
    rows = [
        {"name": f"f{k}", "log_wealth": log}
        for k, log in enumerate((-3.0, 0.001, 2.0, 9.0, 1.0, 3.0))
    ]
    best = facts({"forecasters": rows, "forecasters_played": 70})
    assert best == {"Best forecasters, of 70": "f3 (8,103); f5 (20.1); f2 (7.39)"}
    assert facts({"forecasters": rows[:2]}) == {}
    unknown = {"batch_size": 64, "steps": [1, 2, 3], "note": "x"}
    assert facts(unknown) == {"Batch size": "64", "Note": "x"}


def test_nothing_is_loaded(text, page):
    loading = {"script", "link", "iframe", "object", "image", "foreignobject"}
    assert not loading & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert attributes.get("href", "#").startswith("#")
        if "src" in attributes:
            assert tag == "img"
            kind, _, data = attributes["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            assert b"<script" not in base64.b64decode(data, validate=True)
    for word in ("http", "url(", "@import"):
        assert word not in text


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("href", "aria-labelledby"):
            assert attributes.get(name, f"#{ids[0]}").removeprefix("#") in ids


def test_plots_and_tables_can_be_read_without_seeing(page):
    assert len(page.all("img")) == 13
    assert all(each["alt"] for each in page.all("img"))
    labels = [each.get("aria-label") for each in page.all("svg")]
    for label, each in zip(labels, page.all("svg"), strict=True):
        assert label or each["aria-hidden"] == "true"
    assert len(list(filter(None, labels))) > 8
    assert {each["scope"] for each in page.all("th")} == {"col", "row"}
    assert len(page.all("figcaption")) == len(page.all("figure"))


def test_drawings_take_their_colours_from_the_page(text):
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.search(r"#[0-9a-f]{6}\b", plots)
    defined = set(re.findall(r"(--[a-z-]+):", text))
    assert set(re.findall(r"var\((--[a-z-]+)\)", text)) <= defined


def test_what_is_as_declared_has_one_colour(text, page):
    verdicts = [each.get("class", "") for each in page.all("b")]
    declared = [name for name in verdicts if "declared" in name]
    assert declared
    assert all(name.endswith(" declared") for name in declared)
    assert "card declared" in [each.get("class") for each in page.all("div")]
    certified = "color: var(--certified); }"
    assert f".verdict.declared, .refuted {{ {certified}" in text
    cards = ".card.declared, .card.miscalibrated, .card.certified, .card.equivalent"
    assert f"{cards} {{ border-left-{certified}" in text


def test_a_report_shows_the_digests_of_its_sources_and_its_record():
    record = only(sources={"a.py": "1f", "b.py": "2e"})
    made = html.pages(record, index="i.html", folder="pages")
    words = Page(without_search(made["i.html"])).words()
    of_record = made["pages/record.json"].encode()
    for content in (of_record, b"1f  a.py\n2e  b.py\n"):
        assert hashlib.sha256(content).hexdigest() in words


def test_it_opens_with_the_counts_of_each_kind_of_claim(record):
    *rows, total = summary(record)
    assert {row.claimed for row in rows} >= {"Pure DP", "Gaussian DP", "not stated"}
    counts = [sum(row.counts[k] for row in rows) for k in range(len(COLUMNS))]
    assert counts == list(total.counts)
    assert sum(counts) == len(record.results)
    assert counts[0] == sum(result.is_finding for result in record.results)
    some = next(result for result in record.results if result.power is not None)
    missed = summary(replace(record, results=[some]))[-1].missed
    assert missed == f"below {number(some.power, 2)}×"
    nothing = replace(record, results=[])
    assert summary(nothing)[-1].counts[-1] == len(nothing.missing)


def test_names_in_backticks_are_code():
    shown = html.coded("a loss in `count` or ``sum``, <b> and a lone `")
    named = "<code>count</code> or <code>sum</code>"
    assert shown == f"a loss in {named}, &lt;b&gt; and a lone `"


def test_names_of_pages_are_plain_and_no_two_are_the_same():
    ids = [
        "audits/a.py::b",
        "audits/A.py::b",
        "audits/a.py::B",
        "a.py::b",
        "other/a.py::b",
        "audits/a/b.py::c",
        "audits/a-b.py::c",
        "audits/a.py::b[x=1]",
        "audits/a.py::b[x=2]",
        "audits/" + "long" * 99 + ".py::b",
        "../../etc/passwd",
        "audits/a.py::\ud800",
    ]
    names = [file_name(name).lower() for name in ids]
    assert len(set(names)) == len(ids)
    assert all(re.fullmatch(r"[\w-]{1,99}", name) for name in names)


FIELDS = "n truth mean low high variance variance_low variance_high"
CLASS = {"class": "a", **dict.fromkeys(FIELDS.split(), 2)}
PATH = [[5, 1e6], [6, "inf"], [7, -1e6]]
FLAT = [[0, 0.0], [1, 0.0]]
POINTS = [{"points": [[0, 1], [1, "nan"]]}]
HIDDEN = [{"name": "_hidden", "points": [[1, 1]]}]


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("game", {}),
        ("game", {"wealth_path": [[0, 0], [0, 1]]}),
        ("game", {"wealth_path": PATH, "threshold": 1e5, "refuted_at": 7}),
        ("game", {"wealth_path": [[10 + k, 0.0] for k in range(1000)], "threshold": 3}),
        ("game", {"detectable_epsilon": "inf", "pairs": [{"pair": "", "calls": 0}]}),
        ("exact", {"curve": [[0, 0], [0, 0]]}),
        ("exact", {"curve": FLAT, "claim_curve": FLAT}),
        ("estimation", {"classes": [{**CLASS, "truth": "inf"}], "margin": "inf"}),
        (
            "estimation",
            {"classes": [{**CLASS, "low": 1, "high": 1, "variance": 0}], "margin": 0},
        ),
        ("estimation", {"scatter": {"series": []}}),
        ("counting", {"scatter": {"series": POINTS, "log": True, "diagonal": True}}),
        ("of another version", {"scatter": {"series": HIDDEN}, "trace": [[1], 2]}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_extreme_details_are_no_crash(kind, details):
    evidence = Evidence(kind, Verdict.NOT_REFUTED, "Nothing.", details=details)
    claims = (CERTIFIED.claim, BY_NAME["gaussian"].claim, None)
    results = [
        replace(CLEAN, id=f"a.py::f{k}", claim=claim, evidence=[evidence])
        for k, claim in enumerate(claims)
    ]
    Page(render(only(*results), "html"))


def test_no_report_draws_more_plots_than_it_has_time_for(
    record, whole_page, monkeypatch
):
    plots = whole_page.count('<img class="plot"')
    assert plots > 3
    assert "plots are drawn" not in whole_page
    monkeypatch.setattr(html, "MOST_PLOTS", 2)
    limited = render(record, "html")
    assert 2 <= limited.count('<img class="plot"') < plots
    assert "Only the first 2 plots are drawn" in limited
