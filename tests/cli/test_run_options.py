"""What a run stops at, repeats and prints, as its options ask: ``-x``, ``--last-failed``, ``-q``, ``-v``; and completion."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.conftest import SCRIPT, environment

pytestmark = pytest.mark.dear

AUDITS = """
BITS = AnyValues((0, 1))

@audit()
def certified():
    print("printed by a sound one")
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])

@audit(expect="violation")
def known():
    return Audit(Response(2.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def crashes():
    for line in range(9):
        print(f"line {line} of its own")
    raise ValueError("broken")

@audit()
def violated(epsilon=1.0):
    return Audit(Response(2.0), PureDP(epsilon), BITS, evidence=["exact"])

@audit()
def skipped():
    raise Skip("needs a CUDA device")
"""
NAMES = ["certified", "known", "crashes", "violated", "skipped"]


@pytest.fixture
def five(project):
    project.audits(AUDITS)
    return project


def names(outcome):
    return [result["id"].rpartition("::")[2] for result in outcome.record["results"]]


def test_x_stops_at_the_first_error_or_finding_and_says_so(five):
    stopped = five.run("-x")
    assert names(stopped) == ["certified", "known", "crashes"]
    assert stopped.record["status"] == "interrupted"
    assert stopped.code == 3
    assert names(five.run("-x", "-k", "not crashes")) == [
        "certified",
        "known",
        "violated",
    ]


def test_what_x_left_out_is_run_by_resume(five):
    five.run("-x")
    resumed = five.run("--resume")
    assert names(resumed) == NAMES
    assert resumed.record["status"] == "complete"
    assert resumed.untimed == five.run().untimed


@pytest.mark.full
def test_resume_takes_the_options_of_the_interrupted_run(five):
    options = [
        "audits",
        "--budget",
        "quick",
        "--alpha",
        ".03",
        "-k",
        "not known",
        "-P",
        "epsilon=1.5",
        "--timeout",
        "50",
    ]
    assert names(five.run(*options, "-x")) == ["certified", "crashes"]
    resumed = five("run", "--resume", "--format", "json")
    assert names(resumed) == ["certified", "crashes", "violated", "skipped"]
    assert resumed.untimed == five.run(*options).untimed


def test_a_file_whose_name_is_not_utf_8_is_an_error_of_its_own(five):
    folder = os.fsencode(five.root / "audits")
    try:
        with open(os.path.join(folder, b"audit_\xff.py"), "w") as file:
            file.write(AUDITS)
    except OSError:
        pytest.skip("the file system has no such names")
    found = {
        result["id"]: result["summary"]
        for result in five.run("-k", "certified").record["results"]
    }
    assert "not UTF-8" in found.pop("audits/audit_\\xff.py")
    assert [name.rpartition("::")[2] for name in found] == ["certified"]


@pytest.mark.full
def test_x_without_anything_to_stop_at_is_a_whole_run(five):
    outcome = five.run("-x", "-k", "certified or known or violated")
    assert outcome.record["status"] == "complete"
    assert outcome.code == 1


@pytest.mark.full
def test_last_failed_repeats_errors_and_findings_alone(five):
    five.run()
    again = five.run("--last-failed")
    assert names(again) == ["crashes", "violated"]
    assert again.code == 1
    assert names(five.run("--last-failed", "-k", "crashes")) == ["crashes"]


def test_last_failed_follows_the_last_run(five):
    five.run("-k", "violated")
    five.run("--last-failed", "-P", "epsilon=3")
    outcome = five.run("--last-failed")
    assert outcome.code == 5
    assert "nothing in .auditdp/run.jsonl had to be looked at" in outcome.err


@pytest.mark.full
def test_last_failed_repeats_a_file_that_did_not_import(five):
    broken = five.write("audits/audit_broken.py", "import no_such_module")
    five.run("-k", "certified")
    broken.write_text("from auditdp import audit\n")
    outcome = five.run("--last-failed")
    assert outcome.code == 5
    assert "audits/audit_broken.py" in outcome.err


@pytest.mark.full
@pytest.mark.parametrize("others", [["audits"], ["--resume"]])
def test_last_failed_says_by_itself_what_to_run(five, others):
    five.run("-k", "violated")
    outcome = five.run("--last-failed", *others)
    assert outcome.code == 2
    assert "without paths and without --resume" in outcome.err


def test_last_failed_needs_a_run(five):
    outcome = five.run("--last-failed")
    assert outcome.code == 2
    assert "start one with: auditdp run" in outcome.err


def printed(project, *options):
    return project("run", "--seed", "1", "--budget", "quick", *options).out


@pytest.mark.full
def test_quiet_prints_what_has_to_be_looked_at_alone(five):
    text = printed(five, "-q")
    assert [
        line.split()[0] for line in text.splitlines() if not line.startswith(" ")
    ] == ["ERROR", "VIOLATED"]
    assert "root seed" not in text
    assert "verdicts " not in text
    assert "reproduce" in text
    assert printed(five, "-q", "-k", "certified") == ""


def test_verbose_prints_what_audits_print(five):
    usual, verbose = printed(five), printed(five, "-v")
    assert "printed by a sound one" not in usual
    assert "    printed      printed by a sound one" in verbose
    assert [line for line in usual.splitlines() if "of its own" in line] == [
        f"    printed      line {k} of its own" for k in range(4, 9)
    ]
    assert verbose.count("of its own") == 9


def complete(*words):
    """What the shell is offered for the last word, sorted: the order is the shell's."""
    asked = {
        "_AUDITDP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [SCRIPT], env=environment() | asked, capture_output=True, text=True, check=True
    )
    return sorted(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("auditdp", "re"), ["replay", "report"]),
        (("auditdp", "run", "--la"), ["--last-failed"]),
        (("auditdp", "run", "--budget", "q"), ["quick"]),
        (("auditdp", "run", "--format", "claims"), ["claims", "claims-json"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(words, offered):
    assert complete(*words) == offered


def test_completion_is_installed_for_a_shell(tmp_path):
    command = f"'{SCRIPT}' --install-completion; true"  # with something after it bash stays the parent
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment() | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "completion installed" in done.stdout, done.stderr
    assert "auditdp" in (tmp_path / ".bashrc").read_text()
