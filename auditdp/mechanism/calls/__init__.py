"""Calls of a mechanism on copies of inputs, with outputs as rows of numbers.

Start with ``calling``, the calls themselves, and ``representation``, the rows.
``leaves`` reads the numbers of an output of any structure. ``independence`` tests
whether calls are independent, in part by calls in an ``untouched`` process.
``channel`` and ``remote_mechanism`` are for calls that another process makes.
"""

from __future__ import annotations

from auditdp.mechanism.calls.calling import MOST_PROBED, PROBES, Calls

__all__ = ["MOST_PROBED", "PROBES", "Calls"]
