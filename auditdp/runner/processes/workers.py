"""The processes of a run: one for every audit file, which forks one for every audit.

Nothing of a user is imported or called in this process, so nothing that it does can end the run, change its verdicts or
write to its log. A process that dies costs the audit that it ran: where audits were forked from it, each is run again, in a
process of its own with nothing beside it.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver as forkserver
import multiprocessing.util
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from auditdp.errors import StoppedError
from auditdp.record.results import RESULT, AuditResult, Verdict
from auditdp.runner.plan import COLLECTED, Collected, Task
from auditdp.runner.processes import forkserver as own_forkserver
from auditdp.runner.processes.children import ANSWER, GRACE, TICK, Child, Work, WorkAnswer, how_it_ended
from auditdp.runner.processes.entry import open_host, work_alone

CONTEXT = multiprocessing.get_context("forkserver")
COLLECTION_SECONDS = 60.0
"""Seconds that the import of an audit file may take."""
KEPT = 64
"""Processes of audit files that wait for their audits at a time; beyond, a file is imported again for them."""
MANY = 3
"""From so many audit files on, what most audits need is imported before any is forked, and not once for each file."""
NEEDED = ["sklearn.ensemble", "sklearn.linear_model"]
AUDITING = ("auditdp.runner.processes.jobs",)
"""What every audit needs, which is imported before any file; a command that only collects goes without."""
LONGEST_FOLDER = 72
"""Bytes of a folder's name in which sockets can have names: the kernel takes 107, and multiprocessing adds at most 32."""


class CrashError(StoppedError):
    """A process that was to say something about an audit and died."""


@dataclass
class _Host:
    """The process of one audit file."""

    path: Path
    process: BaseProcess
    connection: Connection
    collected: Collected | None = None
    busy: dict[int, Work] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)

    def late(self, limit: float) -> bool:
        """Whether it should have said something by now."""
        if self.collected is None:
            return time.monotonic() > self.since + limit
        limits = [work.task.timeout for work in self.busy.values()]
        return bool(limits) and None not in limits and time.monotonic() > self.since + max(limits) + 3 * GRACE

    def end(self) -> None:
        """End it, and all that it forked."""
        self.connection.close()
        self.process.join(0.5 if not self.busy else GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(GRACE)


class Workers:
    """Collects audit files and runs audits, in processes that end with this context.

    Attributes:
        count: Processes that work at a time.

    Args:
        overrides: Parameters that were given, as text.
        limit: Seconds that the import of a file may take.
        memory: Bytes that an audit may take; None for no limit.
        count: Processes that work at a time.
        heard: Called with a file and what it printed while it was imported.
        needed: Modules that are imported once, before any file.
    """

    def __init__(
        self,
        *,
        overrides: Mapping[str, str] | None = None,
        limit: float = COLLECTION_SECONDS,
        memory: int | None = None,
        count: int = 1,
        heard: Callable[[Path, str], None] = lambda path, text: None,
        needed: Sequence[str] = AUDITING,
    ) -> None:
        self._overrides, self._limit, self._memory, self.count = dict(overrides or {}), limit, memory, count
        self._heard, self._needed = heard, tuple(needed)
        self._hosts: dict[Path, _Host] = {}
        self._collected: dict[Path, Collected] = {}
        self._alone: list[Child] = []
        self._numbers = 0

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="run-", dir=_temporary_folder()))
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._alone:
            child.end()
        for host in list(self._hosts.values()):
            self._close(host)
        shutil.rmtree(self._folder, ignore_errors=True)
        _temporary_folder()  # multiprocessing removes it at the end, and says so where it is gone

    @property
    def sources(self) -> set[Path]:
        """Files below the working folder that the collected files are made of."""
        return {Path(name) for collected in self._collected.values() for name in collected.sources}

    def collect(self, paths: Sequence[Path]) -> list[Collected]:
        """Import audit files and return what each declares; one that does not import in time has failed, and is named."""
        resolved = [path.resolve() for path in paths]
        waiting = deque(dict(zip(resolved, paths, strict=True)).items())
        if len(waiting) >= MANY and self._needed:
            self._needed = (*self._needed, *NEEDED)
        opened: dict[Path, _Host] = {}
        while waiting or opened:
            while waiting and len(opened) < self.count:
                path, label = waiting.popleft()
                if path not in self._collected:
                    opened[label] = self._open(path)
            if opened:
                wait([host.connection for host in opened.values()], TICK)
            for label, host in list(opened.items()):
                found = self._said(host, label)
                if found is None:
                    continue
                del opened[label]
                self._collected[host.path] = host.collected = found
                if found.printed:
                    self._heard(label, found.printed)
                if found.failure or not found.forkable or len(self._hosts) > KEPT:
                    self._close(host)
        return [self._collected[path] for path in resolved]

    def run(self, tasks: Sequence[Task]) -> Iterator[AuditResult]:
        """Yield the results of the tasks as they are finished, started in order."""
        for task, answer in self._work([("run", task, ()) for task in tasks]):
            if answer.value is None:
                yield failed(task, answer)
            else:
                yield replace(RESULT.validate_json(answer.value), printed=answer.printed)

    def ask(self, kind: str, task: Task, *arguments: Any) -> Any:
        """Return the value of one piece of work.

        Raises:
            CrashError: If there is none.
        """
        ((_, answer),) = self._work([(kind, task, arguments)])
        if answer.value is None:
            raise CrashError(f"{task.id}: {answer.failed}")
        return answer.value

    def _work(self, wanted: Sequence[tuple[str, Task, tuple[Any, ...]]]) -> Iterator[tuple[Task, WorkAnswer]]:
        waiting = deque((self._numbered(kind, task, arguments), False) for kind, task, arguments in wanted)
        left = Counter(Path(task.path) for _, task, _ in wanted)
        for path in set(self._hosts) - set(left):
            self._close(self._hosts[path])
        running: dict[int, bool] = {}
        while waiting or running:
            # What is suspected of having ended the work of others runs with nothing beside it.
            while waiting and len(running) < self.count and not (running and (waiting[0][1] or any(running.values()))):
                work, alone = waiting.popleft()
                running[work.number] = alone
                self._begin(work, alone=alone)
            for work, answer in self._answers():
                del running[work.number]
                if answer is None:
                    waiting.appendleft((work, True))
                    continue
                path = Path(work.task.path)
                left[path] -= 1
                if not left[path] and path in self._hosts:
                    self._close(self._hosts[path])
                yield work.task, answer

    def _numbered(self, kind: str, task: Task, arguments: tuple[Any, ...]) -> Work:
        self._numbers += 1
        return Work(self._numbers, kind, task, arguments, self._memory)

    def _begin(self, work: Work, *, alone: bool) -> None:
        path = Path(work.task.path)
        if path in self._hosts and not self._hosts[path].process.is_alive():
            self._close(self._hosts[path])
        if not alone and path not in self._hosts and self._collected.get(path, Collected()).forkable:
            self._reopen(path)
        if alone or path not in self._hosts:
            self._alone.append(self._spawn_alone(work))
            return
        host = self._hosts[path]
        host.busy[work.number] = work
        host.since = time.monotonic()
        with suppress(OSError):  # it may have died, which is seen when its answer is looked for
            host.connection.send_bytes(pickle.dumps(work))

    def _reopen(self, path: Path) -> None:
        """Import a file again for its audits; where that fails now, an audit that runs alone says so."""
        host = self._open(path)
        while host.collected is None:
            wait([host.connection], TICK)
            host.collected = self._said(host, path)
        if host.collected.failure or not host.collected.forkable:
            self._close(host)

    def _answers(self) -> Iterator[tuple[Work, WorkAnswer | None]]:
        """Wait, and yield what was answered; None where the process that the work was forked from is no more."""
        hosts = [host for host in self._hosts.values() if host.busy]
        wait([*(host.connection for host in hosts), *(child.receiver for child in self._alone)], TICK)
        for child in list(self._alone):
            if (answer := child.answer()) is not None:
                self._alone.remove(child)
                yield child.work, answer
        for host in hosts:
            try:
                while host.busy and host.connection.poll():
                    answer = ANSWER.validate_json(host.connection.recv_bytes())
                    host.since = time.monotonic()
                    yield host.busy.pop(answer.number), answer
            except (EOFError, OSError, ValueError):
                yield from self._lost(host)
                continue
            if host.late(self._limit):
                yield from self._lost(host)

    def _lost(self, host: _Host) -> Iterator[tuple[Work, WorkAnswer | None]]:
        busy, host.busy = list(host.busy.values()), {}
        self._close(host)
        for work in busy:
            yield work, None

    def _said(self, host: _Host, label: Path) -> Collected | None:
        """Return what a host says it has collected, or that it has died or takes too long; None while it works."""
        try:
            if host.connection.poll():
                return COLLECTED.validate_json(host.connection.recv_bytes())
        except (EOFError, OSError, ValueError):
            host.process.join(GRACE)
            how = how_it_ended(host.process.exitcode)
            return Collected(failure=f"{label}: the process that imported it died ({how})")
        if host.late(self._limit):
            host.process.kill()
            return Collected(
                failure=f"{label}: its import was stopped after {self._limit:g} seconds; move what takes long into a "
                "function, or raise --collection-timeout"
            )
        return None

    def _open(self, path: Path) -> _Host:
        here, there = CONTEXT.Pipe()
        process = _spawned(self._needed, open_host, there, path, self._overrides, self._folder, self._limit)
        there.close()
        host = self._hosts[path] = _Host(path, process, here)
        return host

    def _spawn_alone(self, work: Work) -> Child:
        receiver, sender = CONTEXT.Pipe(duplex=False)
        output = self._folder / f"{os.getpid()}.{work.number}"
        process = _spawned(self._needed, work_alone, sender, work, output)
        sender.close()
        return Child(work, process, receiver, output, work.task.timeout)

    def _close(self, host: _Host) -> None:
        self._hosts.pop(host.path, None)
        host.end()


def failed(task: Task, answer: WorkAnswer) -> AuditResult:
    """Return the ERROR of an audit whose process did not answer."""
    return AuditResult(
        id=task.id,
        verdict=Verdict.ERROR,
        summary=f"{task.id}: {answer.failed}",
        expected=task.expect,
        alpha=task.alpha,
        reproduce=task.reproduce,
        printed=answer.printed,
    )


def _temporary_folder() -> str:
    """Return the folder for sockets and outputs of this process; in /tmp where the name of the usual place is too long.

    It is made again where somebody has removed it.
    """
    usual = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"
    try:
        folder = str(multiprocessing.util.get_temp_dir())
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    finally:
        tempfile.tempdir = usual


def _start_forkserver(needed: Sequence[str]) -> None:
    """Start the process from which all others are forked, unless it runs."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a process that died is seen when it is written to
    forkserver.set_forkserver_preload([own_forkserver.__name__, *needed])
    with own_forkserver.environment(_temporary_folder()), _no_script():
        forkserver.ensure_running()


def _end_forkserver() -> None:
    """End the process from which all are forked, and all of them, so that the next start makes another."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _spawned(needed: Sequence[str], target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Return a process that was started, also where an audit has just killed what all are forked from.

    Args:
        needed: Modules that whatever it is forked from has imported.
        target: What it calls.
        arguments: With which arguments.

    Raises:
        CrashError: If none can be started.
    """
    for _ in range(3):
        process = CONTEXT.Process(target=target, args=arguments)
        try:
            _start_forkserver(needed)
            with _no_script():
                process.start()
        except (EOFError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, FileNotFoundError | ConnectionRefusedError):
                _end_forkserver()  # its socket is gone, with the folder
            time.sleep(0.1)
        else:
            return process
    raise CrashError(f"no process can be started ({reason}); what was finished is safe")


@contextmanager
def _no_script() -> Iterator[None]:
    """Start processes that do not import the script that runs this one, as multiprocessing otherwise has them do."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
