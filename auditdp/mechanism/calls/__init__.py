"""Calls of a mechanism: on inputs that stay as declared, with outputs as rows of one kind, and their independence."""

from __future__ import annotations

from auditdp.mechanism.calls.calling import MOST_PROBED, PROBES, Calls, SingleCalls

__all__ = ["MOST_PROBED", "PROBES", "Calls", "SingleCalls"]
