"""What a worker of a cluster refuses: other libraries, other files, an import that fails."""

from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.record.results import RESULT, Verdict
from auditdp.runner.machines import ORDER, Order, WorkerError, _run
from auditdp.runner.plan import Task
from auditdp.runner.run_record import digest_of, versions


@pytest.fixture
def order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "audit_it.py"
    file.write_text("raise ValueError('not here')\n")
    task = Task(
        "audit_it.py::it",
        str(file),
        "it",
        str(tmp_path),
        {},
        "holds",
        0.05,
        "quick",
        60.0,
        root_seed=1,
    )
    return Order(task, (str(file),), digest_of([file]), versions(), 60.0, None)


def test_orders_survive_the_way(order):
    assert ORDER.validate_json(ORDER.dump_json(order)) == order


def test_other_versions_are_named(order):
    with pytest.raises(
        WorkerError, match=r"has \{'numpy': .*the run has \{'numpy': '1\.0'\}"
    ):
        _run(replace(order, versions={**order.versions, "numpy": "1.0"}))


def test_other_files_are_refused(order):
    Path(order.task.path).write_text("changed = True\n")
    with pytest.raises(WorkerError, match="give all machines the same checkout"):
        _run(order)


def test_a_file_that_does_not_import_is_an_error_of_its_audit(order):
    result = RESULT.validate_json(_run(order))
    assert result.verdict is Verdict.ERROR
    assert "not here" in result.summary


def test_the_digest_depends_on_what_files_hold_and_not_on_where_they_are(tmp_path):
    files = [
        tmp_path / folder / name
        for folder, name in (("a", "x.py"), ("b", "x.py"), ("b", "y.py"))
    ]
    for file, text in zip(files, ("same", "same", "other"), strict=True):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert digest_of([files[0]]) == digest_of([files[1]])
    assert digest_of([files[0]]) != digest_of([files[2]])
