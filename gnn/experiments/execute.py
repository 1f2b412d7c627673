"""Running cells: in this process or in several, each on one thread, each recorded when it is done."""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from auditdp.configuration import DATA_VARIABLE
from auditdp.errors import ConfigurationError, MechanismError
from auditdp.numerics.streams import stream
from gnn.experiments.experiment import Cell, Curve, Experiment, Parameters
from gnn.experiments.grid import GridCell
from gnn.experiments.record import (
    CellRecord,
    Recorder,
    environment,
    read,
    record_path,
    revision,
)

if TYPE_CHECKING:
    import torch


def data_folder() -> Path:
    """Return the folder of data sets that ``--data`` or AUDITDP_DATA names.

    Raises:
        ConfigurationError: If neither does, or it is no folder.
    """
    text = os.environ.get(DATA_VARIABLE, "")
    if not text or not Path(text).is_dir():
        found = f"{text}: no such folder" if text else "no data folder is named"
        raise ConfigurationError(
            f"{found}; give the folder of the data sets with --data or {DATA_VARIABLE}"
        )
    return Path(text)


def files_of(names: Mapping[str, str]) -> Callable[[Parameters], Sequence[str]]:
    """Return the function for the file of the factor "data", such as ``Experiment.files``."""
    return lambda setting: (names[str(setting["data"])],)


def generator_of(seed: int, purpose: str) -> torch.Generator:
    """Return torch's generator for a purpose."""
    import torch

    return torch.Generator().manual_seed(int(stream(seed, purpose).integers(2**63)))


def require_files(experiment: Experiment, cells: Sequence[GridCell]) -> None:
    """Raise unless every file that the cells read is in the data folder.

    Raises:
        ConfigurationError: With the files that are missing, and how to go on without them.
    """
    names = sorted(
        {name for cell in cells for name in experiment.files(cell.parameters)}
    )
    missing = [name for name in names if not (data_folder() / name).is_file()]
    if missing:
        raise ConfigurationError(
            f"{experiment.name} reads {', '.join(missing)}, not in {data_folder()}; give their folder with --data, or run "
            "the settings that do not need them with --only FACTOR=VALUE"
        )


@dataclass(frozen=True)
class Todo:
    """The cells of a run that are recorded and those that are not, or failed."""

    recorded: Sequence[GridCell]
    open: Sequence[GridCell]


def todo(cells: Sequence[GridCell], *, folder: Path) -> Todo:
    """Return the cells that a run has to compute; a failed cell is tried again."""
    if not cells:
        return Todo([], [])
    done = {
        key
        for key, record in read(record_path(folder, cells[0].experiment)).items()
        if not record.error
    }
    return Todo(
        [cell for cell in cells if cell.key in done],
        [cell for cell in cells if cell.key not in done],
    )


def run(
    experiment: Experiment,
    cells: Sequence[GridCell],
    *,
    folder: Path,
    workers: int,
    device: str,
    finished: Callable[[CellRecord], None],
) -> int:
    """Compute cells, record each when it is done, and return how many failed.

    Args:
        experiment: The experiment.
        cells: Which of its cells.
        folder: Folder of reports.
        workers: Processes.
        device: Where torch computes.
        finished: Called with each record once it is on disk.

    Raises:
        ConfigurationError: If the record cannot be written, or a process died.
    """
    stamp = {"device": device, "revision": revision(), "environment": environment()}
    failed = 0
    with Recorder(record_path(folder, experiment.name)) as recorder:
        for cell, found in _outcomes(
            experiment, cells, workers=1 if experiment.alone else workers, device=device
        ):
            record = CellRecord.of(cell, **stamp, **found)
            recorder.add(record)
            failed += bool(record.error)
            finished(record)
    return failed


def _outcomes(
    experiment: Experiment, cells: Sequence[GridCell], *, workers: int, device: str
) -> Iterator[tuple[GridCell, dict[str, Any]]]:
    names = tuple(metric.name for metric in experiment.metrics)
    if workers == 1:
        for cell in cells:
            yield cell, attempt(experiment.cell, cell, device, names)
        return
    jobs = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    found = jobs(
        delayed(_numbered)(number, experiment.cell, cell, device, names)
        for number, cell in enumerate(cells)
    )
    try:
        for number, outcome in found:
            yield cells[number], outcome
    except BrokenProcessPool as error:
        raise ConfigurationError(
            f"a process of {experiment.name} died, perhaps for want of memory; what was finished is recorded: run again "
            "with a smaller -n"
        ) from error
    except (KeyboardInterrupt, GeneratorExit):
        # Asked for with other settings, it would wait for the cells that run to end.
        get_reusable_executor(workers, kill_workers=True, reuse=True).shutdown(
            wait=False, kill_workers=True
        )
        raise


def _numbered(
    number: int, function: Cell, cell: GridCell, device: str, names: Sequence[str]
) -> tuple[int, dict[str, Any]]:
    return number, attempt(function, cell, device, names)


def attempt(
    function: Cell, cell: GridCell, device: str, names: Sequence[str]
) -> dict[str, Any]:
    """Return the metrics of a cell, or its error with the traceback, and its wall time.

    Args:
        function: Computes the cell.
        cell: The cell.
        device: Where torch computes.
        names: The metrics that the experiment declares.
    """
    started = time.perf_counter()
    try:
        with _one_thread():
            metrics = _checked(
                function(dict(cell.parameters), cell.seed, device), names
            )
        return {"metrics": metrics, "seconds": time.perf_counter() - started}
    except Exception as error:
        trace = traceback.format_exc()
        seconds = time.perf_counter() - started
        return {
            "error": f"{type(error).__name__}: {error}",
            "traceback": trace,
            "seconds": seconds,
        }


def _checked(
    metrics: Mapping[str, Any], names: Sequence[str]
) -> dict[str, float | Curve]:
    """Return metrics as plain numbers and lists of points, or raise with the fault."""
    found: dict[str, float | Curve] = {}
    for name, value in metrics.items():
        curve = isinstance(value, list | tuple)
        points = (
            [(float(x), float(y)) for x, y in value] if curve else [(0.0, float(value))]
        )
        if name not in names or not all(
            map(math.isfinite, (number for point in points for number in point))
        ):
            raise MechanismError(
                f"metric {name!r} = {value!r}: expected finite values of {', '.join(names)}"
            )
        found[name] = points if curve else points[0][1]
    if not found:
        raise MechanismError(
            f"the cell returned no metric, expected some of {', '.join(names)}"
        )
    return found


def _one_thread() -> AbstractContextManager[Any]:
    """One thread in numerical libraries, so that no figure depends on the number of cores or processes."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are not loaded yet
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    limited: AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limited
