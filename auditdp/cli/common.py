"""The application, its exit codes, and functions that several commands share.

Exit codes:

- 0: no finding.
- 1: a violation or miscalibration that is not declared, a declared one that was not
  found, a control or mutant that survived, or a failed self-test. With ``replay`` also
  an outcome that differs from the recorded one.
- 2: usage or configuration.
- 3: an audit crashed, auditdp could not continue, lines of a log do not count, or
  attested files have changed.
- 4: a claim was refuted without a confirmation; with ``--fail-on`` also an audit that
  is inconclusive or skipped.
- 5: nothing audited: no audit was collected, or all were skipped.
- 6: worse than the baseline: an audit is weaker, changed, missing or skipped, or an
  entry is stale. With ``--compare``: a mechanism loses more than its claim and did not
  before, or, with ``--fail-on changed``, the law of its outputs changed.
- 130: interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import IntEnum, StrEnum
from pathlib import Path
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    TextIO,
    TypeVar,
    get_type_hints,
)

import typer
from typer.core import TyperGroup

from auditdp import __version__
from auditdp.cli.project import given, given_report
from auditdp.configuration import DEFAULT_LOG, SANDBOXES
from auditdp.errors import ConfigurationError, StoppedError, did_you_mean
from auditdp.record.budget import BUDGETS, FAULTS
from auditdp.report.formats import FORMATS
from auditdp.report.plain_text import terminal, without_commands

if TYPE_CHECKING:
    from auditdp.configuration import Configuration
    from auditdp.record.results import AuditResult, RunRecord
    from auditdp.runner.run_record import Reading
    from auditdp.runner.sandbox import Sandbox


class ExitCode(IntEnum):
    """The exit codes of every command, as the module describes them."""

    OK = 0
    FOUND = 1
    USAGE = 2
    CRASHED = 3
    INCONCLUSIVE = 4
    NOTHING = 5
    REGRESSED = 6
    INTERRUPTED = 130


class AnswerFormat(StrEnum):
    """Formats in which a command prints its answer."""

    text = "text"
    json = "json"


class Command(NamedTuple):
    """The module of a command, and its line in the help text."""

    module: str
    help: str


COMMANDS = {
    "init": Command("init", "Write first audits of your functions."),
    "run": Command("run_command", "Run audits, and report their findings."),
    "list": Command("recorded", "List the audits that would run."),
    "show": Command("recorded", "Show what one audit declares."),
    "coverage": Command(
        "small_commands",
        "List public functions that draw randomness and that no audit reaches.",
    ),
    "explain": Command("recorded", "Explain a verdict, and what to do about it."),
    "trace": Command(
        "small_commands", "Show the noise of each line of one mechanism, and its loss."
    ),
    "report": Command("recorded", "Render the report of a recorded run."),
    "replay": Command(
        "recorded",
        "Run one audit of a recorded run again, with its seed, level and budget.",
    ),
    "confirm": Command(
        "recorded", "Test a finding again, with a fresh seed and a fresh α."
    ),
    "mutate": Command(
        "run_command",
        "Test whether the audits detect faults in the noise of their mechanisms.",
    ),
    "baseline": Command(
        "baseline_commands",
        "The known results of the audits, in a file that is reviewed.",
    ),
    "compare": Command(
        "baseline_commands", "Print the differences of two recorded runs."
    ),
    "merge": Command("baseline_commands", "Join the logs of shards to one run."),
    "attest": Command(
        "attest", "Sign the results of a recorded run, with digests of its sources."
    ),
    "verify": Command(
        "attest", "Check that a record and its sources are as they were signed."
    ),
    "config": Command(
        "small_commands", "Show the settings, and where each comes from."
    ),
    "account": Command(
        "account", "Compute ε, δ or the noise of a mechanism from its parameters."
    ),
    "bounds": Command(
        "bounds_command",
        "Bound ε from below by scores, guesses or outputs of any tool.",
    ),
    "selftest": Command(
        "small_commands",
        "Test that this installation refutes broken mechanisms, and no others.",
    ),
}
"""The commands, in the order of the help text."""


class _Commands(TyperGroup):
    """The group of all commands.

    On an ``EOFError`` or ``OSError``, Typer ends with exit code 1, which is that of a
    finding. This class raises a ``StoppedError`` instead.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help text."""
        return [*COMMANDS]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help line of each command, without importing its module."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Invoke a command.

        Raises:
            StoppedError: On an ``EOFError`` or ``OSError`` of the command.
        """
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise StoppedError(f"{type(error).__name__}: {error}") from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help can be read on any terminal, and rich costs a third of the start-up.
    rich_markup_mode=None,
    help="Is a mechanism's claimed privacy guarantee true?",
    epilog="To begin: auditdp init FILE::FUNCTION writes a first audit, and auditdp run runs it.",
)


def sandbox(
    configuration: Configuration, mode: str = "", *, network: bool = False
) -> Sandbox:
    """Return the sandbox of the audits' processes, and print its gaps to stderr.

    Args:
        configuration: The settings of the project.
        mode: The mode on the command line; empty for that of the settings.
        network: True to leave the network open. The settings can leave it open, too.

    Raises:
        ConfigurationError: If the mode is unknown, or the required isolation is
            impossible.
    """
    from auditdp.runner.sandbox import sandbox_of

    if mode and mode not in SANDBOXES:
        raise ConfigurationError(
            f"--sandbox {mode}: expected {', '.join(SANDBOXES)}; {did_you_mean(mode, SANDBOXES)}"
        )
    found = sandbox_of(
        mode or configuration.sandbox, network=network or configuration.network
    )
    if configuration.sandbox == "off" and not mode:
        say(
            f"no sandbox, by {configuration.sources['sandbox']}: audits may touch what you may"
        )
    elif found.lacking and mode != "off":
        say(
            f"this system cannot shut audits off from {', '.join(found.lacking)}: they may touch what you may"
        )
    return found


def one_budget(value: list[str] | None) -> list[str] | None:
    """Return a list with the last budget on the command line; None if there is none.

    Raises:
        BadParameter: If both a fault and a number of calls are given, since they
            contradict each other.
    """
    if value and len({":" in text for text in value}) > 1:
        raise typer.BadParameter(f"{' and '.join(value)} are two budgets; give one")
    return value[-1:] if value else value


def budget_option(default: str) -> Any:
    """Return the budget option, named ``--budget``, ``--find`` and ``--calls``.

    ``default`` is the default value that the help text shows.
    """
    return typer.Option(
        "--budget",
        "--find",
        "--calls",
        callback=one_budget,
        help=(
            f"Calls of each game: {', '.join(BUDGETS)}, a number, or enough to find a "
            "fault with probability 9 in 10: "
            f"{', '.join(FAULTS.values())}."
        ),
        autocompletion=lambda: [*BUDGETS, *FAULTS.values()],
        show_default=default,
    )


Paths = Annotated[
    list[str] | None,
    typer.Argument(
        callback=given,
        help="Folders, files, or ids such as audits/audit_edges.py::dprr.",
    ),
]
Keyword = Annotated[
    str, typer.Option("-k", help="Only ids that match: words joined by and, or, not.")
]
Data = Annotated[
    str,
    typer.Option(
        "--data", callback=given, help="Folder of data files (or set AUDITDP_DATA)."
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="Settings of [tool.auditdp.profiles.NAME] (or set AUDITDP_PROFILE).",
    ),
]
Sandboxed = Annotated[
    str,
    typer.Option(
        help=(
            "Shut audits off from files, processes and the network: auto (as far as "
            "the kernel can), required, or off."
        ),
        autocompletion=lambda: [*SANDBOXES],
        show_default="auto",
    ),
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        callback=given_report,
        help="format=PATH, such as html=report.html; repeatable.",
    ),
]
LogPath = Annotated[Path, typer.Option("--log", callback=given, help="Log of the run.")]
Source = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", callback=given, help="Log or JSON report of a run."),
]


Options = TypeVar("Options")


def taking(
    options: type[Options], *names: str
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function with one argument.

    Args:
        options: The argument's dataclass, whose fields declare the command's options.
        names: The options of the command, in this order; by default all.
    """
    declared = {field.name: field for field in fields(options)}  # type: ignore[arg-type]  # it is a dataclass
    types = get_type_hints(options, include_extras=True)

    def command_of(function: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**given: Any) -> None:
            function(options(**given))

        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=declared[name].default,
                annotation=types[name],
            )
            for name in names or declared
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        return command

    return command_of


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if version:
        typer.echo(f"auditdp {__version__}")
        raise typer.Exit(ExitCode.OK)


def say(message: str) -> None:
    """Print a message to stderr, so that stdout has the result alone."""
    # Stderr may be closed.
    with contextlib.suppress(OSError):
        typer.echo(terminal(message), err=True)


def tell(message: str) -> None:
    """Print a result to stdout; control characters of quoted text are escaped."""
    typer.echo(terminal(message))


def columns() -> int:
    """Return the width of the terminal, or 120 if the output is not a terminal."""
    return shutil.get_terminal_size((120, 40)).columns if sys.stdout.isatty() else 120


def coloured(stream: TextIO) -> bool:
    """Return True if a stream is a terminal with colours.

    ``NO_COLOR`` with any value that is not empty (https://no-color.org), ``TERM=dumb``
    and ``TERM=unknown`` turn colours off.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in (
        "dumb",
        "unknown",
    )
    return not plain and stream.isatty()


def print_line(result: AuditResult) -> None:
    """Print an audit and its facts to stdout, in colour on a terminal with colours."""
    from auditdp.report.terminal import line

    typer.echo(line(result, colour=coloured(sys.stdout), width=columns()))


def print_report(text: str, name: str) -> None:
    """Print a report to stdout.

    Args:
        text: The report.
        name: Its format; all formats except ``terminal`` are printed in UTF-8.
    """
    if name != "terminal" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    typer.echo(
        text if name == "github" else without_commands(text),
        nl=not FORMATS[name].is_judged,
    )


def reading_of(source: Path | None) -> Reading:
    """Return the record of a run, and print the problems of its log to stderr.

    The result has the record and the problems; lines that do not count are left out of
    the record.

    Args:
        source: The log or the JSON report; None for the log of the last run.

    Raises:
        ConfigurationError: If there is no such file, or it has no record.
    """
    from auditdp.runner.run_record import scan_record

    reading = scan_record(source or DEFAULT_LOG)
    for problem in reading.problems:
        say(problem)
    return reading


def read_run(source: Path | None) -> RunRecord:
    """Return the record of a run without lines of its log that do not count.

    The problems of the log are printed to stderr.

    Args:
        source: The log or the JSON report; None for the log of the last run.

    Raises:
        ConfigurationError: If there is no such file, or it has no record.
    """
    return reading_of(source).record


def read_whole(source: Path | None) -> RunRecord:
    """Return the record of a run if every line of its log counts.

    Args:
        source: The log or the JSON report; None for the log of the last run.

    Raises:
        StoppedError: If some lines of the log do not count.
        ConfigurationError: If there is no such file, or it has no record.
    """
    reading = reading_of(source)
    if not reading.is_whole:
        raise StoppedError(
            f"{source or DEFAULT_LOG} is incomplete: run again, or continue with "
            "auditdp run --resume; auditdp report shows the results so far"
        )
    return reading.record


def one_of(fragment: str, items: Sequence[Any]) -> Any:
    """Return the one item whose ``id`` has the fragment.

    Items whose id is the fragment, or ends with it after ``::`` or ``/``, come before
    those whose id only contains it.

    Raises:
        ConfigurationError: If no item has it, or several do.
    """
    exact = [
        item
        for item in items
        if item.id == fragment or item.id.endswith((f"::{fragment}", f"/{fragment}"))
    ]
    found = exact or [item for item in items if fragment in item.id]
    if len(found) == 1:
        return found[0]
    if not found:
        names = [item.id.rpartition("::")[2] for item in items]
        raise ConfigurationError(
            f"no audit {fragment!r}; {did_you_mean(fragment, names)}"
        )
    raise ConfigurationError(
        f"{fragment!r} is ambiguous: {', '.join(item.id for item in found[:6])}"
    )


class OutputError(StoppedError):
    """Standard output can no longer be written.

    Attributes:
        code: The exit code: that of an interrupt if the reader of a pipe has ended, and
            otherwise that of a crash.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror}")
        self.code = (
            ExitCode.INTERRUPTED if error.errno == errno.EPIPE else ExitCode.CRASHED
        )


@contextmanager
def on_output() -> Iterator[None]:
    """Raise an ``OutputError`` if the block, which prints to stdout, cannot write.

    Any ``OSError`` of the block counts. Output after the error is discarded.

    Raises:
        OutputError: If standard output cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _to_nowhere(1)
        raise OutputError(error) from error


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP inside the block.

    A signal that is ignored when the block begins stays ignored.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(code: int) -> None:
    """End the process with an exit code.

    The codes of clean runs and of findings are for complete output only. If stdout
    cannot be flushed, they are replaced by that of an ``OutputError``.
    """
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError as error:
            _to_nowhere(number)
            if number == 1 and code in (ExitCode.OK, ExitCode.FOUND):
                code = OutputError(error).code
    sys.exit(code)


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
