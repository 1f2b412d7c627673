"""Recorded outputs of a finding, to check it again without the same random numbers.

A game whose forecasters have no data at the start depends only on its random streams,
which the seed determines, and on the outputs of its calls. If the outputs are recorded,
the game can be replayed exactly, although the mechanism draws from elsewhere.
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
"""Largest number of bytes of rows that are recorded."""


class Recorder(Calls):
    """Calls that another ``Calls`` object makes, with a record of their rows."""

    def __init__(self, calls: Calls) -> None:
        vars(self).update(vars(calls))
        self._calls = calls
        self._kept: list[Array] = []
        self._bytes = 0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the rows of a call of the other object, and record them."""
        rows = self._calls(data, size, rng)
        # Rows beyond the limit are counted, but not recorded.
        self._bytes += rows.nbytes
        if self._bytes <= MOST_BYTES:
            self._kept.append(rows)
        return rows

    def recorded(self) -> dict[str, Any]:
        """Return the recorded rows as plain data.

        Returns:
            A dictionary: ``kept``, the number of rows; ``rows`` and ``like``, the
            compressed arrays of these rows and of the rows that decided their form; and
            ``form``, the other fields of the form. If the rows are too large to record,
            ``kept`` is 0, and ``why`` is the reason.
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
    """Calls that return recorded rows instead of running the mechanism.

    Args:
        calls: The calls from which all properties except the form of rows are copied.
        recorded: The result of ``Recorder.recorded``.

    Raises:
        ConfigurationError: If no rows were recorded, or if they cannot be read.
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
        """Do nothing, because the record contains the form of the rows."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the next ``size`` recorded rows, or all rows that are left.

        The input and the generator have no effect.
        """
        self._next += size
        return np.asarray(self._recorded[self._next - size : self._next])


def _packed(rows: Array) -> str:
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=False)
    return base64.b85encode(zlib.compress(file.getvalue())).decode()


def _unpacked(text: Any) -> Array:
    """Return the array of a record, which is checked because it is not trusted."""
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
