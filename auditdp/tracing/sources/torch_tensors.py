"""torch, where it is imported: its samplers as functions, in place, and in distributions."""

from __future__ import annotations

from collections.abc import Callable

from auditdp.tracing.patches import Patches
from auditdp.tracing.run import Run

Active = Callable[[], Run | None]


def watch(patches: Patches, active: Active) -> None:
    """Replace what draws."""
