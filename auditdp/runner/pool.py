"""The processes of a run: one for every audit file and audit, and judging processes.

``Workers`` starts them all. Neither this process nor the judging processes import or
call code of users. The sandbox, if the kernel has one, prevents audits from ending them
or writing to the log.

An audit has two processes with a pipe between them. One judges the audit. The other one
is forked from the process of the audit file, and answers about the mechanism. If one of
them dies, only this audit is affected. If the process of the file dies, or that of the
judges, each of its unfinished audits runs again. It then runs alone: no other audit
runs at the same time, and a new process imports its file.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver as forkserver
import os
import pickle
import select
import signal
import socket
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter

from auditdp.errors import ConfigurationError, StoppedError
from auditdp.files import FileLimits, json_of, open_file, remove, without_middle
from auditdp.runner.child import (
    ANSWER,
    GRACE,
    NO_ANSWER,
    TICK,
    Child,
    Inbox,
    Work,
    WorkAnswer,
    how_it_ended,
)
from auditdp.runner.plan import Collected, Task
from auditdp.runner.sandbox import UNCONFINED, Sandbox
from auditdp.runner.start_up import (
    AUDITING,
    NEEDED,
    StartLimits,
    no_script,
    open_host,
    open_judges,
    start_forkserver,
    temporary_folder,
    work_alone,
)

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult

COLLECTED: TypeAdapter[Collected] = TypeAdapter(Collected)
CONTEXT = multiprocessing.get_context("forkserver")
COLLECTION_SECONDS = 60.0
"""Default number of seconds that the import of an audit file may take."""
KEPT = 64
"""Largest number of processes of audit files that wait for their audits. Further files
are imported again when their audits run."""


FOREIGN = "its process named audits that are not its own; an import must not change what is collected"


def answer_of(kind: str) -> TypeAdapter[Any]:
    """Return the adapter of pydantic that validates the result of a kind of work.

    Args:
        kind: 'again', 'show' or 'trace'.
    """
    # This import is slow, and collecting does not need it.
    from auditdp.runner.run_record import (
        TracedAudit,
    )

    shown = (
        dict[Literal["refused", "crashed"], str]
        | dict[Literal["rows"], list[tuple[str, str]]]
    )
    traced = (
        dict[Literal["refused", "crashed", "skipped"], str]
        | dict[Literal["trace"], TracedAudit]
    )
    some = Field(min_length=1)
    kinds: dict[str, Any] = {
        "again": list[str],
        "show": Annotated[shown, some],
        "trace": Annotated[traced, some],
    }
    return TypeAdapter(kinds[kind])


class CrashError(StoppedError):
    """A process of an audit that died, cannot be started, or sent an invalid answer."""


class FullError(StoppedError):
    """A folder for temporary files in which no further folder can be made."""


@dataclass
class _Host:
    """A process from which children are forked: of one audit file, or of the judges."""

    path: Path
    process: BaseProcess
    connection: Connection
    collected: Collected | None = None
    """The declarations of the file or its failure; None during its import."""
    busy: dict[int, Work] = field(default_factory=dict)
    """Work of the children of this process, by its number."""
    since: float = field(default_factory=time.monotonic)
    """The latest of three times: of the start, the last given work, the last answer."""
    folder: Path | None = None
    """Its folder; in the sandbox, the only one to which it may write."""

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.connection)

    def late(self, limit: float) -> bool:
        """Return True if the next answer of the process is overdue.

        During the import of a file, the answer is the declarations. Later it is late
        after the longest time limit of the work, and three times ``GRACE``. Work
        without a limit is never late.

        Args:
            limit: Seconds that the import of the file may take.
        """
        if self.collected is None:
            return time.monotonic() > self.since + limit
        limits = [work.task.timeout for work in self.busy.values()]
        return (
            bool(limits)
            and None not in limits
            and time.monotonic() > self.since + max(limits) + 3 * GRACE
        )

    def end(self) -> None:
        """End the process and all its children, and remove its folder."""
        self.connection.close()
        self.process.join(0.5 if not self.busy else GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(GRACE)
        if self.folder is not None:
            # Files of an audit may have filled the disk, which the log needs.
            remove(self.folder)


@dataclass
class _TwoProcesses:
    """An audit that runs, with the outcomes of its two processes."""

    work: Work
    pipe: Connection
    """The judging process's end of the pipe between both."""
    alone: bool
    """True if no other work runs at the same time."""
    answers: dict[str, WorkAnswer | None] = field(default_factory=dict)
    """The outcome of each ended process, by kind of work: 'run' judges, 'serve'
    answers. An outcome is None if the parent of its process ended first."""

    def ended(self, part: Work, answer: WorkAnswer | None) -> bool:
        """Record the outcome of one process, and close the pipe so that the other ends.

        Returns:
            True if both have ended.
        """
        self.answers[part.kind] = answer
        if len(self.answers) == 1:
            # The judge has a copy of this end, which only a shutdown reaches.
            with (
                suppress(OSError),
                socket.socket(fileno=os.dup(self.pipe.fileno())) as pipe,
            ):
                pipe.shutdown(socket.SHUT_RDWR)
            return False
        self.pipe.close()
        return True

    @property
    def answer(self) -> WorkAnswer | None:
        """The outcome of the audit; None if it has to run again, alone."""
        judged, served = self.answers["run"], self.answers["serve"]
        # An audit that runs alone has itself ended the process that judged it.
        if judged is None:
            died = (
                served.failed
                if served is not None and served.failed
                else "the process that judged it died"
            )
            return WorkAnswer(self.work.number, failed=died) if self.alone else None
        if served is None:
            # The loss of the mechanism's process can only have caused an ERROR.
            found = (
                isinstance(judged.value, str)
                and json_of(judged.value)["verdict"] != "ERROR"
            )
            return judged if found else None
        return replace(
            judged,
            failed=judged.failed or served.failed,
            printed=served.printed + judged.printed,
        )


class Workers:
    """Collects audit files and runs audits, in processes that end with this context.

    Args:
        overrides: Parameters of the audits, as text.
        limit: Seconds that the import of a file may take.
        memory: Bytes of memory that each process of an audit may allocate; None for no
            limit.
        sandbox: The isolation of the processes.
        count: Largest number of audits that run at the same time, and of files that
            are imported at the same time.
        on_print: Called with a file and the text that its import printed.
        needed: Modules that are imported once, before any file.
    """

    def __init__(
        self,
        *,
        overrides: Mapping[str, str] | None = None,
        limit: float = COLLECTION_SECONDS,
        memory: int | None = None,
        sandbox: Sandbox = UNCONFINED,
        count: int = 1,
        on_print: Callable[[Path, str], None] = lambda path, text: None,
        needed: Sequence[str] = AUDITING,
    ) -> None:
        self._overrides, self._limit, self._memory, self.count = (
            dict(overrides or {}),
            limit,
            memory,
            count,
        )
        self._on_print, self._needed, self._sandbox = on_print, tuple(needed), sandbox
        self._hosts: dict[Path, _Host] = {}
        self._collected: dict[Path, Collected] = {}
        self._alone: list[Child] = []
        self._judges: _Host | None = None
        self._judged: dict[int, _TwoProcesses] = {}
        self._known: list[tuple[Work, WorkAnswer | None]] = []
        """Outcomes of work that no process will report; None if it has to run again."""
        self._sizes: dict[str, int] = {}
        self._numbers = 0

    def __enter__(self) -> Self:
        self._folder = _new_folder(Path(temporary_folder()), "run-")
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._alone:
            child.end()
        for host in self._all_hosts():
            self._close(host)
        for trial in self._judged.values():
            trial.pipe.close()
        remove(self._folder)
        # Multiprocessing removes its folder at the end, and prints an error if that is
        # missing. This makes it again.
        temporary_folder()

    @property
    def sources(self) -> set[Path]:
        """The collected audit files, and the files of the project that they import.

        The files of the project are those below the working folder.
        """
        own = {path for path in self._collected if str(path) in self._sizes}
        return own.union(
            Path(name)
            for collected in self._collected.values()
            for name in collected.sources
        )

    def collect(self, paths: Sequence[Path]) -> list[Collected]:
        """Import audit files, and return the declarations or the failure of each.

        The order is that of ``paths``. An import that takes too long is a failure. A
        file that was collected before is not imported again.
        """
        resolved = [Path(os.path.realpath(path)) for path in paths]
        waiting = deque(dict(zip(resolved, paths, strict=True)).items())
        if len(waiting) >= StartLimits.many_files and self._needed:
            self._needed = (*self._needed, *NEEDED)
        opened: dict[Path, _Host] = {}
        while waiting or opened:
            while waiting and len(opened) < self.count:
                path, label = waiting.popleft()
                if path in self._collected:
                    continue
                try:
                    self._sizes[str(path)] = _size_of(path, path.parent)
                    opened[label] = self._open(path)
                except (ConfigurationError, FullError) as error:
                    self._collected[path] = Collected(failure=f"{label}: {error}")
            if opened:
                wait([host.connection for host in opened.values()], TICK)
            for label, host in list(opened.items()):
                found = self._collection_of(host, label)
                if found is None:
                    continue
                del opened[label]
                # If the import filled the disk, its process is closed, with its files.
                if _is_full(self._folder):
                    found = Collected(
                        failure=f"{label}: after its import there is no room in {self._folder}"
                    )
                self._collected[host.path] = host.collected = found
                if found.printed:
                    self._on_print(label, found.printed)
                if found.failure or not found.forkable or len(self._hosts) > KEPT:
                    self._close(host)
        return [self._collected[path] for path in resolved]

    def run(self, tasks: Sequence[Task]) -> Iterator[AuditResult]:
        """Run audits, and yield the result of each that ends.

        Audits that run at the same time are of different files, if possible: the first
        audit of a file imports the libraries that the others then have at their start.
        The files are started in the given order, and so are the audits of a file.

        Raises:
            CrashError: If no process can be started.
        """
        room = ResultRoom(len(tasks))
        ordered = _files_in_turn(tasks, self.count)
        for task, answer in self._work([("run", task, ()) for task in ordered]):
            yield room.result(task, answer)

    def ask(self, kind: str, task: Task, *arguments: Any) -> Any:
        """Do one piece of work in the process of its audit file, and return its result.

        Args:
            kind: 'again', 'show' or 'trace'; see ``child_jobs.JOBS``.
            task: The audit.
            arguments: Further arguments of the job.

        Raises:
            CrashError: If the process died, cannot be started, or sent an invalid
                answer.
        """
        ((_, answer),) = self._work([(kind, task, arguments)])
        if answer.value is None:
            raise CrashError(f"{task.id}: {answer.failed}")
        try:
            return answer_of(kind).validate_python(answer.value)
        except ValueError:
            raise CrashError(f"{task.id}: {NO_ANSWER}") from None

    def _work(
        self, wanted: Sequence[tuple[str, Task, tuple[Any, ...]]]
    ) -> Iterator[tuple[Task, WorkAnswer]]:
        waiting = deque(
            (self._numbered(kind, task, arguments), False)
            for kind, task, arguments in wanted
        )
        left = Counter(Path(task.path) for _, task, _ in wanted)
        for path in set(self._hosts) - set(left):
            self._close(self._hosts[path])
        running: dict[int, bool] = {}
        while waiting or running:
            # Work that runs again may have ended other processes. So it runs alone.
            while (
                waiting
                and len(running) < self.count
                and not (running and (waiting[0][1] or any(running.values())))
            ):
                work, alone = waiting.popleft()
                running[work.number] = alone
                try:
                    self._begin(work, alone=alone)
                except FullError as error:
                    # The judge has its half of the work, so only the other one fails.
                    part = (
                        replace(work, kind="serve")
                        if work.number in self._judged
                        else work
                    )
                    self._known.append(
                        (part, WorkAnswer(work.number, failed=str(error)))
                    )
            for work, answer in self._ended():
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
        return Work(self._numbers, kind, task, arguments, self._memory, self._sandbox)

    def _begin(self, work: Work, *, alone: bool) -> None:
        theirs = None
        if work.kind == "run":
            self._judges = self._judges or self._open_judges()
            ours, theirs = CONTEXT.Pipe()
            self._judged[work.number] = _TwoProcesses(work, ours, alone)
            # A judging process runs no code of a user, so it needs no sandbox.
            _hand(self._judges, replace(work, sandbox=UNCONFINED), ours)
            work = replace(work, kind="serve")
        try:
            self._place(work, theirs, alone=alone)
        finally:
            # The worker has a copy. With this one open, the judge would not see it end.
            if theirs is not None:
                theirs.close()

    def _place(self, work: Work, theirs: Connection | None, *, alone: bool) -> None:
        """Give work to the process of its file, or start a process for this work alone.

        Args:
            work: The work.
            theirs: The end of the pipe to the judging process; None without one.
            alone: Whether the work must have a process for itself.
        """
        path = Path(work.task.path)
        if path in self._hosts and not self._hosts[path].process.is_alive():
            self._close(self._hosts[path])
        if (
            not alone
            and path not in self._hosts
            and self._collected.get(path, Collected()).forkable
        ):
            self._reopen(path)
        if alone or path not in self._hosts:
            self._alone.append(self._spawn_alone(work, theirs))
        else:
            _hand(self._hosts[path], work, theirs)

    def _reopen(self, path: Path) -> None:
        """Import a file again for its audits.

        If that fails, its audits run in processes of their own, which report the error.
        """
        host = self._open(path)
        while host.collected is None:
            wait([host.connection], TICK)
            host.collected = self._collection_of(host, path)
        if host.collected.failure or not host.collected.forkable:
            self._close(host)

    def _ended(self) -> Iterator[tuple[Work, WorkAnswer | None]]:
        """Yield finished work with its answer, or with None if it has to run again.

        An audit is finished when both of its processes have ended.
        """
        for part, answer in self._answers():
            if (trial := self._judged.get(part.number)) is None:
                yield part, answer
            elif trial.ended(part, answer):
                del self._judged[part.number]
                yield trial.work, trial.answer

    def _answers(self) -> Iterator[tuple[Work, WorkAnswer | None]]:
        """Wait for a short time, and yield (work, answer) of each process that ended.

        The answer is None if the parent of the process ended first.
        """
        if not self._known:
            yield from self._heard()
        known, self._known = self._known, []
        yield from known

    def _heard(self) -> Iterator[tuple[Work, WorkAnswer]]:
        """Wait at most ``TICK`` seconds, and yield (work, answer) of arrived answers.

        The process of a file or of the judges is closed if it died, sent something
        invalid, or is late.
        """
        hosts = [host for host in self._all_hosts() if host.busy]
        wait(
            [
                *(host.connection for host in hosts),
                *(child.receiver for child in self._alone),
            ],
            TICK,
        )
        for child in list(self._alone):
            if (answer := child.answer()) is not None:
                self._alone.remove(child)
                yield child.work, answer
        for host in hosts:
            try:
                while host.busy and (message := host.inbox.take()) is not None:
                    answer = ANSWER.validate_json(message)
                    if answer.number not in host.busy:
                        raise ValueError("an answer without a question")
                    host.since = time.monotonic()
                    yield host.busy.pop(answer.number), answer
            except (EOFError, OSError, ValueError):
                self._close(host)
            else:
                if host.late(self._limit):
                    self._close(host)

    def _collection_of(self, host: _Host, label: Path) -> Collected | None:
        """Return the declarations of a file, or its failure; None during its import.

        Args:
            host: The process of the file.
            label: The path of the file, for messages.
        """
        try:
            if (message := host.inbox.take()) is not None:
                return self._checked(COLLECTED.validate_json(message), host.path)
        except (EOFError, OSError):
            host.process.join(GRACE)
            how = how_it_ended(host.process.exitcode)
            return Collected(
                failure=f"{label}: the process that imported it died ({how})"
            )
        except (ConfigurationError, ValueError) as error:
            return Collected(
                failure=f"{label}: what its process declares is refused: {error}"
            )
        if host.late(self._limit):
            host.process.kill()
            return Collected(
                failure=f"{label}: its import was stopped after {self._limit:g} seconds; move what takes long into a "
                "function, or raise --collection-timeout"
            )
        return None

    def _checked(self, found: Collected, path: Path) -> Collected:
        """Return the declarations that the process of a file sent, after checking them.

        Raises:
            ConfigurationError: If there are too many audits, some are not of this file,
                or the imported files are too many, too large or not readable.
        """
        if len(found.audits) > FileLimits.audits:
            raise ConfigurationError(
                f"it has {len(found.audits):,} audits, and a file has at most "
                f"{FileLimits.audits:,}; make several files of it"
            )
        if not _of_its_own(found, path):
            raise ConfigurationError(FOREIGN)
        if len(found.sources) > FileLimits.sources:
            raise ConfigurationError(
                f"it imports more than {FileLimits.sources:,} files of the working folder"
            )
        for name in {*found.sources} - {*self._sizes}:
            self._sizes[name] = _size_of(Path(name), Path.cwd().resolve())
        if (
            size := sum(self._sizes[name] for name in {*found.sources})
        ) > FileLimits.source_bytes:
            raise ConfigurationError(
                f"it imports {size:,} bytes of sources, and at most {FileLimits.source_bytes:,} are read"
            )
        return found

    def _open(self, path: Path) -> _Host:
        here, there = CONTEXT.Pipe()
        folder = self._own_folder()
        given = (path, self._overrides, folder, self._limit, self._sandbox)
        process = _spawned(self._needed, open_host, there, *given)
        # With this end open, reading from the other would not end with the process.
        there.close()
        host = self._hosts[path] = _Host(path, process, here, folder=folder)
        return host

    def _open_judges(self) -> _Host:
        here, there = CONTEXT.Pipe()
        folder = self._own_folder()
        process = _spawned(self._needed, open_judges, there, folder)
        there.close()
        return _Host(Path(), process, here, Collected(), folder=folder)

    def _spawn_alone(self, work: Work, pipe: Connection | None) -> Child:
        receiver, sender = CONTEXT.Pipe(duplex=False)
        output = self._own_folder() / str(work.number)
        given = (
            work if pipe is None else replace(work, arguments=(pipe, *work.arguments))
        )
        process = _spawned(self._needed, work_alone, sender, given, output)
        sender.close()
        return Child(work, process, receiver, output, work.task.timeout)

    def _all_hosts(self) -> list[_Host]:
        return [
            *self._hosts.values(),
            *([] if self._judges is None else [self._judges]),
        ]

    def _own_folder(self) -> Path:
        return _new_folder(self._folder)

    def _close(self, host: _Host) -> None:
        """End a process; its unfinished work has the outcome None."""
        self._known += [(work, None) for work in host.busy.values()]
        host.busy.clear()
        if host is self._judges:
            self._judges = None
        else:
            self._hosts.pop(host.path, None)
        host.end()


def _files_in_turn(tasks: Sequence[Task], count: int) -> list[Task]:
    """Return the tasks of ``count`` files in turn, then those of the next files."""
    files: dict[str, list[Task]] = {}
    for task in tasks:
        files.setdefault(task.path, []).append(task)
    left = iter(files.values())
    ordered: list[Task] = []
    while group := list(islice(left, count)):
        for turn in zip_longest(*group):
            ordered += filter(None, turn)
    return ordered


def _size_of(source: Path, below: Path) -> int:
    """Return the size of a source file in bytes, or 0 if there is no such file.

    A module in an archive has no file of its own.

    Args:
        source: The path, without links.
        below: The folder that must contain the file.

    Raises:
        ConfigurationError: If the file cannot be read, is too large, or lies in too
            many folders, or if links lead elsewhere.
    """
    # Resolving a path takes time for each of its parts, so their number is limited.
    if len(source.parts) > FileLimits.path_parts:
        raise ConfigurationError(
            f"{str(source)[:80]}… cannot be read: it lies more than {FileLimits.path_parts} folders deep"
        )
    if os.path.realpath(source) != str(source):
        raise ConfigurationError(f"{source} cannot be read: links lead elsewhere")
    try:
        with open_file(source, FileLimits.source_bytes, below=below) as file:
            return os.fstat(file.fileno()).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise ConfigurationError(
            f"{source} cannot be read: {error.strerror}"
        ) from error


def _is_full(folder: Path) -> bool:
    """Return True if the file system of a folder has no room for another file."""
    try:
        room = os.statvfs(folder)
    except OSError:
        # An audit may have removed the folder, which is then made again.
        return False
    return not room.f_bavail or (room.f_files > 0 and not room.f_favail)


def _new_folder(parent: Path, prefix: str = "tmp") -> Path:
    try:
        # An audit may have removed the parent folder.
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise FullError(
            f"no folder can be made in {parent}: {error.strerror}; make room there, or set TMPDIR"
        ) from error


def _hand(host: _Host, work: Work, pipe: Connection | None) -> None:
    """Send work to the process of a file or of the judges.

    Args:
        host: The process.
        work: The work.
        pipe: The end of the pipe between judge and mechanism that the work needs; None
            for other work.
    """
    host.busy[work.number] = work
    host.since = time.monotonic()
    # In both cases below, the end of the process is detected when its answer is read.
    if not _has_room(host.connection):
        host.process.kill()
        return
    with suppress(OSError):
        host.connection.send_bytes(pickle.dumps(work))
        if pipe is not None:
            send_handle(host.connection, pipe.fileno(), host.process.pid)


def _has_room(connection: Connection, seconds: float = GRACE) -> bool:
    """Return True if, within some seconds, a pipe has room for a piece of work.

    A process that answers without reading leaves no room, and sending would then block
    the run.
    """
    room = select.poll()
    room.register(connection, select.POLLOUT)
    return bool(room.poll(seconds * 1_000))


class ResultRoom:
    """Limits the size of all results of a run to ``FileLimits.run_bytes``.

    Each result may take an equal share, and the unused part of the shares of earlier
    results, but at most ``FileLimits.result_bytes``.

    Args:
        audits: Number of results.
    """

    def __init__(self, audits: int) -> None:
        self._share = FileLimits.run_bytes // max(audits, 1)
        self._waiting = audits
        self._left = audits * self._share

    def result(self, task: Task, answer: WorkAnswer) -> AuditResult:
        """Return the result of the next finished task; an ERROR if it is too large."""
        self._waiting -= 1
        size = len(answer.value) if isinstance(answer.value, str | bytes) else 0
        room = min(FileLimits.result_bytes, self._left - self._waiting * self._share)
        if size > room:
            reason = f"its result has {size:,} bytes, and at most {room:,} are kept"
            return failed(task, replace(answer, failed=reason))
        self._left -= size
        return result_for(task, answer)


def result_for(task: Task, answer: WorkAnswer) -> AuditResult:
    """Return the result in an answer; an ERROR if it is missing or not valid.

    A result for another audit is not valid.

    Args:
        task: The audit.
        answer: The answer of its processes.
    """
    # This import is slow, as in ``answer_of``.
    from auditdp.record.results import Verdict, result_of

    if answer.value is None:
        return failed(task, answer)
    try:
        result = result_of(json_of(answer.value))
    except (TypeError, ValueError):
        return failed(task, replace(answer, failed=NO_ANSWER))
    # The judging process failed because that of the mechanism did. Its failure is the
    # reason.
    if answer.failed and result.verdict is Verdict.ERROR:
        return failed(task, answer)
    if result.id != task.id:
        return failed(
            task,
            replace(
                answer,
                failed=f"the process that ran it answered for {result.id}, and not for it",
            ),
        )
    return replace(
        result,
        printed=answer.printed or result.printed,
        expected=task.expect,
        alpha=task.alpha,
    )


def _of_its_own(collected: Collected, path: Path) -> bool:
    """Return True if all declared audits are of the file, and their ids differ.

    An id must begin with the path of the file from the working folder, as text:
    resolving links in a path of millions of parts would take days. Readers of an id
    take everything before the first ``::`` as the file.
    """
    here = Path(os.path.realpath(Path.cwd()))
    label = (
        path.relative_to(here).as_posix()
        if path.is_relative_to(here)
        else path.as_posix()
    )
    ids = [listed.id for listed in collected.audits]
    own = all(
        listed.path == str(path) and listed.id.startswith(f"{label}::")
        for listed in collected.audits
    )
    return own and len(set(ids)) == len(ids)


def failed(task: Task, answer: WorkAnswer) -> AuditResult:
    """Return the ERROR of an audit without a valid result, with the answer's reason."""
    from auditdp.record.results import AuditResult, Verdict

    return AuditResult(
        id=task.id,
        verdict=Verdict.ERROR,
        summary=without_middle(f"{task.id}: {answer.failed}"),
        expected=task.expect,
        alpha=task.alpha,
        reproduce=task.reproduce,
        printed=answer.printed,
    )


def _end_forkserver() -> None:
    """End the fork server, and all processes of the run that were forked from it.

    The next start of a process starts another fork server.
    """
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _spawned(
    needed: Sequence[str], target: Callable[..., None], *arguments: Any
) -> BaseProcess:
    """Start a process and return it; start the fork server again if an audit ended it.

    Args:
        needed: Modules that the fork server imports.
        target: The function that the process calls.
        arguments: Arguments of the function.

    Raises:
        CrashError: If three attempts fail.
    """
    for _ in range(3):
        process = CONTEXT.Process(target=target, args=arguments)
        try:
            start_forkserver(needed)
            with no_script():
                process.start()
        except (EOFError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, FileNotFoundError | ConnectionRefusedError):
                # The socket of the fork server was removed, so it is of no use.
                _end_forkserver()
            time.sleep(0.1)
        else:
            return process
    raise CrashError(f"no process can be started ({reason}); what was finished is safe")
