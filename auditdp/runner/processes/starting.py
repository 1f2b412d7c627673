"""The start of the process from which all others of a run are forked: what a run does before it imports anything slow."""

from __future__ import annotations

import multiprocessing.forkserver as forkserver
import multiprocessing.util
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from auditdp.doors import place_of_temporary_files
from auditdp.runner.processes import forkserver as own_forkserver

MANY = 3
"""From so many audit files on, what most audits need is imported before any is forked, and not once for each file."""
NEEDED = ["hypothesis", "sklearn.ensemble", "sklearn.linear_model"]
AUDITING = ("auditdp.runner.processes.jobs",)
"""What every audit needs, which is imported before any file; a command that only collects goes without."""
LEAST_SPACE = 384 << 20
"""Bytes of address space below which OpenBLAS, as numpy and scipy have it, tries to get some without end."""
LONGEST_FOLDER = 40
"""Bytes of a folder's name in which sockets can have names: the kernel takes 107, a run adds 35, multiprocessing 32."""


def start_early(targets: Sequence[str], needed: Sequence[str] = AUDITING) -> None:
    """Start the process while the command goes on: it imports what audits need, and the command what shows results.

    ``needed`` is imported beside what files need: nothing where no audit is run.
    """
    paths = [Path(target.partition("::")[0]) for target in targets]
    files = (file for path in paths for file in (path.rglob("audit_*.py") if path.is_dir() else [path]))
    many = len(list(islice(files, MANY))) == MANY
    with suppress(OSError):  # it is started again where it is needed, which says what is wrong
        start_forkserver((*needed, *NEEDED) if many and needed else needed)


def start_forkserver(needed: Sequence[str]) -> None:
    """Start the process from which all others are forked, unless it runs.

    Raises:
        OSError: If it cannot be started, or would never be done with its imports.
    """
    if sys.platform != "win32":
        import resource

        space, _ = resource.getrlimit(resource.RLIMIT_AS)
        if 0 <= space < LEAST_SPACE:  # -1 is no limit
            raise OSError(
                f"{space >> 20} MiB of address space, by ulimit -v, where at least {LEAST_SPACE >> 20} are needed"
            )
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a process that died is seen when it is written to
    forkserver.set_forkserver_preload([own_forkserver.__name__, *needed])
    with own_forkserver.environment(temporary_folder()), no_script():
        forkserver.ensure_running()
    _hide_socket()


def _hide_socket() -> None:
    """Leave the socket that starts processes without a name: whoever connects has one started that no sandbox holds."""
    server: Any = forkserver._forkserver
    if sys.platform == "linux" and not server._forkserver_address.startswith("/proc/"):
        held = os.open(server._forkserver_address, os.O_PATH | os.O_CLOEXEC)
        os.unlink(server._forkserver_address)
        server._forkserver_address = f"/proc/self/fd/{held}"


def temporary_folder() -> str:
    """Return the folder for sockets and outputs of this process; in /tmp where the name of the usual place is too long.

    It is made again where somebody has removed it.

    Raises:
        ConfigurationError: If no folder for temporary files can be written.
    """
    usual = tempfile.tempdir
    if len(os.fsencode(place_of_temporary_files())) > LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"
    try:
        folder = str(multiprocessing.util.get_temp_dir())
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    finally:
        tempfile.tempdir = usual


@contextmanager
def no_script() -> Iterator[None]:
    """Start processes that do not import the script that runs this one, as multiprocessing otherwise has them do."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
