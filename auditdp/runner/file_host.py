"""The process of one audit file: it imports the file and forks a child for every audit.

A child starts in milliseconds, since the file and the libraries are already imported.
No audit inherits the state of another one. If the import started threads or CUDA, a
fork is not safe. Then each audit of the file runs in a process that imports the file
itself (``alone``). The judging processes are forked from a process without any file
(``judges``).
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import NoReturn

from auditdp.errors import die_with_parent
from auditdp.numerics.streams import import_before_fork, one_thread
from auditdp.runner.child import (
    ANSWER,
    GRACE,
    TALKING,
    TICK,
    Child,
    Work,
    divert,
    perform,
    printed_to,
)
from auditdp.runner.collecting import collected_from

FORK = multiprocessing.get_context("fork")


def host(
    connection: Connection,
    path: Path,
    overrides: dict[str, str],
    folder: Path,
    limit: float,
) -> None:
    """Import an audit file, send its declarations, and do the work that arrives.

    This is the main function of the process, and it never returns.

    Args:
        connection: The pipe to the run.
        path: The audit file.
        overrides: Given parameters, as text.
        folder: The folder for the output of this process and its children.
        limit: Time limit of the import, in seconds. The run ends the process at this
            limit; without the run, the process ends itself a little later.
    """
    process, output = os.getpid(), folder / f"{os.getpid()}.host"
    threads = _threads()
    divert(output)
    # With the grace period the run comes first, and can report the reason.
    with leaving_with_the_run(limit + GRACE):
        collected = collected_from(path, Path.cwd(), overrides)
        if os.getpid() != process:
            # The file forked: this is a copy of its import, which must not answer.
            os._exit(1)
    sys.stdout.flush()
    printed = printed_to(output)
    forkable = (
        threading.active_count() == 1
        and _no_more_threads_than(threads)
        and not _has_cuda()
    )
    sent = replace(collected, forkable=forkable, printed=printed)
    connection.send_bytes(sent.as_json())
    if collected.failure or not forkable:
        os._exit(0)
    _serve(connection, folder)


def judges(connection: Connection, folder: Path) -> None:
    """Fork a judging child for every audit.

    This is the main function of a process that imports no file of a user. It never
    returns.

    Args:
        connection: The pipe to the run, which sends the work.
        folder: The folder for the output of this process and its children.
    """
    divert(folder / f"{os.getpid()}.judges")
    _serve(connection, folder)


def _serve(connection: Connection, folder: Path) -> NoReturn:
    # This caches the native libraries of this process for all its children.
    one_thread()
    gc.collect()
    # Frozen objects are not collected, so children share their memory.
    gc.freeze()
    try:
        _fork_for_all(connection, folder)
    finally:
        os._exit(0)


def _fork_for_all(connection: Connection, folder: Path) -> None:
    running: list[Child] = []
    # Libraries to import before the next child is forked, if there is one.
    missing: set[str] = set()
    limits = _limits()
    try:
        while True:
            wait(
                [connection, *(child.receiver for child in running)],
                TICK if running else None,
            )
            if connection.poll():
                work = pickle.loads(connection.recv_bytes())
                # For these kinds, the run sends the end of a pipe after the work.
                if work.kind in TALKING:
                    work = replace(
                        work,
                        arguments=(
                            Connection(recv_handle(connection)),
                            *work.arguments,
                        ),
                    )
                # An audit lowered a limit of this process, which cannot raise it again.
                # So this process ends, and the run starts another one.
                if _limits() != limits:
                    raise EOFError
                import_before_fork(missing)
                missing.clear()
                running.append(_start(work, connection, folder, running))
            for child in list(running):
                if (answer := child.answer()) is not None:
                    running.remove(child)
                    connection.send_bytes(ANSWER.dump_json(answer))
                    missing.update(answer.libraries)
    except (EOFError, OSError):
        # The run has ended or died, or it has to start another process.
        for child in running:
            child.end()


def _limits() -> list[object]:
    """Return the resource limits, priority and processors of this process.

    Any process of the same user, such as an audit, may lower them. Children inherit
    them.
    """
    import resource

    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    found: list[object] = [
        resource.getrlimit(getattr(resource, name)) for name in names
    ]
    found.append(os.getpriority(os.PRIO_PROCESS, 0))
    if hasattr(os, "sched_getaffinity"):
        found += [os.sched_getaffinity(0), os.sched_getscheduler(0)]
    return found


def _start(
    work: Work, connection: Connection, folder: Path, running: Sequence[Child]
) -> Child:
    with suppress(OSError):
        # An audit may have removed the permissions of the folder.
        folder.chmod(0o700)
    receiver, sender = FORK.Pipe(duplex=False)
    output = folder / f"{os.getpid()}.{work.number}"
    process = FORK.Process(target=_forked, args=(connection, sender, work, output))
    process.start()
    sender.close()
    if work.kind in TALKING:
        work.arguments[0].close()

    def end_left() -> None:
        work.sandbox.end_left(
            other.process.pid or 0 for other in running if other.process is not process
        )

    return Child(work, process, receiver, output, work.task.timeout, end_left)


def _forked(
    connection: Connection, sender: Connection, work: Work, output: Path
) -> None:
    die_with_parent()
    connection.close()
    work.sandbox.separate()
    perform(sender, work, output)


def alone(sender: Connection, work: Work, output: Path) -> None:
    """Do one piece of work in a process that has imported no audit file yet.

    It is used if the process of the file cannot be forked, or ended during this work.
    The arguments are those of ``perform``.
    """
    die_with_parent()
    limit = None if work.task.timeout is None else work.task.timeout + 2 * GRACE
    with leaving_with_the_run(limit):
        perform(sender, work, output)


@contextmanager
def leaving_with_the_run(limit: float | None) -> Iterator[None]:
    """End this process if the run ends during the block, or at a time limit.

    It ends even if native code is running.

    Args:
        limit: Seconds; None for no limit.
    """
    run, done = multiprocessing.parent_process(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            if run is not None and wait([run.sentinel], 0.05):
                os._exit(1)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    with open(os.devnull, "w") as nothing:
        # This timer also ends a process whose native code holds the interpreter's lock,
        # which stops the thread above.
        if limit is not None:
            faulthandler.dump_traceback_later(limit, exit=True, file=nothing)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            done.set()
            watching.join()


def _no_more_threads_than(before: int) -> bool:
    """Return True if this process has at most ``before`` threads.

    The check is repeated for some milliseconds, since a thread that has just ended may
    still be counted.
    """
    for _ in range(10):
        if _threads() <= before:
            return True
        time.sleep(0.002)
    return False


def _threads() -> int:
    """Return the number of threads of this process, also of native libraries.

    Returns:
        The number, or 1 if the system does not report it.
    """
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))
    return 1


def _has_cuda() -> bool:
    """Return True if the CUDA driver is loaded, which does not survive a fork."""
    with suppress(OSError):
        return "libcuda.so" in Path("/proc/self/maps").read_text()
    return False
