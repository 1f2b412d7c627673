"""What the process that audits are forked from imports before there is any."""

import multiprocessing.forkserver as forkserver
import os
import socket
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from auditdp.runner import start_up
from auditdp.runner.pool import _files_in_turn


@pytest.fixture
def needed(monkeypatch):
    asked = []
    monkeypatch.setattr(start_up, "start_forkserver", asked.append)
    return asked


@pytest.mark.parametrize(
    "files", [1, start_up.StartLimits.many_files - 1, start_up.StartLimits.many_files]
)
def test_what_most_audits_need_is_imported_once_for_many_files(tmp_path, needed, files):
    for k in range(files):
        (tmp_path / f"audit_{k}.py").touch()
    (tmp_path / "counts.py").touch()
    start_up.start_early([str(tmp_path)])
    start_up.start_early([f"{tmp_path / 'audit_0.py'}::count"])
    many = files == start_up.StartLimits.many_files
    assert needed == [
        (*start_up.AUDITING, *start_up.NEEDED) if many else start_up.AUDITING,
        start_up.AUDITING,
    ]


def test_what_goes_wrong_early_is_said_where_the_process_is_needed(monkeypatch):
    def fails(needed):
        raise FileNotFoundError("no folder for temporary files")

    monkeypatch.setattr(start_up, "start_forkserver", fails)
    start_up.start_early(["no/such/folder"])


@pytest.mark.skipif(sys.platform != "linux", reason="sockets without a name need /proc")
def test_nobody_else_can_have_processes_started(tmp_path, monkeypatch):
    """The socket that starts them loses its name, and the folder in which it had one is its user's alone."""
    named = tmp_path / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(named))
    listener.listen()
    monkeypatch.setattr(forkserver._forkserver, "_forkserver_address", str(named))
    monkeypatch.setattr(forkserver, "ensure_running", lambda: None)
    start_up.start_forkserver(())
    start_up.start_forkserver(())
    assert not named.exists()
    with socket.socket(socket.AF_UNIX) as connecting:
        connecting.connect(forkserver._forkserver._forkserver_address)
        listener.accept()[0].close()
    folder = Path(start_up.temporary_folder()).stat()
    assert (stat.S_IMODE(folder.st_mode), folder.st_uid) == (0o700, os.getuid())


@pytest.mark.skipif(
    sys.platform != "linux", reason="limits of address space are of Linux"
)
def test_so_little_memory_that_its_imports_would_never_end_is_refused(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda kind: (200_000_000, -1))
    with pytest.raises(OSError, match="190 MiB of address space"):
        start_up.start_forkserver(())


def test_workers_begin_with_different_files():
    audits = ["a1", "a2", "a3", "b1", "c1", "c2"]
    tasks = [SimpleNamespace(path=name[0], name=name) for name in audits]

    def started(workers):
        return [task.name for task in _files_in_turn(tasks, workers)]

    assert started(1) == audits
    assert started(2) == ["a1", "b1", "a2", "a3", "c1", "c2"]
    assert started(3) == ["a1", "b1", "c1", "a2", "c2", "a3"]
