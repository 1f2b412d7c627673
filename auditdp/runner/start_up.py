"""The start of a run: the process from which all others are forked, before slow imports.

multiprocessing's fork server, from which every process of a run is forked, imports this
module first. It imports the modules that audit files need, once. It has a process group
of its own, so that an interrupt from the terminal reaches the run alone. When the run
has ended, it ends all processes of the run and everything they left, which become its
children, and removes their folder.

A run uses this module without importing the modules of audits.
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
from typing import Any

from auditdp.files import place_of_temporary_files
from auditdp.runner.child import Work
from auditdp.runner.plan import COLLECTED, Collected
from auditdp.runner.sandbox import Sandbox


class StartLimits:
    """Limits at the start of a run."""

    many_files = 3
    """Number of audit files from which the common modules of audits are imported
    before forking, and not once for each file."""
    address_space = 384 << 20
    """Address space, in bytes, below which the OpenBLAS of numpy and scipy tries to
    allocate without end."""
    folder_bytes = 40
    """Longest name of a folder for sockets, in bytes: the kernel allows 107, a run
    adds 35, multiprocessing 32."""


NEEDED = ["hypothesis", "sklearn.ensemble"]
AUDITING = ("auditdp.runner.child_jobs",)
"""Modules that every audit needs, imported before any file. Commands that only collect do
without."""


def start_early(targets: Sequence[str], needed: Sequence[str] = AUDITING) -> None:
    """Start the process while the command continues.

    The process imports the modules of audits, and the command those for output.

    Args:
        targets: Targets on the command line.
        needed: Modules to import besides those of files; empty if no audit runs.
    """
    paths = [Path(target.partition("::")[0]) for target in targets]
    files = (
        file
        for path in paths
        for file in (path.rglob("audit_*.py") if path.is_dir() else [path])
    )
    many = len(list(islice(files, StartLimits.many_files))) == StartLimits.many_files
    # The process is started again when it is needed, and that reports the error.
    with suppress(OSError):
        start_forkserver((*needed, *NEEDED) if many and needed else needed)


def start_forkserver(needed: Sequence[str]) -> None:
    """Start the process from which all others are forked, unless it runs.

    Raises:
        OSError: If it cannot be started, or would never be done with its imports.
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
    # A process that died is seen when it is written to.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    forkserver.set_forkserver_preload([__name__, *needed])
    with environment(temporary_folder()), no_script():
        forkserver.ensure_running()
    _hide_socket()


def _hide_socket() -> None:
    """Remove the name of the socket that starts processes.

    Whoever connects to it could start a process outside of the sandbox.
    """
    server: Any = forkserver._forkserver
    if sys.platform == "linux" and not server._forkserver_address.startswith("/proc/"):
        held = os.open(server._forkserver_address, os.O_PATH | os.O_CLOEXEC)
        os.unlink(server._forkserver_address)
        server._forkserver_address = f"/proc/self/fd/{held}"


def temporary_folder() -> str:
    """Return the folder for sockets and outputs of this process.

    It is in /tmp if the name of the usual place is too long, and is made again if
    somebody removed it.

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
    """Start processes that do not import the script of this one, unlike multiprocessing."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


FOLDER = "AUDITDP_FORKSERVER"
"""Environment variable with the folder to remove."""
SAFE = "PYTHONSAFEPATH"
"""Option that keeps the working folder off Python's path. Otherwise a file joblib.py in it
would replace the library."""
ADOPT = 36
"""Number of the request to become the parent of processes that descendants leave."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment of one thread for numerical libraries. Their threads compete with audits for
cores, and do not survive a fork."""


@contextmanager
def environment(folder: str) -> Iterator[None]:
    """Set the environment of a fork server that is started in the block."""
    before = dict(os.environ)
    os.environ.update({name: "1" for name in THREADS if name not in before})
    os.environ.update({SAFE: before.get(SAFE, "for auditdp"), FOLDER: folder})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def settle(folder: str) -> None:
    """Make this process the one from which others are forked and which cleans up."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT, 1)
    if os.environ.get(SAFE) == "for auditdp":
        del os.environ[SAFE]
    nothing = os.open(os.devnull, os.O_RDWR)
    # A pipe behind the run must end with the run.
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    # Otherwise it took the place of a closed stream.
    if nothing > 2:
        os.close(nothing)
    atexit.register(_clean, folder, os.getpid())


def _clean(folder: str, settled: int) -> None:
    if os.getpid() == settled:
        # A batch has at most all nodes.
        with suppress(OSError):
            _end_children(Path(f"/proc/self/task/{settled}/children"))
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)


def _end_children(listed: Path) -> None:
    """End all children, and theirs, which become children as their parents end."""
    while True:
        for child in listed.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        os.wait()


if FOLDER in os.environ:
    settle(os.environ.pop(FOLDER))
    import auditdp.runner.file_host  # noqa: F401 - with all that the import of audit files needs
    from auditdp.numerics.streams import one_thread

    # The parent computes this once, so that forked processes need not.
    one_thread()


def open_host(
    connection: Connection,
    path: Path,
    overrides: dict[str, str],
    folder: Path,
    limit: float,
    sandbox: Sandbox,
) -> None:
    """Be the process of an audit file; see ``file_host.host``."""
    try:
        sandbox.enter(folder)
    except OSError as error:
        connection.send_bytes(
            COLLECTED.dump_json(
                Collected(failure=f"{path.name}: the sandbox is refused: {error}")
            )
        )
        return
    from auditdp.runner.file_host import host

    host(connection, path, overrides, folder, limit)


def open_judges(connection: Connection, folder: Path) -> None:
    """Be the process that those who judge are forked from; see ``file_host.judges``."""
    from auditdp.runner.file_host import judges

    judges(connection, folder)


def work_alone(sender: Connection, work: Work, output: Path) -> None:
    """Do one piece of work; see ``file_host.alone``."""
    work.sandbox.enter(output.parent)
    from auditdp.runner.file_host import alone

    alone(sender, work, output)
