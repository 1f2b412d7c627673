"""A recorded run, again: ``replay``, ``report``, and the command that every audit prints to reproduce it."""

import shlex

import pytest

from tests.cli.conftest import RUN

pytestmark = pytest.mark.dear

AUDITS = """
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
CODES = {
    "leaks": 1,
    "holds": 0,
    "crashes": 3,
    "skipped": 5,
}
SOURCES = ("kept.jsonl", "run.json")


@pytest.fixture(scope="module")
def recorded(shared_project):
    shared_project.audits(AUDITS)
    shared_project.write("audits/audit_worse.py", "import no_such_module")
    reports = "--report json=run.json --log kept.jsonl"
    outcome = shared_project.run(f"-P epsilon=0.5 {reports}")
    assert outcome.code == 1
    return outcome


def test_replay_gives_the_same_outcome(recorded, shared_project):
    for name, code in CODES.items():
        outcome = shared_project(f"replay {name} --run kept.jsonl")
        assert (outcome.code, "same outcome" in outcome.err) == (code, True), name
        verdict = recorded.audit(name.rpartition("::")[2])["verdict"]
        assert outcome.out.startswith(verdict)
    by_id = "audits/audit_it.py::leaks"
    assert shared_project(f"replay {by_id} --run run.json").code == 1


@pytest.mark.full
def test_replay_takes_the_last_run_its_parameters_or_another_log(project):
    project.audits(AUDITS)
    shifted = project.run("-k holds -P shift=7")
    assert shifted.audit("holds")["parameters"] == {"shift": 7.0}
    assert "same outcome" in project("replay holds").err
    (project.root / ".auditdp" / "run.jsonl").rename(project.root / "kept.jsonl")
    assert "same outcome" in project("replay holds --log kept.jsonl").err
    project.audits(AUDITS.replace("LaplaceMechanism(1.0)", "LaplaceMechanism(0.1)"))
    outcome = project("replay holds --log kept.jsonl")
    assert outcome.code == 1
    assert "DIFFERENT OUTCOME" in outcome.err
    assert "NOT_REFUTED" in outcome.err
    assert outcome.out.startswith("VIOLATED")


def reproduced(project, found, name):
    """Run the command that a result names for its reproduction."""
    command, *arguments = shlex.split(found["reproduce"])
    assert command == "auditdp"
    log = ("--format", "json", "--log", "again.jsonl")
    return project(shlex.join(arguments), *log).audit(name)


@pytest.mark.parametrize("name", ["leaks", "leaks_as_declared", "holds"])
def test_the_command_of_an_audit_reproduces_it(recorded, shared_project, name):
    found = recorded.audit(name)
    again = reproduced(shared_project, found, name)
    assert {field: again[field] for field in (*SAME, "parameters")} == {
        field: found[field] for field in (*SAME, "parameters")
    }


@pytest.mark.full
def test_the_command_can_be_pasted_into_a_shell(project):
    project.audits(AUDITS, "my audits/audit_it.py")
    for label in ("two words", "it's", "$HOME"):
        options = ("-k", "leaks and not declared", "-P", f"label={label}")
        found = project.run("'my audits'", *options).audit("leaks")
        again = reproduced(project, found, "leaks")
        assert again["parameters"]["label"] == label
        assert again["log_e_value"] == found["log_e_value"]


def test_report_renders_a_run_in_every_format(recorded, shared_project):
    for source in SOURCES:
        as_json = shared_project(f"report {source} -f json")
        assert (as_json.code, as_json.record) == (0, recorded.record)
    as_text = shared_project("report kept.jsonl").out
    assert as_text == shared_project("report kept.jsonl -f terminal").out
    assert "<html" not in as_text
    as_html = shared_project("report kept.jsonl -o out/report.html")
    assert (as_html.code, as_html.out) == (0, "")
    page = (shared_project.root / "out/report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    for name in ("leaks", "holds", "crashes", "skipped"):
        assert f"audits/audit_it.py::{name}" in as_text
        assert name in page


@pytest.mark.full
def test_the_same_record_gives_the_same_page(recorded, shared_project):
    pages = {shared_project(f"report {source} -f html").out for source in SOURCES}
    assert len(pages) == 1


@pytest.mark.parametrize(
    "output", ["html", "json", "claims", "claims-json", "terminal"]
)
def test_a_report_replaces_one_of_its_own_and_no_file_of_others(
    recorded, shared_project, output
):
    path = shared_project.root / f"theirs.{output}"
    path.write_text("<html>a page of mine</html>\n")
    report = f"report run.json -f {output} -o theirs.{output}"
    refused = shared_project(report)
    assert refused.refuses(f"is there and is no {output} report of auditdp")
    assert path.read_text() == "<html>a page of mine</html>\n"
    path.unlink()
    for _ in range(2):
        assert shared_project(report).code == 0
    assert path.stat().st_size > 100


KINDS = {
    "junit": 'failures="1"',
    "sarif": '"uri": "package/tell.py"',
    "github": "::error file=package/tell.py,line=4,",
    "pull-request": "`package/tell.py:4`",
}
MODULE = "import numpy as np\n\n\ndef tell(data, size, *, rng):\n    return np.full(size, data)\n"


def test_reports_for_ci_point_at_the_mechanism_and_say_what_is_new(project):
    project.write("package/__init__.py", "")
    project.write("package/tell.py", MODULE)
    project.audits(
        """
        from package.tell import tell

        @audit()
        def leaks():
            return Audit(tell, PureDP(1.0), BITS, calls=600)
        """
    )
    run = f"{RUN} " + " ".join(f"--report {name}={name}.out" for name in KINDS)
    assert project(run).code == 1
    again = project(run)  # its own reports are written anew
    assert again.code == 1, again.err
    for name, words in KINDS.items():
        path = project.root / f"{name}.out"
        assert words in path.read_text()
        shown = project(f"report -f {name}")
        assert (shown.code, shown.out) == (0, path.read_text())
        path.write_text("somebody else's\n")
        refused = project(f"run --report {name}={name}.out")
        assert refused.refuses("give another path")
    accept = "--accept audits/audit_it.py::leaks --reason 'see 12'"
    assert project(f"baseline update {accept}").code == 0
    assert "1 finding" in project("report -f pull-request").out
    assert "0 new findings" in project("report -f pull-request --check").out
    assert 'failures="0"' in project("report -f junit --check").out
