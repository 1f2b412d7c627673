"""The record of a benchmark: one JSON file for each part, written after every unit, and the file that joins them."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from auditdp import __version__
from benchmarks.parts import Options, Part, Result

LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "hypothesis",
    "jax-privacy",
    "jax",
    "privacy-estimates",
)
Fragment = dict[str, Any]


def environment() -> dict[str, str]:
    """Return versions, CPU and operating system."""
    found = {"python": platform.python_version(), "auditdp": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found | {
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "system": platform.platform(terse=True),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (
            line.partition(":")[2].strip()
            for line in lines
            if line.startswith("model name")
        ),
        platform.machine(),
    )


def revision() -> str:
    """Return the commit, and whether the working tree differs from it."""
    try:
        commit, changes = (
            subprocess.run(
                ["git", *arguments],
                capture_output=True,
                text=True,
                check=True,
                timeout=20,
            ).stdout.strip()
            for arguments in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=all"),
            )
        )
    except (OSError, subprocess.SubprocessError):
        return "no commit"
    return f"{commit} with changes" if changes else commit


def stamp(options: Options) -> dict[str, Any]:
    """Return when, by which command and with which options results were made."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "revision": revision(),
        "environment": environment(),
        "options": asdict(options),
    }


class Fragments:
    """The files of a folder, one for each part: ``bench/<part>.json``.

    Args:
        folder: Where reports go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, part: Part) -> Path:
        """Return the file of a part."""
        return self.folder / "bench" / f"{part.name}.json"

    def read(self, part: Part) -> Fragment:
        """Return the record of a part: its stamps, and its units by key."""
        path = self.path(part)
        return (
            json.loads(path.read_text())
            if path.exists()
            else {"part": part.name, "stamps": [], "units": {}}
        )

    def write(self, part: Part, fragment: Fragment) -> None:
        """Replace the file of a part, all at once."""
        path = self.path(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, to_json(fragment, indent=1, inf_nan_mode="strings"))

    def join(
        self, parts: Iterable[Part], bars: Mapping[str, list[dict[str, Any]]]
    ) -> Path:
        """Write ``bench.json``: the bars, and all that is recorded of the parts."""
        path = self.folder / "bench.json"
        joined = {
            "schema": 1,
            "bars": bars,
            "parts": {part.name: self.read(part) for part in parts},
        }
        _replace(path, to_json(joined, indent=1, inf_nan_mode="strings"))
        return path


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".tmp")
    draft.write_bytes(content)
    draft.replace(path)


def results_of(fragment: Fragment) -> dict[str, Result]:
    """Return the results of the units that did not fail."""
    return {
        key: unit["result"]
        for key, unit in fragment["units"].items()
        if "result" in unit
    }


def is_current(unit: Mapping[str, Any], fragment: Fragment, options: Options) -> bool:
    """Return True if a recorded unit succeeded with the same options."""
    return "result" in unit and fragment["stamps"][unit["stamp"]]["options"] == asdict(
        options
    )
