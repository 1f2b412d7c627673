"""A pytest plugin: audit files as test items, and an ``auditor`` for ordinary tests.

``pytest --auditdp`` collects ``audit_*.py`` in the folders that pytest visits, and adds
the folders of the ini option ``auditdp_paths`` to them. Without ``--auditdp`` pytest
collects these files only below ``auditdp_paths``. An audit file on the command line is
always collected.

Every audit is an item. A finding and a refutation that was not confirmed fail. An audit
that crashes is an error. A skipped or inconclusive audit is skipped, unless the setting
``fail_on`` names that. The result of an audit is that of ``auditdp run`` with the same
seed and the same α, for any number of processes of pytest-xdist.

Every pytest session imports this module, so it imports nothing else of auditdp before
an audit is collected.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from auditdp.pytest_plugin.items import Auditor
    from auditdp.pytest_plugin.session import AuditSession

MARKERS = (
    "audit: an audit of a file audit_*.py; given to each of them",
    "auditdp(calls=, find=, alpha=): calls, fault to find and error probability of what the auditor fixture asserts here",
)
OPTIONS = ("budget", "seed", "alpha", "profile", "report")
RESULTS = "auditdp_results"
"""Attribute of a test's report that has the results of its audits as JSON."""
SOURCES = "auditdp_sources"
"""Key of ``config.workeroutput`` with the source files of a worker's audits."""
_session = pytest.StashKey["AuditSession"]()
_results = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line options and the ini option of the plugin."""
    group = parser.getgroup("auditdp", "privacy audits")
    group.addoption(
        "--auditdp",
        action="store_true",
        help="collect audit_*.py files, and the folders of auditdp_paths",
    )
    group.addoption(
        "--auditdp-budget",
        "--auditdp-find",
        "--auditdp-calls",
        default="",
        metavar="BUDGET",
        help="quick, standard, thorough, a number, or a fault to find: tail:0.005",
    )
    group.addoption(
        "--auditdp-seed",
        default=None,
        type=int,
        metavar="N",
        help="root seed of all audits; default: 0",
    )
    group.addoption(
        "--auditdp-alpha",
        default=None,
        type=float,
        metavar="A",
        help="error probability of all audits",
    )
    group.addoption(
        "--auditdp-profile",
        default="",
        metavar="NAME",
        help="settings of [tool.auditdp.profiles.NAME]",
    )
    group.addoption(
        "--auditdp-report",
        action="append",
        default=[],
        metavar="FORMAT=PATH",
        help="write a report of the audits at the end, such as html=report.html; repeatable",
    )
    parser.addini(
        "auditdp_paths",
        "folders and files of audits that are collected where they are visited",
        type="args",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and add the audit folders to those that pytest visits.

    The folders are added only with ``--auditdp``, and if the command line names no
    paths. Invalid options of the plugin raise ``pytest.UsageError``.
    """
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getoption("auditdp") and config.args_source is not config.ArgsSource.ARGS:
        root = config.rootpath
        config.args += [
            path
            for path in config.getini("auditdp_paths")
            if path not in config.args and (root / path).exists()
        ]
    if any(
        config.getoption(f"auditdp_{name}") not in ("", None, []) for name in OPTIONS
    ):
        # This refuses invalid options before anything runs.
        audit_session(config)


def _is_audit_file(path: Path) -> bool:
    return path.suffix == ".py" and path.name.startswith("audit_")


def _wanted(path: Path, config: pytest.Config) -> bool:
    if config.getoption("auditdp"):
        return True
    folders = [config.rootpath / folder for folder in config.getini("auditdp_paths")]
    return any(path.is_relative_to(folder) for folder in folders)


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Collect an audit file that pytest found and does not import as a test module.

    Other files are left to pytest: the result is None.
    """
    if not _is_audit_file(file_path) or parent.session.isinitpath(file_path):
        return None
    if any(
        file_path.match(pattern) for pattern in parent.config.getini("python_files")
    ):
        return None
    return _audit_file(file_path, parent) if _wanted(file_path, parent.config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Collect an audit file instead of importing it as a test module.

    Pytest would import it if the command line names it, or ``python_files`` matches it.
    Other files are left to pytest: the result is None.
    """
    named = parent.session.isinitpath(module_path)
    if not _is_audit_file(module_path) or not (
        named or _wanted(module_path, parent.config)
    ):
        return None
    return _audit_file(module_path, parent)


def _audit_file(path: Path, parent: pytest.Collector) -> pytest.Collector:
    from auditdp.pytest_plugin.items import AuditFile

    return AuditFile.from_parent(parent, path=path)


def audit_session(config: pytest.Config) -> AuditSession:
    """Return the state that all audits of this process share, made at the first use."""
    if _session not in config.stash:
        from auditdp.pytest_plugin.session import AuditSession

        config.stash[_session] = AuditSession(config)
    return config.stash[_session]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Store which audits were selected, since they share α."""
    if _session in session.config.stash:
        from auditdp.pytest_plugin.items import AuditItem

        audits = [item.audit for item in session.items if isinstance(item, AuditItem)]
        audit_session(session.config).selected = audits


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the results of a test's audits to its report, as JSON.

    Workers of pytest-xdist send reports to the main process.
    """
    report = yield
    if item.stash.get(_results, None) and (report.when == "call" or not report.passed):
        setattr(report, RESULTS, item.stash[_results])
        item.stash[_results] = []
    return report


def keep(item: pytest.Item, result: str) -> None:
    """Store the result of an audit, as JSON, until the report of its test is made."""
    item.stash.setdefault(_results, []).append(result)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the results of audits from a report, of this process or of a worker."""
    _gathered.extend(getattr(report, RESULTS, ()))


_gathered: list[str] = []


def pytest_sessionstart() -> None:
    """Remove the results of an earlier session in this process."""
    _gathered.clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the source files of audits from an ended worker of pytest-xdist."""
    sources = getattr(node, "workeroutput", {}).get(SOURCES)
    if sources:
        audit_session(node.config).sources |= set(sources)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the audits' source files to the main process, in workers of pytest-xdist."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None and _session in session.config.stash:
        output[SOURCES] = sorted(audit_session(session.config).sources)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print a summary of all audits, and write the requested reports.

    Without a result of an audit it does nothing.
    """
    if _gathered:
        audit_session(config).report(_gathered, terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes in which audits ran."""
    if _session in config.stash:
        config.stash[_session].close()


@pytest.fixture
def auditor(request: pytest.FixtureRequest) -> Auditor:
    """Audit mechanisms in a test, by ``auditor.assert_private(…)``.

    The root seed and the id of the test key the randomness.
    """
    from auditdp.pytest_plugin.items import Auditor

    marker = request.node.get_closest_marker("auditdp")
    return Auditor(
        request.node, audit_session(request.config), **(marker.kwargs if marker else {})
    )
