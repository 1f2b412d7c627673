"""Sources of randomness beside a generator that is handed in: one file each.

A source replaces what draws for the time of a run. ``SOURCES`` are there in every run; an adapter of a library is
there where the library is imported already. To add one, write a file with a function ``watch(patches, active)`` and a
line in ``ADAPTERS``: ``active()`` returns the run under way, None in another thread; a primitive of a library is one
release, as the table of a ``primitives.Library`` has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from auditdp.tracing.patches import Patches
from auditdp.tracing.sources import (
    numpy_random,
    of_diffprivlib,
    of_jax,
    of_opendp,
    of_pydp,
    of_scipy,
    standard,
    torch_noise,
)
from auditdp.tracing.watched_run import Active

Watch = Callable[[Patches, Active], None]
SOURCES: tuple[Watch, ...] = (numpy_random.watch, standard.watch)
ADAPTERS: dict[str, Watch] = {
    "torch": torch_noise.watch,
    "jax": of_jax.watch,
    "scipy.stats": of_scipy.watch,
    "diffprivlib.mechanisms": of_diffprivlib.watch,
    "opendp.core": of_opendp.watch,
    "pydp.algorithms": of_pydp.watch,
}
"""By the name of the module that has to be imported."""


def watch(patches: Patches, active: Active) -> None:
    """Replace all that draws."""
    for source in SOURCES:
        source(patches, active)
    for module, adapter in ADAPTERS.items():
        if module in sys.modules:
            adapter(patches, active)
