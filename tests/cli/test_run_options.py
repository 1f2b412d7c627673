"""What a run stops at, repeats and prints, as its options ask: ``-x``, ``--last-failed``, ``-q``, ``-v``; and completion."""

import os
import subprocess

import pytest

from tests.cli.conftest import RUN, SCRIPT, environment

pytestmark = pytest.mark.dear

AUDITS = """
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


def test_x_stops_at_the_first_error_or_finding_and_resume_runs_the_rest(five):
    stopped = five.run("-x")
    assert stopped.names == NAMES[:3]
    assert (stopped.record["status"], stopped.code) == ("interrupted", 3)
    resumed = five.run("--resume")
    assert (resumed.names, resumed.record["status"]) == (NAMES, "complete")
    assert resumed.untimed == five.run().untimed
    finding = five.run("-x -k 'not crashes'")
    assert finding.names == ["certified", "known", "violated"]
    whole = five.run("-x -k 'certified or known or violated'")
    assert (whole.record["status"], whole.code) == ("complete", 1)


@pytest.mark.full
def test_resume_takes_the_options_of_the_interrupted_run(five):
    options = "audits --alpha .03 -k 'not known' -P epsilon=1.5 --timeout 50"
    assert five.run(f"{options} -x").names == ["certified", "crashes"]
    resumed = five("run --resume --format json")
    assert resumed.names == ["certified", "crashes", "violated", "skipped"]
    assert resumed.untimed == five.run(options).untimed


def test_a_file_whose_name_is_not_utf_8_is_an_error_of_its_own(five):
    folder = os.fsencode(five.root / "audits")
    try:
        with open(os.path.join(folder, b"audit_\xff.py"), "w") as file:
            file.write(AUDITS)
    except OSError:
        pytest.skip("the file system has no such names")
    results = five.run("-k certified").record["results"]
    found = {result["id"]: result["summary"] for result in results}
    assert "not UTF-8" in found.pop("audits/audit_\\xff.py")
    assert [name.rpartition("::")[2] for name in found] == ["certified"]


def test_last_failed_repeats_errors_and_findings_of_the_last_run_alone(five):
    five.run()
    again = five.run("--last-failed")
    assert (again.names, again.code) == (["crashes", "violated"], 1)
    assert five.run("--last-failed -k violated").names == ["violated"]
    five.run("--last-failed -P epsilon=3")
    outcome = five.run("--last-failed")
    assert outcome.code == 5
    assert "no audit in .auditdp/run.jsonl has to be repeated" in outcome.err


@pytest.mark.full
def test_last_failed_repeats_a_file_that_did_not_import(five):
    broken = five.write("audits/audit_broken.py", "import no_such_module")
    five.run("-k certified")
    broken.write_text("from auditdp import audit\n")
    outcome = five.run("--last-failed")
    assert (outcome.code, "audits/audit_broken.py" in outcome.err) == (5, True)


def test_quiet_and_verbose_print_less_and_more(five):
    usual, verbose, quiet = (five(f"{RUN} {each}").out for each in ("", "-v", "-q"))
    assert "printed by a sound one" not in usual
    assert "    printed      printed by a sound one" in verbose
    shown = [line for line in usual.splitlines() if "of its own" in line]
    assert shown == [f"    printed      line {k} of its own" for k in range(4, 9)]
    assert verbose.count("of its own") == 9
    starts = [line.split()[0] for line in quiet.splitlines() if line[0] != " "]
    assert starts == ["ERROR", "VIOLATED"]
    assert "reproduce" in quiet
    assert not any(word in quiet for word in ("root seed", "verdicts "))
    assert five(f"{RUN} -q -k certified").out == ""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("auditdp re", "replay report"),
        ("auditdp run --la", "--last-failed"),
        ("auditdp run --budget q", "quick"),
        ("auditdp run --format claims", "claims claims-json"),
    ],
)
def test_a_shell_completes_commands_options_and_values(project, words, offered):
    asked = {
        "_AUDITDP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    assert sorted(project("", **asked).out.split()) == offered.split()


def test_completion_is_installed_for_a_shell(tmp_path):
    # With something after it bash stays the parent.
    command = f"'{SCRIPT}' --install-completion; true"
    home = environment() | {"HOME": str(tmp_path)}
    shown = subprocess.check_output(["bash", "-c", command], env=home, text=True)
    assert "completion installed" in shown
    assert "auditdp" in (tmp_path / ".bashrc").read_text()
