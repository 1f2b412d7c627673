"""Reports: names that mean harm are shown as they are, and a part does not pass for the whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.record.results import RunRecord
from auditdp.report.html import pages as html
from tests.faults.conftest import WORKERS

pytestmark = pytest.mark.faults
HERE = Path(__file__).resolve().parents[2]
TAG = "<script>alert(1)</script>"
ESCAPE = "\x1b]0;title\x07\x1b[31m"
HARM = f"{TAG} | {ESCAPE} *b* [l](http://x) `c`\n# heading\n\u202ereversed {{{{ 7*7 }}}} $x$"
AUDITS = f"""
HARM = {HARM!r}

class Hostile(Response):
    def __repr__(self):
        return "mechanism " + HARM

def factory(label=HARM):
    return Audit(Hostile(2.0), PureDP(1.0), Pair(0.0, 1.0, "pair " + HARM), controls=[Hostile(3.0)], calls=600)

factory.__doc__ = "Description " + HARM
globals()["audit " + HARM] = audit(source="source " + HARM, row="row " + HARM, reading="reading " + HARM)(factory)

@audit(row="row " + HARM)
def raises():
    raise ValueError("error " + HARM)

@audit()
def skips():
    raise Skip("reason " + HARM)

@audit()
def constant():
    return Audit(lambda data, size, *, rng: np.full(size, data), PureDP(1.0), AnyValues((0, 1)), calls=600)

@audit()
def holds():
    return Audit(LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0)], controls=[LaplaceMechanism(0.1)], calls=800)
"""
FILES = {
    "html": "page.html",
    "json": "run.json",
    "claims": "claims.md",
    "claims-json": "claims.json",
    "terminal": "t.txt",
}


@pytest.fixture(scope="module", params=WORKERS)
def hostile(request, shared_project):
    """Every report of a run whose names mean harm."""
    shared_project.audits(AUDITS, "audits/audit_<b>'&.py")
    outcome = shared_project.run(
        "-n",
        request.param,
        *(f"--report={name}={path}" for name, path in FILES.items()),
    )
    assert outcome.code == 1
    root = shared_project.root
    texts = {
        name: (root / path).read_text(encoding="utf-8") for name, path in FILES.items()
    }
    texts["html"] += "".join(
        path.read_text(encoding="utf-8")
        for path in (root / "page_audits").glob("*.html")
    )
    return request.param, outcome, texts


@pytest.mark.parametrize("name", FILES)
def test_names_are_text_in_every_report(hostile, name, see):
    workers, _, texts = hostile
    text = texts[name]
    controls = set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text))
    if not name.endswith("json"):  # which is for programs
        controls |= set(re.findall("\u202e", text))
    shown = (
        re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        if name == "claims"
        else text
    )  # in a code span nothing is markup
    marked = name in ("html", "claims") and "<script>alert" in shown
    heading = name == "claims" and "\n# heading" in text
    found = (
        [f"{len(controls)} control characters"] * bool(controls)
        + ["markup"] * marked
        + ["a heading"] * heading
    )
    see(
        f"markup and control characters in names: {name}",
        "shown as text",
        ", ".join(found) or "shown as text",
        workers=workers,
    )
    assert not found
    assert "alert(1)" in text
    if name.endswith("json"):
        json.loads(text)


def test_nothing_is_said_of_nothing(hostile, see):
    workers, _, texts = hostile
    empty = [
        text
        for text in (r"\b0 times", r"\b0\.00\s?%", r"\bnan\b", r"\bNone\b")
        if re.search(text, texts["terminal"])
    ]
    see("sentences about nothing", "none", ", ".join(empty) or "none", workers=workers)
    assert not empty


def test_the_index_of_218_audits_is_light(hostile, see, monkeypatch):
    workers, _, texts = hostile
    record = RunRecord.from_json(texts["json"])
    monkeypatch.setattr(
        html, "evidence_views", lambda result, plots: []
    )  # of the pages, which take long to draw
    finding, clean = (
        next(r for r in record.results if r.id.endswith(name))
        for name in ("constant", "holds")
    )
    found = [
        replace(
            finding if k % 10 == 0 else clean,
            id=f"audits/audit_of_a_paper_{k % 9}.py::mechanism_{k}",
        )
        for k in range(218)
    ]
    made = html.pages(
        replace(record, results=found, alpha_ledger=[]),
        index="index.html",
        folder="pages",
    )
    size = len(made["index.html"].encode()) / 1000
    see(
        "the index of 218 audits, with 22 findings",
        "under 300 kB",
        f"{size:.0f} kB",
        workers=workers,
    )
    assert size < 300
    assert len(made) == 218 + 3


def test_a_part_does_not_become_the_ledger(hostile, see, tmp_path):
    """What `make report` runs after an audit that was interrupted."""
    workers, _, texts = hostile
    record = json.loads(texts["json"]) | {"status": "interrupted"}
    record["results"] = record["results"][:1]
    (tmp_path / "part.json").write_text(json.dumps(record))
    command = [
        sys.executable,
        "-m",
        "audits.ledger",
        str(tmp_path / "part.json"),
        "-o",
        str(tmp_path / "reports"),
    ]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    written = (tmp_path / "reports").exists()
    see(
        "the ledger of an interrupted run",
        "not written",
        "written" if written else "not written",
        workers=workers,
    )
    assert done.returncode != 0
    assert "finish the run with auditdp run --resume" in done.stderr
    assert not written


@pytest.mark.skipif(not (HERE / ".git").exists(), reason="this is no checkout")
def test_auditing_changes_no_tracked_file(see):
    """All that `make audit` writes, as the Makefile has it, is ignored by git."""
    recipe = (HERE / "Makefile").read_text().split("\naudit:")[1].split("\n\n")[0]
    paths = re.findall(r"--report \w+=(\S+)", recipe)
    assert len(paths) == 2
    paths += ["reports/index_audits/record.json", ".auditdp/run.jsonl"]
    done = subprocess.run(
        ["git", "check-ignore", *paths], cwd=HERE, capture_output=True, text=True
    )
    ignored = done.stdout.split()
    see(
        "what `make audit` writes",
        "ignored by git",
        "ignored by git" if ignored == paths else "tracked",
    )
    assert ignored == paths
