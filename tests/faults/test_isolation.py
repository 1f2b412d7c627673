"""Mechanisms and audit files: none can end a run, change another audit, or change the exit code."""

import json

import pytest

from tests.adversary.test_sandbox import command_lines
from tests.faults.catalogue import (
    AFTER,
    BESIDE,
    FAULTS,
    HEAD,
    IMPORTS,
    REACHING,
    SHADOWS,
)
from tests.faults.conftest import QUICK, lines_of, results, script

pytestmark = pytest.mark.faults
RUN = f"{QUICK} --format json"


def between(root, faults, options):
    """Run faults of mechanisms between audits that have none."""
    (root / "audits").mkdir(parents=True)
    source = HEAD + BESIDE + "\n".join(fault.audit for fault in faults) + AFTER
    (root / "audits/audit_it.py").write_text(source)
    other = HEAD + AFTER.replace("after", "elsewhere")
    (root / "audits/audit_other.py").write_text(other)
    return script(root, f"{RUN} --timeout 6 --max-memory 1G {options}")


@pytest.fixture(scope="module")
def hostile(workers, tmp_path_factory):
    """A run of every fault that is its own process's."""
    root = tmp_path_factory.mktemp("hostile") / "project"
    return between(root, FAULTS, f"-n {workers}")


@pytest.fixture(scope="module")
def exposed(workers, tmp_path_factory):
    """A run, without a sandbox, of every fault that reaches further; and its folder."""
    root = tmp_path_factory.mktemp("exposed") / "project"
    return between(root, REACHING, f"-n {workers} --sandbox off"), root


def in_short(verdict: str, summary: str) -> str:
    """A verdict with the beginning of its reason."""
    shown = " ".join(summary.split())
    end = "…" if len(shown) > 110 else ""
    return f"{verdict}: {shown[:110]}{end}" if shown else verdict


def test_every_audit_has_a_result_and_the_finding_is_the_exit_code(hostile, see):
    found = results(hostile)
    see(
        "all of these in one run, beside one finding",
        f"{len(FAULTS) + 4} results, exit code 1",
        f"{len(found)} results, exit code {hostile.returncode}",
    )
    assert json.loads(hostile.stdout)["status"] == "complete"
    certified = dict.fromkeys(("before", "after", "elsewhere"), "CERTIFIED")
    for name, verdict in {**certified, "leaks": "VIOLATED"}.items():
        assert found[name]["verdict"] == verdict


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_costs_its_own_audit_alone(hostile, fault, see):
    as_expected(fault, hostile, fault.what, see)


@pytest.mark.parametrize("fault", REACHING, ids=lambda fault: fault.name)
def test_without_a_sandbox_it_does_so_too(exposed, fault, see):
    as_expected(fault, exposed[0], f"{fault.what}, without a sandbox", see)


def as_expected(fault, done, what, see):
    """The audit that has a fault ends as is expected of it, for the reason that is."""
    result = results(done)[fault.name]
    summary = result["printed"]
    if result["verdict"] == "ERROR":
        summary = result["summary"].partition(": ")[2]
    seen = in_short(result["verdict"], summary)
    see(what, fault.verdict, seen, result["summary"])
    assert fault.message in result["summary"] + result["printed"]


def test_the_log_is_whole_although_it_was_deleted_and_truncated(exposed, see):
    done, root = exposed
    anew = "was changed while the run went on, and was written anew" in done.stderr
    what = "the log that they deleted and truncated, without a sandbox"
    see(what, "written anew", "written anew" if anew else "lost")
    assert len(results(script(root, "report -f json"))) == len(REACHING) + 4
    lines = lines_of(root / ".auditdp/run.jsonl")
    assert len({line["run"] for line in lines}) == 1
    assert all(line["time"] for line in lines)


def test_nothing_is_left_running(hostile, see):
    left = [name for name in command_lines() if name.startswith("sleep\0003599")]
    seen = "go on" if left else "ended with the run"
    see("processes that they started", "ended with the run", seen)


NO_LIBRARY = "raise SystemError('this is not the library')\n"


@pytest.fixture(scope="module")
def unimportable(workers, tmp_path_factory):
    """A run of files that cannot be imported, or do something while they are, beside files like the libraries'."""
    root = tmp_path_factory.mktemp("unimportable") / "project"
    (root / "audits").mkdir(parents=True)
    for fault in IMPORTS:
        text = f"{HEAD}\n{fault.code}\n\n@audit()\ndef of_{fault.name}():\n    return sound()\n"
        (root / f"audits/audit_{fault.name}.py").write_text(text)
    (root / "audits/audit_z.py").write_text(HEAD + AFTER)
    for name in SHADOWS:
        for folder in (root, root / "audits"):
            (folder / f"{name}.py").write_text(NO_LIBRARY)
    return script(root, f"{RUN} -n {workers} --collection-timeout 10")


@pytest.mark.parametrize("fault", IMPORTS, ids=lambda fault: fault.name)
def test_a_file_that_cannot_be_imported_costs_its_own_audits_alone(
    unimportable, fault, see
):
    found = results(unimportable)
    name, summary = f"of_{fault.name}", ""
    if fault.verdict == "ERROR":
        name = f"audit_{fault.name}.py"
        summary = found[name]["summary"]
        assert f"audits/{name}" in summary
    seen = in_short(found[name]["verdict"], summary.partition(": ")[2])
    see(fault.what, fault.verdict, seen, found[name]["summary"])
    assert fault.message in found[name]["summary"]
    assert found["after"]["verdict"] == "CERTIFIED"
    assert unimportable.returncode == 3


def test_libraries_are_not_taken_from_the_working_folder(unimportable, see):
    text = unimportable.stdout + unimportable.stderr
    seen = "imported" if "this is not the library" in text else "not imported"
    names = ", ".join(f"{name}.py" for name in SHADOWS)
    see(f"{names} in the working folder", "not imported", seen)
    assert "while imported" in unimportable.stderr
