"""The application, its exit codes, and what several commands share.

Exit codes: 0 nothing found; 1 a violation or miscalibration that is not declared, a declared one that was missed, or a
surviving control or mutant; 2 usage or configuration; 3 an audit crashed, auditdp could not go on, lines of a log do not
count, or what was attested has changed; 4 a claim that was refuted without being confirmed, and, with ``--fail-on``,
inconclusive or skipped; 5 nothing audited: no audit was collected, or all were skipped; 6 otherwise than the
baseline: an audit is weaker, changed, gone or skipped, or an entry is stale; 130 interrupted.

How a command ends: by its exit code, by a signal, or because nobody reads what it prints.
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
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from auditdp import __version__
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

OK, FOUND, USAGE, CRASHED, INCONCLUSIVE, NOTHING, REGRESSED, INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    130,
)


class AnswerFormat(StrEnum):
    """How an answer is printed."""

    text = "text"
    json = "json"


COMMANDS = {
    "init": "init",
    "run": "run_command",
    "list": "recorded",
    "show": "recorded",
    "coverage": "small_commands",
    "explain": "recorded",
    "trace": "small_commands",
    "report": "recorded",
    "replay": "recorded",
    "confirm": "recorded",
    "mutate": "run_command",
    "baseline": "baseline_commands",
    "compare": "baseline_commands",
    "merge": "baseline_commands",
    "attest": "attest",
    "verify": "attest",
    "config": "small_commands",
    "account": "account",
    "bounds": "bounds_command",
    "selftest": "small_commands",
}
"""The module of every command, in the order of help: audits and their runs, these over time and on many machines, others."""


class _Commands(TyperGroup):
    """The commands; typer ends with exit code 1, which is that of a finding, where input or output end."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of those that are loaded, as help lists them."""
        return sorted(super().list_commands(ctx), key=[*COMMANDS].index)

    def invoke(self, ctx: Any) -> Any:
        """Invoke a command.

        Raises:
            StoppedError: If input or output end.
        """
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise StoppedError(f"{type(error).__name__}: {error}") from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help can be read on any terminal, and rich costs a third of the start-up
    help="Is a mechanism's claimed privacy guarantee true?",
    epilog="To begin: auditdp init FILE::FUNCTION writes a first audit, and auditdp run runs it.",
)

_started: list[Path] = []


def enter_project() -> None:
    """Go to the project's folder, to which the ids of audits are relative, from wherever in it the command was given."""
    from auditdp.configuration import project_folder

    _started.append(Path.cwd())
    try:
        folder = project_folder(Path.cwd())
    except ConfigurationError:  # said by those commands that need settings
        return
    if folder != Path.cwd():
        os.chdir(folder)
        if (processes := sys.modules.get("multiprocessing.process")) is not None:
            processes.ORIGINAL_DIR = str(folder)  # type: ignore[attr-defined]  # where processes start


def settings(profile: str = "") -> Configuration:
    """Return the settings of the project in or around the folder in which the command was given."""
    from auditdp.configuration import load

    return load(_started[-1] if _started else Path.cwd(), profile)


def sandbox(
    configuration: Configuration, mode: str = "", *, network: bool = False
) -> Sandbox:
    """Return what shuts the processes of audits off, and say once where that is less than it could be.

    Raises:
        ConfigurationError: If the mode is none, or all of a sandbox is required and cannot be had.
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


def given(value: Any) -> Any:
    """Return a path of the command line, or several, as it is named from the project's folder."""
    if isinstance(value, list):
        return [given(item) for item in value]
    if value in (None, "", DEFAULT_LOG) or not _started or _started[-1] == Path.cwd():
        return value
    moved = os.path.relpath(
        _started[-1] / value, Path.cwd()
    )  # an id such as audits/audit_edges.py::dprr too
    return Path(moved) if isinstance(value, Path) else moved


def given_report(value: list[str] | None) -> list[str] | None:
    """Return format=PATH with the path as ``given`` returns it."""
    parts = [item.partition("=") for item in value or ()]
    return [f"{name}{equals}{given(path)}" for name, equals, path in parts]


def one_budget(value: list[str] | None) -> list[str] | None:
    """Return the last budget that is given, as of any option.

    Raises:
        BadParameter: If both a fault and a number of calls are given, which may be meant to hold together.
    """
    if value and len({":" in text for text in value}) > 1:
        raise typer.BadParameter(f"{' and '.join(value)} are two budgets; give one")
    return value[-1:] if value else value


def budget_option(default: str) -> Any:
    """Return the option that says how many calls each game has; it has three names, for what it may be."""
    return typer.Option(
        "--budget",
        "--find",
        "--calls",
        callback=one_budget,
        help=f"Calls of each game: {', '.join(BUDGETS)}, a number, or as many as find a fault nine times in ten: "
        f"{', '.join(FAULTS.values())}.",
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
        help="Shut audits off from files, processes and the network: auto (as far as the kernel can), required, or off.",
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
    """Make a command, which takes each option by its name, of a function that takes one record of options.

    The command has all options of the record unless some are named, in the order of its help.
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
        raise typer.Exit(OK)


def say(message: str) -> None:
    """Print a message to standard error, so that standard output holds nothing but the result."""
    with contextlib.suppress(OSError):  # nobody may be listening
        typer.echo(terminal(message), err=True)


def tell(message: str) -> None:
    """Print a result to standard output; as with ``say``, what it quotes of others moves no cursor and runs no command."""
    typer.echo(terminal(message))


def columns() -> int:
    """How wide the output may be: the terminal's width, and 120 columns where it goes to a file."""
    return shutil.get_terminal_size((120, 40)).columns if sys.stdout.isatty() else 120


def coloured(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colours, and nobody asked for none.

    Asked is by ``NO_COLOR``, set to anything (https://no-color.org), or by ``TERM=dumb``.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in (
        "dumb",
        "unknown",
    )
    return not plain and stream.isatty()


def print_line(result: AuditResult) -> None:
    """Print one audit to standard output, in colour if that is a terminal that shows it."""
    from auditdp.report.terminal import line

    typer.echo(line(result, colour=coloured(sys.stdout), width=columns()))


def print_report(text: str, name: str) -> None:
    """Print a report to standard output; what programs and browsers read is UTF-8 wherever it is made."""
    if name != "terminal" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    typer.echo(
        text if name == "github" else without_commands(text),
        nl=not FORMATS[name].is_judged,
    )


def reading_of(source: Path | None) -> Reading:
    """Return what is read of a recorded run, by default the last, and say what of it does not count."""
    from auditdp.runner.run_record import scan_record

    reading = scan_record(source or DEFAULT_LOG)
    for problem in reading.problems:
        say(problem)
    return reading


def read_run(source: Path | None) -> RunRecord:
    """Return what counts of a recorded run, of which one audit is asked for; see ``reading_of``."""
    return reading_of(source).record


def read_whole(source: Path | None) -> RunRecord:
    """Return a recorded run of which nothing is left out.

    Raises:
        StoppedError: If lines of its log do not count.
    """
    reading = reading_of(source)
    if not reading.is_whole:
        raise StoppedError(
            f"{source or DEFAULT_LOG} is not whole, so it says nothing of a whole run: run again, or go on with "
            "auditdp run --resume; auditdp report shows what is left"
        )
    return reading.record


def one_of(fragment: str, items: Sequence[Any]) -> Any:
    """Return the one item whose id is, ends with, or contains the fragment."""
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
    """Standard output that cannot be written any further."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror}")
        self.code = INTERRUPTED if error.errno == errno.EPIPE else CRASHED


@contextmanager
def on_output() -> Iterator[None]:
    """Tell standard output that cannot be written from other errors; what is printed later goes nowhere.

    Raises:
        OutputError: If it cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _to_nowhere(1)
        raise OutputError(error) from error


@contextmanager
def interruptible() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for an interrupt, unless whoever started this process has them ignored."""

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
    """End the process; what cannot be printed any more never ends in the exit codes of clean runs and of findings."""
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError as error:
            _to_nowhere(number)
            if number == 1 and code in (OK, FOUND):
                code = OutputError(error).code
    sys.exit(code)


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
