"""The start of a run: the fork server, from which all other processes are forked.

A run starts the fork server of ``multiprocessing`` before its own slow imports. This
module has functions for both processes:

- In the run: ``start_early``, ``start_forkserver``, ``temporary_folder`` and
  ``no_script``. They import neither modules of audits nor pydantic, so that the fork
  server starts as early as possible.
- In the fork server, which imports this module first: ``settle``. It then imports the
  modules that audit files need, once. It has a process group of its own, so an
  interrupt from the terminal reaches the run alone. When the run has ended, it ends all
  processes of the run, and those that they left running, which become its children. It
  then removes their folder.
- In processes that are forked from it: ``open_host``, ``open_judges``, ``work_alone``.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing.forkserver as forkserver
import multiprocessing.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auditdp.files import place_of_temporary_files

if TYPE_CHECKING:
    from auditdp.runner.child import Work
    from auditdp.runner.sandbox import Sandbox


class StartLimits:
    """Limits at the start of a run."""

    many_files = 3
    """Smallest number of audit files for which the fork server imports ``NEEDED``.
    With fewer files, each process imports these libraries itself if it needs them."""
    address_space = 384 << 20
    """Smallest limit of the address space, in bytes. Below it, the OpenBLAS of numpy
    and scipy tries to allocate memory without end."""
    folder_bytes = 40
    """Longest path of the folder for temporary files, in bytes. The kernel allows 107
    for the path of a socket; a run adds 35, and multiprocessing 32."""


NEEDED = ["hypothesis", "sklearn.ensemble"]
"""Libraries that many audits need, and that take long to import."""
AUDITING = ("auditdp.runner.child_jobs",)
"""Modules that every audit needs, which the fork server imports. Commands that only
collect audits do not need them."""


def start_early(targets: Sequence[str], needed: Sequence[str] = AUDITING) -> None:
    """Start the fork server, while the command continues with its own imports.

    If the server cannot be started, nothing is raised: it is started again when it is
    needed.

    Args:
        targets: Folders, files and ids on the command line.
        needed: Modules that the fork server imports; empty if no audit runs. If they
            are not empty, and the targets have many files, ``NEEDED`` is added.

    Raises:
        ConfigurationError: If no folder for temporary files can be written.
    """
    paths = [Path(target.partition("::")[0]) for target in targets]
    files = (
        file
        for path in paths
        for file in (path.rglob("audit_*.py") if path.is_dir() else [path])
    )
    many = len(list(islice(files, StartLimits.many_files))) == StartLimits.many_files
    # It is started again when it is needed, and that reports the error.
    with suppress(OSError):
        start_forkserver((*needed, *NEEDED) if many and needed else needed)


def start_forkserver(needed: Sequence[str]) -> None:
    """Start the fork server, unless it runs.

    Args:
        needed: Modules that it imports.

    Raises:
        OSError: If it cannot be started, or if the limit of the address space is below
            ``StartLimits.address_space``.
        ConfigurationError: If no folder for temporary files can be written.
    """
    if sys.platform != "win32":
        import resource

        space, _ = resource.getrlimit(resource.RLIMIT_AS)
        # A limit of -1 means that there is none.
        if 0 <= space < StartLimits.address_space:
            raise OSError(
                f"{space >> 20} MiB of address space, by ulimit -v, where at least "
                f"{StartLimits.address_space >> 20} are needed"
            )
    # Writing to a process that died must raise an error, and not end the run.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    forkserver.set_forkserver_preload([__name__, *needed])
    with environment(temporary_folder()), no_script():
        forkserver.ensure_running()
    _hide_socket()


def _hide_socket() -> None:
    """Remove the path of the fork server's socket; the run reaches it by a descriptor.

    An audit that connects to it could start a process outside the sandbox.
    """
    server: Any = forkserver._forkserver
    if sys.platform == "linux" and not server._forkserver_address.startswith("/proc/"):
        held = os.open(server._forkserver_address, os.O_PATH | os.O_CLOEXEC)
        os.unlink(server._forkserver_address)
        server._forkserver_address = f"/proc/self/fd/{held}"


def temporary_folder() -> str:
    """Return the folder for sockets and outputs of this process.

    It is in /tmp if the path of the usual folder for temporary files is too long. It is
    made again if an audit removed it.

    Raises:
        ConfigurationError: If no folder for temporary files can be written.
    """
    usual = tempfile.tempdir
    if len(os.fsencode(place_of_temporary_files())) > StartLimits.folder_bytes:
        tempfile.tempdir = "/tmp"
    try:
        folder = str(multiprocessing.util.get_temp_dir())
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    finally:
        tempfile.tempdir = usual


@contextmanager
def no_script() -> Iterator[None]:
    """Keep processes that start in the block from importing this process's main script.

    By default ``multiprocessing`` imports it in each of them.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


FOLDER = "AUDITDP_FORKSERVER"
"""Environment variable that makes a process the fork server. Its value is the folder
that the process removes at its end."""
SAFE = "PYTHONSAFEPATH"
"""Environment variable that keeps the working folder off Python's path. Without it, a
file joblib.py in that folder would replace the library."""
ADOPT = 36
"""Number of the option of prctl(2) by which a process becomes the parent of its
orphaned descendants (PR_SET_CHILD_SUBREAPER)."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit numerical libraries to one thread. More threads
would compete with audits for cores, and do not survive a fork."""


@contextmanager
def environment(folder: str) -> Iterator[None]:
    """Set the environment of a fork server that starts in the block.

    Args:
        folder: The folder that the fork server removes at its end.
    """
    before = dict(os.environ)
    os.environ.update({name: "1" for name in THREADS if name not in before})
    os.environ.update({SAFE: before.get(SAFE, "for auditdp"), FOLDER: folder})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def settle(folder: str) -> None:
    """Prepare this process as the fork server.

    It gets a process group of its own, and has neither input nor output. At its end it
    kills its descendants and removes a folder.

    Args:
        folder: The folder that it removes.
    """
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT, 1)
    if os.environ.get(SAFE) == "for auditdp":
        del os.environ[SAFE]
    nothing = os.open(os.devnull, os.O_RDWR)
    # If the output of the run is a pipe, this process must not keep it open.
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    # A smaller number took the place of a closed stream, and is in use now.
    if nothing > 2:
        os.close(nothing)
    atexit.register(_clean, folder, os.getpid())


def _clean(folder: str, settled: int) -> None:
    if os.getpid() == settled:
        # The loop ends with an error when there are no more children.
        with suppress(OSError):
            _end_children(Path(f"/proc/self/task/{settled}/children"))
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)


def _end_children(listed: Path) -> None:
    """End all children, and their children, which become children of this process.

    The loop ends with an OSError when there are none.

    Args:
        listed: The file of /proc with the ids of the children.
    """
    while True:
        for child in listed.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        os.wait()


if FOLDER in os.environ:
    settle(os.environ.pop(FOLDER))
    import auditdp.runner.file_host  # noqa: F401 - with all that the import of audit files needs
    from auditdp.numerics.streams import one_thread

    # This caches the native libraries of this process for all processes forked from it.
    one_thread()


def open_host(
    connection: Connection,
    path: Path,
    overrides: dict[str, str],
    folder: Path,
    limit: float,
    sandbox: Sandbox,
) -> None:
    """Enter the sandbox, and work as the process of an audit file.

    If the kernel refuses the sandbox, the failure is sent in place of declarations. The
    other arguments are those of ``file_host.host``.
    """
    from auditdp.runner.file_host import host
    from auditdp.runner.plan import Collected

    try:
        sandbox.enter(folder)
    except OSError as error:
        refused = Collected(failure=f"{path.name}: the sandbox is refused: {error}")
        connection.send_bytes(refused.as_json())
        return
    host(connection, path, overrides, folder, limit)


def open_judges(connection: Connection, folder: Path) -> None:
    """Work as the process from which judging processes are forked."""
    from auditdp.runner.file_host import judges

    judges(connection, folder)


def work_alone(sender: Connection, work: Work, output: Path) -> None:
    """Enter the sandbox, and do one piece of work, as ``file_host.alone`` does."""
    work.sandbox.enter(output.parent)
    from auditdp.runner.file_host import alone

    alone(sender, work, output)
