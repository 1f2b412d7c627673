"""Projects as the tests of the command line have them, how commands are run in them, and the page of what was seen."""

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import tempfile
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from auditdp.report.plain_text import markdown, table
from tests.cli.conftest import (  # noqa: F401 - fixtures are among them
    SCRIPT,
    environment,
    fork_server,
    project,
    shared_project,
    without_sandbox,
)

PAGE = Path(__file__).resolve().parents[2] / "reports" / "faults.md"
HEAD = """\
# Faults

What a run of audits does when something goes wrong in it or around it, with one worker and with two. Written by
`python -m pytest -m faults --write-faults`, which injects every fault and asserts what is expected. Given one test file, it
writes that file's section anew. What audits do to the run, to each other and to the machine, which a sandbox refuses, is on
the page of the [threat model](../docs/pages/threat-model.md).
"""
COLUMNS = ("fault", "expected", "seen with 1 worker", "seen with 2 workers")
WORKERS = ("1", "2")
See = Callable[..., None]
QUICK = "run --seed 1 --budget quick"


class Table:
    """What was seen of each fault, by section."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[str, str], dict[str, str]]] = {}

    def see(
        self, section: str, fault: str, expected: str, seen: str, workers: str | None
    ) -> None:
        """Note what was seen of a fault; of one that is the same for any number of workers, once.

        Names of temporary folders are left out: they differ from run to run.
        """
        seen = re.sub(r"[^\s'\"]*/pymp-\w+", "…", seen)
        row = self.rows.setdefault(section, {}).setdefault((fault, expected), {})
        for count in WORKERS if workers is None else (workers,):
            row[count] = seen

    def text(self, before: str = "") -> str:
        """The page; sections that were not run are as they were before."""
        sections = dict(part.split("\n", 1) for part in before.split("\n## ")[1:])
        for section, rows in self.rows.items():
            cells = []
            for (fault, expected), seen in rows.items():
                by_workers = [seen.get(count, "not run") for count in WORKERS]
                row = [fault, expected, *by_workers]
                cells.append([markdown(text) for text in row])
            sections[section] = "\n" + "\n".join(table(COLUMNS, cells)) + "\n"
        parts = [f"\n## {name}\n{sections[name]}" for name in sorted(sections)]
        return HEAD + "".join(parts)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to write the page from a process that sees only some of the faults."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if config.getoption("--write-faults", default=False) and processes > 1:
        raise pytest.UsageError(
            "--write-faults needs all faults in one process; give no -n, or -n 1"
        )


@pytest.fixture(scope="session")
def _table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The table of this session, which is written where that is asked for."""
    found = Table()
    yield found
    if request.config.getoption("--write-faults"):
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(found.text(before), encoding="utf-8")


@pytest.fixture(scope="session", params=WORKERS)
def workers(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def see(_table: Table, request: pytest.FixtureRequest) -> See:
    """Notes what was seen of a fault, in the section that the module is, and compares it with what is expected."""
    section = request.module.__doc__.partition(":")[0]
    workers = None
    if "workers" in request.fixturenames:
        workers = request.getfixturevalue("workers")

    def compare(fault: str, expected: str, seen: str, why: str = "") -> None:
        _table.see(section, fault, expected, seen, workers)
        assert seen.startswith(expected), why

    return compare


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of an empty project."""
    folder = tmp_path / "project"
    (folder / "audits").mkdir(parents=True)
    return folder


@pytest.fixture
def short_root() -> Iterator[Path]:
    """The folder of an empty project whose name is short enough for sockets in it to have names."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        (Path(folder) / "audits").mkdir()
        yield Path(folder)


def script(
    root: Path, command: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed script to its end."""
    return run([SCRIPT, *shlex.split(command), *arguments], root, variables)


def shell(root: Path, line: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; its exit code is that of auditdp."""
    line = f"set -o pipefail; {line.replace('auditdp', shlex.quote(str(SCRIPT)))}"
    return run(["bash", "-c", line], root, {}, **settings)


def run(
    command: Sequence[str | Path],
    root: Path,
    variables: dict[str, str],
    **settings: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with further variables of the environment."""
    return subprocess.run(
        command,
        cwd=root,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=300,
        **settings,
    )


def on_terminal(
    root: Path, width: int, command: str, **variables: str
) -> tuple[int, str]:
    """Run the installed script on a terminal of ``width`` columns; return its exit code and all that it wrote."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    settings = {"TERM": "xterm-256color"} | variables
    plain = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    words = [SCRIPT, *shlex.split(command)]
    process = subprocess.Popen(
        words, cwd=root, env=plain | settings, stdout=there, stderr=there
    )
    os.close(there)
    written = b""
    while True:
        try:
            part = os.read(here, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(here)
    return process.wait(60), written.decode()


def lines_of(log: Path) -> list[dict[str, Any]]:
    """The lines of a log."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def results(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The results of a run by what follows the last colon or slash of their ids."""
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)["results"]
    return {r["id"].rpartition("::")[2].rpartition("/")[2]: r for r in found}
