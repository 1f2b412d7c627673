"""What cannot be used is refused with exit code 2, in a message that says what to do, before anything runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import SCRIPT, environment

pytestmark = [pytest.mark.dear, pytest.mark.usefixtures("without_sandbox")]

AUDITS = """
@audit()
def good(epsilon=1.0, nodes=2, flag=True):
    Path("ran").touch()
    return Audit(Response(epsilon), PureDP(epsilon), AnyValues((0, 1)), evidence=["exact"])
"""


@pytest.fixture
def one_audit(project):
    project.audits(AUDITS)
    project.write("a_file", "")
    return project


def refused(project, outcome, *expected_text):
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for words in expected_text:
        assert words in " ".join(outcome.err.split())
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["-P", "epsilo=2"], ["-P epsilo", "did you mean 'epsilon'?"]),
        (["-P", "unheard=2"], ["-P unheard", "epsilon, flag, nodes"]),
        (["-P", "epsilon"], ["-P epsilon", "name=value"]),
        (["-P", "epsilon=abc"], ["-P epsilon=abc", "float", "1.0"]),
        (["--budget", "quik"], ["'quik'", "did you mean 'quick'?"]),
        (["--format", "jsn"], ["'jsn'", "did you mean 'json'?"]),
        (["--report", "htm=x.html"], ["'htm'", "did you mean 'html'?"]),
        (["--report", "html"], ["--report html", "format=PATH"]),
        (["--report", "html="], ["--report html=", "format=PATH"]),
        (
            ["--report", "html=a_file/report.html"],
            ["a_file/report.html", "another path"],
        ),
        (["--report", "html=audits"], ["audits", "another path"]),
        (["--log", "a_file/run.jsonl"], ["a_file/run.jsonl", "another --log"]),
        (
            ["no/such/folder"],
            ["no/such/folder", "a folder of audit_*.py files, a file, or an id"],
        ),
        (["audits/audit_it.py::goood"], ["'goood'", "did you mean 'good'?"]),
        (["--data", "no/such/folder"], ["--data no/such/folder", "no such folder"]),
        (["--alpha", "0"], ["alpha", "between 0 and 1", "0.0"]),
        (["--alpha", "little"], ["--alpha"]),
        (["--timeout", "0"], ["timeout > 0", "0.0"]),
        (["--seed", "-1"], ["seed >= 0", "-1"]),
        (["--seed", "one"], ["--seed"]),
        (["-n", "0"], ["-n 0", ">= 1, or auto"]),
        (["-n", "-1"], ["-n -1", ">= 1, or auto"]),
        (["-n", "two"], ["-n two", ">= 1, or auto"]),
        (["-n", "²"], ["-n ²", ">= 1, or auto"]),
        (["-k", "good and"], ["-k 'good and'", "and, or, not"]),
        (["--fail-on", "never"], ["never", "inconclusive"]),
        (["--resume"], ["no run is recorded", "auditdp run"]),
        (["--nonsense"], ["--nonsense"]),
    ],
    ids=lambda value: " ".join(value) if value and value[0].startswith("-") else None,
)
def test_options_that_cannot_be_used(one_audit, arguments, expected_text):
    refused(one_audit, one_audit.run(*arguments), *expected_text)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        (
            "[tool.auditdp]\nbudgt = 'quick'",
            ["tool.auditdp.budgt", "did you mean 'budget'?"],
        ),
        ("[tool.auditdp]\npaths = ['no/such']", ["no/such"]),
        ("[tool.auditdp]\ndata = 'no/such'", ["no/such"]),
        ("[tool]\nauditdp = 3", ["pyproject.toml", "tool.auditdp"]),
        ("[tool.auditdp", ["pyproject.toml"]),
    ],
)
def test_settings_that_cannot_be_used(one_audit, text, expected_text):
    one_audit.write("pyproject.toml", text)
    outcome = one_audit("run", "--budget", "quick", "--format", "json")
    refused(one_audit, outcome, *expected_text)


def test_a_budget_in_the_settings_that_cannot_be_used(one_audit):
    one_audit.write("pyproject.toml", "[tool.auditdp]\nbudget = 'thorogh'")
    refused(one_audit, one_audit("run"), "'thorogh'", "did you mean 'thorough'?")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "0"],
        ["--report", "html=a_file/x"],
        ["--resume", "--budget", "thorough"],
        ["-P", "epsilon=x"],
    ],
)
def test_a_refused_run_leaves_the_log_of_the_last_one_alone(one_audit, arguments):
    assert one_audit.run().code == 0
    log = one_audit.root / ".auditdp" / "run.jsonl"
    before = log.read_bytes()
    outcome = one_audit.run(*arguments)
    assert (outcome.code, log.read_bytes()) == (2, before)


def test_a_misspelt_command_names_the_one_that_was_meant(project):
    outcome = project("rum")
    assert outcome.code == 2
    assert "run" in outcome.err


def test_python_m_auditdp_is_the_same_command():
    expected_text = [
        subprocess.run(
            [*command, "--version"],
            capture_output=True,
            text=True,
            check=True,
            env=environment(),
        ).stdout
        for command in ([sys.executable, "-m", "auditdp"], [SCRIPT])
    ]
    assert expected_text[0] == expected_text[1] != ""
