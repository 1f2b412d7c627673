"""``python -m benchmarks.changes``: each change in a repository of its package, checked with and without ``--compare``.

A change is caught where the check fails, with any exit code but 0. What fails it is 'bets' (a finding), 'trace' (more is
lost than the claim, by the trace), 'baseline' (anything else that is weaker); 'law' and 'draws' are reported, and
fail nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks.changes.table import CHANGES, Change

HERE = Path(__file__).parent / "packages"
SETTINGS = '[tool.auditdp.profiles.ci]\nseed = {seed}\nbudget = "quick"\n'
KINDS = {"new finding": "bets", "loses more": "trace", "law changed": "law", "draws otherwise": "draws"}
WEAKER = ("crashed", "drifted", "claim changed", "weaker", "skipped", "gone", "stale entry")


def auditdp(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command line in a folder; return exit code and standard output."""
    command = [sys.executable, "-m", "auditdp", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def prepared(folder: Path, package: str, seed: int) -> None:
    """Make a repository of a package, with a baseline."""
    (folder / "audits").mkdir()
    for name, place in ((f"{package}.py", folder), (f"audit_{package}.py", folder / "audits")):
        (place / name).write_text((HERE / name).read_text())
    (folder / "pyproject.toml").write_text(SETTINGS.format(seed=seed))
    (folder / ".gitignore").write_text(".auditdp/\n__pycache__/\n")
    auditdp(folder, "run", "--profile", "ci", "-q")
    auditdp(folder, "baseline", "update")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "main")):
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def checked(folder: Path, *more: str) -> tuple[int, set[str], float]:
    """Check a repository; return exit code, what was said, and seconds."""
    began = time.perf_counter()
    code, printed = auditdp(folder, "run", "--profile", "ci", "-q", "--check", *more)
    kinds = set(re.findall(rf"^({'|'.join([*KINDS, *WEAKER])}) ", printed, re.M))
    return code, {KINDS.get(kind, "baseline") for kind in kinds}, time.perf_counter() - began


def main(
    package: Annotated[str, typer.Option(help="Only this package.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the check.")] = 1,
    harmless: Annotated[bool, typer.Option(help="Only changes that are harmless.")] = False,
) -> None:
    """Measure how many changes the check catches, and how many harmless ones it accuses."""
    tally: Counter[str] = Counter()
    for name in dict.fromkeys(change.package for change in CHANGES if package in ("", change.package)):
        for seed in range(1, seeds + 1):
            with TemporaryDirectory() as made:
                _package(Path(made), name, seed, tally, harmless=harmless)
    typer.echo("\n".join(f"{what}: {many}" for what, many in sorted(tally.items())))


def _package(folder: Path, name: str, seed: int, tally: Counter[str], *, harmless: bool) -> None:
    prepared(folder, name, seed)
    text, seconds = (HERE / f"{name}.py").read_text(), Counter[str]()
    for change in (c for c in CHANGES if c.package == name and not (harmless and c.worse)):
        (folder / f"{name}.py").write_text(text.replace(change.before, change.after))
        row = []
        for way, options in (("alone", ()), ("compared", ("--compare", "main"))):
            code, said, spent = checked(folder, *options)
            seconds[way] += spent
            row.append(f"{way} {code} {' '.join(sorted(said)) or '-'}")
            _count(tally, way, change, code, said)
        typer.echo(f"{name} {seed} {'worse' if change.worse else 'harmless'} {change.name!r}: {'; '.join(row)}")
    typer.echo(f"{name} {seed} seconds {', '.join(f'{way} {spent:.1f}' for way, spent in seconds.items())}")


def _count(tally: Counter[str], way: str, change: Change, code: int, said: set[str]) -> None:
    kind = "worse" if change.worse else "harmless"
    tally[f"{way}, {kind}"] += 1
    tally[f"{way}, {kind}, fails"] += code != 0
    tally[f"{way}, {kind}, reported alone"] += code == 0 and "law" in said
    if code:
        tally[f"{way}, {kind}, fails by {'+'.join(sorted(said - {'law', 'draws'})) or 'another code'}"] += 1


if __name__ == "__main__":
    typer.run(main)
