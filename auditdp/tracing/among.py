"""Orders and samples of records, as they are where one record is missing or comes in: a replay on an input with one fewer.

A replay may have any draw that has the law which it has on the other input, together with the recorded one; the less it
differs from that, the less it moves. Without a record an order is what is left of it; with a further one, the record comes
in at a place that is drawn afresh. A sample without replacement has another record in the place of the missing one, drawn
from those that are not in it; a further one takes the place that it has in a fresh sample, where it is in that. Draws with
replacement do so one by one. Each is uniform on the one input where the recorded one is on the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.plain_values import ndim

AMONG = ("permutation", "sample of items", "choice of items", "integer")
"""Families of draws that put records in order or choose some of them, uniformly."""


def among(family: str, recorded: Any, fresh: Any, place: int, more: bool) -> Any:
    """Return a recorded draw of places as it is where a record is missing, or where there is one more.

    Args:
        family: Of the draw.
        recorded: The places that were drawn.
        fresh: A draw of its own on the other input, whose type the result has.
        place: Where the record is, on the input that has it.
        more: Whether the other input is the one that has it.

    Returns:
        The places; the fresh ones where both have other shapes than such draws have.
    """
    kept, drawn = (np.array(of_tensor(each)) for each in (recorded, fresh))
    if more:
        kept[kept >= place] += 1
    gone = kept == place
    if family == "permutation":
        if kept.ndim != 1 or len(drawn) - len(kept) != (1 if more else -1):
            return fresh
        kept = (
            np.insert(kept, int(np.argmax(drawn == place)), place)
            if more
            else kept[~gone]
        )
    elif kept.shape != drawn.shape:
        return fresh
    elif more:
        kept = np.where(drawn == place, place, kept)
    if not more:
        past = kept > place
        if family == "sample of items" and kept.ndim:
            left = set((kept - past)[~gone].tolist())
            drawn = np.array(next((k for k in drawn.tolist() if k not in left), 0))
        kept = (
            kept - past
            if family == "permutation"
            else np.where(gone, drawn, kept - past)
        )
    if hasattr(fresh, "detach"):
        return fresh.new_tensor(kept)
    return kept.astype(drawn.dtype) if ndim(fresh) else type(fresh)(kept)
