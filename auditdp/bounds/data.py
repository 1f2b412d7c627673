"""What a record must look like: every refusal shows the value and says what to do.

Columns of numbers from CSV, TSV, NPZ and Parquet files.
"""

from __future__ import annotations

import csv
import importlib
import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from auditdp.bounds.privacy_curves import curve_of
from auditdp.bounds.result import Question
from auditdp.errors import (
    AuditError,
    ConfigurationError,
    MissingExtraError,
    did_you_mean,
)
from auditdp.files import MOST_BYTES
from auditdp.numerics.arrays import Floats, Labels

FEWEST_OUTPUTS = 20
UNFAIR = 1e-6
"""Probability with which labels that fair coins gave are refused, at most."""


def question_of(
    parameter: str, delta: float, alpha: float, claim: float | None
) -> Question:
    """Return what is asked, checked.

    Raises:
        ConfigurationError: If a number is out of range.
    """
    for name, value in (("alpha", alpha), ("delta", delta), ("claim", claim)):
        if not isinstance(
            value, int | float | np.floating | np.integer | None
        ) or isinstance(value, bool):
            least = f"; give its {parameter} as a number" if name == "claim" else ""
            raise ConfigurationError(
                f"expected {name} as a number, got {value!r}{least}"
            )
    if not 0 < alpha < 1:
        raise ConfigurationError(
            f"expected alpha between 0 and 1, got {alpha!r}; usual is 0.05"
        )
    least = "> 0" if parameter == "mu" else ">= 0"
    if claim is not None and not (
        math.isfinite(claim) and (claim > 0 or (claim == 0 and parameter != "mu"))
    ):
        raise ConfigurationError(
            f"expected a finite claim {least}, got {claim!r}; leave it out to get the bound alone"
        )
    return Question(
        curve_of(parameter, delta),
        float(alpha),
        None if claim is None else float(claim),
    )


def increasing(**counts: Any) -> tuple[int, ...]:
    """Return whole numbers 0 <= ... <= ..., given by their names, of which the last is positive.

    Raises:
        ConfigurationError: If they are not.
    """
    values = list(counts.values())
    whole = all(
        isinstance(value, int | np.integer) and not isinstance(value, bool)
        for value in values
    )
    if not whole or values != sorted(values) or values[0] < 0 or values[-1] < 1:
        *_, last = counts
        shown = ", ".join(f"{name}={value!r}" for name, value in counts.items())
        raise ConfigurationError(
            f"expected whole numbers 0 <= {' <= '.join(counts)} and {last} > 0, got {shown}"
        )
    return tuple(int(value) for value in values)


def numbers(name: str, values: ArrayLike, *, gaps: bool = False) -> Floats:
    """Return the values as an array of finite numbers with at least one dimension; with ``gaps`` some may be NaN.

    Raises:
        ConfigurationError: If they are not.
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name}: expected numbers, all rows of one shape: {error}"
        ) from error
    known = np.isfinite(array) | (gaps & np.isnan(array))
    if not known.all():
        bad = int(np.flatnonzero(~known.reshape(len(array), -1).all(axis=1))[0])
        raise ConfigurationError(
            f"{name}: row {bad + 1} is {array[bad]}, expected finite numbers; give such rows a number that says so, "
            "the same for either label, rather than leave them out"
        )
    return array


def scores_and_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Labels]:
    """Return scores and labels, both of shape (n,).

    Raises:
        ConfigurationError: If the shapes differ, a label is not 0 or 1, or there are not two of either.
    """
    values, truth = numbers("scores", scores), numbers("labels", labels)
    if values.ndim != 1 or values.shape != truth.shape:
        raise ConfigurationError(
            f"expected one score and one label per row, got scores of shape {values.shape} and labels {truth.shape}"
        )
    check_binary("labels", truth)
    inside = int(truth.sum())
    if min(inside, len(truth) - inside) < 2:
        raise ConfigurationError(
            f"labels: {inside} in and {len(truth) - inside} out; at least two of either are needed, so record more runs"
        )
    return values, truth.astype(np.int8)


def check_binary(name: str, values: Floats) -> None:
    """Raise unless all of these say 'in' or 'out'.

    Raises:
        ConfigurationError: If one does not.
    """
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ConfigurationError(
            f"{name}: expected 1 for in and 0 for out, got {wrong[0]:g}; recode them"
        )


def check_fair(labels: Labels) -> None:
    """Raise where fair coins give numbers of in and out as uneven as these with probability ``UNFAIR`` at most.

    Null hypothesis: each label was thrown by its own fair coin. The test is the two-sided binomial one. Where labels were
    not thrown so, guesses are right without any training, and a bound that assumes coins would be false.

    Raises:
        ConfigurationError: If the labels are so uneven.
    """
    inside, rows = int(labels.sum()), len(labels)
    if 2 * float(bdtr(min(inside, rows - inside), rows, 0.5)) <= UNFAIR:
        raise ConfigurationError(
            f"labels: {inside:,} of {rows:,} are in; fair coins give numbers as uneven with probability {UNFAIR:g} at most; "
            "use design 'arms' if every row is an independent run of the mechanism, or propensities that say how likely "
            "each row is a member"
        )


def outputs(name: str, values: ArrayLike) -> Floats:
    """Return outputs, shape (n, features).

    Raises:
        ConfigurationError: If there are too few to learn an event from.
    """
    array = numbers(name, values)
    if len(array) < FEWEST_OUTPUTS:
        raise ConfigurationError(
            f"{name}: {len(array)} outputs, expected at least {FEWEST_OUTPUTS} to learn an event from; record more, or "
            "count an event that was fixed beforehand (from_counts)"
        )
    return array.reshape(len(array), -1)


Columns = dict[str, NDArray[Any]]
COUNT = re.compile(
    r"counts?|freq(uency|uencies)?|n|number|occurrences|times|weights?", re.IGNORECASE
)
"""The name of a column that counts how often something came."""
NOT_NUMBERS = "cmMV"
"""Kinds of arrays that are no real numbers: complex ones, times and records."""
UNREAD = np.array(["a text or a nested value"], dtype=object)
"""What stands in the place of a column of Parquet that is not read, since it has no numbers."""
ROWS = 4096
"""Rows of a table that are unpacked before it is seen how large they are."""


def read(path: Path) -> Columns:
    """Return the columns of a file by name; those of text files hold text.

    Args:
        path: A file that ends in .csv or .tsv (with a line of column names), .npz (named arrays) or .parquet.

    Raises:
        ConfigurationError: If there is no such file or it is not what its name says.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
    """
    readers = {
        ".csv": _read_text,
        ".tsv": _read_text,
        ".npz": _read_npz,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(
            f"{path}: cannot read {path.suffix or 'a file without a suffix'}; use {', '.join(readers)}"
        )
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError(
                f"{path}: {path.stat().st_size:,} bytes; at most {MOST_BYTES:,} are read"
            )
        columns = reader(path)
    except AuditError:
        raise
    except (
        Exception
    ) as error:  # whatever a parser raises, the file is not what its name says
        raise ConfigurationError(
            f"{path}: cannot read it as {path.suffix}: {type(error).__name__}: {error}"
        ) from error
    if not columns or not all(len(column) for column in columns.values()):
        raise ConfigurationError(
            f"{path}: no rows; expected a line of column names and then numbers"
        )
    return columns


def column(columns: Columns, name: str, path: Path) -> NDArray[np.float64]:
    """Return one column as numbers; an empty cell is NaN.

    Raises:
        ConfigurationError: If there is no such column or it holds something else than numbers.
    """
    if name not in columns:
        raise ConfigurationError(
            f"{path}: no column {name!r}; {did_you_mean(name, columns)}"
        )
    values = columns[name]
    if values.dtype.kind not in "UO":
        if (
            values.dtype.kind in NOT_NUMBERS
        ):  # NumPy would drop a part of them, and say so in a warning at most
            raise ConfigurationError(
                f"{path}: column {name!r} is {values.dtype}, expected numbers"
            )
        try:
            return np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}: column {name!r} is {values.dtype}, expected numbers"
            ) from error
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = float(value) if value not in ("", None) else np.nan
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}: column {name!r}, row {row + 1}: expected a number, got {value!r:.80}"
            ) from error
    return numbers


def refuse_histogram(columns: Columns, names: Sequence[str], path: Path) -> None:
    """Raise where one of these columns counts how often the values of the others came, so that a row is no output.

    Such a column has the name of a count and whole numbers >= 0, and no two rows have the same values in the others.

    Raises:
        ConfigurationError: If there is such a column, or no column of a name.
    """
    values = {name.strip(): column(columns, name.strip(), path) for name in names}
    for name in filter(COUNT.fullmatch, values):
        others = [
            map(repr, each.tolist()) for other, each in values.items() if other != name
        ]
        rows, counts = (
            list(zip(*others, strict=False)),
            values[name][~np.isnan(values[name])],
        )
        if (
            rows
            and len(set(rows)) == len(rows)
            and (counts >= 0).all()
            and not (counts % 1).any()
        ):
            raise ConfigurationError(
                f"{path}: column {name!r} seems to count how often each value came, but every row has to be one output: "
                "repeat each value as often as it came, or rename the column if it is a part of the outputs"
            )


def _shown(names: Sequence[str]) -> str:
    """Return names of columns for a message of one line, whatever characters they have."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def _read_text(path: Path) -> Columns:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [
            row
            for row in csv.reader(
                file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","
            )
            if row
        ]
    if len(rows) < 2:
        return {}
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"{path}: two columns have the same name: {_shown(names)}; rename one"
        )
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(names):
            raise ConfigurationError(
                f"{path}: row {number} has {len(row)} cells, expected {len(names)}: {_shown(names)}"
            )
    cells = np.array(
        [[cell.strip() for cell in row] for row in rows[1:]], dtype=object
    )  # not as wide as the longest
    return {name: cells[:, k] for k, name in enumerate(names)}


def _read_npz(path: Path) -> Columns:
    with zipfile.ZipFile(
        path
    ) as archive:  # which reads no member further than it is said to be long
        if (
            whole := sum(member.file_size for member in archive.infolist())
        ) > MOST_BYTES:
            raise ConfigurationError(
                f"{path}: unpacks to {whole:,} bytes; at most {MOST_BYTES:,} are read"
            )
        for member in archive.infolist():
            with archive.open(member) as file:
                _refuse_long(file, member.file_size, f"{path}: {member.filename}")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: np.atleast_1d(arrays[name]) for name in arrays.files}


def _refuse_long(file: IO[bytes], size: int, where: str) -> None:
    """Raise unless an array is as long as the file that holds it: NumPy makes room for what its header says."""
    version = np.lib.format.read_magic(file)
    header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = header(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ConfigurationError(
            f"{where}: an array of shape {shape} in {size:,} bytes"
        )


def _read_parquet(path: Path) -> Columns:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from error
    types = importlib.import_module("pyarrow.types")
    batches, size = [], 0
    with parquet.ParquetFile(
        path
    ) as file:  # what it says of its size is not what it unpacks to
        schema = file.schema_arrow
        # Of other types one row may unpack to any size: a text that is stored once may stand in every row.
        plain = [
            field.name
            for field in schema
            if types.is_primitive(field.type) or types.is_decimal(field.type)
        ]
        for batch in file.iter_batches(ROWS, columns=plain):
            size += batch.nbytes
            if size > MOST_BYTES:
                raise ConfigurationError(
                    f"{path}: unpacks to more than {MOST_BYTES:,} bytes, which is the most that is read"
                )
            batches.append(batch)
    pyarrow = importlib.import_module("pyarrow")
    table = pyarrow.Table.from_batches(
        batches, pyarrow.schema([schema.field(name) for name in plain])
    )
    found = {
        name: np.asarray(table[name].to_numpy(zero_copy_only=False))
        for name in table.column_names
    }
    return {field.name: found.get(field.name, UNREAD) for field in schema}
