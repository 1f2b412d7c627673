"""The line at the bottom of a terminal during a run: progress and the time left."""

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


def seconds_left(
    waiting: Sequence[str],
    finished: Mapping[str, float],
    *,
    before: Mapping[str, float],
    workers: int,
    running: float = 0.0,
) -> float | None:
    """Return an estimate of the seconds until the end of a run.

    The expected time of a waiting audit is its time in the last run, multiplied by the
    slowdown since then. The slowdown is the time of the finished audits in this run,
    divided by their time in the last run. For a new audit, the expected time is the
    mean of all known times. The estimate is the sum of the expected times divided by
    the number of workers, or the longest of these times if it is larger.

    Args:
        waiting: Ids of the audits that are not finished.
        finished: Duration of each finished audit in seconds, by id.
        before: Duration of each audit in the last run in seconds, by id.
        workers: The number of audits that run at a time.
        running: Seconds since the last audit finished. They are subtracted from the
            estimate.

    Returns:
        The seconds; 0 if no audit is waiting, and None if no time is known.
    """
    if not waiting:
        return 0.0
    # Machines differ in speed, so times of the last run are rescaled.
    both = [name for name in finished if before.get(name, 0.0) > 0]
    slower = 1.0
    if both:
        slower = sum(map(finished.__getitem__, both)) / sum(
            map(before.__getitem__, both)
        )
    expected = [slower * before[name] for name in waiting if name in before]
    times = [*finished.values(), *expected]
    if not times:
        return None
    unknown = len(waiting) - len(expected)
    each = expected + [sum(times) / len(times)] * unknown
    # The run takes at least its longest audit, and the total time over the workers.
    longest = max(sum(each) / min(workers, len(each)), *each)
    return max(0.0, longest - running)


class Watch:
    """A line at the bottom of a terminal with the progress of a run.

    The line is displayed inside a ``with`` block of the object, if the console is a
    terminal. It names the first unfinished audits as running, since audits are started
    in the order of ``ids``.

    Args:
        ids: The ids of all audits that will run.
        console: The console of the terminal.
        workers: The number of audits that run at a time.
        before: Duration of each audit in the last run in seconds, by id.
    """

    def __init__(
        self,
        ids: Sequence[str],
        console: Console,
        *,
        workers: int = 1,
        before: Mapping[str, float] | None = None,
    ) -> None:
        self._waiting = list(ids)
        self._total = len(ids)
        self._workers = workers
        self._finished: dict[str, float] = {}
        self._before = dict(before or {})
        self._since = time.monotonic()
        # Below 60 columns the line has neither the bar nor the names of audits.
        self._is_narrow = console.width < 60
        columns: list[ProgressColumn] = [BarColumn(bar_width=12), _Line(self)]
        if self._is_narrow:
            columns = [_Line(self)]
        self._progress = Progress(
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
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
        """Count an audit as finished now, with the duration in ``result``."""
        if result.id in self._waiting:
            self._waiting.remove(result.id)
        self._finished[result.id] = float(result.seconds)
        self._since = time.monotonic()
        self._progress.update(self._bar, completed=self._total - len(self._waiting))

    def as_line(self) -> str:
        """Return the text of the line at this moment."""
        done = self._total - len(self._waiting)
        running = time.monotonic() - self._since
        rest = seconds_left(
            self._waiting,
            self._finished,
            before=self._before,
            workers=self._workers,
            running=running,
        )
        parts = [f"{done} of {self._total}"]
        if rest is not None and self._waiting:
            parts.append(f"about {_coarse(rest)} left")
        names = [name.rpartition("::")[2] for name in self._waiting[: self._workers]]
        if names and not self._is_narrow:
            listed = ", ".join(shorten(printable(name), 30) for name in names[:2])
            more = ""
            if len(names) > 2:
                more = f" and {len(names) - 2} more"
            parts.append(f"running {listed}{more}")
        return " · ".join(parts)


class _Line(ProgressColumn):
    """The text of a watch, at the moment at which the line is drawn."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis"))
        self._watch = watch

    def render(self, task: Task) -> Text:
        return Text(self._watch.as_line(), no_wrap=True, overflow="ellipsis")


def _coarse(seconds: float) -> str:
    """Return an estimated time as text, rounded to 10 s, or from 90 s on to a minute.

    It is at least 10 s.
    """
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    return duration(60 * round(seconds / 60)).removesuffix(" 0 s")
