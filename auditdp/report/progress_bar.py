"""While a run goes on: how many audits are finished, which are running, and about how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from auditdp.record.results import AuditResult
from auditdp.report.numbers import duration
from auditdp.report.plain_text import printable, shorten

NARROW = 60
"""Columns below which only the count and the time stand in the line."""


def left(
    waiting: Sequence[str],
    finished: Mapping[str, float],
    *,
    before: Mapping[str, float],
    workers: int,
    running: float = 0.0,
) -> float | None:
    """Return about how many seconds the rest of a run takes; None where nothing is known yet.

    An audit takes as long as it took before, times how much longer the finished ones took than before; one that was never
    run takes as long as the mean of those that are known.

    ``waiting`` are the ids of audits that are not finished, and ``running`` the seconds that the running ones have run
    already.
    """
    both = [name for name in finished if before.get(name, 0.0) > 0]
    slower = (
        sum(finished[name] for name in both) / sum(before[name] for name in both)
        if both
        else 1.0
    )
    known = list(finished.values()) + [
        slower * before[name] for name in waiting if name in before
    ]
    if not known or not waiting:
        return None if waiting else 0.0
    mean = sum(known) / len(known)
    each = [slower * before[name] if name in before else mean for name in waiting]
    together = min(workers, len(each))
    return max(0.0, max(sum(each) / together, max(each)) - running)


class Watch:
    """A line at the bottom of a terminal that says how far a run is; nothing elsewhere.

    Audits are started in the order of their ids, so the first unfinished ones are those that run.
    """

    def __init__(
        self,
        ids: Sequence[str],
        console: Console,
        *,
        workers: int = 1,
        before: Mapping[str, float] | None = None,
    ) -> None:
        self._waiting, self._total, self._workers = list(ids), len(ids), workers
        self._finished: dict[str, float] = {}
        self._before = dict(before or {})
        self._since = time.monotonic()
        self._narrow = console.width < NARROW
        parts = (
            [_Said(self)] if self._narrow else [BarColumn(bar_width=12), _Said(self)]
        )
        self._progress = Progress(
            *parts, console=console, transient=True, disable=not console.is_terminal
        )
        self._bar = self._progress.add_task("", total=self._total or 1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def refresh(self) -> None:
        """Draw the line now."""
        self._progress.refresh()

    def finished(self, result: AuditResult) -> None:
        """Count an audit as finished."""
        if result.id in self._waiting:
            self._waiting.remove(result.id)
        self._finished[result.id] = float(result.seconds)
        self._since = time.monotonic()
        self._progress.update(self._bar, completed=self._total - len(self._waiting))

    def as_line(self) -> str:
        """Return what the line says."""
        done = self._total - len(self._waiting)
        rest = left(
            self._waiting,
            self._finished,
            before=self._before,
            workers=self._workers,
            running=time.monotonic() - self._since,
        )
        parts = [f"{done} of {self._total}"]
        if rest is not None and self._waiting:
            parts.append(f"about {_coarse(rest)} left")
        now = [
            shorten(printable(name.rpartition("::")[2]), 30)
            for name in self._waiting[: self._workers]
        ]
        if now and not self._narrow:
            more = f" and {len(now) - 2} more" if len(now) > 2 else ""
            parts.append(f"running {', '.join(now[:2])}{more}")
        return " · ".join(parts)


class _Said(ProgressColumn):
    """What a watch says, at the moment when the line is drawn."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis"))
        self._watch = watch

    def render(self, task: Task) -> Text:
        return Text(self._watch.as_line(), no_wrap=True, overflow="ellipsis")


def _coarse(seconds: float) -> str:
    """A time that is only guessed, without digits that nobody knows."""
    if seconds < 10:
        return "10 s"
    if seconds < 90:
        return f"{round(seconds, -1):.0f} s"
    return duration(60 * round(seconds / 60)).removesuffix(" 0 s")
