"""Mechanisms and audit files: none can end a run, change another audit, or change the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.catalogue import (
    AFTER,
    BESIDE,
    FAULTS,
    HEAD,
    IMPORTS,
    REACHING,
    SHADOWS,
)
from tests.faults.conftest import WORKERS, results, script

pytestmark = pytest.mark.faults
RUN = ("run", "--seed", "1", "--budget", "quick", "--format", "json")


def between(root, faults, *options):
    """Run faults of mechanisms between audits that have none."""
    (root / "audits").mkdir(parents=True)
    source = HEAD + BESIDE + "\n".join(fault.audit for fault in faults) + AFTER
    (root / "audits/audit_it.py").write_text(source)
    (root / "audits/audit_other.py").write_text(
        HEAD + AFTER.replace("after", "elsewhere")
    )
    return script(root, *RUN, "--timeout", "6", "--max-memory", "1G", *options)


@pytest.fixture(scope="module", params=WORKERS)
def hostile(request, tmp_path_factory):
    """A run of every fault that is its own process's."""
    return request.param, between(
        tmp_path_factory.mktemp("hostile") / "project", FAULTS, "-n", request.param
    )


@pytest.fixture(scope="module", params=WORKERS)
def exposed(request, tmp_path_factory):
    """A run, without a sandbox, of every fault that reaches further."""
    root = tmp_path_factory.mktemp("exposed") / "project"
    return (
        request.param,
        root,
        between(root, REACHING, "-n", request.param, "--sandbox", "off"),
    )


def in_short(verdict: str, summary: str) -> str:
    """A verdict with the beginning of its reason."""
    shown = " ".join(summary.split())
    return (
        f"{verdict}: {shown[:110]}{'…' if len(shown) > 110 else ''}"
        if shown
        else verdict
    )


def test_every_audit_has_a_result_and_the_finding_is_the_exit_code(hostile, see):
    workers, done = hostile
    found = results(done)
    seen = f"{len(found)} results, exit code {done.returncode}"
    see(
        "all of these in one run, beside one finding",
        f"{len(FAULTS) + 4} results, exit code 1",
        seen,
        workers=workers,
    )
    assert set(found) == {
        "before",
        "leaks",
        "after",
        "elsewhere",
        *(fault.name for fault in FAULTS),
    }
    assert done.returncode == 1  # of leaks
    assert json.loads(done.stdout)["status"] == "complete"
    assert [
        found[name]["verdict"] for name in ("before", "leaks", "after", "elsewhere")
    ] == [*("CERTIFIED", "VIOLATED", "CERTIFIED", "CERTIFIED")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_costs_its_own_audit_alone(hostile, fault, see):
    workers, done = hostile
    as_expected(fault, done, fault.what, workers, see)


@pytest.mark.parametrize("fault", REACHING, ids=lambda fault: fault.name)
def test_without_a_sandbox_it_does_so_too(exposed, fault, see):
    workers, _, done = exposed
    as_expected(fault, done, f"{fault.what}, without a sandbox", workers, see)


def as_expected(fault, done, what, workers, see):
    """The audit that has a fault ends as is expected of it, for the reason that is."""
    result = results(done)[fault.name]
    summary = (
        result["summary"].partition(": ")[2]
        if result["verdict"] == "ERROR"
        else result["printed"]
    )
    see(what, fault.verdict, in_short(result["verdict"], summary), workers=workers)
    assert result["verdict"] == fault.verdict, result["summary"]
    assert fault.message in result["summary"] + result["printed"]


def test_the_log_is_whole_although_it_was_deleted_and_truncated(exposed, see):
    workers, root, done = exposed
    anew = "was changed while the run went on, and was written anew" in done.stderr
    see(
        "the log that they deleted and truncated, without a sandbox",
        "written anew",
        "written anew" if anew else "lost",
        workers=workers,
    )
    assert anew
    assert len(results(script(root, "report", "-f", "json"))) == len(REACHING) + 4
    lines = [
        json.loads(line)
        for line in (root / ".auditdp/run.jsonl").read_text().splitlines()
    ]
    assert len({line["run"] for line in lines}) == 1
    assert all(line["time"] for line in lines)


def test_nothing_is_left_running(hostile, see):
    left = [name for name in processes() if name.startswith("sleep\0003599")]
    see(
        "processes that they started",
        "ended with the run",
        "go on" if left else "ended with the run",
        workers=hostile[0],
    )
    assert not left


def processes() -> list[str]:
    """Command lines of all processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_text())
            except OSError:
                continue
    return found


@pytest.fixture(scope="module", params=WORKERS)
def unimportable(request, tmp_path_factory):
    """A run of files that cannot be imported, or do something while they are, beside files like the libraries'."""
    root = tmp_path_factory.mktemp("unimportable") / "project"
    (root / "audits").mkdir(parents=True)
    for fault in IMPORTS:
        text = f"{HEAD}\n{fault.code}\n\n@audit()\ndef of_{fault.name}():\n    return sound()\n"
        (root / f"audits/audit_{fault.name}.py").write_text(text)
    (root / "audits/audit_z.py").write_text(HEAD + AFTER)
    for name in SHADOWS:
        (root / f"{name}.py").write_text(
            "raise SystemError('this is not the library')\n"
        )
        (root / f"audits/{name}.py").write_text(
            "raise SystemError('this is not the library')\n"
        )
    return request.param, script(
        root, *RUN, "-n", request.param, "--collection-timeout", "10"
    )


@pytest.mark.parametrize("fault", IMPORTS, ids=lambda fault: fault.name)
def test_a_file_that_cannot_be_imported_costs_its_own_audits_alone(
    unimportable, fault, see
):
    workers, done = unimportable
    found = results(done)
    name = f"audit_{fault.name}.py" if fault.verdict == "ERROR" else f"of_{fault.name}"
    result = found[name]
    summary = result["summary"].partition(": ")[2] if fault.verdict == "ERROR" else ""
    see(
        fault.what, fault.verdict, in_short(result["verdict"], summary), workers=workers
    )
    assert result["verdict"] == fault.verdict, result["summary"]
    assert fault.message in result["summary"]
    if fault.verdict == "ERROR":
        assert f"audits/audit_{fault.name}.py" in result["summary"]
    assert found["after"]["verdict"] == "CERTIFIED"
    assert done.returncode == 3


def test_libraries_are_not_taken_from_the_working_folder(unimportable, see):
    workers, done = unimportable
    taken = "this is not the library" in done.stdout + done.stderr
    names = ", ".join(f"{name}.py" for name in SHADOWS)
    see(
        f"{names} in the working folder",
        "not imported",
        "imported" if taken else "not imported",
        workers=workers,
    )
    assert not taken
    assert "while imported" in done.stderr
