"""Imported first by multiprocessing's fork server, which every process of a run is forked from.

It imports what audit files need, once; belongs to a process group of its own, so that an interrupt from the terminal reaches
the run alone; and when the run has ended, however it did, it ends all processes of it and what they left running, which
become its children, and removes their folder.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = "AUDITDP_FORKSERVER"
"""Environment variable with the folder to remove."""
SAFE = "PYTHONSAFEPATH"
"""Otherwise Python puts the working folder first on its path, and joblib.py in it would take the library's place."""
ADOPT = 36
"""The number by which a process asks to become the parent of what its descendants leave behind."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Threads of numerical libraries wait for each other where audits use the cores, and do not survive a fork."""


@contextmanager
def environment(folder: str) -> Iterator[None]:
    """Set what a fork server that is started here finds in its environment, and set it back."""
    before = dict(os.environ)
    os.environ.update({name: "1" for name in THREADS if name not in before})
    os.environ.update({SAFE: before.get(SAFE, "for auditdp"), FOLDER: folder})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def settle(folder: str) -> None:
    """Make this process the one that others are forked from, and that cleans up after the last of them."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT, 1)
    if os.environ.get(SAFE) == "for auditdp":
        del os.environ[SAFE]
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # a pipe behind the run must end with the run
        os.dup2(nothing, stream)
    if nothing > 2:  # else it took the place of a stream that was closed
        os.close(nothing)
    atexit.register(_clean, folder, os.getpid())


def _clean(folder: str, settled: int) -> None:
    if os.getpid() == settled:
        with suppress(OSError):  # there are no more
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
    import auditdp.runner.processes.host  # noqa: F401 - with all that the import of audit files needs
    from auditdp.numerics.threads import one_thread

    one_thread()  # what it looks for, forks need not look for
