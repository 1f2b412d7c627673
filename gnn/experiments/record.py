"""The record of an experiment: one JSON line for each finished cell, appended as soon as it is done.

A line is written with one system call and flushed to disk, so a run that is killed at any moment loses no finished cell; a
last line that was cut short is ignored, and cut off before anything is added.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from auditdp.errors import ConfigurationError
from gnn.experiments.experiment import Curve
from gnn.experiments.grid import GridCell, plain

SCHEMA = 1
LIBRARIES = ("numpy", "scipy", "torch", "torch-geometric", "opacus")


@dataclass(frozen=True)
class CellRecord:
    """A finished cell.

    Attributes:
        key: What it is found by: experiment, version, parameters, repetition, seed.
        experiment: The experiment's name.
        version: The experiment's version.
        parameters: The setting, as ``gnn.experiments.grid.plain`` writes values.
        repetition: Which repetition.
        root_seed: The seed of the run.
        seed: The seed that the cell was given.
        device: Where torch computed.
        seconds: Wall time.
        metrics: What was measured; empty where the cell failed.
        error: What went wrong, in a line; empty where nothing did.
        traceback: Where it went wrong.
        date: When it was finished, UTC.
        revision: The commit, and whether the working tree differed.
        environment: Versions and machine.
    """

    key: str
    experiment: str
    version: int
    parameters: Mapping[str, Any]
    repetition: int
    root_seed: int
    seed: int
    device: str
    seconds: float
    metrics: Mapping[str, float | Curve] = field(default_factory=dict)
    error: str = ""
    traceback: str = ""
    date: str = ""
    revision: str = ""
    environment: str = ""
    schema: int = SCHEMA

    @classmethod
    def of(cls, cell: GridCell, **found: Any) -> CellRecord:
        """Return the record of a cell with its results and the time."""
        return cls(
            key=cell.key,
            experiment=cell.experiment,
            version=cell.version,
            parameters={name: plain(value) for name, value in cell.parameters.items()},
            repetition=cell.repetition,
            root_seed=cell.root_seed,
            seed=cell.seed,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            **found,
        )


def record_path(folder: Path, experiment: str) -> Path:
    """Return the file of an experiment in the folder of reports."""
    return folder / "experiments" / f"{experiment}.jsonl"


def read(path: Path) -> dict[str, CellRecord]:
    """Return the last record of each cell, by key; nothing where there is no file.

    Raises:
        ConfigurationError: If a whole line is no record.
    """
    whole = path.read_bytes() if path.is_file() else b""
    found: dict[str, CellRecord] = {}
    for number, line in enumerate(
        whole[: whole.rfind(b"\n") + 1].splitlines(), start=1
    ):
        try:
            record = CellRecord(**json.loads(line))
            schema = record.schema
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}, line {number} is no record of a cell ({error}); mend it or move the file away"
            ) from error
        if schema != SCHEMA:
            raise ConfigurationError(
                f"{path}, line {number}: schema {schema}, expected {SCHEMA}; move the file away"
            )
        found[record.key] = record
    return found


class Recorder:
    """An experiment's file, open for appending by one run at a time.

    Args:
        path: Where it lies; its folder is made.

    Raises:
        ConfigurationError: If it cannot be written, or another run writes it.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write {path}: {error.strerror}; give another --out"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise ConfigurationError(
                f"another run is writing {path}; wait for it, or give another --out"
            ) from error
        os.ftruncate(self._file, path.read_bytes().rfind(b"\n") + 1)

    def add(self, record: CellRecord) -> None:
        """Append one line and flush it to disk."""
        os.write(
            self._file,
            (
                json.dumps(asdict(record), allow_nan=False, ensure_ascii=False) + "\n"
            ).encode(),
        )
        os.fsync(self._file)

    def close(self) -> None:
        """Let others write."""
        os.close(self._file)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def revision() -> str:
    """Return the commit of the working folder, and whether its files differ from it."""
    try:
        commit, changes = (
            subprocess.run(
                ["git", *words], capture_output=True, text=True, check=True, timeout=20
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--", ":!reports"),
            )
        )
    except (OSError, subprocess.SubprocessError):
        return "no commit"
    return f"{commit} with changes" if changes else commit


def environment() -> str:
    """Return versions, system and number of cores."""
    return ", ".join(
        [
            f"Python {platform.python_version()}",
            *_versions(),
            f"{sys.platform}, {os.cpu_count()} cores",
        ]
    )


def _versions() -> Iterator[str]:
    for name in LIBRARIES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
