"""Sources of randomness other than the generator of a run: one file for each library.

A source replaces the samplers of a library while a trace is entered. Those of the
standard library and of numpy are always replaced, those of any other library only if it
is imported.

A new library needs a file with a function ``watch(patches, active)``, and a line in
``LIBRARIES``. ``active()`` returns the run under way in this thread, or None.
``patches.sampler`` replaces a function, and `drawn_noise` and `drawn_release` record
the draw. If the draws of a library's function are not observed, `primitives.Library`
treats each call of it as one release.
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
LIBRARIES: dict[str, Watch] = {
    "numpy": numpy_random.watch,
    "random": standard.watch,
    "torch": torch_noise.watch,
    "jax": of_jax.watch,
    "scipy.stats": of_scipy.watch,
    "diffprivlib.mechanisms": of_diffprivlib.watch,
    "opendp.core": of_opendp.watch,
    "pydp.algorithms": of_pydp.watch,
}
"""The ``watch`` function of each source, by the module that has to be imported."""


def watch(patches: Patches, active: Active) -> None:
    """Replace the samplers of all imported libraries that have a source.

    Args:
        patches: The replacements, which undo themselves later.
        active: Function that returns the run under way in this thread, or None.
    """
    for module, source in LIBRARIES.items():
        if module in sys.modules:
            source(patches, active)
