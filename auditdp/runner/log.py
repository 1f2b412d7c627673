"""The append-only log of a run; an audit is finished when its line is on the disk.

``run_record`` has the format of a log. A process that is killed at any moment leaves a
readable log. A log has one writer at a time. If a log has results of an unfinished run
or of a shard, it is copied before another run begins. Changes by other processes during the run are
repaired at its end.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from auditdp.configuration import DEFAULT_LOG
from auditdp.errors import ConfigurationError, StoppedError
from auditdp.files import open_new, place_to_write, write
from auditdp.record.results import RESULT, AuditResult, RunRecord
from auditdp.runner.run_record import DIGEST, Reading, chained, now, scan_log


class RecordingError(StoppedError):
    """A log that can no longer be written; lines that were written before are safe."""


class Log:
    """The log file of one run, opened for appending by one process at a time.

    The folder is created if it is missing. In the default folder ``.auditdp``, a
    ``.gitignore`` keeps its files out of git.

    Attributes:
        path: The absolute path of the file.
        before: The content of the file when it was opened; None if it was empty or
            unreadable.

    Raises:
        ConfigurationError: If the path cannot be written, has other content than a log,
            or another run writes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lines: list[bytes] = []
        self._run = self._resumed = ""
        try:
            place_to_write(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            ignoring = self.path.parent / ".gitignore"
            if self.path.parent.name == DEFAULT_LOG.parent.name and not os.path.lexists(
                ignoring
            ):
                # If the folder cannot be written, opening the log below raises an error
                # that names the option which helps.
                with suppress(ConfigurationError):
                    write(ignoring, "*\n")
            if not _is_log(self.path):
                raise ConfigurationError(
                    f"{path} is not the log of a run and is left as it is; give another --log"
                )
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._is_there():
                # Another run has just put a new file there.
                raise BlockingIOError
        except BlockingIOError:
            os.close(self._file)
            raise ConfigurationError(
                f"another run is writing the log {path}; wait for it, or give another --log"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"cannot write the run's log {path}: {error.strerror}; give another --log"
            ) from error
        # Only the holder of the lock reads a log that no other run changes.
        self.before = _held(path)

    def start(self, record: RunRecord, *, keep: bool = False) -> Path | None:
        """Begin a new run with its header, in place of the earlier log.

        Args:
            record: The record of the run before its first result.
            keep: Whether to copy every earlier log that is readable. A log is copied in
                any case if it is unreadable or was changed, or if it has results and
                its status is not 'complete'.

        Returns:
            The path of the copy; None if the earlier log was not copied.

        Raises:
            RecordingError: If the log or the copy cannot be written.
        """
        kept = (
            self._keep()
            if (keep and self.before is not None) or self._is_to_keep()
            else None
        )
        self._run = record.run
        # The new file has the header from its start. If there is no room for it, the
        # earlier log stays.
        self._renew(
            [self._as_line({"kind": "header", "record": json.loads(record.to_json())})]
        )
        return kept

    def resume(self, before: Reading) -> Path | None:
        """Continue a run after its last line that counts; later lines are removed.

        A later line is incomplete, since the run was killed, or follows a change of the
        log by another process.

        Args:
            before: The content of this log, such as the attribute ``before``.

        Returns:
            The path of a copy of the log if others had changed it, else None.

        Raises:
            RecordingError: If the copy cannot be written.
        """
        # The copy is made first, because the file is truncated below.
        kept = self._keep() if before.edited else None
        os.ftruncate(self._file, before.size)
        self._lines = self.path.read_bytes().splitlines(keepends=True)
        self._run, self._resumed = before.record.run, before.digest
        return kept

    def add(self, result: AuditResult) -> None:
        """Append the result of a finished audit.

        Raises:
            RecordingError: If the log cannot be written.
        """
        self._line(
            {"kind": "result", "result": RESULT.dump_python(result, mode="json")}
        )

    def end(self, status: str, seconds: float, finished: str) -> bool:
        """Append the closing line and close the file.

        Args:
            status: The status of the record, such as 'complete'.
            seconds: Duration of the run.
            finished: The time of the record's end, as in its field ``finished``.

        Returns:
            True if others had changed the log, so that it was written again.

        Raises:
            RecordingError: If the log cannot be written.
        """
        try:
            self._line(
                {"kind": "end", "time": finished, "status": status, "seconds": seconds}
            )
            lost = not self._is_ours()
            if lost:
                self._renew(self._lines)
            return lost
        finally:
            self.close()

    def close(self) -> None:
        """Close the file, so that other runs may write it."""
        os.close(self._file)

    @property
    def held(self) -> str:
        """The run that ``start`` keeps, in words."""
        if self.before is None:
            return "an unreadable run"
        status = self.before.record.status
        if self.before.edited:
            return "a run that was changed"
        return status if status.startswith("shard ") else "an unfinished run"

    def _is_to_keep(self) -> bool:
        """Return True if the earlier log is unreadable or changed, or has open results.

        Results are open if the status of the record is not 'complete'.
        """
        if self.before is None:
            return os.fstat(self._file).st_size > 0
        record = self.before.record
        return self.before.edited or (
            record.status != "complete" and bool(record.results)
        )

    def _keep(self) -> Path:
        kept = self.free_name()
        try:
            shutil.copyfile(self.path, kept)
        except OSError as error:
            with suppress(OSError):
                # An incomplete copy would look like another run.
                kept.unlink()
            raise RecordingError(
                f"cannot keep {self.held} as {kept}: {error.strerror}; it is still in {self.path}: make room, or "
                "give another --log"
            ) from error
        return kept

    def free_name(self) -> Path:
        """Return an unused path beside the log, for a copy of it."""
        names = (
            self.path.with_name(f"{self.path.stem}.{k}{self.path.suffix}")
            for k in range(1, 1_000_000)
        )
        # A broken link is a used name, too: copying to it would write to its target.
        return next(name for name in names if not os.path.lexists(name))

    def _renew(self, lines: list[bytes]) -> None:
        """Replace the file by a new one with these lines, atomically."""
        new = self.path.with_name(f".{self.path.name}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open_new(new, os.O_APPEND)
            # Under the temporary name, no other run can take the lock before this one.
            fcntl.flock(file, fcntl.LOCK_EX)
            _write_all(file, b"".join(lines))
            os.fsync(file)
            os.replace(new, self.path)
        except OSError as error:
            with suppress(OSError):
                new.unlink()
            raise RecordingError(
                f"cannot write the run's log {self.path}: {error.strerror}; make room, or give another --log"
            ) from error
        os.close(self._file)
        self._file, self._lines = file, lines

    def _is_ours(self) -> bool:
        """Return True if the path names the open file, and its content is unchanged."""
        written = b"".join(self._lines)
        return self._is_there() and os.pread(self._file, len(written) + 1, 0) == written

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except OSError:
            return False

    def _as_line(self, content: dict[str, Any], last_line: bytes = b"") -> bytes:
        """Return a line of the log as bytes, with its digest.

        Args:
            content: The fields of the line, in addition to the run and the time.
            last_line: The line before it, whose digest the new digest includes; empty
                for the first line. If it has no digest, that of the resumed log is
                included, if there is one.
        """
        # The closing brace is cut off: the digest of the other fields follows them.
        inner = json.dumps(
            {"run": self._run, "time": now(), **content}, allow_nan=False
        ).encode()[:-1]
        last = DIGEST.fullmatch(last_line.rstrip())
        digest = chained(last[2].decode() if last else self._resumed, inner)
        return inner + b', "digest": "%s"}\n' % digest.encode()

    def _line(self, content: dict[str, Any]) -> None:
        line = self._as_line(content, self._lines[-1] if self._lines else b"")
        whole = os.fstat(self._file).st_size
        # This comes first, so that an interrupt during writing does not lose the
        # result.
        self._lines.append(line)
        try:
            _write_all(self._file, line)
            os.fsync(self._file)
        except OSError as error:
            self._lines.pop()
            # Readers of the log would report an incomplete line.
            os.ftruncate(self._file, whole)
            raise RecordingError(
                f"cannot write the run's log {self.path}: {error.strerror}; what was finished before is in it: make room, "
                "then continue with --resume"
            ) from error


def _held(path: Path) -> Reading | None:
    try:
        return scan_log(path)
    except ConfigurationError:
        return None


def _write_all(file: int, content: bytes) -> None:
    """Write all bytes, in several calls if the system needs them."""
    while content:
        content = content[os.write(file, content) :]


def _is_log(path: Path) -> bool:
    """Return True if a path may be written as a log.

    That is: the file is missing, its first line is empty, or it is a log.
    """
    if not path.exists():
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    return not first.strip() or (
        first.lstrip().startswith(b"{") and b'"kind": "header"' in first
    )
