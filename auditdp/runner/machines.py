"""Runs on several machines: by a dask cluster, or in shards that are merged.

Dask (``Cluster``, ``Remote``): The machine of the command collects audit files and
writes the log; only the audits run on the workers. If a worker dies, dask gives its
audits to another one. The result is the same, since the id of an audit keys its
randomness. A worker of dask runs its tasks in threads. There no signal can be caught
and, under a nanny, ``multiprocessing`` can start no process. So the worker starts a
Python process for every audit (``carry_out``, ``main``). That process runs one task
with its limits of time and memory, and ends with the worker.

Shards (``Shard``, ``merged``): Each machine plans the whole run, with the same root
seed, and runs a part of its audits. Shares of alpha and randomness are those of the
whole run, so the merged record equals that of one machine. Audits of a lost shard are
missing in the merged log, and can be run by resuming it.
"""

from __future__ import annotations

import logging
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter

from auditdp.errors import (
    ConfigurationError,
    MissingExtraError,
    StoppedError,
    die_with_parent,
)
from auditdp.record.results import RESULT, AuditResult, RunRecord
from auditdp.runner.child import TICK, WorkAnswer
from auditdp.runner.plan import Task
from auditdp.runner.pool import ResultRoom, Workers, failed
from auditdp.runner.run_record import Reading, differing, digest_of, scan_log, versions
from auditdp.runner.sandbox import UNCONFINED, Sandbox, sandbox_of

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 5.0
"""Seconds in which a scheduler has to answer."""


class Cluster:
    """A connection to a dask scheduler, which ends with this context.

    Args:
        address: An address such as ``tcp://node7:8786``, or the path of the file that
            the scheduler writes.
        say: Function that prints a message to the user.

    Raises:
        MissingExtraError: On entering the context, if dask is not installed.
        ConfigurationError: On entering the context, if no scheduler answers within
            ``PATIENCE`` seconds.
    """

    def __init__(self, address: str, *, say: Callable[[str], None]) -> None:
        self._address, self._say = address, say

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingExtraError.of(error) or error from error
        # Dask's own messages would repeat the exceptions below.
        for name in (
            "distributed",
            "distributed.client",
        ):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        where = {
            "scheduler_file"
            if Path(self._address).is_file()
            else "address": self._address
        }
        try:
            self._client: Client = Client(
                **where, timeout=PATIENCE, set_as_default=False
            )  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"--scheduler {self._address}: no dask scheduler answers within {PATIENCE:g} seconds ({error}); start one "
                "with: dask scheduler"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(timeout=PATIENCE)  # type: ignore[no-untyped-call]

    @property
    def count(self) -> int:
        """Number of audits that the present workers can run at the same time."""
        return sum(self._client.nthreads().values())  # type: ignore[no-untyped-call]

    def executor(
        self,
        record: RunRecord,
        sources: Sequence[Path],
        *,
        limit: float,
        memory: int | None,
        sandbox: Sandbox,
    ) -> Remote:
        """Return the executor of the audits of a run.

        Args:
            record: The record of the run before its first result.
            sources: Files from which the audits of the run are made.
            limit: Seconds that the import of an audit file may take.
            memory: Bytes of memory that an audit may allocate; None for no limit.
            sandbox: The sandbox of this machine, which workers must have as well.
        """
        if not self.count:
            self._say(
                f"the scheduler {self._address} has no workers yet; audits start with the first one"
            )
        return Remote(
            self._client,
            self._address,
            record,
            tuple(sources),
            limit,
            memory,
            sandbox,
            max(1, self.count),
        )


@dataclass(frozen=True)
class Remote:
    """Runs the audits of one run on a cluster, as ``Workers.run`` does on this machine.

    ``count`` is the number of audits that run at the same time. The other fields are
    the dask client, its address, and the arguments of ``Cluster.executor``.
    """

    client: Client
    address: str
    record: RunRecord
    sources: tuple[Path, ...]
    limit: float
    memory: int | None
    sandbox: Sandbox
    count: int

    def run(self, tasks: Sequence[Task]) -> Iterator[AuditResult]:
        """Yield the results of the tasks as they finish.

        The scheduler starts the tasks in order.

        Raises:
            StoppedError: If the scheduler ends, or an audit cannot be run.
            WorkerError: If a worker lacks the project, or differs from this machine.
        """
        from distributed import as_completed

        files, digest, run = (
            tuple(map(str, self.sources)),
            digest_of(self.sources),
            secrets.token_hex(4),
        )
        asked: dict[Any, Task] = {}
        for place, task in enumerate(tasks):
            order = ORDER.dump_json(
                Order(
                    task,
                    files,
                    digest,
                    self.record.versions,
                    self.limit,
                    self.memory,
                    self.sandbox,
                )
            )
            # The scheduler may still have results of earlier runs for these ids.
            key = f"{task.id}-{run}"
            asked[
                self.client.submit(
                    carry_out, order, task.root, key=key, priority=-place, pure=False
                )
            ] = task
        room = ResultRoom(len(tasks))
        try:
            for future in as_completed(asked, loop=self.client.loop):  # type: ignore[no-untyped-call]
                yield self._result(future, asked[future], room)
                future.release()
        finally:
            self.client.cancel(list(asked))  # type: ignore[no-untyped-call]

    def _result(self, future: Any, task: Task, room: ResultRoom) -> AuditResult:
        from distributed import KilledWorker

        try:
            return room.result(task, WorkAnswer(0, future.result()))
        except WorkerError:
            raise
        except CancelledError as error:
            raise StoppedError(
                f"the dask scheduler {self.address} went away; what was finished is in the log: start a scheduler, and "
                "continue with --resume, on it or on this machine"
            ) from error
        except KilledWorker as error:
            return failed(
                task,
                WorkAnswer(
                    0,
                    failed=f"the workers that ran it died, one after another: {error}",
                ),
            )
        except Exception as error:
            raise StoppedError(f"{task.id}: {type(error).__name__}: {error}") from error


SHOWN = 500
"""Number of characters that the error of a failed process quotes from its stderr."""


class WorkerError(StoppedError):
    """A worker of a cluster that fails, lacks the project, or has other code."""


@dataclass(frozen=True)
class Order:
    """The task of a worker, and the environment that the worker must have."""

    task: Task
    sources: tuple[str, ...]
    """Absolute paths of the files from which the audits of the run are made."""
    digest: str
    """Digest of ``sources`` and of auditdp."""
    versions: dict[str, str]
    """Versions of Python and libraries on the requesting machine, by name."""
    limit: float
    """Seconds that the import of the audit file may take."""
    memory: int | None
    """Bytes of memory that the audit may allocate; None for no limit."""
    sandbox: Sandbox = UNCONFINED
    """The sandbox on the requesting machine."""


ORDER: TypeAdapter[Order] = TypeAdapter(Order)


def carry_out(order: bytes, root: str) -> bytes:
    """Run an audit in a new process, from a thread of a dask worker.

    The process is ended early if the task was cancelled.

    Args:
        order: An ``Order`` as JSON.
        root: The folder of the project.

    Returns:
        An ``AuditResult`` as JSON.

    Raises:
        WorkerError: If the worker lacks the project, has other code than the requesting
            machine, or the process failed.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    command = [sys.executable, "-P", "-m", __name__]
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
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
                # The order was sent with the first call.
                given = None
                task = worker.state.tasks.get(key)
                if task is None or task.state == "cancelled":
                    process.kill()
    if process.returncode or not out:
        text = err.decode("utf-8", "backslashreplace").strip()[-SHOWN:]
        raise WorkerError(
            f"the worker {worker.address}: {text or f'exit code {process.returncode}'}"
        )
    return out


def _run(order: Order) -> bytes:
    """Run the audit of an order on this worker, and return its result as JSON.

    Raises:
        WorkerError: If code, versions or sandbox differ from those of the order.
    """
    # The cheap comparisons come first, since the sandbox is tried in a new process.
    here = {
        name: number
        for name, number in versions().items()
        if order.versions.get(name) != number
    }
    if here:
        there = {name: order.versions.get(name) for name in here}
        raise WorkerError(
            f"it has {here}, the run has {there}; give all machines the same environment"
        )
    if digest_of(map(Path, order.sources)) != order.digest:
        raise WorkerError(
            f"its files of the audits in {order.task.root}, or of auditdp, differ from those of the run; give all machines "
            "the same checkout"
        )
    held = sandbox_of(
        "auto" if order.sandbox.landlock else "off", network=order.sandbox.network
    )
    if str(held) != str(order.sandbox):
        raise WorkerError(
            f"its sandbox is {held}, that of the run {order.sandbox}; give all machines the same kernel, or --sandbox off"
        )
    with Workers(limit=order.limit, memory=order.memory, sandbox=held) as workers:
        (result,) = workers.run([order.task])
    return RESULT.dump_json(result)


def main() -> None:
    """Run the order on standard input, and write its result to standard output."""
    die_with_parent()
    try:
        sys.stdout.buffer.write(_run(ORDER.validate_json(sys.stdin.buffer.read())))
    except (StoppedError, ConfigurationError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()


@dataclass(frozen=True)
class Shard:
    """One part of a run that several machines share."""

    number: int
    """Number of the shard, from 1."""
    of: int
    """Number of all shards."""

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard that a text such as '2/8' names.

        Raises:
            ConfigurationError: If the text names no shard.
        """
        number, slash, of = text.partition("/")
        if not (
            slash
            and number.isdecimal()
            and of.isdecimal()
            and len(number + of) < 18
            and 1 <= int(number) <= int(of)
        ):
            raise ConfigurationError(
                f"--shard {text}: expected NUMBER/OF with 1 <= NUMBER <= OF, such as 2/8 for the second of 8"
            )
        return cls(int(number), int(of))

    @property
    def status(self) -> str:
        """The status of the finished shard's record, such as 'shard 2 of 8'."""
        return f"shard {self.number} of {self.of}"

    def own(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks of this shard: task ``number`` and each ``of``-th after it.

        Raises:
            ConfigurationError: If there are fewer audits than shards.
        """
        if len(tasks) < self.of:
            raise ConfigurationError(
                f"--shard {self.number}/{self.of}: there are {len(tasks)} audits; use fewer shards"
            )
        return list(tasks[self.number - 1 :: self.of])


def merged(logs: Sequence[Path]) -> Reading:
    """Return the record of a whole run from the logs of its shards.

    The status is 'complete' if no audit is missing, and 'interrupted' otherwise. If an
    audit has several results, the first one counts; if their verdicts differ, none
    does.

    Raises:
        ConfigurationError: If there are no logs, a log cannot be read, or the logs
            belong to different runs.
    """
    if not logs:
        raise ConfigurationError(
            "expected the logs of some shards, such as: auditdp merge shard-*.jsonl"
        )
    readings = [scan_log(path) for path in logs]
    first = readings[0].record
    results: dict[str, AuditResult] = {}
    twice: dict[str, str] = {}
    for path, reading in zip(logs, readings, strict=True):
        if found := differing(first, reading.record):
            raise ConfigurationError(
                f"{path} is of another run than {logs[0]}: {found}; shards have the same options, seed, versions and code"
            )
        for result in reading.record.results:
            if results.setdefault(result.id, result).verdict is not result.verdict:
                twice[result.id] = (
                    f"{path} has another verdict on {result.id} than the logs before it; none counts"
                )
    results = {name: result for name, result in results.items() if name not in twice}
    planned = [entry.audit for entry in first.alpha_ledger]
    # These are files that could not be imported.
    others = [result for name, result in results.items() if name not in planned]
    whole = replace(
        first,
        results=others + [results[name] for name in planned if name in results],
        seconds=sum(float(reading.record.seconds or 0) for reading in readings),
        started=min(reading.record.started for reading in readings),
        finished=max(reading.record.finished for reading in readings),
    )
    problems = [
        *(problem for reading in readings for problem in reading.problems),
        *twice.values(),
    ]
    whole = replace(whole, status="interrupted" if whole.missing else "complete")
    return Reading(
        whole, problems, is_whole=all(reading.is_whole for reading in readings)
    )
