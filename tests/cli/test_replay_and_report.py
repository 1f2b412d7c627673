"""A recorded run, again: ``replay``, ``report``, and the command that every audit prints to reproduce it."""

from __future__ import annotations

import json
import shlex

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
BITS = AnyValues((0, 1))

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

@audit()
def leaks(epsilon=1.0, label="plain"):
    '''Says that it is private.'''
    return Audit(Response(2 * epsilon), PureDP(epsilon, source=label), BITS, controls=[Response(9.0)], calls=400)

@audit(expect="violation")
def leaks_as_declared(epsilon=1.0):
    return Audit(Response(2 * epsilon), PureDP(epsilon), BITS, evidence=["game"], calls=400)

@audit()
def holds(shift=0.0):
    return Audit(LaplaceMechanism(1.0), PureDP(1.0), [(shift, shift + 1.0)], calls=400)

@audit()
def crashes():
    return Audit(coin, PureDP(-1.0), BITS)

@audit()
def skipped():
    raise Skip("needs a CUDA device")
"""
SAME = ("verdict", "epsilon_lower", "epsilon_upper", "log_e_value", "calls")


@pytest.fixture(scope="module")
def recorded(shared_project):
    shared_project.audits(AUDITS)
    shared_project.write("audits/audit_worse.py", "import no_such_module")
    outcome = shared_project.run(
        "-P", "epsilon=0.5", "--report", "json=run.json", "--log", "kept.jsonl"
    )
    assert outcome.code == 1
    return outcome


def test_replay_needs_a_run(project):
    outcome = project("replay", "anything")
    assert outcome.code == 2
    assert "start one with: auditdp run" in outcome.err


@pytest.mark.parametrize("source", ["kept.jsonl", "run.json"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("audits/audit_it.py::leaks", 1),
        ("leaks", 1),
        ("holds", 0),
        ("crashes", 3),
        ("skipped", 5),
    ],
)
def test_replay_gives_the_same_outcome(recorded, shared_project, source, name, code):
    outcome = shared_project("replay", name, "--run", source)
    assert outcome.code == code
    assert "same outcome as the recorded run" in outcome.err
    assert outcome.out.startswith(recorded.audit(name.rpartition("::")[2])["verdict"])


@pytest.mark.full
def test_replay_takes_the_last_run_unless_told(project):
    project.audits(AUDITS)
    project.run("-k", "holds")
    assert "same outcome" in project("replay", "holds").err
    (project.root / ".auditdp" / "run.jsonl").rename(project.root / "kept.jsonl")
    assert "same outcome" in project("replay", "holds", "--log", "kept.jsonl").err


@pytest.mark.full
def test_replay_takes_the_parameters_of_the_run(project):
    project.audits(AUDITS)
    project.run("-k", "holds", "-P", "shift=7")
    outcome = project("replay", "holds")
    assert "same outcome" in outcome.err
    recorded = json.loads(
        (project.root / ".auditdp/run.jsonl").read_text().splitlines()[1]
    )
    assert recorded["result"]["parameters"] == {"shift": 7.0}


@pytest.mark.full
def test_replay_says_when_the_outcome_is_another_one(project):
    project.audits(AUDITS)
    project.run("-k", "holds")
    project.audits(AUDITS.replace("LaplaceMechanism(1.0)", "LaplaceMechanism(0.1)"))
    outcome = project("replay", "holds")
    assert outcome.code == 1
    assert "DIFFERENT OUTCOME" in outcome.err
    assert "NOT_REFUTED" in outcome.err
    assert outcome.out.startswith("VIOLATED")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leask", "did you mean 'leaks'?"),
        ("audit_it", "'audit_it' is ambiguous: audits/audit_it.py::leaks, "),
        ("audit_worse", "audits/audit_worse.py did not import in that run"),
    ],
)
def test_replay_of_what_cannot_be_replayed(recorded, shared_project, name, message):
    outcome = shared_project("replay", name, "--run", "kept.jsonl")
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


@pytest.mark.parametrize("name", ["leaks", "leaks_as_declared", "holds"])
def test_the_command_of_an_audit_reproduces_it(recorded, shared_project, name):
    found = recorded.audit(name)
    command, *arguments = shlex.split(found["reproduce"])
    assert command == "auditdp"
    again = shared_project(
        *arguments, "--format", "json", "--log", "again.jsonl"
    ).audit(name)
    assert {field: again[field] for field in SAME} == {
        field: found[field] for field in SAME
    }
    assert again["parameters"] == found["parameters"]


@pytest.mark.parametrize("label", ["two words", "it's", "$HOME"])
@pytest.mark.full
def test_the_command_can_be_pasted_into_a_shell(project, label):
    project.audits(AUDITS)
    found = project.run(
        "-k", "it and leaks and not declared", "-P", f"label={label}"
    ).audit("leaks")
    arguments = shlex.split(found["reproduce"])[1:]
    again = project(*arguments, "--format", "json").audit("leaks")
    assert again["parameters"]["label"] == label
    assert again["log_e_value"] == found["log_e_value"]


@pytest.mark.full
def test_the_command_of_an_audit_in_a_folder_with_a_space(project):
    project.audits(AUDITS, "my audits/audit_it.py")
    found = project.run("my audits", "-k", "holds").audit("holds")
    again = project(*shlex.split(found["reproduce"])[1:], "--format", "json").audit(
        "holds"
    )
    assert again["log_e_value"] == found["log_e_value"]


@pytest.mark.parametrize("source", ["kept.jsonl", "run.json"])
def test_report_renders_a_run_in_every_format(recorded, shared_project, source):
    as_json = shared_project("report", source, "-f", "json")
    assert as_json.code == 0
    assert as_json.record == recorded.record
    as_text = shared_project("report", source, "-f", "terminal")
    for name in ("leaks", "holds", "crashes", "skipped"):
        assert f"audits/audit_it.py::{name}" in as_text.out
    as_html = shared_project("report", source, "-f", "html", "-o", "out/report.html")
    assert (as_html.code, as_html.out) == (0, "")
    page = (shared_project.root / "out/report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    for name in ("leaks", "holds", "crashes", "skipped"):
        assert name in page


def test_report_is_html_in_a_file_and_text_in_a_terminal(recorded, shared_project):
    shown = shared_project("report", "kept.jsonl").out
    assert shown == shared_project("report", "kept.jsonl", "-f", "terminal").out
    assert "VIOLATED" in shown
    assert "<html" not in shown
    assert (
        shared_project("report", "kept.jsonl", "-o", "out/unless_told.html").code == 0
    )
    assert "<html" in (shared_project.root / "out/unless_told.html").read_text()


@pytest.mark.full
def test_the_same_record_gives_the_same_page(recorded, shared_project):
    first, second = (
        shared_project("report", name, "-f", "html").out
        for name in ("kept.jsonl", "run.json")
    )
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "start one with: auditdp run"),
        (["none.jsonl"], "no run is recorded in none.jsonl"),
        (["none.json"], "no such record: none.json"),
        (["audits/audit_it.py"], "not the log of a run"),
        (["a.json"], "a.json is not a run record"),
        (["-f", "htm"], "did you mean 'html'?"),
    ],
)
def test_report_of_what_is_not_there(project, arguments, message):
    project.audits(AUDITS)
    project.write("a.json", '{"root_seed": 1}')
    outcome = project("report", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in " ".join(outcome.err.split())


def test_a_report_that_cannot_be_written(recorded, shared_project):
    outcome = shared_project("report", "kept.jsonl", "-o", "kept.jsonl/report.html")
    assert outcome.code == 2
    assert "kept.jsonl/report.html" in outcome.err
    assert "another path" in outcome.err


@pytest.mark.parametrize(
    "output", ["html", "json", "claims", "claims-json", "terminal"]
)
def test_a_report_replaces_one_of_its_own_and_no_file_of_others(
    recorded, shared_project, output
):
    path = shared_project.root / f"theirs.{output}"
    path.write_text("<html>a page of mine</html>\n")
    refused = shared_project("report", "run.json", "-f", output, "-o", path)
    assert refused.code == 2
    assert f"is there and is no {output} report of auditdp" in refused.err
    assert path.read_text() == "<html>a page of mine</html>\n"
    path.unlink()
    for _ in range(2):
        assert shared_project("report", "run.json", "-f", output, "-o", path).code == 0
    assert path.stat().st_size > 100


def test_reports_for_ci_point_at_the_mechanism_and_say_what_is_new(project):
    project.write("package/__init__.py", "")
    project.write(
        "package/tell.py",
        "import numpy as np\n\n\ndef tell(data, size, *, rng):\n    return np.full(size, data)\n",
    )
    project.audits(
        """
        from package.tell import tell

        @audit()
        def leaks():
            return Audit(tell, PureDP(1.0), AnyValues((0, 1)), calls=600)
        """
    )
    kinds = {
        "junit": "j.xml",
        "sarif": "s.sarif",
        "github": "g.txt",
        "pull-request": "p.md",
    }
    reports = [
        word for name, path in kinds.items() for word in ("--report", f"{name}={path}")
    ]
    assert project("run", "--seed", "1", "--budget", "quick", *reports).code == 1
    text = {name: (project.root / path).read_text() for name, path in kinds.items()}
    assert "::error file=package/tell.py,line=4," in text["github"]
    assert "`package/tell.py:4`" in text["pull-request"]
    assert '"uri": "package/tell.py"' in text["sarif"]
    assert 'failures="1"' in text["junit"]
    again = project(
        "run", "--seed", "1", "--budget", "quick", *reports
    )  # its own reports are written anew
    assert again.code == 1, again.err
    for name, path in kinds.items():
        shown = project("report", "-f", name)
        assert (shown.code, shown.out) == (0, (project.root / path).read_text())
        project.write(path, "somebody else's\n")
        refused = project("run", "--report", f"{name}={path}")
        assert (refused.code, "give another path" in refused.err) == (2, True)
    accept = ["--accept", "audits/audit_it.py::leaks", "--reason", "see 12"]
    assert project("baseline", "update", *accept).code == 0
    assert "1 finding" in project("report", "-f", "pull-request").out
    assert "0 new findings" in project("report", "-f", "pull-request", "--check").out
    assert 'failures="0"' in project("report", "-f", "junit", "--check").out
