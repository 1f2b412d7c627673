"""The code blocks of a page, run in order in one folder, as a reader would.

A block with a title is a file: it is written under that name. Of the others, ``console`` holds commands after ``$ `` with
what they print, ``python`` is run, and ``pycon`` is a doctest. What a command prints may be shown in part: a last line ``…``
stands for the rest. ``python -m docs.blocks PAGE`` writes what commands print now into a page.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', flags=re.M | re.S)
RUN = ("console", "python", "pycon")
"""Languages whose blocks are run."""
REST = "…"
TIMES = (
    (re.compile(r" +[\d.]+ (s|ms|min)$", flags=re.M), ""),
    (re.compile(r" in [\d.]+ (s|ms|min)$", flags=re.M), ""),
)

Runner = Callable[[list[str]], tuple[int, str]]
"""Runs a command in the page's folder, and returns its exit code and output."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its title or an empty text, its text, and where that begins in the page."""

    language: str
    title: str
    text: str
    start: int


@dataclass(frozen=True)
class Command:
    """A command of a console block, the printed part on the page, and its output."""

    line: str
    shown: str
    printed: str

    @property
    def agrees(self) -> bool:
        """True if the page has the output, except for durations."""
        shown, printed = untimed(self.shown), untimed(self.printed)
        return (
            printed.startswith(shown[: -len(REST)])
            if shown.endswith(f"\n{REST}")
            else printed == shown
        )


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [
        Block(found[1], found[2] or "", found[3], found.start(3))
        for found in FENCE.finditer(text)
    ]


def untimed(text: str) -> str:
    """Return an output without durations."""
    for pattern, replacement in TIMES:
        text = pattern.sub(replacement, text)
    return text.rstrip()


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with its output on the page."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def play(text: str, folder: Path, run: Runner) -> Iterator[Command]:
    """Run a page's blocks in a folder, and yield the commands of its console blocks.

    Raises:
        AssertionError: If a doctest fails, or a block has a language that nobody runs and no title.
    """
    names: dict[str, Any] = {"__name__": "page"}
    code = 0
    for block in blocks(text):
        if block.title:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for line, shown in commands(block.text):
                if line == "echo $?":
                    yield Command(line, shown, f"{code}\n")
                    continue
                code, printed = run(shlex.split(line))
                yield Command(line, shown, printed)
        elif block.language == "python":
            exec(compile(block.text, "page", "exec"), names)
        elif block.language == "pycon":
            example = doctest.DocTestParser().get_doctest(
                block.text, names, "page", None, None
            )
            assert (
                doctest.DocTestRunner().run(example, clear_globs=False).failed == 0
            ), block.text
            names.update(example.globs)
        else:
            assert block.language == "text", (
                f"a block of {block.language} without a title: {block.text}"
            )


def rewritten(text: str, played: list[Command]) -> str:
    """Return a page with the present output of its commands."""
    results = iter(played)

    def replace(found: re.Match[str]) -> str:
        if found[1] != "console" or found[2]:
            return found[0]
        lines = []
        for line, shown in commands(found[3]):
            printed = next(results).printed.rstrip().splitlines()
            part = printed
            if shown.endswith(f"{REST}\n"):
                rule = [n for n, text in enumerate(printed) if text.startswith("──")]
                part = [
                    *printed[: rule[0] if rule else len(shown.splitlines()) - 1],
                    REST,
                ]
            lines += [f"$ {line}", *part]
        return "```console\n" + "\n".join(lines) + "\n```"

    return FENCE.sub(replace, text)


def as_process(folder: Path) -> Runner:
    """Return a function that runs commands as processes in a folder."""
    known = {
        "auditdp": [sys.executable, "-m", "auditdp"],
        "python": [sys.executable],
        "pytest": [sys.executable, "-m", "pytest"],
    }

    def run(words: list[str]) -> tuple[int, str]:
        command = [*known[words[0]], *words[1:]]
        done = subprocess.run(
            command,
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout

    return run


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        source = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as name, chdir(name):
            sys.path.insert(0, name)
            printed = list(play(source, Path(name), as_process(Path(name))))
            sys.path.remove(name)
        page.write_text(rewritten(source, printed), encoding="utf-8")
