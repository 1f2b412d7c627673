import subprocess
import sys

import pytest

from auditdp.errors import ConfigurationError
from auditdp.files import write
from auditdp.record.results import RunRecord
from auditdp.report.formats import FORMATS, Format, render, target


def in_a_sentence(record):
    return f"A toy report of {len(record.results)} audits.\n"


def test_a_new_format_is_a_function_and_a_line(record, tmp_path, monkeypatch):
    monkeypatch.setitem(
        FORMATS, "toy", Format(f"{__name__}:in_a_sentence", b"A toy report")
    )
    text = render(record, "toy")
    name, path = target(f"toy={tmp_path / 'run.txt'}", "--report")
    write(path, text)
    assert (name, path.read_text()) == (
        "toy",
        f"A toy report of {len(record.results)} audits.\n",
    )
    assert target(f"toy={path}", "--report") == (
        "toy",
        path,
    )  # its own report is written over
    path.write_text("a letter")
    with pytest.raises(ConfigurationError, match="no toy report of auditdp"):
        target(f"toy={path}", "--report")


@pytest.mark.parametrize("name", FORMATS)
def test_a_stored_record_gives_the_same_report(record, name):
    assert render(RunRecord.from_json(record.to_json()), name) == render(record, name)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("status", ["complete", "interrupted", "running"])
def test_every_format_takes_an_empty_run(name, status):
    empty = RunRecord(7, status, {}, {}, "", "", [], [])
    assert name == "github" or "7" in render(
        empty, name
    )  # no line is nothing to look at


def test_an_unknown_format_names_the_one_that_was_meant(record):
    with pytest.raises(ConfigurationError, match="did you mean 'html'"):
        render(record, "htm")


CODE = """
import sys
import auditdp.report
assert not {'matplotlib', 'sklearn', 'torch'} & set(sys.modules)
from auditdp.report.formats import render
from auditdp.record.results import AuditResult, Evidence, RunRecord, Verdict
game = Evidence('game', Verdict.NOT_REFUTED, '', details={'wealth_path': [[0, 0.0], [9, 1.0]]})
result = AuditResult('a', Verdict.NOT_REFUTED, '', evidence=[game])
render(RunRecord(7, 'complete', {}, {}, '', '', [], [result]), 'html')
assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules
"""


def test_reports_load_a_plotting_library_to_draw_alone_and_none_of_its_state():
    subprocess.run([sys.executable, "-c", CODE], check=True)
