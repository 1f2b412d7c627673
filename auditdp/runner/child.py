"""Child processes that do one piece of work each, and their messages.

``perform`` runs in the child; ``Child`` and ``Inbox`` are for its parent. A child
answers with one message of JSON, since other processes must not unpickle results of a
user's code. A child may send anything: so messages have a maximal size, and the parent
never waits for the rest of a message. Printed text goes to a file.

Concurrent.futures and loky give up all work of a pool when one worker dies, and
pebble's workers share a pipe and its lock. Here every child has a pipe of its own, from
``multiprocessing``.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from auditdp.errors import ConfigurationError, die_with_parent
from auditdp.files import FileLimits, open_file, remove, without_middle
from auditdp.runner.plan import Shown
from auditdp.runner.sandbox import UNCONFINED, Sandbox

HEADER = struct.Struct("!i")
"""Format of the number of bytes that ``multiprocessing`` sends before a message."""


class Inbox:
    """The receiving end of a pipe.

    ``Connection.recv_bytes`` waits for the rest of a message, which the other process
    may never send. This class assembles a message from the bytes that have arrived, so
    that the reader can keep time limits.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._content = bytearray()

    def take(self) -> bytes | None:
        """Return the next message, or None if it has not arrived completely.

        Raises:
            EOFError: If the other end of the pipe was closed.
            OSError: If the pipe is broken.
            ValueError: If the message has more than ``FileLimits.message_bytes`` bytes.
        """
        whole = HEADER.size
        while True:
            if len(self._content) >= HEADER.size:
                (size,) = HEADER.unpack_from(self._content)
                if not 0 <= size <= FileLimits.message_bytes:
                    raise ValueError(
                        f"a message of more than {FileLimits.message_bytes:,} bytes"
                    )
                whole = HEADER.size + size
                if len(self._content) == whole:
                    message = bytes(self._content[HEADER.size :])
                    self._content.clear()
                    return message
            if not self._connection.poll():
                return None
            # Reading stops at the end of this message, before the next one.
            found = os.read(self._connection.fileno(), whole - len(self._content))
            if not found:
                raise EOFError
            self._content += found


GRACE = 5.0
"""Seconds that a child has after its time limit, before it is killed."""
TICK = 0.5
"""Seconds between checks for ends of processes and for time limits."""
NO_ANSWER = (
    "the process that ran it answered with something other than a result; run it "
    "alone under a debugger"
)
MOST_PRINTED = 1 << 26
"""Size, in bytes, above which the output file of a child is emptied."""


TALKING = ("run", "serve")
"""Kinds of work of the two processes of an audit: one judges the audit, the other
answers its requests about the mechanism. Each has one end of the pipe between them."""


@dataclass(frozen=True)
class Work:
    """One piece of work for a child."""

    number: int
    """The number of the work, which its answer repeats."""
    kind: str
    """A name in ``child_jobs.JOBS``."""
    task: Any
    """The ``Task`` of the audit."""
    arguments: tuple[Any, ...] = ()
    """Arguments of the job after the task."""
    memory: int | None = None
    """Bytes of memory that the child may allocate, in addition to the memory that it
    has at its start; None for no limit."""
    sandbox: Sandbox = UNCONFINED


AT_FIRST_USE = ConfigDict(defer_build=True)
"""Setting of a record whose validator pydantic builds when it is first used."""


@dataclass(frozen=True)
class ChildMessage:
    """The message of a child: the result of its work, and the modules that it imported.

    ``value`` and ``libraries`` mean the same as in ``WorkAnswer``.
    """

    value: Any = None
    libraries: list[str] = field(default_factory=list)

    __pydantic_config__ = AT_FIRST_USE


MESSAGE: TypeAdapter[ChildMessage] = TypeAdapter(ChildMessage)


@dataclass(frozen=True)
class WorkAnswer:
    """The outcome of a piece of work: its result, or the reason for its failure."""

    number: int
    """The number of the work."""
    value: Any = None
    """The result as plain data; None without a result."""
    failed: Shown = ""
    """Why a process of the work gave no answer, for example because it died; otherwise
    empty. If only the process of the mechanism failed, there may still be a result."""
    printed: Shown = ""
    """The printed text, also that of native code and subprocesses."""
    libraries: list[str] = field(default_factory=list)
    """Modules of slow libraries that the work imported for the first time."""

    __pydantic_config__ = AT_FIRST_USE


ANSWER: TypeAdapter[WorkAnswer] = TypeAdapter(WorkAnswer)


@dataclass
class Child:
    """The parent's handle of a process that does one piece of work."""

    work: Work
    process: BaseProcess
    receiver: Connection
    """End of the pipe at which the answer arrives."""
    output: Path
    """File with the printed text."""
    limit: float | None
    """Time limit of the work in seconds; None for no limit."""
    end_left: Callable[[], None] = lambda: None
    """Function that ends processes which the child started and left running."""

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._inbox = Inbox(self.receiver)

    def answer(self) -> WorkAnswer | None:
        """Return the outcome of the work, or None while the child works.

        If the child died, sent something else, or exceeds its time limit by ``GRACE``,
        the outcome has the reason in ``failed``. Before this method returns an outcome,
        it ends the child and removes its files.
        """
        sent, failed = None, ""
        late = (
            self.limit is not None
            and time.monotonic() > self._started + self.limit + GRACE
        )
        # This is checked before the pipe: an answer may arrive just before the end.
        died = self.process.exitcode is not None
        try:
            if (message := self._inbox.take()) is not None:
                sent = MESSAGE.validate_json(message)
        except (EOFError, OSError):
            # The pipe is closed shortly before the exit code is known.
            self.process.join(1)
            died = True
        except ValueError:
            failed = NO_ANSWER
        if sent is None and not failed and not died and not late:
            if self.output.exists() and self.output.stat().st_size > MOST_PRINTED:
                # The child appends, so its next text is at the start of the file.
                os.truncate(self.output, 0)
            return None
        if sent is None:
            failed = failed or self._ended(late and not died)
            sent = ChildMessage()
        self.end()
        return WorkAnswer(
            self.work.number, sent.value, failed, self._printed(), sent.libraries
        )

    def _ended(self, late: bool) -> str:
        if late:
            return (
                f"stopped after {self.limit:g} seconds; it did not react, so its "
                "process was ended; raise --timeout, "
                "lower --budget, or give the audit fewer calls"
            )
        return (
            f"the process that ran it died ({how_it_ended(self.process.exitcode)}); "
            "run it alone under a debugger"
        )

    def end(self) -> None:
        """End the process and the processes that it left running; close its pipe."""
        if self.process.is_alive():
            self.process.kill()
        # ``join`` waits until a pipe is closed, and a process that the child left may
        # hold its other end. So these processes are ended first.
        self.end_left()
        self.process.join(GRACE)
        self.receiver.close()

    def _printed(self) -> str:
        shown = printed_to(self.output)
        with suppress(OSError):
            self.output.unlink()
        remove(scratch_of(self.output))
        return shown


def printed_to(output: Path) -> str:
    """Return the text in an output file, without the middle of a long text.

    Returns:
        The text, or '' if the file cannot be read, for example because an audit
        replaced it by a link.
    """
    try:
        with open_file(output, sys.maxsize, below=output.parent.resolve()) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - MOST_PRINTED, 0))
            content = file.read(MOST_PRINTED)
    except (OSError, ConfigurationError):
        return ""
    return without_middle(content.decode("utf-8", "backslashreplace"))


def scratch_of(output: Path) -> Path:
    """Return the scratch folder of the work with this output file.

    In the sandbox, the work may write only to this folder.
    """
    return output.with_name(f"{output.name}.scratch")


def how_it_ended(code: int | None) -> str:
    """Return a phrase for an exit code of ``multiprocessing``, which may be None."""
    if code is None:
        return "for an unknown reason"
    if code >= 0:
        return f"it ended itself, with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (
        ", perhaps for want of memory" if name == "SIGKILL" else ""
    )


def divert(output: Path) -> None:
    """Redirect the printed text of this process to a file, and make its input empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        # An audit may have removed it.
        output.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(
            output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
        )
    except (
        OSError
        # Another audit may have filled the disk. Then the output is dropped.
    ):
        file = os.open(os.devnull, os.O_WRONLY)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    for number in (nothing, file):
        # A smaller number took the place of a closed stream, and is in use now.
        if number > 2:
            os.close(number)
    sys.stdout = os.fdopen(
        1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.stderr = os.fdopen(
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def perform(sender: Connection, work: Work, output: Path) -> None:
    """Do the work in this process, send its result, and exit without exit hooks.

    If the work raises an exception, nothing is sent, and the traceback is printed.

    Args:
        sender: End of the pipe to the parent.
        work: The work.
        output: File for the printed text.
    """
    from auditdp.numerics.streams import slow_modules
    from auditdp.runner.child_jobs import JOBS

    process, before = os.getpid(), slow_modules()
    divert(output)
    work.sandbox.confine(scratch_of(output))
    # After a crash in native code, this prints where it happened.
    faulthandler.enable(sys.stderr)
    limit_memory(work.memory)
    # A mechanism may fork, and its copies must end with this process.
    os.register_at_fork(after_in_child=die_with_parent)
    try:
        value = JOBS[work.kind](work.task, *work.arguments)
        # If the number differs, the mechanism forked. This is then a copy of the audit,
        # which must not answer.
        if os.getpid() == process:
            libraries = sorted(slow_modules() - before)
            message = json.dumps({"value": value, "libraries": libraries}).encode()
            # The parent reads the printed text as soon as the answer arrives.
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            sender.send_bytes(message)
    except BaseException:
        # The traceback becomes a part of the printed text in the record.
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)


def limit_memory(extra: int | None) -> None:
    """Limit the memory that this process may allocate from now on.

    Beyond the limit Python raises MemoryError.

    Args:
        extra: The limit in bytes; None for no limit.
    """
    if extra is None:
        return
    import resource

    try:
        # The kernel's limit includes the memory that the process has already.
        lines = Path("/proc/self/status").read_text().splitlines()
        has = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData")
        )
    except (OSError, StopIteration):
        has = 0
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (has + extra, hard))
