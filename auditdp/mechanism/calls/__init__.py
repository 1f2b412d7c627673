"""Calls of a mechanism on lent inputs, outputs as rows, and tests of independence."""

from __future__ import annotations

from auditdp.mechanism.calls.calling import MOST_PROBED, PROBES, Calls

__all__ = ["MOST_PROBED", "PROBES", "Calls"]
