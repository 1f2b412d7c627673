"""One audit on a machine of a cluster: a process of its own there, with the isolation that an audit has on this one.

A worker of dask runs its tasks in threads, in which no signal can be caught and, under a nanny, no process started by
``multiprocessing``. So it starts a Python of its own for every audit. That process is the run of one task: it forks the
audit, with its limits of time and memory, and ends with the worker.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from auditdp.errors import ConfigurationError, StoppedError
from auditdp.mechanism.ending import die_with_parent
from auditdp.record.results import RESULT
from auditdp.runner.plan import Task
from auditdp.runner.processes.children import TICK
from auditdp.runner.processes.sandbox import OFF, UNCONFINED, Sandbox, sandbox_of
from auditdp.runner.processes.workers import Workers
from auditdp.runner.record import digest_of, versions

SHOWN = 500
"""Characters that are shown of what a process printed before it died."""


class WorkerError(StoppedError):
    """A worker of a cluster on which no audit can be run as it would be run here."""


@dataclass(frozen=True)
class Order:
    """What a worker is asked to do, and what it needs to do it as the machine that asks would."""

    task: Task
    sources: tuple[str, ...]
    """Files that the audits of the run are made of, absolute."""
    digest: str
    """Of these files and of auditdp's own."""
    versions: dict[str, str]
    limit: float
    memory: int | None
    sandbox: Sandbox = UNCONFINED
    """What holds it on the machine that asks."""


ORDER: TypeAdapter[Order] = TypeAdapter(Order)


def carry_out(order: bytes, root: str) -> bytes:
    """Run an audit from a thread of a dask worker; the process ends early where nobody waits for its result any more.

    The order is an ``Order`` as JSON, and what is returned an ``AuditResult``; ``root`` is the folder of the project.

    Raises:
        WorkerError: If the worker lacks the project, or has other code than the machine that asks.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    command = [sys.executable, "-P", "-m", __name__]
    try:
        process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise WorkerError(
            f"the worker {worker.address} cannot start in {root}: {error.strerror}; workers need the project in the same "
            "folder, by a shared file system or in their image"
        ) from error
    with process:
        given: bytes | None = order
        while True:
            try:
                out, err = process.communicate(given, timeout=TICK)
                break
            except subprocess.TimeoutExpired:
                given = None  # it has been, or is being, sent
                task = worker.state.tasks.get(key)
                if task is None or task.state == "cancelled":
                    process.kill()
    if process.returncode or not out:
        text = err.decode("utf-8", "backslashreplace").strip()[-SHOWN:]
        raise WorkerError(f"the worker {worker.address}: {text or f'exit code {process.returncode}'}")
    return out


def _run(order: Order) -> bytes:
    """Return the result of an order as JSON."""
    here = {name: number for name, number in versions().items() if order.versions.get(name) != number}
    if here:
        there = {name: order.versions.get(name) for name in here}
        raise WorkerError(f"it has {here}, the run has {there}; give all machines the same environment")
    if digest_of(map(Path, order.sources)) != order.digest:
        raise WorkerError(
            f"its files of the audits in {order.task.root}, or of auditdp, differ from those of the run; give all machines "
            "the same checkout"
        )
    held = sandbox_of("auto" if order.sandbox.landlock else OFF, network=order.sandbox.network)
    if str(held) != str(order.sandbox):
        raise WorkerError(
            f"its sandbox is {held}, that of the run {order.sandbox}; give all machines the same kernel, or --sandbox off"
        )
    with Workers(limit=order.limit, memory=order.memory, sandbox=held) as workers:
        (result,) = workers.run([order.task])
    return RESULT.dump_json(result)


def main() -> None:
    """Run the order that standard input has, and write its result to standard output."""
    die_with_parent()
    try:
        sys.stdout.buffer.write(_run(ORDER.validate_json(sys.stdin.buffer.read())))
    except (StoppedError, ConfigurationError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
