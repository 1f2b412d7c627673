"""Validation of recorded data, and columns of CSV, TSV, NPZ and Parquet files.

Every error message contains the value and states the remedy.
"""

from __future__ import annotations

import csv
import importlib
import math
import re
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from auditdp.bounds.privacy_curves import curve_of
from auditdp.bounds.result import LIMITS, Question
from auditdp.errors import (
    AuditError,
    ConfigurationError,
    MissingExtraError,
    did_you_mean,
)
from auditdp.files import FileLimits
from auditdp.numerics.arrays import Floats, Labels, is_number

FEWEST_OUTPUTS = 20
"""Smallest number of outputs per input from which an event is learned."""
UNFAIR = 1e-6
"""Largest probability with which labels of fair coins are refused."""


def question_of(
    parameter: str, delta: float, alpha: float, claim: float | None
) -> Question:
    """Return the input of a test, after checks.

    Args:
        parameter: 'epsilon' or 'mu'.
        delta: The delta that goes with epsilon; 0 for mu.
        alpha: The error probability.
        claim: The claimed level of epsilon or mu; None if only a bound is wanted.

    Raises:
        ConfigurationError: If a value is no number or is out of range, or the parameter
            is unknown.
    """
    numbers = {"alpha": alpha, "delta": delta}
    if claim is not None:
        numbers["claim"] = claim
    for name, value in numbers.items():
        if not is_number(value) or isinstance(value, bool):
            remedy = f"; give its {parameter} as a number" if name == "claim" else ""
            raise ConfigurationError(
                f"expected {name} as a number, got {value!r}{remedy}"
            )
    if not 0 < alpha < 1:
        raise ConfigurationError(
            f"expected alpha between 0 and 1, got {alpha!r}; usual is 0.05"
        )
    if claim is not None:
        is_mu = parameter == "mu"
        if not math.isfinite(claim) or claim < 0 or (claim == 0 and is_mu):
            least = "> 0" if is_mu else ">= 0"
            raise ConfigurationError(
                f"expected a finite claim {least}, got {claim!r}; leave it out to get the bound alone"
            )
        claim = float(claim)
    return Question(curve_of(parameter, delta), float(alpha), claim)


def increasing(**counts: Any) -> tuple[int, ...]:
    """Return the given whole numbers, after the check that they never decrease.

    The first must be at least 0 and the last at least 1.

    Args:
        **counts: The numbers by their names, in order.

    Raises:
        ConfigurationError: If a number is not whole, or a number is smaller than the
            one before or than these limits.
    """
    values = list(counts.values())
    whole = all(
        isinstance(value, int | np.integer) and not isinstance(value, bool)
        for value in values
    )
    if not whole or values != sorted(values) or values[0] < 0 or values[-1] < 1:
        *_, last = counts
        given = ", ".join(f"{name}={value!r}" for name, value in counts.items())
        raise ConfigurationError(
            f"expected whole numbers 0 <= {' <= '.join(counts)} and {last} > 0, got {given}"
        )
    return tuple(int(value) for value in values)


def numbers(name: str, values: ArrayLike, *, gaps: bool = False) -> Floats:
    """Return the values as an array of finite numbers with at least one dimension.

    Args:
        name: The name of the values in messages.
        values: The values.
        gaps: Whether values may be NaN.

    Raises:
        ConfigurationError: If a value is not a finite number, except NaN with ``gaps``.
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name}: expected numbers, all rows of one shape: {error}"
        ) from error
    # Whether a value is missing may depend on the label, so gaps are refused.
    known = np.isfinite(array) | (gaps & np.isnan(array))
    if not known.all():
        bad = int(np.argwhere(~known)[0, 0])
        raise ConfigurationError(
            f"{name}: row {bad + 1} is {array[bad]}, expected finite numbers; give such rows one number of their own, "
            "the same for both labels, and do not leave them out"
        )
    return array


def scores_and_labels(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Labels]:
    """Return scores and labels as arrays of shape (n,), after checks.

    Raises:
        ConfigurationError: If a score is not finite, the shapes differ or are not (n,),
            a label is not 0 or 1, or fewer than two rows have one of the labels.
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
    """Check that all values are 0 or 1.

    Raises:
        ConfigurationError: If one is not.
    """
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ConfigurationError(
            f"{name}: expected 1 for in and 0 for out, got {wrong[0]:g}; recode them"
        )


def check_fair(labels: Labels) -> None:
    """Check that fair coins could have given the labels.

    Null hypothesis: each label was thrown by its own fair coin. The test is the
    two-sided binomial one at level ``UNFAIR``. If the coins were not fair, guesses can
    be right without any training, and a bound that assumes fair coins would be false.

    Raises:
        ConfigurationError: If the numbers of in and out are too uneven.
    """
    inside, rows = int(labels.sum()), len(labels)
    if 2 * float(bdtr(min(inside, rows - inside), rows, 0.5)) <= UNFAIR:
        raise ConfigurationError(
            f"labels: {inside:,} of {rows:,} are in; fair coins give numbers as uneven with probability {UNFAIR:g} at most; "
            "use design 'arms' if every row is an independent run of the mechanism, or propensities, the probability that "
            "each row is a member"
        )


def outputs(name: str, values: ArrayLike) -> Floats:
    """Return the outputs of one input as an array of shape (n, features).

    Args:
        name: The name of the outputs in messages.
        values: One output for each entry of the first axis; further axes are flattened.

    Raises:
        ConfigurationError: If an output is not finite, or there are fewer outputs than
            ``FEWEST_OUTPUTS``.
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
"""Usual names of a column that counts how often a value occurred."""
UNREAD = np.array(["a text or a nested value"], dtype=object)
"""Stand-in for a column of Parquet that is not read: it has texts or nested values."""


def read(path: Path) -> Columns:
    """Return the columns of a file by name.

    Columns of CSV and TSV hold text. A column of Parquet with texts or nested values is
    replaced by ``UNREAD``.

    Args:
        path: A file that ends in .csv or .tsv (with a line of column names), .npz
            (named arrays) or .parquet.

    Raises:
        ConfigurationError: If there is no such file, its format is unknown or does not
            match its content, it is too large, or it has no rows.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
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
        size = path.stat().st_size
        if size > FileLimits.file_bytes:
            raise ConfigurationError(
                f"{path}: {size:,} bytes; at most {FileLimits.file_bytes:,} are read"
            )
        columns = reader(path)
    except AuditError:
        raise
    # Whatever a parser raises, the content of the file does not match its name.
    except Exception as error:
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
        ConfigurationError: If there is no such column or it holds anything but numbers.
    """
    if name not in columns:
        raise ConfigurationError(
            f"{path}: no column {name!r}; {did_you_mean(name, columns)}"
        )
    values = columns[name]
    if values.dtype.kind not in "UO":
        # NumPy would drop a part of complex numbers, times and records, at most with a
        # warning.
        if values.dtype.kind not in "cmMV":
            with suppress(TypeError, ValueError):
                return np.asarray(values, dtype=float)
        raise ConfigurationError(
            f"{path}: column {name!r} is {values.dtype}, expected numbers"
        )
    result = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            result[row] = np.nan if value in ("", None) else float(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}: column {name!r}, row {row + 1}: expected a number, got {value!r:.80}"
            ) from error
    return result


def refuse_histogram(columns: Columns, names: Sequence[str], path: Path) -> None:
    """Check that every row is one output, and not a value with its count.

    A column of ``names`` is taken for counts if it has a usual name of counts
    (``COUNT``) and whole numbers >= 0, and no two rows have the same values in the
    other columns of ``names``.

    Args:
        columns: All columns of the file.
        names: Names of the columns that make up an output.
        path: The file, for messages.

    Raises:
        ConfigurationError: If a column seems to hold counts, or a name has no column of
            numbers.
    """
    values = {name.strip(): column(columns, name.strip(), path) for name in names}
    for name in filter(COUNT.fullmatch, values):
        # Outputs repeat; the values of a histogram do not.
        others = [each.tolist() for other, each in values.items() if other != name]
        rows = [repr(row) for row in zip(*others, strict=False)]
        counts = values[name][~np.isnan(values[name])]
        if not rows or len(set(rows)) < len(rows):
            continue
        if (counts >= 0).all() and not (counts % 1).any():
            raise ConfigurationError(
                f"{path}: column {name!r} seems to count how often each value came, but every row has to be one output: "
                "repeat each value as often as it came, or rename the column if it is a part of the outputs"
            )


def _printable(names: Sequence[str]) -> str:
    """Return names of columns on one line; unprintable characters are escaped."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def _read_text(path: Path) -> Columns:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if len(rows) < 2:
        return {}
    names = [name.strip() for name in rows.pop(0)]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"{path}: two columns have the same name: {_printable(names)}; rename one"
        )
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise ConfigurationError(
                f"{path}: row {number} has {len(row)} cells, expected {len(names)}: {_printable(names)}"
            )
    # An array of texts would make every cell as wide as the longest.
    cells = np.array([[cell.strip() for cell in row] for row in rows], dtype=object)
    return dict(zip(names, cells.T, strict=True))


def _read_npz(path: Path) -> Columns:
    # The archive reads no member beyond the size that its directory states.
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > FileLimits.file_bytes:
            raise ConfigurationError(
                f"{path}: unpacks to {size:,} bytes; at most {FileLimits.file_bytes:,} are read"
            )
        for member in members:
            _refuse_long(archive, member, f"{path}: {member.filename}")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: np.atleast_1d(arrays[name]) for name in arrays.files}


def _refuse_long(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> None:
    """Check that the header of an array states no more bytes than the file has.

    NumPy allocates the size in the header before it reads the data.

    Raises:
        ConfigurationError: If the header states a larger array.
    """
    with archive.open(member) as file:
        read = np.lib.format.read_array_header_2_0
        if np.lib.format.read_magic(file) == (1, 0):
            read = np.lib.format.read_array_header_1_0
        shape, _, dtype = read(file)
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise ConfigurationError(
            f"{where}: an array of shape {shape} in {member.file_size:,} bytes"
        )


def _read_parquet(path: Path) -> Columns:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from error
    types = importlib.import_module("pyarrow.types")
    batches, size = [], 0
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        # A row of another type may unpack to any size: a text that is stored once may
        # stand in every row.
        plain = [
            field.name
            for field in schema
            if types.is_primitive(field.type) or types.is_decimal(field.type)
        ]
        # The size that the file states need not be the size to which it unpacks.
        for batch in file.iter_batches(LIMITS.parquet_rows, columns=plain):
            size += batch.nbytes
            if size > FileLimits.file_bytes:
                raise ConfigurationError(
                    f"{path}: unpacks to more than {FileLimits.file_bytes:,} bytes, which is the most that is read"
                )
            batches.append(batch)
    pyarrow = importlib.import_module("pyarrow")
    table = pyarrow.Table.from_batches(
        batches, pyarrow.schema([schema.field(name) for name in plain])
    )
    columns = dict.fromkeys(schema.names, UNREAD)
    for name in table.column_names:
        columns[name] = np.asarray(table[name].to_numpy(zero_copy_only=False))
    return columns
