"""Terminals: every width can be read, and colours are where they belong and where they are wanted."""

from __future__ import annotations

import json
import re

import pytest

from auditdp.record.results import RunRecord
from auditdp.report import terminal
from tests.faults.catalogue import HEAD
from tests.faults.conftest import WORKERS, on_terminal

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
AUDITS = (
    HEAD
    + """
@audit(source="a paper")
def leaks_with_a_rather_long_name_that_needs_some_room():
    return Audit(Response(2.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def does_not_decide():
    return Audit(Response(2.0), PureDP(1.0), BITS, controls=[Response(0.5)], evidence=["exact"])

@audit()
def holds():
    return sound()

@audit()
def fails():
    raise ValueError("it is broken")

def slow(data, size, *, rng):
    time.sleep(1.2 if not Path("slept").exists() else 0)
    Path("slept").touch()
    return rng.integers(0, 2, size)

@audit()
def takes_a_while():
    return Audit(slow, PureDP(1.0), BITS, calls=64)
"""
)
STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
RUN = ("run", "--seed", "1", "--budget", "quick")


@pytest.fixture
def project_folder(root):
    (root / "audits/audit_it.py").write_text(AUDITS)
    return root


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("width", [20, 50, 55, 60, 200])
def test_a_run_on_a_terminal_of_some_width(project_folder, width, workers, see):
    code, text = on_terminal(project_folder, width, *RUN, "-n", workers)
    shown = CONTROL.sub("", STYLE.sub("", text))
    see(
        f"a terminal of {width} columns",
        "exit code 1",
        f"exit code {code}",
        workers=workers,
    )
    assert code == 1, text
    assert "Traceback" not in text
    assert "takes_a_while" in shown
    waited = re.search(r"(running [^\n]*takes_a_while|\d+ of 5)", shown) is not None
    see(
        f"while it runs, on {width} columns",
        "says how far it is",
        "says it" if waited else "is silent",
        workers=workers,
    )
    assert waited


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("name", "variables", "coloured"),
    [
        ("colours", {}, True),
        ("NO_COLOR=1", {"NO_COLOR": "1"}, False),
        ("TERM=dumb", {"TERM": "dumb"}, False),
        ("TERM unset", {"TERM": ""}, True),
    ],
)
def test_colours_are_where_they_are_wanted(
    project_folder, name, variables, coloured, workers, see
):
    code, text = on_terminal(project_folder, 100, *RUN, "-n", workers, **variables)
    styled = bool(STYLE.search(text.split("root seed", 1)[1]))
    see(
        name,
        "colours" if coloured else "none",
        "colours" if styled else "none",
        workers=workers,
    )
    assert code == 1
    assert styled is coloured


@pytest.mark.parametrize("workers", WORKERS)
def test_every_width_and_no_style_that_leaks(project_folder, workers, see):
    """The record of a run, laid out for 20 to 200 columns, with colours and without."""
    on_terminal(project_folder, 100, *RUN, "-n", workers, "--report", "json=run.json")
    record = RunRecord.from_json((project_folder / "run.json").read_bytes())
    wide, leaked = [], []
    for width in range(20, 201):
        plain = terminal.report(record, width=width)
        styled = terminal.report(record, width=width, colour=True)
        assert STYLE.sub("", styled) == plain
        wide += [
            row
            for row in plain.split("\n")
            if len(row) > width and not re.search("::|auditdp re|auditdp ru", row)
        ]
        leaked += [
            part
            for part in re.findall(r"\x1b\[1;31m([^\x1b]*)", styled)
            if re.search("::|reproduce", part)
        ]
        leaked += [
            part
            for part in re.findall(r"\x1b\[2m([^\x1b]*)", styled)
            if re.search(r"\d|VIOLATED", part)
        ]
    see(
        "20 to 200 columns",
        "no row runs over",
        f"{len(wide)} rows run over" if wide else "no row runs over",
        workers=workers,
    )
    see(
        "the style of a verdict",
        "ends after it",
        "leaks" if leaked else "ends after it",
        workers=workers,
    )
    assert not wide
    assert not leaked
    text = terminal.report(record, width=100)
    see(
        "what took longest",
        "is listed",
        "is listed" if "slowest" in text else "is not listed",
        workers=workers,
    )
    assert "slowest" in text
    assert json.loads((project_folder / "run.json").read_text())["status"] == "complete"


@pytest.mark.parametrize("width", [20, 200])
def test_a_terminal_shows_that_files_are_imported_before_any_audit_runs(
    root, width, see
):
    (root / "audits/audit_it.py").write_text(
        HEAD + "time.sleep(1)\n@audit()\ndef holds():\n    return sound()\n"
    )
    code, text = on_terminal(root, width, *RUN)
    shown = "importing audit" in text.partition("root seed")[0]
    see(
        f"a long import, on {width} columns",
        "says that it imports",
        "says it" if shown else "is silent",
    )
    assert code == 0, text
    assert shown
