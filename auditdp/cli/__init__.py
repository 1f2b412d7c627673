"""The command line of auditdp: ``main`` runs the command and ends the process.

Each file has one command or a few related ones, or a step of a command. ``common`` has
the application, the exit codes and the functions that several commands share.

This file imports almost nothing: ``run`` and ``list`` wait for the fork server, so
``main`` starts that before its own imports.
"""

import io
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

__all__ = ["main"]

LONGEST = 4_000
"""Largest number of characters of an error message, since it may quote long values."""
CALCULATORS = ("account", "bounds")
"""Commands that compute from their options and files, and read no project."""
FORKING = ("run", "list")
"""Commands whose first step is to start processes of audit files."""
NOT_HERE = ("--help", "--scheduler")
"""Beginnings of options with which these commands start no audits on this machine."""


def main() -> None:
    """Run the command of ``sys.argv``, and end the process with its exit code.

    An error of the user is one line on stderr, and exit code 2.
    """
    _settle_streams()
    if hasattr(signal, "SIGPIPE"):
        # If the reader of a pipe ends, the process ends by this signal, and not with
        # exit code 1, which is that of a finding.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    code = _carried_out("".join(sys.argv[1:2]), sys.argv[2:])
    from auditdp.cli.common import leave

    leave(code)


def _settle_streams() -> None:
    """Open missing standard streams, and escape characters that cannot be encoded."""
    for name in ("stdin", "stdout", "stderr"):
        # The shell closed the stream; a file opened later must not get its number.
        if getattr(sys, name) is None:
            nothing = open(os.devnull, "r+")  # noqa: SIM115 - for the whole command
            # A child needs the stream as well.
            os.set_inheritable(nothing.fileno(), True)
            setattr(sys, name, nothing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _carried_out(named: str, words: Sequence[str]) -> int:
    """Run a command, and return its exit code.

    Every exception is caught, since Python would end with exit code 1, which is that of
    a finding.

    Args:
        named: The first word of the command line, which is the name of a command, an
            option, a misspelled name, or empty.
        words: The other words of the command line.
    """
    try:
        _carry_out(named, words)
    except BaseException as error:
        return _code_after(error)
    return 0


def _carry_out(named: str, words: Sequence[str]) -> None:
    """Run a command; see ``_carried_out`` for the arguments."""
    if named not in CALCULATORS:
        from auditdp.cli.project import enter_project

        files = [Path(word.partition("::")[0]).absolute() for word in words]
        enter_project()
        if named in FORKING and not any(word.startswith(NOT_HERE) for word in words):
            _start_early(files, audits=named == "run")
    from auditdp.cli.common import COMMANDS, app

    if named in COMMANDS:
        commands = [COMMANDS[named]]
    elif named[:1] in ("", "-") and "_AUDITDP_COMPLETE" not in os.environ:
        commands = []
    else:
        # A message about a misspelled name, or a completion, needs all commands.
        commands = [*COMMANDS.values()]
    for each in commands:
        # The import registers the commands of the module.
        import_module(f"auditdp.cli.{each.module}")
    app()


def _start_early(files: Iterable[Path], *, audits: bool) -> None:
    """Start the fork server for the audit files that a command line probably means.

    A wrong guess takes time, and changes no result.

    Args:
        files: Paths of all words of the command line; most of them do not exist.
        audits: True if audits will run; False if they are only collected.
    """
    from auditdp.cli.project import settings
    from auditdp.errors import AuditError
    from auditdp.runner.start_up import AUDITING, start_early

    # The command finds the same error, and reports it.
    with suppress(AuditError, OSError):
        targets = [str(file) for file in files if file.exists()] or settings().paths
        start_early(targets, AUDITING if audits else ())


def _code_after(error: BaseException) -> int:
    """Report an exception of a command, and return the exit code of the process."""
    from auditdp.cli.common import ExitCode, say
    from auditdp.errors import AuditError, StoppedError
    from auditdp.report.plain_text import shorten

    if isinstance(error, SystemExit):
        if error.code is None:
            return ExitCode.OK
        return error.code if isinstance(error.code, int) else ExitCode.CRASHED
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, AuditError):
        say(f"error: {shorten(str(error), LONGEST)}")
        return ExitCode.CRASHED if isinstance(error, StoppedError) else ExitCode.USAGE
    if isinstance(error, OSError):
        # An example is a full disk behind standard output.
        say(f"error: {error}")
    elif isinstance(error, MemoryError):
        # The memory that the frames hold is needed to print the message.
        traceback.clear_frames(error.__traceback__)
        say(
            "error: out of memory; use smaller parameters, or a machine with more memory"
        )
    else:
        say("".join(traceback.format_exception(error)).rstrip())
        say(
            "error: auditdp itself failed; this says nothing about any mechanism. Please report the lines above."
        )
    return ExitCode.CRASHED
