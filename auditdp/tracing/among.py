"""Orders and samples of records on an input that has one record more, or one fewer.

A replay may have any draw that has the law of the other input, jointly with the
recorded draw; the less it differs from that, the less it moves. Without a record, an
order keeps the order of the others. A further record comes in at the place that it has
in a fresh order. In a sample without replacement, a record that is not in the sample,
drawn afresh, takes the place of a missing one; a further record takes the place that it
has in a fresh sample, if it is in that. Draws with replacement do so one by one. Each
result is uniform on the one input if the recorded draw is uniform on the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.plain_values import ndim

AMONG = ("permutation", "sample of items", "choice of items", "integer")
"""Families of draws that put records in order or choose some of them, uniformly."""


def among(family: str, recorded: Any, fresh: Any, place: int, more: bool) -> Any:
    """Return a recorded draw of places as it is with one record more, or one fewer.

    Args:
        family: The family of the draw.
        recorded: The places that were drawn.
        fresh: An independent draw on the other input, whose type the result has.
        place: The place of the record on the input that has it.
        more: Whether the other input is the one that has it.

    Returns:
        The places; the fresh ones if the shapes of both do not fit.
    """
    places, drawn = np.array(of_tensor(recorded)), np.array(of_tensor(fresh))
    difference = 1 if more else -1
    if family == "permutation":
        if places.ndim != 1 or len(drawn) - len(places) != difference:
            return fresh
    elif places.shape != drawn.shape:
        return fresh
    # Records behind the place have another number on the other input.
    gone = (places == place) & (not more)
    places = np.where((places >= place) & ~gone, places + difference, places)
    if family == "permutation" and more:
        places = np.insert(places, int(np.argmax(drawn == place)), place)
    elif family == "permutation":
        places = places[~gone]
    elif more:
        places = np.where(drawn == place, place, places)
    else:
        if family == "sample of items" and places.ndim:
            left = set(places[~gone].tolist())
            unused = (k for k in drawn.tolist() if k not in left)
            drawn = np.array(next(unused, 0))
        places = np.where(gone, drawn, places)
    if hasattr(fresh, "detach"):
        return fresh.new_tensor(places)
    if ndim(fresh):
        return places.astype(drawn.dtype)
    return type(fresh)(places)
