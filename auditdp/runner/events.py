"""What happens in a run, for whoever listens: a run does not know who does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from auditdp.record.results import AuditResult, RunRecord


@dataclass(frozen=True)
class RunStarted:
    """A run begins, or goes on."""

    record: RunRecord
    """What is known of it, with the files that could not be collected."""
    before: Sequence[AuditResult]
    """The results that an interrupted run had."""
    waiting: Sequence[str]
    """Ids of the audits that are to be run, in order."""
    workers: int


@dataclass(frozen=True)
class AuditFinished:
    """An audit has a result."""

    result: AuditResult


Event = RunStarted | AuditFinished
Listener = AbstractContextManager[Callable[[Event], None]]
"""What listens until it is left."""
