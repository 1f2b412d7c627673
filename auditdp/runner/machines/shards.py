"""A run in parts, each on a machine of its own: which audits are whose, and one record of all.

Every shard plans the whole run, with the same root seed, and does its own audits. Shares of alpha and randomness are those
of the whole run, so that its record is that of one machine. The audits of a shard that was lost are missing in the merged
log, and are run by resuming it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from auditdp.errors import ConfigurationError
from auditdp.record.results import AuditResult
from auditdp.runner.plan import Task
from auditdp.runner.record import Reading, differing, scan_log


@dataclass(frozen=True)
class Shard:
    """One of some parts of a run."""

    number: int
    """Which, from 1."""
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard of a text such as '2/8'.

        Raises:
            ConfigurationError: If it is none.
        """
        number, slash, of = text.partition("/")
        if not (
            slash and number.isdecimal() and of.isdecimal() and len(number + of) < 18 and 1 <= int(number) <= int(of)
        ):
            raise ConfigurationError(
                f"--shard {text}: expected NUMBER/OF with 1 <= NUMBER <= OF, such as 2/8 for the second of 8"
            )
        return cls(int(number), int(of))

    @property
    def status(self) -> str:
        """The status of its record when it has done its part."""
        return f"shard {self.number} of {self.of}"

    def own(self, tasks: Sequence[Task]) -> list[Task]:
        """Return every ``of``-th task, which are this shard's.

        Raises:
            ConfigurationError: If there are fewer audits than shards.
        """
        if len(tasks) < self.of:
            raise ConfigurationError(
                f"--shard {self.number}/{self.of}: there are {len(tasks)} audits; use fewer shards"
            )
        return list(tasks[self.number - 1 :: self.of])


def merged(logs: Sequence[Path]) -> Reading:
    """Return what the logs of its shards add up to as the record of a whole run.

    Its status is 'complete' where no audit is missing. Where an audit has several results, the first one counts,
    and none where their verdicts differ.

    Raises:
        ConfigurationError: If a log cannot be read, or they are of different runs.
    """
    if not logs:
        raise ConfigurationError("expected the logs of some shards, such as: auditdp merge shard-*.jsonl")
    readings = [scan_log(path) for path in logs]
    first = readings[0].record
    results: dict[str, AuditResult] = {}
    twice: dict[str, str] = {}
    for path, reading in zip(logs, readings, strict=True):
        if found := differing(first, reading.record):
            raise ConfigurationError(
                f"{path} is of another run than {logs[0]}: {found}; shards have the same options, seed, versions and code"
            )
        for result in reading.record.results:
            if results.setdefault(result.id, result).verdict is not result.verdict:
                twice[result.id] = f"{path} has another verdict on {result.id} than the logs before it; none counts"
    results = {name: result for name, result in results.items() if name not in twice}
    planned = [entry.audit for entry in first.alpha_ledger]
    others = [result for name, result in results.items() if name not in planned]  # files that could not be imported
    whole = replace(
        first,
        results=others + [results[name] for name in planned if name in results],
        seconds=sum(float(reading.record.seconds or 0) for reading in readings),
        started=min(reading.record.started for reading in readings),
        finished=max(reading.record.finished for reading in readings),
    )
    problems = [*(problem for reading in readings for problem in reading.problems), *twice.values()]
    whole = replace(whole, status="interrupted" if whole.missing else "complete")
    return Reading(whole, problems, is_whole=all(reading.is_whole for reading in readings))
