"""Recorded outputs of a finding, to check it again without the same random numbers.

A game whose forecasters start without knowledge depends on its streams, which the seed
determines, and on the outputs of its calls. With the outputs recorded, the game can be
replayed exactly, although the mechanism draws its randomness from elsewhere.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from auditdp.errors import ConfigurationError
from auditdp.files import FileLimits
from auditdp.mechanism.calls.calling import Calls
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array

MOST_BYTES = 1 << 26
"""Largest number of bytes of outputs that are kept."""


class Recorder(Calls):
    """Makes the calls of another object, and keeps their outputs in order."""

    def __init__(self, calls: Calls) -> None:
        vars(self).update(vars(calls))
        self._calls = calls
        self._kept: list[Array] = []
        self._bytes = 0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the rows of the other object's calls."""
        rows = self._calls(data, size, rng)
        # Rows beyond the limit are counted and not kept.
        self._bytes += rows.nbytes
        if self._bytes <= MOST_BYTES:
            self._kept.append(rows)
        return rows

    def recorded(self) -> dict[str, Any]:
        """Return the outputs as plain data: their number, and the compressed array.

        If they were too large to keep, the data is the reason.
        """
        size, most = self._bytes, MOST_BYTES
        if size <= most:
            # The game fixed the representation of outputs before.
            assert self.like is not None
            rows = np.concatenate(self._kept)
            like, packed = _packed(self.like), _packed(rows)
            # The rest of the result needs room, too: a finding without its outputs is
            # better than none.
            size, most = len(like) + len(packed), FileLimits.result_bytes // 2
        if size > most:
            return {"kept": 0, "why": f"{size:,} bytes are more than {most:,}"}
        form = self.form.recorded()
        return {"kept": len(rows), "like": like, "rows": packed, "form": form}


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
        self.like = like = _unpacked(recorded.get("like"))
        self._recorded = _unpacked(recorded["rows"])
        form = recorded.get("form", {"flat": False})
        try:
            self._representation = Representation(like.shape[1:], like.dtype, **form)
        except TypeError as error:
            raise ConfigurationError(
                f"the form of the recorded outputs cannot be read: {error}"
            ) from error
        self._next = 0

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Do nothing: the representation was decided when outputs were recorded."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the next ``size`` recorded rows; fewer at the end of the record."""
        self._next += size
        return np.asarray(self._recorded[self._next - size : self._next])


def _packed(rows: Array) -> str:
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=False)
    return base64.b85encode(zlib.compress(file.getvalue())).decode()


def _unpacked(text: Any) -> Array:
    """Return the array of a record, which may come from anywhere."""
    # The header of a file of numpy has the shape and type of the array.
    largest_header = 1 << 16
    try:
        unpacking = zlib.decompressobj()
        packed = base64.b85decode(text)
        content = unpacking.decompress(packed, MOST_BYTES + largest_header)
        if unpacking.unconsumed_tail:
            raise ValueError(f"more than {MOST_BYTES:,} bytes, which no run keeps")
        if not unpacking.eof:
            raise ValueError("cut off")
        array = np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    except (ValueError, TypeError, EOFError, MemoryError, zlib.error) as error:
        raise ConfigurationError(
            f"the recorded outputs cannot be read: {error}"
        ) from error
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise ConfigurationError(
            f"the recorded outputs are {array.dtype}, and not rows of numbers; run the audit again"
        )
    return array
