"""``python -m benchmarks.dependencies``: what each dependency of the installed package brings: megabytes and import seconds.

Sizes are those of the files that pip installed. What a dependency brings alone is what would not be there without it: its
own files, and those of packages that only it needs. Seconds are of the processor, for an import in a new process, less
those of numpy, which all of them need, except for numpy itself.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = "auditdp"
LOADED = {
    "hypothesis": "every run: searches over an adjacency",
    "jinja2": "HTML reports, auditdp init",
    "joblib": "auditdp run -n auto; scikit-learn needs it",
    "markupsafe": "HTML reports",
    "matplotlib": "plots of HTML reports and of auditdp account",
    "numpy": "always",
    "pydantic": "always: records are checked when they are read",
    "python-flint": "audits of stated laws, and accountants",
    "rich": "tables and progress on a terminal",
    "scikit-learn": "every game: learned forecasters",
    "scipy": "every game",
    "threadpoolctl": "every run",
    "typer": "the command line",
}
"""When each is imported."""
MODULES = {
    "matplotlib": "matplotlib.figure",
    "python-flint": "flint",
    "rich": "rich.console",
    "scikit-learn": "sklearn.ensemble",
    "scipy": "scipy.stats",
}
IMPORT = "import time{0}; started = time.process_time(); import {1}; print(time.process_time() - started)"


def needed(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed packages that these need, themselves too, by canonical name."""
    found: dict[str, Distribution] = {}
    waiting = [(canonicalize_name(name), frozenset[str]()) for name in names]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for text in found[name].requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(
                marker.evaluate({"extra": extra}) for extra in ("", *extras)
            ):
                waiting.append(
                    (canonicalize_name(requirement.name), frozenset(requirement.extras))
                )
    return found


def size(package: Distribution) -> float:
    """Return the megabytes of what pip installed."""
    files = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def seconds(module: str, rounds: int) -> float:
    """Return the CPU seconds that the import of a module takes in a new process, the median of some."""
    before = "" if module == "numpy" else ", numpy"
    command = [sys.executable, "-c", IMPORT.format(before, module)]
    times = [
        float(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        for _ in range(rounds)
    ]
    return statistics.median(times)


def main() -> None:
    """Print the table, the heaviest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    requirements = [Requirement(text) for text in distribution(PACKAGE).requires or ()]
    core = [
        canonicalize_name(r.name)
        for r in requirements
        if r.marker is None or r.marker.evaluate({"extra": ""})
    ]
    rows = []
    for name in core:
        without = needed(other for other in core if other != name)
        alone = {
            key: package
            for key, package in needed([name]).items()
            if key not in without
        }
        others = ", ".join(sorted(set(alone) - {name}))
        module = MODULES.get(name, name.replace("-", "_"))
        rows.append(
            (
                sum(map(size, alone.values())),
                size(distribution(name)),
                seconds(module, given.rounds),
                name,
                others,
            )
        )
    print("# What each dependency brings\n\n`python -m benchmarks.dependencies`\n")
    print(
        "| dependency | MB | MB it brings alone | import, CPU s | with it come | imported by |\n|---|---|---|---|---|---|"
    )
    for alone_size, own, cost, name, others in sorted(rows, reverse=True):
        print(
            f"| {name} | {own:.1f} | {alone_size:.1f} | {cost:.2f} | {others} | {LOADED.get(name, '')} |"
        )
    everything = needed(core)
    print(
        f"\nAll {len(everything)} packages together: {sum(map(size, everything.values())):.0f} MB."
    )


if __name__ == "__main__":
    main()
