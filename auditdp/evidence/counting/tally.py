"""Counting which outputs came how often, on several inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.views import as_rows, fingerprint
from auditdp.evidence.counting.events import Counts
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import Array, identity_key
from auditdp.numerics.randomness import Streams

LARGEST_BATCH = 1 << 16
LARGEST_ARRAY = 1 << 24
"""Runs, and numbers, that are drawn at once."""


class Tally:
    """How often each different output came on each input.

    Outputs are the same where their rows of numbers are equal, signs of zeros included; NaN equals NaN.

    Where how outputs are represented is open, these inputs decide it. At most so many different outputs are counted; where
    there were more, it is ``full``, and counts are incomplete.
    """

    def __init__(self, calls: Calls, inputs: Sequence[Any], streams: Streams, *, most: int) -> None:
        self.calls, self.inputs, self.streams, self.most = calls, list(inputs), streams, most
        calls.look(self.inputs, streams("counting: shape", 0))
        self.runs, self.full = 0, False
        self._batches = count()
        self._places: dict[bytes, int] = {}
        self._outputs: list[Array] = []
        self._counts = np.zeros((len(self.inputs), 0), dtype=np.int64)

    @property
    def counts(self) -> Counts:
        """How often each output came on each input, shape (inputs, outputs)."""
        return self._counts[:, : len(self._outputs)]

    @property
    def outputs(self) -> Array:
        """The different outputs, one row of numbers each, in the order in which they came."""
        return np.array(self._outputs)

    def add(self, runs: int) -> list[Array]:
        """Run the mechanism so many more times on each input, and return the rows of each."""
        rows = [self._add(k, runs) for k in range(len(self.inputs))]
        self.runs += runs
        return rows

    def _add(self, which: int, runs: int) -> Array:
        drawn = []
        while runs:
            size = min(runs, LARGEST_BATCH, max(1, LARGEST_ARRAY // max(1, math.prod(self.calls.form.shape))))
            outputs = self.calls(self.inputs[which], size, self.streams("counting", next(self._batches)))
            drawn.append(as_rows(outputs))
            self._count(which, drawn[-1])
            runs -= size
        return np.concatenate(drawn)

    def _count(self, which: int, rows: Array) -> None:
        if self.full:
            return
        found, counts = different(rows)
        self.full = len(found) > self.most
        for row, times in zip(found[: self.most], counts, strict=False):
            place = self._places.setdefault(_key(row), len(self._outputs))
            if place == len(self._outputs):
                self._outputs.append(row)
            if place >= self._counts.shape[1]:
                more = np.zeros((len(self.inputs), 64 + place), dtype=np.int64)
                self._counts = np.concatenate([self._counts, more], axis=1)
            self._counts[which, place] += times
        self.full |= len(self._outputs) > self.most


def inputs_of(pairs: Sequence[Pair]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the different inputs of pairs, and the places of both inputs of each among them, shape (2, pairs)."""
    inputs = {identity_key(data): data for pair in pairs for data in (pair.data, pair.neighbour)}
    place = {key: k for k, key in enumerate(inputs)}
    ends = [[place[identity_key(data)] for data in (pair.data, pair.neighbour)] for pair in pairs]
    return list(inputs.values()), np.array(ends, np.intp).T


def different(rows: Array) -> tuple[Array, Counts]:
    """Return the different rows and how often each comes."""
    _, first, which, times = np.unique(fingerprint(rows), return_index=True, return_inverse=True, return_counts=True)
    same = rows[first][which]
    if not ((rows == same) | ((rows != rows) & (same != same))).all():  # different rows with one fingerprint
        keys = np.array([_key(row) for row in rows])
        _, first, times = np.unique(keys, return_index=True, return_counts=True)
    return rows[first], times


def _key(row: Array) -> bytes:
    """Return bytes that two rows of one type share where they are equal; the sign of NaN means nothing, its name does."""
    return (np.where(np.isnan(row), np.abs(row), row) if row.dtype.kind == "f" else row).tobytes()
