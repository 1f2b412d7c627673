"""Child processes that do one piece of work each, and their messages.

A child answers with one message of JSON, since the judging process must not unpickle
results of a user's code. A child may send anything: messages have a maximal size, and
an incomplete message makes nobody wait. The output of a child goes to a file.
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

from pydantic import TypeAdapter

from auditdp.errors import ConfigurationError, die_with_parent
from auditdp.files import FileLimits, open_file, remove, without_middle
from auditdp.runner.plan import Shown
from auditdp.runner.sandbox import UNCONFINED, Sandbox

HEADER = struct.Struct("!i")
"""Format of the number of bytes, which ``multiprocessing`` sends before a message."""


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
        """Return the next message; None while it is not whole.

        Raises:
            EOFError: If there are no more.
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
            found = os.read(self._connection.fileno(), whole - len(self._content))
            if not found:
                raise EOFError
            self._content += found


GRACE = 5.0
"""Seconds between a time limit, which a child keeps by itself, and the end of a child that
did not."""
TICK = 0.5
"""Seconds between checks for events without a signal: ends of processes, time limits.
"""
NO_ANSWER = (
    "the process that ran it answered with something other than a result; run it "
    "alone under a debugger"
)
MOST_PRINTED = 1 << 26
"""Bytes of output after which the file starts anew."""


TALKING = ("run", "serve")
"""Kinds of work that form a pair, judging and answering; each has an end of their pipe.
"""


@dataclass(frozen=True)
class Work:
    """One piece of work for a child."""

    number: int
    """The number of the work, which its answer repeats."""
    kind: str
    """A name in ``child_jobs.JOBS``."""
    task: Any
    arguments: tuple[Any, ...] = ()
    memory: int | None = None
    """Bytes of memory in addition to those of its process; None for no limit."""
    sandbox: Sandbox = UNCONFINED


@dataclass(frozen=True)
class ChildMessage:
    """The message of a child: the result of its work, and the modules that it imported."""

    value: Any = None
    libraries: list[str] = field(default_factory=list)


MESSAGE: TypeAdapter[ChildMessage] = TypeAdapter(ChildMessage)


@dataclass(frozen=True)
class WorkAnswer:
    """The outcome of a piece of work: its result, or the reason for its failure."""

    number: int
    value: Any = None
    """The result as plain data; None after a failure."""
    failed: Shown = ""
    """Why it returned nothing: its process died or was ended."""
    printed: Shown = ""
    """The printed text, also that of native code and subprocesses."""
    libraries: list[str] = field(default_factory=list)
    """Modules of auditdp's own dependencies that it imported and its parent had not."""


ANSWER: TypeAdapter[WorkAnswer] = TypeAdapter(WorkAnswer)


@dataclass
class Child:
    """A process that does one piece of work."""

    work: Work
    process: BaseProcess
    receiver: Connection
    output: Path
    limit: float | None
    """Seconds after which it is ended, unless that is left to the work."""
    end_left: Callable[[], None] = lambda: None
    """Ends the processes that the child left, before its files are removed."""

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._inbox = Inbox(self.receiver)

    def answer(self) -> WorkAnswer | None:
        """Return the answer, or what became of the process; None while it works."""
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
            self.process.join(1)
            died = True
        except ValueError:
            failed = NO_ANSWER
        if sent is None and not failed and not died and not late:
            if self.output.exists() and self.output.stat().st_size > MOST_PRINTED:
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
        """End the process and everything that it left, and close its pipe."""
        if self.process.is_alive():
            self.process.kill()
        # This comes first: a process that it left holds the pipe whose end shows its
        # end.
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
    """Return the text in an output file, both ends of a long text.

    Returns:
        The text, empty if the file was replaced.
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
    """Return the folder that work which prints to a file may write to."""
    return output.with_name(f"{output.name}.scratch")


def how_it_ended(code: int | None) -> str:
    """Return a sentence for an exit code of ``multiprocessing``."""
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
    """Send all that this process prints to a file, and give it nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        # An audit may have removed it.
        output.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(
            output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
        )
    except (
        OSError
        # Another audit may have taken all room, and this one goes on without its output.
    ):
        file = os.open(os.devnull, os.O_WRONLY)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    for number in (nothing, file):
        # Otherwise it took the place of a closed stream.
        if number > 2:
            os.close(number)
    sys.stdout = os.fdopen(
        1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.stderr = os.fdopen(
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def perform(sender: Connection, work: Work, output: Path) -> None:
    """Do the work in this process, send the answer, and exit without running any hooks."""
    from auditdp.runner.child_jobs import JOBS

    process, before = os.getpid(), set(sys.modules)
    divert(output)
    work.sandbox.confine(scratch_of(output))
    # It prints the place of a crash in native code.
    faulthandler.enable(sys.stderr)
    limit_memory(work.memory)
    # A mechanism may have made copies by os.fork.
    os.register_at_fork(after_in_child=die_with_parent)
    try:
        value = JOBS[work.kind](work.task, *work.arguments)
        # In another process, a mechanism forked, and this is its copy of the audit.
        if os.getpid() == process:
            libraries = sorted(
                name
                for name in set(sys.modules) - before
                if name.partition(".")[0] in LIBRARIES
            )
            message = json.dumps({"value": value, "libraries": libraries}).encode()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            sender.send_bytes(message)
    except BaseException:
        # The traceback goes to the printed text, which is kept.
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)


LIBRARIES = (
    *("dp_accounting", "flint", "hypothesis", "joblib", "scipy", "sklearn"),
    *("statsmodels", "threadpoolctl", "torch", "torch_geometric"),
)
"""Libraries that the parent imports once a child needed them, for later children."""


def limit_memory(extra: int | None) -> None:
    """Limit the additional memory of this process, in bytes.

    Beyond the limit Python raises MemoryError.
    """
    if extra is None:
        return
    import resource

    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        has = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData")
        )
    except (OSError, StopIteration):
        has = 0
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (has + extra, hard))
