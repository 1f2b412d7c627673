"""The ledger as HTML: the same cards, with drawings, and nothing that a text could break."""

from dataclasses import replace

from auditdp.record.results import Counterexample, Published, Verdict
from audits.ledger.html import overview_html, page_html
from audits.ledger.statements import Kind, Paper, Statement
from tests.unit.report.test_snapshots import Page

EVIL = "<script>x</script>|`y` \x1b[31m[a](http://b)\n# *z* </details><img src=q>"
GRAPHS = "1 | 0 edges: 3 nodes, edges 01 12 | 3 nodes, no edges"


def made(record, pair, output="[1,1]", **texts):
    violated = next(
        r for r in record.results if r.verdict is Verdict.VIOLATED and r.counterexample
    )
    found = Counterexample(pair, texts.pop("why", "because"), output=output)
    shown = replace(violated, counterexample=found, published=Published("row", EVIL))
    results = [shown if r is violated else r for r in record.results]
    known = {
        "key": "one",
        "title": "one",
        "kind": Kind.PUBLISHED,
        "claim": "It is ε-DP.",
        "place": "Section 1",
    }
    statement = Statement(
        **{**known, "audits": (violated.id,), "instead": "less", **texts}
    )
    return replace(record, results=results), Paper(
        "p", "A paper", "Read.", (statement,), {}
    )


def test_graphs_and_the_telling_output_are_drawn_and_the_command_is_code(record):
    text = page_html(*made(record, GRAPHS), back="../claims.html")
    page = Page(text)
    assert len(page.all("svg")) == 2
    assert {"href": "../claims.html"} in page.all("a")
    assert "the output that tells" in text
    assert "mermaid" not in text
    assert '<span class="violated">VIOLATED</span>' in text
    assert "run it again: <code>" in text


def test_what_cannot_be_drawn_is_text(record):
    page = Page(page_html(*made(record, "a | b"), back="x.html"))
    assert page.all("svg") == []


def test_whatever_texts_hold_is_shown_as_it_is(record):
    texts = dict.fromkeys(
        ("title", "claim", "place", "adjacency", "scope", "output", "instead", "cost"),
        EVIL,
    )
    changed, paper = made(record, f"{EVIL}: [1] | [2]", EVIL, why=EVIL)
    paper = replace(
        paper,
        title=EVIL,
        read=EVIL,
        statements=(replace(paper.statements[0], **texts),),
    )
    for text in (
        page_html(changed, paper, back="x.html"),
        overview_html(changed, [paper]),
    ):
        page = Page(text)
        assert page.all("script") == page.all("img") == []
        links = [values.get("href", "") for _, values in page.elements]
        assert not any("//b" in link for link in links)
        assert "\x1b" not in text


def test_the_overview_leads_to_the_pages(record):
    changed, paper = made(record, GRAPHS)
    links = Page(overview_html(changed, [paper])).all("a")
    assert {each["href"] for each in links} == {"claims/p.html", "claims/p.html#one"}
