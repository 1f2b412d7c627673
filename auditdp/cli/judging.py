"""A run against what was known: the differences, and the exit code that they make."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from auditdp.cli.common import CRASHED, FOUND, INCONCLUSIVE, NOTHING, OK, REGRESSED, say
from auditdp.history.baseline.differences import (
    FINDINGS,
    REGRESSIONS,
    Difference,
    Kind,
    differences,
    of_versions,
    worst_first,
)
from auditdp.history.baseline.entries import Accepted, Entry, covered, entry_of
from auditdp.record.mutation import Fate
from auditdp.record.results import RunRecord, Verdict


def against_baseline(record: RunRecord, known: Mapping[str, Entry]) -> list[Difference]:
    """Return what a run changes of the entries of a baseline."""
    return differences(known, record, covered=covered(record), today=datetime.now(UTC).date())


def against_revision(record: RunRecord) -> list[Difference]:
    """Return what a run saw to differ from another revision of the code, where no baseline judges it."""
    return worst_first(list(of_versions(record)))


def against_run(before: RunRecord, record: RunRecord) -> tuple[list[Difference], int]:
    """Return what a run changes of another one, and how many audits that has."""
    known = {
        result.id: entry_of(result, Accepted("it was found in the first run, too") if result.is_finding else None)
        for result in before.results
        if result.verdict is not Verdict.ERROR
    }
    found = [_between_runs(difference) for difference in against_baseline(record, known)]
    return sorted(found, key=lambda difference: list(Kind).index(difference.kind)), len(known)


def _between_runs(difference: Difference) -> Difference:
    """Between two runs nobody accepts anything: a finding that is no longer there is a repair, or its audit is gone."""
    if difference.kind is not Kind.STALE:
        return difference
    if difference.result is None:
        return replace(difference, kind=Kind.GONE, text="there is no such audit any more, which had found something")
    return replace(difference, kind=Kind.STRONGER, text=f"{difference.result.verdict} now; it was a finding before")


def exit_code(found: Sequence[Difference], record: RunRecord, fail_on: Collection[str] = ()) -> int:
    """Return the exit code of the published table: what a person has to look at first."""
    kinds = {difference.kind for difference in found}
    if kinds & set(FINDINGS):
        return FOUND
    if Kind.CRASHED in kinds:
        return CRASHED
    if kinds & set(REGRESSIONS):
        return REGRESSED
    if Kind.LAW in kinds and "changed" in fail_on:
        say("a changed law fails, since fail_on has changed")
        return REGRESSED
    return OK if record.audited else NOTHING


def code_of(record: RunRecord, fail_on: Collection[str] = (), *, missing: Collection[str] | None = None) -> int:
    """Return the exit code of a run that no baseline judges.

    ``missing`` are planned audits without a result: those of the record unless given, as where it is of one shard.
    """
    survived = any(result.mutation and result.mutation.of(Fate.SURVIVED) for result in record.results)
    if survived or any(result.is_finding for result in record.results):
        return FOUND
    if record.ended(Verdict.ERROR) or (record.missing if missing is None else missing):
        return CRASHED
    if not record.audited:
        return NOTHING
    if any(result.is_unconfirmed for result in record.results):
        return INCONCLUSIVE
    inconclusive = record.ended(Verdict.INCONCLUSIVE) or any(result.is_undecided for result in record.results)
    if ("inconclusive" in fail_on and inconclusive) or ("skipped" in fail_on and record.ended(Verdict.SKIPPED)):
        return INCONCLUSIVE
    return OK
