"""scipy's distributions, which draw from the generator of ``numpy.random``."""

from __future__ import annotations

import sys
from typing import Any

from auditdp.tracing.generators import WatchedState
from auditdp.tracing.patches import STATE, Patches
from auditdp.tracing.watched_run import Active

KINDS = {
    "scipy.stats._distn_infrastructure": "rv_generic",
    "scipy.stats._multivariate": "multi_rv_generic",
}
"""The name of the base class of scipy's distributions, by the module that has it."""


def watch(patches: Patches, active: Active) -> None:
    """Replace the generator of each distribution, if it is a ``RandomState``."""

    def get_state(distribution: Any) -> Any:
        state = vars(distribution)["_random_state"]
        if type(state) is STATE:
            return WatchedState(state, active)
        return state

    def set_state(distribution: Any, state: Any) -> None:
        vars(distribution)["_random_state"] = state

    for module, name in KINDS.items():
        kind = getattr(sys.modules[module], name)
        patches.attribute(kind, "_random_state", property(get_state, set_state))
