"""Reports: names that mean harm are shown as they are, and a part does not pass for the whole."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.record.results import RunRecord
from auditdp.report.html import pages as html

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


@pytest.fixture(scope="module")
def texts(workers, shared_project):
    """Every report of a run whose names mean harm."""
    shared_project.audits(AUDITS, "audits/audit_<b>'&.py")
    reports = " ".join(f"--report={name}={path}" for name, path in FILES.items())
    assert shared_project.run(f"-n {workers} {reports}").code == 1
    root = shared_project.root
    found = {name: (root / path).read_text() for name, path in FILES.items()}
    found["html"] += "".join(
        path.read_text(encoding="utf-8")
        for path in (root / "page_audits").glob("*.html")
    )
    return found


@pytest.mark.parametrize("name", FILES)
def test_names_are_text_in_every_report(texts, name, see):
    text = texts[name]
    controls = "[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    if name.endswith("json"):  # which is for programs
        json.loads(text)
    else:
        controls += "|\u202e"
    found = ["control characters"] * bool(re.search(controls, text))
    shown = text
    if name == "claims":  # in a code span nothing is markup
        shown = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        found += ["a heading"] * ("\n# heading" in text)
    if name in ("html", "claims"):
        found += ["markup"] * ("<script>alert" in shown)
    see(
        f"markup and control characters in names: {name}",
        "shown as text",
        ", ".join(found) or "shown as text",
    )
    assert "alert(1)" in text


def test_nothing_is_said_of_nothing(texts, see):
    empty = re.findall(r"\b0 times|\b0\.00\s?%|\bnan\b|\bNone\b", texts["terminal"])
    see("sentences about nothing", "none", ", ".join(empty) or "none")


def test_the_index_of_218_audits_is_light(texts, see, monkeypatch):
    record = RunRecord.from_json(texts["json"])
    # The pages take long to draw.
    monkeypatch.setattr(html, "evidence_views", lambda result, plots: [])
    by_name = {result.id.rpartition("::")[2]: result for result in record.results}
    names = ["constant", *["holds"] * 9] * 22
    found = [
        replace(by_name[name], id=f"audits/audit_of_a_paper_{k % 9}.py::mechanism_{k}")
        for k, name in enumerate(names[:218])
    ]
    made = html.pages(
        replace(record, results=found, alpha_ledger=[]),
        index="index.html",
        folder="pages",
    )
    size = len(made["index.html"].encode()) / 1000
    seen = "under 300 kB" if size < 300 else f"{size:.0f} kB"
    see("the index of 218 audits, with 22 findings", "under 300 kB", seen)
    assert len(made) == 218 + 3


def test_a_part_does_not_become_the_ledger(texts, see, tmp_path):
    """What `make report` runs after an audit that was interrupted."""
    record = json.loads(texts["json"]) | {"status": "interrupted"}
    record["results"] = record["results"][:1]
    part, written = tmp_path / "part.json", tmp_path / "reports"
    part.write_text(json.dumps(record))
    command = [sys.executable, "-m", "audits.ledger", part, "-o", written]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    seen = "written" if written.exists() else "not written"
    see("the ledger of an interrupted run", "not written", seen)
    assert done.returncode != 0
    assert "finish the run with auditdp run --resume" in done.stderr


@pytest.mark.skipif(not (HERE / ".git").exists(), reason="this is no checkout")
def test_auditing_changes_no_tracked_file(see):
    """All that `make audit` writes, as the Makefile has it, is ignored by git."""
    recipe = (HERE / "Makefile").read_text().split("\naudit:")[1].split("\n\n")[0]
    paths = re.findall(r"--report \w+=(\S+)", recipe)
    assert len(paths) == 2
    paths += ["reports/index_audits/record.json", ".auditdp/run.jsonl"]
    command = ["git", "check-ignore", *paths]
    ignored = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    seen = "ignored by git" if ignored.stdout.split() == paths else "tracked"
    see("what `make audit` writes", "ignored by git", seen)
