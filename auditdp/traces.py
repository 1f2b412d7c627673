"""Rows of numbers for outputs that are not: answers mixed with flags, text, and traces of different lengths.

An output is flattened to its leaves in order. A number stands for itself, ``None`` for "no number here" (NaN), and a text
for a number of its own. Rows begin with how many leaves there are, and are padded with NaN; what exceeds the width is told
apart by one last number, without its order in size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError


def leaves(output: Any) -> Iterator[float]:
    """Yield the leaves of an output as numbers.

    Raises:
        MechanismError: If a leaf is none of number, boolean, text and None.

    >>> list(leaves([True, (2.5, None)]))
    [1.0, 2.5, nan]
    """
    if output is None:
        yield float("nan")
    elif isinstance(output, bool | int | float | np.generic) and np.asarray(output).dtype.kind in "biuf":
        yield float(output)
    elif isinstance(output, str | bytes):
        yield float(int.from_bytes(_digest(output), "big"))
    elif isinstance(output, Mapping):
        for key in sorted(output, key=repr):
            yield from leaves(key)
            yield from leaves(output[key])
    elif isinstance(output, np.ndarray | list | tuple):
        for part in output.ravel() if isinstance(output, np.ndarray) else output:
            yield from leaves(part)
    else:
        raise MechanismError(
            f"cannot read an output of type {type(output).__name__}: {output!r:.60}; return numbers, text, None, or lists, "
            "tuples and dictionaries of them"
        )


def _digest(text: str | bytes) -> bytes:
    """Return six bytes: a double holds every integer of that size."""
    return hashlib.blake2b(
        text.encode(errors="surrogatepass") if isinstance(text, str) else text, digest_size=6
    ).digest()


class Traces:
    """Turns outputs into rows of one width, which the first outputs decide: twice the longest of them."""

    def __init__(self) -> None:
        self.width = 0

    def rows(self, outputs: Sequence[Any]) -> NDArray[np.float64]:
        """Return one row per output, shape (n, width + 2): how many leaves, the leaves, and what the rest is called."""
        flat = [list(leaves(output)) for output in outputs]
        self.width = self.width or max(1, 2 * max(map(len, flat), default=0))
        rows = np.full((len(flat), self.width + 2), np.nan)
        for row, numbers in zip(rows, flat, strict=True):
            row[0] = len(numbers)
            row[1 : 1 + min(len(numbers), self.width)] = numbers[: self.width]
            if len(numbers) > self.width:
                row[-1] = float(int.from_bytes(_digest(repr(numbers[self.width :])), "big"))
        return rows
