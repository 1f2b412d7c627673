"""Terminals: every width can be read, and colours are where they belong and where they are wanted."""

import re

import pytest

from auditdp.record.results import RunRecord
from auditdp.report import terminal
from tests.faults.catalogue import HEAD
from tests.faults.conftest import QUICK, on_terminal

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


@pytest.fixture
def project_folder(root):
    (root / "audits/audit_it.py").write_text(AUDITS)
    return root


@pytest.mark.parametrize("width", [20, 50, 55, 60, 200])
def test_a_run_on_a_terminal_of_some_width(project_folder, width, workers, see):
    code, text = on_terminal(project_folder, width, f"{QUICK} -n {workers}")
    shown = CONTROL.sub("", STYLE.sub("", text))
    see(f"a terminal of {width} columns", "exit code 1", f"exit code {code}", text)
    assert "Traceback" not in text
    assert "takes_a_while" in shown
    waited = re.search(r"(running [^\n]*takes_a_while|\d+ of 5)", shown)
    seen = "says how far it is" if waited else "is silent"
    see(f"while it runs, on {width} columns", "says how far it is", seen)


@pytest.mark.parametrize(
    ("name", "variables", "colours"),
    [
        ("colours", {}, "colours"),
        ("NO_COLOR=1", {"NO_COLOR": "1"}, "none"),
        ("TERM=dumb", {"TERM": "dumb"}, "none"),
        ("TERM unset", {"TERM": ""}, "colours"),
    ],
)
def test_colours_are_where_they_are_wanted(
    project_folder, name, variables, colours, workers, see
):
    code, text = on_terminal(project_folder, 100, f"{QUICK} -n {workers}", **variables)
    styled = STYLE.search(text.split("root seed", 1)[1])
    see(name, colours, "colours" if styled else "none")
    assert code == 1


def test_every_width_and_no_style_that_leaks(project_folder, workers, see):
    """The record of a run, laid out for 20 to 200 columns, with colours and without."""
    command = f"{QUICK} -n {workers} --report json=run.json"
    on_terminal(project_folder, 100, command)
    record = RunRecord.from_json((project_folder / "run.json").read_bytes())
    wide, leaked = [], []
    for width in range(20, 201):
        plain = terminal.report(record, width=width)
        styled = terminal.report(record, width=width, colour=True)
        assert STYLE.sub("", styled) == plain
        for row in plain.split("\n"):
            if len(row) > width and not re.search("::|auditdp re|auditdp ru", row):
                wide.append(row)
        for style, foreign in (("1;31", "::|reproduce"), ("2", r"\d|VIOLATED")):
            parts = re.findall(rf"\x1b\[{style}m([^\x1b]*)", styled)
            leaked += [part for part in parts if re.search(foreign, part)]
    over = f"{len(wide)} rows run over" if wide else "no row runs over"
    see("20 to 200 columns", "no row runs over", over)
    leaks = "leaks" if leaked else "ends after it"
    see("the style of a verdict", "ends after it", leaks)
    slowest = "slowest" in terminal.report(record, width=100)
    see("what took longest", "is listed", "is listed" if slowest else "is not listed")
    assert record.status == "complete"


@pytest.mark.parametrize("width", [20, 200])
def test_a_terminal_shows_that_files_are_imported_before_any_audit_runs(
    root, width, see
):
    holds = "@audit()\ndef holds():\n    return sound()\n"
    (root / "audits/audit_it.py").write_text(f"{HEAD}time.sleep(1)\n{holds}")
    code, text = on_terminal(root, width, QUICK)
    shown = "importing audit" in text.partition("root seed")[0]
    seen = "says that it imports" if shown else "is silent"
    see(f"a long import, on {width} columns", "says that it imports", seen, text)
    assert code == 0
