"""Columns of numbers from CSV, TSV, NPZ and Parquet files."""

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
from numpy.typing import NDArray

from auditdp.doors import MOST_BYTES
from auditdp.errors import AuditError, ConfigurationError, MissingExtraError, did_you_mean

Columns = dict[str, NDArray[Any]]
COUNT = re.compile(r"counts?|freq(uency|uencies)?|n|number|occurrences|times|weights?", re.IGNORECASE)
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
    readers = {".csv": _read_text, ".tsv": _read_text, ".npz": _read_npz, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(
            f"{path}: cannot read {path.suffix or 'a file without a suffix'}; use {', '.join(readers)}"
        )
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError(f"{path}: {path.stat().st_size:,} bytes; at most {MOST_BYTES:,} are read")
        columns = reader(path)
    except AuditError:
        raise
    except Exception as error:  # whatever a parser raises, the file is not what its name says
        raise ConfigurationError(f"{path}: cannot read it as {path.suffix}: {type(error).__name__}: {error}") from error
    if not columns or not all(len(column) for column in columns.values()):
        raise ConfigurationError(f"{path}: no rows; expected a line of column names and then numbers")
    return columns


def column(columns: Columns, name: str, path: Path) -> NDArray[np.float64]:
    """Return one column as numbers; an empty cell is NaN.

    Raises:
        ConfigurationError: If there is no such column or it holds something else than numbers.
    """
    if name not in columns:
        raise ConfigurationError(f"{path}: no column {name!r}; {did_you_mean(name, columns)}")
    values = columns[name]
    if values.dtype.kind not in "UO":
        if values.dtype.kind in NOT_NUMBERS:  # NumPy would drop a part of them, and say so in a warning at most
            raise ConfigurationError(f"{path}: column {name!r} is {values.dtype}, expected numbers")
        try:
            return np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{path}: column {name!r} is {values.dtype}, expected numbers") from error
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
        others = [map(repr, each.tolist()) for other, each in values.items() if other != name]
        rows, counts = list(zip(*others, strict=False)), values[name][~np.isnan(values[name])]
        if rows and len(set(rows)) == len(rows) and (counts >= 0).all() and not (counts % 1).any():
            raise ConfigurationError(
                f"{path}: column {name!r} seems to count how often each value came, but every row has to be one output: "
                "repeat each value as often as it came, or rename the column if it is a part of the outputs"
            )


def _shown(names: Sequence[str]) -> str:
    """Return names of columns for a message of one line, whatever characters they have."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def _read_text(path: Path) -> Columns:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",") if row]
    if len(rows) < 2:
        return {}
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{path}: two columns have the same name: {_shown(names)}; rename one")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(names):
            raise ConfigurationError(
                f"{path}: row {number} has {len(row)} cells, expected {len(names)}: {_shown(names)}"
            )
    cells = np.array([[cell.strip() for cell in row] for row in rows[1:]], dtype=object)  # not as wide as the longest
    return {name: cells[:, k] for k, name in enumerate(names)}


def _read_npz(path: Path) -> Columns:
    with zipfile.ZipFile(path) as archive:  # which reads no member further than it is said to be long
        if (whole := sum(member.file_size for member in archive.infolist())) > MOST_BYTES:
            raise ConfigurationError(f"{path}: unpacks to {whole:,} bytes; at most {MOST_BYTES:,} are read")
        for member in archive.infolist():
            with archive.open(member) as file:
                _refuse_long(file, member.file_size, f"{path}: {member.filename}")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: np.atleast_1d(arrays[name]) for name in arrays.files}


def _refuse_long(file: IO[bytes], size: int, where: str) -> None:
    """Raise unless an array is as long as the file that holds it: NumPy makes room for what its header says."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ConfigurationError(f"{where}: an array of shape {shape} in {size:,} bytes")


def _read_parquet(path: Path) -> Columns:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from error
    types = importlib.import_module("pyarrow.types")
    batches, size = [], 0
    with parquet.ParquetFile(path) as file:  # what it says of its size is not what it unpacks to
        schema = file.schema_arrow
        # Of other types one row may unpack to any size: a text that is stored once may stand in every row.
        plain = [field.name for field in schema if types.is_primitive(field.type) or types.is_decimal(field.type)]
        for batch in file.iter_batches(ROWS, columns=plain):
            size += batch.nbytes
            if size > MOST_BYTES:
                raise ConfigurationError(
                    f"{path}: unpacks to more than {MOST_BYTES:,} bytes, which is the most that is read"
                )
            batches.append(batch)
    pyarrow = importlib.import_module("pyarrow")
    table = pyarrow.Table.from_batches(batches, pyarrow.schema([schema.field(name) for name in plain]))
    found = {name: np.asarray(table[name].to_numpy(zero_copy_only=False)) for name in table.column_names}
    return {field.name: found.get(field.name, UNREAD) for field in schema}
