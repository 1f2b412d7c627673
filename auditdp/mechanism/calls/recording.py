"""Outputs that a finding rests on, kept so that it can be checked again where a re-run would draw others.

A game whose forecasters start from nothing depends on its streams, which the seed gives, and on the outputs of its calls.
With these kept, it can be played again exactly as it was, although the mechanism draws its randomness from elsewhere.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from auditdp.errors import ConfigurationError
from auditdp.files import MOST_RESULT
from auditdp.mechanism.calls.calling import Calls
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array

MOST_BYTES = 1 << 26
"""Outputs of more bytes than this are not kept."""
HEADER = 1 << 16
"""Bytes of what says of which shape and type an array is, at most."""


class Recorder(Calls):
    """Makes the calls of another, and keeps their outputs in the order in which they came."""

    def __init__(self, calls: Calls) -> None:
        vars(self).update(vars(calls))
        self._calls = calls
        self._kept: list[Array] = []
        self._bytes = 0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the rows of the other's calls."""
        rows = self._calls(data, size, rng)
        self._bytes += rows.nbytes
        if self._bytes <= MOST_BYTES:
            self._kept.append(rows)
        return rows

    def recorded(self) -> dict[str, Any]:
        """Return the outputs as plain data: how many, and the array of them, compressed; or why they were not kept."""
        if self._bytes > MOST_BYTES:
            return {
                "kept": 0,
                "why": f"{self._bytes:,} bytes are more than {MOST_BYTES:,}",
            }
        assert self.like is not None  # the game looked at them
        rows = np.concatenate(self._kept)
        like, packed = _packed(self.like), _packed(rows)
        # The rest of the result needs room, too: a finding without its outputs is better than none.
        if (size := len(like) + len(packed)) > MOST_RESULT // 2:
            return {
                "kept": 0,
                "why": f"{size:,} bytes are more than {MOST_RESULT // 2:,}",
            }
        return {
            "kept": len(rows),
            "like": like,
            "rows": packed,
            "form": self.form.recorded(),
        }


class Playback(Calls):
    """Returns recorded outputs instead of making calls.

    Raises:
        ConfigurationError: If no outputs were kept.
    """

    def __init__(self, calls: Calls, recorded: dict[str, Any]) -> None:
        if "rows" not in recorded:
            raise ConfigurationError(
                f"the outputs of this finding were not kept: {recorded.get('why', 'none recorded')}"
            )
        vars(self).update(vars(calls))
        self.like, self._recorded = (
            _unpacked(recorded.get("like")),
            _unpacked(recorded["rows"]),
        )
        try:
            form = recorded.get("form", {"flat": False})
            self._representation = Representation(
                self.like.shape[1:], self.like.dtype, **form
            )
        except TypeError as error:
            raise ConfigurationError(
                f"the form of the recorded outputs cannot be read: {error}"
            ) from error
        self._next = 0

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Do nothing: how outputs are represented was decided when they were recorded."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the next ``size`` recorded rows; fewer at the end of the record."""
        self._next += size
        return np.asarray(self._recorded[self._next - size : self._next])


def _packed(rows: Array) -> str:
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=False)
    return base64.b85encode(zlib.compress(file.getvalue())).decode()


def _unpacked(text: Any) -> Array:
    """Return the array that a record holds."""
    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(base64.b85decode(text), MOST_BYTES + HEADER)
        if unpacking.unconsumed_tail:
            raise ValueError(f"more than {MOST_BYTES:,} bytes, which no run keeps")
        if not unpacking.eof:
            raise ValueError("cut off")
        file = io.BytesIO(content)
        array = np.asarray(np.load(file, allow_pickle=False))
    except (ValueError, TypeError, EOFError, MemoryError, zlib.error) as error:
        raise ConfigurationError(
            f"the recorded outputs cannot be read: {error}"
        ) from error
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise ConfigurationError(
            f"the recorded outputs are {array.dtype}, and not rows of numbers; run the audit again"
        )
    return array
