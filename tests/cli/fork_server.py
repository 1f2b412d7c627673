"""Runs the command line in forks of one process that has imported everything already: milliseconds, not seconds.

The fork server from which a command forks its own processes is such a fork too.

Reads requests from standard input, one JSON object a line; answers with the process id and then the exit code of each.
A fork leaves the loop and becomes the command, so that nothing of one command is left for the next.
"""

import atexit
import gc
import importlib
import json
import os
import socket
import sys
from contextlib import suppress
from functools import cache
from multiprocessing import connection, forkserver, resource_tracker, util


def preload() -> None:
    """Import what the commands import, so that every fork has it."""
    import hypothesis  # noqa: F401
    import joblib  # noqa: F401
    import matplotlib.backends.backend_svg
    import matplotlib.style  # noqa: F401
    import rich.progress  # noqa: F401
    import scipy.linalg.lapack  # noqa: F401
    import threadpoolctl  # noqa: F401
    from pydantic import TypeAdapter

    import auditdp.auditing.mutants
    import auditdp.runner.child_jobs
    import auditdp.runner.file_host
    import auditdp.testing
    import auditdp.training  # noqa: F401 - what processes of audit files and audits need
    from auditdp.cli import run_command, running  # noqa: F401
    from auditdp.numerics.streams import one_thread
    from auditdp.record.results import RunRecord
    from auditdp.report.formats import render
    from auditdp.runner import run_record

    render(RunRecord(0, "complete", {}, {}, "", "", [], []), "html")
    one_thread()
    run_record.version = cache(run_record.version)
    run_record.versions()
    for each in gc.get_objects():
        if isinstance(each, TypeAdapter):
            each.rebuild()  # else every process that validates by it does


def serve() -> dict | None:
    """Fork for every request; return the request in the fork, None in the server at the end of its input."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            return json.loads(line)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(request: dict) -> None:
    """Take on the folder, environment, arguments and streams of the request, in a process group of its own."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(name, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["auditdp", *request["arguments"]]


def fork_the_fork_server() -> None:
    """What ``multiprocessing.forkserver.ensure_running`` does, with a fork in the place of a new interpreter."""
    from auditdp.runner import start_up as own_forkserver

    server = forkserver._forkserver
    if server._forkserver_address is not None:
        return
    folder = os.environ[own_forkserver.FOLDER]
    address = connection.arbitrary_address("AF_UNIX")
    alive_r, alive_w = os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    if os.fork() == 0:
        last = 2  # a new interpreter would have these alone; a copy of the run's end of a pipe would keep a process waiting
        for kept in sorted((listener.fileno(), alive_r)):
            os.closerange(last + 1, kept)
            last = kept
        os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.pop(own_forkserver.FOLDER)
        atexit.unregister(leave)
        own_forkserver.settle(folder)
        try:
            forkserver.main(listener.detach(), alive_r, [])
        finally:
            own_forkserver._clean(folder, os.getpid())
            os._exit(0)
    listener.close()
    os.close(alive_r)
    resource_tracker.ensure_running()
    server._forkserver_address, server._forkserver_alive_fd = address, alive_w


ENDED: list[int] = []


def leave() -> None:
    """End a command that has ended, without taking every imported module apart first."""
    if ENDED:
        util._run_finalizers()  # which remove the folder for temporary files
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ENDED[0])


if __name__ == "__main__":
    atexit.register(
        leave
    )  # before anything is imported, so that it is called after everything else
    preload()
    for module in sys.argv[1:]:
        with suppress(ImportError):  # it is optional
            importlib.import_module(module)
    gc.freeze()
    received = serve()
    if received is not None:
        become(received)
        forkserver.ensure_running = forkserver._forkserver.ensure_running = (
            fork_the_fork_server
        )
        from auditdp.cli import main

        exec(received["patch"], {})
        try:
            sys.exit(main())
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                ENDED.append(end.code or 0)
            raise
