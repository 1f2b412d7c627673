"""Small projects in a temporary folder, and the command line run in them as a process of its own."""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(sys.executable).with_name("auditdp")
PATIENCE = 120
RUN = "run --seed 1 --budget quick"
IMPORTS = """\
import math, os, sys, time
from pathlib import Path
import numpy as np
from auditdp import *
from auditdp.testing import *

BITS = AnyValues((0, 1))

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

def tell(data, size, *, rng):
    return np.full(size, data)
"""
RESPONSES = """
def response(size, *, rng, data, keep):
    return np.where(rng.random(size) < keep, data, 1 - data)

def made(keep):
    def respond(data, size, *, rng):
        return response(size, rng=rng, data=data, keep=keep)

    return respond

@audit()
def first(epsilon=1.0):
    return Audit(made(.6), PureDP(epsilon), BITS, calls=500)

@audit()
def second(epsilon=1.0):
    return Audit(made(.97), PureDP(epsilon), BITS, calls=500)
"""
"""Two audits of randomised response, of which the first keeps its claim and the second does not."""
PERSONAL = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS", "TERMINAL_WIDTH")

SANDBOX = "AUDITDP_SANDBOX"


def environment() -> dict[str, str]:
    """Return the environment of a command: this one, without the taste of whoever runs the tests.

    Tests change a file twice in a second, which its compiled module would not notice.
    """
    kept = {
        n: v
        for n, v in os.environ.items()
        if n not in PERSONAL and (n == SANDBOX or not n.startswith("AUDITDP_"))
    }
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


CPU = ("cpu_seconds", "cpu_by_phase", "mechanism_cpu_seconds")
UNTIMED = ("seconds", *CPU, "started", "finished", "run")


def untimed(value: Any) -> Any:
    """Return a record without its name, and without when and how long things took."""
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if k not in UNTIMED}
    return [untimed(item) for item in value] if isinstance(value, list) else value


def _no_constant(token: str) -> None:
    raise AssertionError(f"{token} is not JSON")


def git(folder: Path, command: str, *words: str) -> str:
    """Run git with a user of its own; return what it prints."""
    user = "git -c user.name=n -c user.email=e@example.org -c commit.gpgsign=false"
    line = [*user.split(), *shlex.split(command), *words]
    done = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All output in one line."""
        return " ".join((self.out + self.err).split())

    def refuses(self, *words: str) -> bool:
        """Whether the command was refused, with all of these words, before it did anything."""
        shown = self.code == 2 and not self.out and "Traceback" not in self.err
        return shown and all(each in self.text for each in words)

    @property
    def untimed(self) -> dict[str, Any]:
        """The record without how long things took."""
        return untimed(self.record)

    @property
    def names(self) -> list[str]:
        """The names of the audits in the record, in its order."""
        return [result["id"].rpartition("::")[2] for result in self.record["results"]]

    @property
    def record(self) -> dict[str, Any]:
        """Standard output as the JSON it has to be: no NaN, no Infinity, nothing before or after."""
        return json.loads(self.out, parse_constant=_no_constant)

    def audit(self, name: str) -> dict[str, Any]:
        """The audit of this name in the record."""
        assert self.out, self
        return dict(zip(self.names, self.record["results"], strict=True))[name]


class ForkServer:
    """The other end of ``fork_server.py``; ``modules`` are what it imports beside what all commands need."""

    def __init__(self, *modules: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py")), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            bufsize=0,
        )

    def run(self, request: dict[str, Any]) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        pid = int(self._answer(PATIENCE))
        try:
            return int(self._answer(PATIENCE))
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            self._answer(PATIENCE)
            raise AssertionError(
                f"still running after {PATIENCE} s: auditdp {request['arguments']}"
            ) from None

    def _answer(self, seconds: float) -> bytes:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class Project:
    """A user's repository: audit files, perhaps a pyproject.toml, and the commands run in it."""

    def __init__(self, root: Path, server: ForkServer) -> None:
        self.root = root
        self.server = server
        self.streams = root.with_name(f"{root.name}.streams")
        self.streams.mkdir()

    def write(self, path: str, text: str) -> Path:
        """Write a file, its text dedented."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    def audits(self, text: str, path: str = "audits/audit_it.py") -> Path:
        """Write an audit file with everything that one usually imports."""
        return self.write(path, IMPORTS + textwrap.dedent(text))

    def __call__(
        self, command: str, *arguments: str | Path, patch: str = "", **variables: str
    ) -> Outcome:
        """Run a command to its end, in a process that executes ``patch`` before.

        The words of ``command`` are separated as a shell separates them; the further
        arguments are one word each.
        """
        out, err = self.streams / "out", self.streams / "err"
        request = {
            "folder": str(self.root),
            "environment": {**environment(), **variables},
            "arguments": [*shlex.split(command), *map(str, arguments)],
            "stdout": str(out),
            "stderr": str(err),
            "patch": patch,
        }
        code = self.server.run(request)
        return Outcome(
            code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
        )

    def run(self, options: str = "", *arguments: str | Path) -> Outcome:
        """Run ``auditdp run`` with a fixed seed on the small budget; the record is on standard output."""
        return self(f"{RUN} --format json {options}", *arguments)

    def script(self, command: str) -> Outcome:
        """Run a command to its end, as the console script that is installed."""
        done = subprocess.run(
            [SCRIPT, *shlex.split(command)],
            cwd=self.root,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, command: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, as the console script that is installed."""
        return subprocess.Popen(
            [SCRIPT, *shlex.split(command), *arguments],
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A test run in the background ignores interrupts, and its children would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def without_sandbox() -> Iterator[None]:
    """No sandbox, for audits that leave marks in the project's folder when they are called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SANDBOX, "off")
        yield


@pytest.fixture
def project(tmp_path: Path, fork_server: ForkServer) -> Project:
    """An empty project."""
    root = tmp_path / "project"
    root.mkdir()
    return Project(root, fork_server)


@pytest.fixture(scope="module")
def shared_project(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Project:
    """An empty project for the tests of one file that look at one run."""
    root = tmp_path_factory.mktemp("shared") / "project"
    root.mkdir()
    return Project(root, fork_server)
