"""The command line of auditdp: ``main`` runs the command and ends the process.

Each file has one command or a few related ones, or a step of a command. ``common`` has
the application, the exit codes and the functions that several commands share.
"""

import io
import os
import signal
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module

from auditdp.cli.common import COMMANDS, ExitCode, app, enter_project, leave, say
from auditdp.errors import AuditError, StoppedError
from auditdp.report.plain_text import shorten

__all__ = ["main"]

LONGEST = 4_000
"""Largest number of characters of an error message, since it may quote long values."""
CALCULATORS = ("account", "bounds")
"""Commands that compute from their options and files, and read no project."""


def main() -> None:
    """Run the command of ``sys.argv``, and end the process with its exit code.

    An error of the user is one line on stderr, and exit code 2.
    """
    _settle_streams()
    command = sys.argv[1:2]
    if hasattr(signal, "SIGPIPE"):
        # If the reader of a pipe ends, the process ends by this signal, and not with
        # exit code 1, which is that of a finding.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    named = command[0] if command else ""
    if named in COMMANDS:
        commands = [COMMANDS[named]]
    elif named[:1] in ("", "-") and "_AUDITDP_COMPLETE" not in os.environ:
        commands = []
    else:
        # A message about a misspelled name, or a completion, needs all commands.
        commands = [*COMMANDS.values()]
    modules = [each.module for each in commands]
    leave(_carried_out(modules, in_project=named not in CALCULATORS))


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


def _carried_out(modules: Iterable[str], *, in_project: bool) -> int:
    """Run the command, and return its exit code.

    Every exception is caught, since Python would end with exit code 1, which is that of
    a finding.

    Args:
        modules: The modules of ``auditdp.cli`` that register the commands.
        in_project: True if the command works in the folder of the project.
    """
    try:
        if in_project:
            enter_project()
        for module in modules:
            # The import registers the commands of the module.
            import_module(f"auditdp.cli.{module}")
        app()
    except SystemExit as end:
        return (
            end.code
            if isinstance(end.code, int)
            else ExitCode.OK
            if end.code is None
            else ExitCode.CRASHED
        )
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except StoppedError as error:
        say(f"error: {shorten(str(error), LONGEST)}")
        return ExitCode.CRASHED
    except AuditError as error:
        say(f"error: {shorten(str(error), LONGEST)}")
        return ExitCode.USAGE
    except OSError as error:
        # An example is a full disk behind standard output.
        say(f"error: {error}")
        return ExitCode.CRASHED
    except MemoryError as error:
        # The memory that the frames hold is needed to print the message.
        traceback.clear_frames(error.__traceback__)
        say(
            "error: out of memory; use smaller parameters, or a machine with more memory"
        )
        return ExitCode.CRASHED
    except BaseException:
        say(traceback.format_exc().rstrip())
        say(
            "error: auditdp itself failed; this says nothing about any mechanism. Please report the lines above."
        )
        return ExitCode.CRASHED
    return ExitCode.OK
