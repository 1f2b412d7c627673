"""Orders and samples of records on an input that has one record more, or one fewer.

A replay may use any draw that has the right law for its own input, whatever the joint
law with the recorded draw. The less the two differ, the less the noisy values move:

- An order keeps the order of the records that both inputs have. A further record gets
  the place that it has in a fresh order.
- In a sample without replacement, a missing record is replaced by a freshly drawn one
  that is not in the sample. A further record takes the place that it has in a fresh
  sample, if it is in that sample.
- In draws with replacement, the same is done for each draw by itself.

The result is uniform on its input if the recorded draw is uniform on the other one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.plain_values import ndim

AMONG = ("permutation", "sample of items", "choice of items", "integer")
"""Families of draws that put records in order or choose some of them, uniformly."""


def among(family: str, recorded: Any, fresh: Any, place: int, more: bool) -> Any:
    """Return a recorded draw of places, adapted to one record more or fewer.

    Args:
        family: The family of the draw, one of ``AMONG``.
        recorded: The recorded places.
        fresh: An independent draw on this input. The result has its type.
        place: Place of the record that only one input has.
        more: Whether this input has that record.

    Returns:
        The places; ``fresh`` if the shapes of both draws do not fit.
    """
    places, drawn = np.array(of_tensor(recorded)), np.array(of_tensor(fresh))
    difference = 1 if more else -1
    if family == "permutation":
        if places.ndim != 1 or len(drawn) - len(places) != difference:
            return fresh
    elif places.shape != drawn.shape:
        return fresh
    # Records after the place have another number on the other input.
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
