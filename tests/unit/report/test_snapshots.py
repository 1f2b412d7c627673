"""Every report of some runs says what it said: the words of reports are their product.

``AUDITDP_WRITE_SNAPSHOTS=1`` writes the snapshots anew; read what changed before you
commit it.
"""

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from auditdp.report import terminal
from auditdp.report.formats import render
from tests.unit.report.scenarios import SCENARIOS

SNAPSHOTS = Path(__file__).with_name("snapshots")
VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}
FORMATS = ("pull-request", "github", "junit", "claims")


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
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, tag):
        """Return the attributes of every element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self):
        """Return the text that a reader sees, a piece a line."""
        pieces = (" ".join(piece.split()) for piece in self.text)
        return "\n".join(filter(None, pieces))


def sarif_run(record):
    """Return what SARIF has of a run, without the tool, which is the same for all."""
    (run,) = json.loads(render(record, "sarif"))["runs"]
    del run["tool"]
    return run


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_report_says_what_it_said(name, request):
    record = SCENARIOS[name]()
    page = None
    if name == "every verdict":  # which takes seconds to draw
        page = request.getfixturevalue("whole_page")
    sections = {
        "terminal": terminal.report(record),
        "verbose": "\n".join(
            terminal.line(result, verbose=True) for result in record.results
        ),
        "html": Page(page or render(record, "html")).words(),
        **{each: render(record, each) for each in FORMATS},
        "sarif": json.dumps(sarif_run(record), indent=1, ensure_ascii=False),
    }
    text = "".join(f"=== {each}\n{said}\n" for each, said in sections.items())
    path = SNAPSHOTS / f"{name.replace(' ', '_')}.txt"
    if os.environ.get("AUDITDP_WRITE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()
