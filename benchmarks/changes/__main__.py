"""``python -m benchmarks.changes``: each change as a pull request to a repository of its package, checked and compared.

A change is caught where the check fails, with any exit code but 0. What fails it is 'bets' (a finding), 'trace' (more is
lost than the claim, by the trace), 'baseline' (anything else that is weaker); 'law' and 'draws' are reported, and
fail nothing. What was measured is a line of a file and is not measured again, so that a measurement can be left and goes on.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from benchmarks.changes.table import CHANGES, Change

HERE = Path(__file__).parent / "packages"
SETTINGS = '[tool.auditdp.profiles.ci]\nseed = 1\nbudget = "quick"\n'
CHECK = ("run", "--profile", "ci", "-q", "--check", "--compare", "main")
KINDS = {
    "new finding": "bets",
    "loses more": "trace",
    "law changed": "law",
    "draws otherwise": "draws",
}
WEAKER = (
    "crashed",
    "drifted",
    "claim changed",
    "weaker",
    "skipped",
    "gone",
    "stale entry",
    "not compared",
)


def auditdp(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command line in a folder; return exit code and standard output."""
    command = [sys.executable, "-m", "auditdp", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def prepared(folder: Path, package: str) -> None:
    """Make a repository of a package, with a baseline."""
    (folder / "audits").mkdir()
    for name, place in (
        (f"{package}.py", folder),
        (f"audit_{package}.py", folder / "audits"),
    ):
        (place / name).write_text((HERE / name).read_text())
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / ".gitignore").write_text(".auditdp/\n__pycache__/\n")
    _, printed = auditdp(folder, "run", "--profile", "ci", "-q")
    if auditdp(folder, "baseline", "update")[0]:
        raise RuntimeError(
            f"{package} has no baseline, since its audit is not clean:\n{printed}"
        )
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("commit", "-qm", "main"),
    ):
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(
            ["git", *identity, *words], cwd=folder, check=True, capture_output=True
        )


def checked(folder: Path, change: Change, seed: int) -> dict[str, Any]:
    """Check a change in the repository of its package; return the statement about it."""
    text = (HERE / f"{change.package}.py").read_text()
    (folder / f"{change.package}.py").write_text(
        text.replace(change.before, change.after)
    )
    began = time.perf_counter()
    code, printed = auditdp(folder, *CHECK, "--seed", str(seed))
    kinds = set(re.findall(rf"^({'|'.join([*KINDS, *WEAKER])}) ", printed, re.M))
    return {
        "package": change.package,
        "name": change.name,
        "seed": seed,
        "worse": change.worse,
        "code": code,
        "said": sorted({KINDS.get(kind, "baseline") for kind in kinds}),
        "seconds": round(time.perf_counter() - began, 1),
        "printed": printed,
    }


def measured(asked: list[tuple[Change, int]]) -> Iterator[dict[str, Any]]:
    """Check changes, each with a seed, in the repositories of their packages."""
    for package in dict.fromkeys(change.package for change, _ in asked):
        with TemporaryDirectory() as made:
            prepared(Path(made), package)
            for change, seed in asked:
                if change.package == package:
                    yield checked(Path(made), change, seed)


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Return the number of changes that fail the check, by the reason."""
    for what, of in (("worse", True), ("harmless", False)):
        found = [row for row in rows if row["worse"] == of]
        if not found:
            continue
        failing = [row for row in found if row["code"]]
        spent = statistics.median(row["seconds"] for row in found)
        yield f"{what}: {len(failing)} of {len(found)} fail, in a median of {spent:.1f} s"
        for kind in ("bets", "trace", "baseline", "law"):
            having = [row for row in found if kind in row["said"]]
            alone = [row for row in having if set(row["said"]) - {"draws"} == {kind}]
            yield f"  {kind}: {len(having)}, alone {len(alone)}"
        yield from (
            f"  {'passes' if of else 'accused'}: {row['package']} {row['seed']} {row['name']!r}, {', '.join(row['said'])}"
            for row in found
            if of != bool(row["code"])
        )


def main(
    package: Annotated[
        str, typer.Option(help="Only these packages, with commas between.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="The last seed of the check.")] = 1,
    first: Annotated[int, typer.Option(min=1, help="The first seed of the check.")] = 1,
    harmless: Annotated[
        bool, typer.Option(help="Only changes that are harmless.")
    ] = False,
    label: Annotated[
        str,
        typer.Option(
            help="What is measured, as a commit; lines of other labels are left alone."
        ),
    ] = "",
    log: Annotated[
        Path, typer.Option(help="Lines of what was measured; it is continued.")
    ] = Path("changes.jsonl"),
) -> None:
    """Measure how many changes the check catches, and how many harmless ones it accuses."""
    lines = map(json.loads, log.read_text().splitlines() if log.exists() else [])
    rows = [row for row in lines if row.get("label", "") == label]
    known = {(row["package"], row["name"], row["seed"]) for row in rows}
    of = [
        c
        for c in CHANGES
        if (not package or c.package in package.split(","))
        and not (harmless and c.worse)
    ]
    asked = [
        (c, seed)
        for seed in range(first, seeds + 1)
        for c in of
        if (c.package, c.name, seed) not in known
    ]
    for row in measured(asked):
        with log.open("ab", buffering=0) as file:
            file.write(
                (json.dumps({"label": label} | row, ensure_ascii=False) + "\n").encode()
            )
        typer.echo(
            f"{row['package']} {row['seed']} {'worse' if row['worse'] else 'harmless'} {row['name']!r}: {row['code']} "
            f"{' '.join(row['said']) or '-'}, {row['seconds']} s"
        )
        rows.append(row)
    typer.echo("\n".join(summary(rows)))


if __name__ == "__main__":
    typer.run(main)
