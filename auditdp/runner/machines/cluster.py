"""The executor that runs audits on the workers of a dask scheduler.

Audit files are collected here, results are logged here, by one writer; only the audits themselves run elsewhere. Where a
worker dies, dask gives its audits to another one, and since the randomness of an audit is keyed by the audit, the result is
the same.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from auditdp.errors import ConfigurationError, MissingExtraError, StoppedError
from auditdp.record.results import AuditResult, RunRecord
from auditdp.runner.machines.remote import ORDER, Order, WorkerError, carry_out
from auditdp.runner.plan import Task
from auditdp.runner.processes.children import WorkAnswer
from auditdp.runner.processes.sandbox import Sandbox
from auditdp.runner.processes.workers import ResultRoom, failed
from auditdp.runner.record import digest_of

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 5.0
"""Seconds in which a scheduler has to answer."""


class Cluster:
    """A connection to a dask scheduler, which ends with this context.

    The address is such as ``tcp://node7:8786``, or the path of the file that the scheduler writes.
    """

    def __init__(self, address: str, *, say: Callable[[str], None]) -> None:
        self._address, self._say = address, say

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingExtraError.of(error) or error from error
        for name in ("distributed", "distributed.client"):  # what matters is said by the exceptions below
            logging.getLogger(name).setLevel(logging.CRITICAL)
        where = {"scheduler_file" if Path(self._address).is_file() else "address": self._address}
        try:
            self._client: Client = Client(**where, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
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
        """How many audits run at a time, as the workers are now."""
        return sum(self._client.nthreads().values())  # type: ignore[no-untyped-call]

    def executor(
        self, record: RunRecord, sources: Sequence[Path], *, limit: float, memory: int | None, sandbox: Sandbox
    ) -> Remote:
        """Return what runs the audits of a run."""
        if not self.count:
            self._say(f"the scheduler {self._address} has no workers yet; audits start with the first one")
        return Remote(self._client, self._address, record, tuple(sources), limit, memory, sandbox, max(1, self.count))


@dataclass(frozen=True)
class Remote:
    """Runs the audits of one run on a cluster, as ``Workers.run`` does it here; see ``Cluster.executor``."""

    client: Client
    address: str
    record: RunRecord
    sources: tuple[Path, ...]
    limit: float
    memory: int | None
    sandbox: Sandbox
    count: int

    def run(self, tasks: Sequence[Task]) -> Iterator[AuditResult]:
        """Yield the results of the tasks as they are finished; the scheduler starts them in order.

        Raises:
            StoppedError: If the scheduler goes away, or a worker cannot run an audit as this machine would.
        """
        from distributed import as_completed

        files, digest, run = tuple(map(str, self.sources)), digest_of(self.sources), secrets.token_hex(4)
        asked: dict[Any, Task] = {}
        for place, task in enumerate(tasks):
            order = ORDER.dump_json(
                Order(task, files, digest, self.record.versions, self.limit, self.memory, self.sandbox)
            )
            key = f"{task.id}-{run}"
            asked[self.client.submit(carry_out, order, task.root, key=key, priority=-place, pure=False)] = task
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
            return failed(task, WorkAnswer(0, failed=f"the workers that ran it died, one after another: {error}"))
        except Exception as error:
            raise StoppedError(f"{task.id}: {type(error).__name__}: {error}") from error
