"""scipy's distributions, which draw from the generator of ``numpy.random`` that they took when they were imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from auditdp.tracing.generators import WatchedState
from auditdp.tracing.patches import Patches
from auditdp.tracing.watched_run import Active

KINDS = {
    "scipy.stats._distn_infrastructure": "rv_generic",
    "scipy.stats._multivariate": "multi_rv_generic",
}
"""By their modules, the classes of distributions of a number and of several."""


def watch(patches: Patches, active: Active) -> None:
    """Replace the generator that they keep, where it is the global one."""

    def kept(distribution: Any) -> Any:
        state = vars(distribution)["_random_state"]
        return (
            WatchedState(state, active)
            if type(state) is np.random.mtrand.RandomState
            else state
        )

    def keep(distribution: Any, state: Any) -> None:
        vars(distribution)["_random_state"] = state

    for module, name in KINDS.items():
        patches.attribute(
            getattr(sys.modules[module], name), "_random_state", property(kept, keep)
        )
