"""The plugin in pytest sessions of its own."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest

from auditdp import pytest_plugin
from auditdp.pytest_plugin.session import AuditSession
from tests.cli.conftest import Project, fork_server, untimed  # noqa: F401 - a fixture

pytest_plugins = ["pytester"]
AUDITS = """
import numpy as np
from auditdp import AnyValues, Audit, PureDP, Skip, audit
from mine import coin, tell

BITS = AnyValues((0, 1))

@audit()
def holds():
    '''A coin tells nothing.'''
    return Audit(coin, PureDP(1.0), BITS, controls=[tell], calls=500)

@audit()
def leaks():
    return Audit(tell, PureDP(1.0), BITS, calls=500)

@audit()
def crashes():
    return 1 / 0

@audit()
def skipped():
    raise Skip("needs a CUDA device")
"""
MECHANISMS = """
import numpy as np

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

def tell(data, size, *, rng):
    return np.full(size, data)
"""
TESTS = """
import pytest
from auditdp import AnyValues, PureDP
from mine import coin, tell

BITS = AnyValues((0, 1))

@pytest.mark.auditdp(calls=500)
def test_private(auditor):
    first = auditor.assert_private(coin, PureDP(1.0), BITS)
    second = auditor.assert_private(coin, PureDP(1.0), BITS)
    assert first.calls >= 300
    assert first.evidence[0].log_e_value != second.evidence[0].log_e_value

def test_leak(auditor):
    auditor.assert_private(tell, PureDP(1.0), BITS, calls=500)

def test_without():
    pass
"""


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest in a folder with audits and tests; the plugin is loaded as an installed one is."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(mine=MECHANISMS, test_mine=TESTS)
    pytester.mkdir("audits")
    (pytester.path / "audits" / "audit_mine.py").write_text(AUDITS)
    pytester.makepyprojecttoml(
        "[tool.auditdp]\nbudget = 'quick'\nseed = 3\n[tool.pytest.ini_options]\npythonpath = ['.']\n"
    )
    installed = any(
        point.value == "auditdp.pytest_plugin"
        for point in entry_points(group="pytest11")
    )
    plugin = [] if installed else ["-p", "auditdp.pytest_plugin"]

    def run(command):
        words = [*plugin, "-p", "no:cacheprovider", *shlex.split(command)]
        return pytester.runpytest_subprocess(*words, timeout=120)

    return run


def results_of(pytester, name="r.json"):
    return json.loads((pytester.path / name).read_text())


@pytest.mark.full
def test_audits_and_tests_in_one_session_and_the_same_for_two_processes(
    session,
    pytester,
    fork_server,  # noqa: F811
):
    outcomes = {"passed": 3, "failed": 2, "errors": 1, "skipped": 1}
    reports = "--auditdp-report json=one.json --auditdp-report junit=out/one.xml"
    one = session(f". --auditdp {reports}")
    one.assert_outcomes(**outcomes)
    failures = ["*ERROR at setup of audit crashes*", "*ZeroDivisionError*"]
    failures += ["*audit leaks*", "VIOLATED*leaks*", "*reproduce*"]
    summary = ["*= privacy audits =*", "*7 audits of 5 privacy claims*"]
    for lines in (failures, [*summary, "report: one.json"]):
        one.stdout.fnmatch_lines(lines)
    assert (pytester.path / "out" / "one.xml").is_file()
    two = session(". --auditdp -n 2 --auditdp-report json=two.json")
    two.assert_outcomes(**outcomes)
    found = untimed(results_of(pytester, "one.json"))
    assert untimed(results_of(pytester, "two.json")) == found
    whole = Project(pytester.path, fork_server)("run --format json").untimed
    ran = {result["id"]: result for result in whole["results"]}
    assert len(ran) == 4
    for result in found["results"]:
        same = ran.get(result["id"], result)
        for name in ("evidence", "alpha"):
            assert result[name] == same[name]


HIDDEN = """
from auditdp import AnyValues, Audit, PureDP, audit
from mine import hidden

BITS = AnyValues((0, 1))

@audit()
def hides():
    return Audit(hidden, PureDP(1.0), BITS, calls=600)

def test_hidden(auditor):
    auditor.assert_private(hidden, PureDP(1.0), BITS, calls=600)
"""


@pytest.mark.full
def test_an_audit_whose_refutation_is_not_confirmed_fails(session, pytester):
    """In an audit file and in a test, whatever fail_on says."""
    body = "return np.full(size, data if size > 1 else 0)"
    hidden = f"\ndef hidden(data, size, *, rng):\n    {body}\n"
    pytester.makepyfile(mine=MECHANISMS + hidden, test_mine=HIDDEN)
    pytester.path.joinpath("audits", "audit_mine.py").write_text(HIDDEN)
    outcome = session(". --auditdp --auditdp-report json=r.json")
    outcome.assert_outcomes(failed=2)
    for result in results_of(pytester)["results"]:
        assert result["evidence"][0]["unconfirmed"]


def test_a_selection_shares_alpha_and_says_no_more(session, pytester):
    report = "--auditdp-report json=r.json --auditdp-alpha .02"
    outcome = session(f"audits --auditdp -k 'holds or skipped' {report}")
    outcome.assert_outcomes(passed=1, skipped=1, deselected=2)
    record = results_of(pytester)
    assert {result["alpha"] for result in record["results"]} == {0.01}
    assert record["root_seed"] == 3


TRACED = """
from auditdp import PureDP

def noisy(x, rng):
    return x + rng.laplace()

def test_noisy(auditor):
    result = auditor.assert_private(noisy, PureDP(1.0), [(0.0, 1.0)], calls=100)
    (game,) = [each.details for each in result.evidence if each.kind == "game"]
    assert (game.trace is None) == WITHOUT
"""


@pytest.mark.parametrize("trace", ["true", "false"])
@pytest.mark.full
def test_the_settings_of_the_project_say_whether_code_is_traced(
    session, pytester, monkeypatch, trace
):
    monkeypatch.setenv("AUDITDP_TRACE", trace)
    pytester.makepyfile(test_traced=TRACED.replace("WITHOUT", str(trace == "false")))
    outcome = session("test_traced.py --auditdp-report json=r.json")
    outcome.assert_outcomes(passed=1)
    arguments = results_of(pytester)["arguments"]
    assert arguments.get("trace", True) is (trace == "true")


@pytest.mark.dear
@pytest.mark.parametrize(
    ("arguments", "ini", "collected"),
    [
        ("audits/audit_mine.py::holds", "", 1),
        (
            "--auditdp -m audit -k 'not leaks'",
            "testpaths = ['empty']\nauditdp_paths = ['audits']",
            3,
        ),
        ("audits", "auditdp_paths = ['audits']", 4),
    ],
)
def test_what_is_collected(session, pytester, arguments, ini, collected):
    pytester.mkdir("empty")
    with (pytester.path / "pyproject.toml").open("a") as file:
        file.write(f"\n{ini}\n")
    outcome = session(f"{arguments} --collect-only -q --strict-markers")
    found = [line for line in outcome.outlines if "audits/audit_mine.py::" in line]
    assert len(found) == collected, outcome.outlines
    outcome.stdout.no_fnmatch_line("*privacy audits*")


FINDS = """
import pytest
from auditdp import AnyValues, PureDP
from mine import coin

BITS = AnyValues((0, 1))

def calls(result):
    return next(evidence for evidence in result.evidence if evidence.kind == "game").calls

def test_of_the_session(auditor):
    found = auditor.assert_private(coin, PureDP(1.0), BITS)
    assert 1 < found.evidence[0].details.detectable_epsilon <= 2
    assert calls(auditor.assert_private(coin, PureDP(1.0), BITS, calls=333)) == 333
    assert calls(auditor.assert_private(coin, PureDP(1.0), BITS, calls=333, find="level:3")) < calls(found)

@pytest.mark.auditdp(calls=444)
def test_of_the_marker(auditor):
    assert calls(auditor.assert_private(coin, PureDP(1.0), BITS)) == 444
"""


@pytest.mark.full
def test_the_budget_of_a_session_may_be_a_fault(session, pytester):
    pytester.makepyfile(test_mine=FINDS)
    session("test_mine.py --auditdp-budget level:2").assert_outcomes(passed=2)


def test_a_session_without_audits_is_silent_and_imports_nothing(session, pytester):
    (pytester.path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure(config):\n"
        "    heavy = {'numpy', 'typer', 'pydantic', 'auditdp.record.results', 'auditdp.configuration'} & set(sys.modules)\n"
        "    print('imported:', sorted(heavy))\n"
    )
    pytester.makepyfile(test_mine="def test_nothing(): pass")
    outcome = session("test_mine.py audits -s")
    outcome.assert_outcomes(passed=1)
    outcome.stdout.no_fnmatch_line("*audit*s of*")
    outcome.stdout.no_fnmatch_line("*privacy*")
    assert "imported: []" in outcome.stdout.str()


OPTIONS = dict.fromkeys(("auditdp_profile", "auditdp_budget"), "")
OPTIONS |= dict.fromkeys(("auditdp_seed", "auditdp_alpha"))
OPTIONS["auditdp_report"] = []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"auditdp_budget": "quik"},
            "--auditdp-budget quik: unknown budget 'quik'; did you mean 'quick'",
        ),
        ({"auditdp_report": ["html"]}, "expected format=PATH"),
        (
            {"auditdp_report": ["html=notes.html"]},
            "notes.html is there and is no html report of auditdp",
        ),
        ({"auditdp_profile": "ci"}, "no such profile"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    tmp_path, monkeypatch, option, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.html").write_text("<p>mine</p>")
    with pytest.raises(pytest.UsageError) as error:
        AuditSession(SimpleNamespace(getoption=(OPTIONS | option).__getitem__))
    assert message in str(error.value)


@pytest.mark.full
def test_they_are_refused_at_the_start(session):
    outcome = session("test_mine.py --auditdp-budget quik")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    expected = "expected quick, standard, thorough, a number of calls"
    assert expected in outcome.stderr.str()


def test_a_file_that_does_not_import_and_a_misspelt_marker_are_errors(
    session, pytester
):
    audits = pytester.path / "audits" / "audit_mine.py"
    audits.write_text("import nothing_of_this_name\n")
    misspelt = TESTS.replace("auditdp(calls", "auditdp(callls")
    (pytester.path / "test_mine.py").write_text(misspelt)
    options = "-k 'not leak' --auditdp --continue-on-collection-errors"
    outcome = session(f"audits test_mine.py {options}")
    outcome.assert_outcomes(errors=2, passed=1, deselected=1)
    outcome.stdout.fnmatch_lines(["*line 1: does not import: ModuleNotFoundError*"])
    outcome.stdout.fnmatch_lines(["*marker auditdp(callls=): did you mean 'calls'?*"])


def test_elsewhere_than_in_the_project_folder_it_says_where_to_go(
    tmp_path, monkeypatch
):
    (tmp_path / "pyproject.toml").write_text("[tool.auditdp]\n")
    (tmp_path / "audits").mkdir()
    monkeypatch.chdir(tmp_path / "audits")
    with pytest.raises(pytest.UsageError, match="call pytest there"):
        AuditSession(SimpleNamespace(getoption=OPTIONS.__getitem__))


def test_the_plugin_is_imported_in_less_than_20_ms():
    """CPU time of its import where pytest is imported already, the least of three."""
    code = "import time, pytest; t = time.process_time(); import auditdp.pytest_plugin; print(time.process_time() - t)"
    spent = [
        float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)
    ]
    assert min(spent) < 0.020
    assert pytest_plugin.MARKERS[0].startswith("audit:")


def test_a_conftest_can_change_what_the_plugin_reports(
    session,
    pytester,
    fork_server,  # noqa: F811
):
    """Which `SECURITY.md` says; the command imports none, and finds what there is."""
    pytester.makeconftest("""
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            report.outcome, report.longrepr = "passed", None
            return report
    """)
    session("audits --auditdp -k leaks").assert_outcomes(passed=1, deselected=3)
    project = Project(pytester.path, fork_server)
    assert project("run audits/audit_mine.py::leaks").code == 1
