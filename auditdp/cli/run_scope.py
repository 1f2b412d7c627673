"""Runs that depend on earlier ones: ``--changed-since``, ``--continue``, and baselines.

``--continue`` plays the game of a recorded audit to more calls. The first part is
played again, which costs its calls once more, since the state of forecasters is not
recorded. Its wealth must equal the recorded one, up to floating-point differences. Then
the game continues. Both parts are one game: it refutes a true claim with probability at
most the audit's α, even if the decision to continue depends on the first part. If the
first part refuted the claim, the bound becomes sharper, and the finding is confirmed
again on other randomness.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from auditdp.cli.again import data_of, parameters_of, refuse_what_is_elsewhere
from auditdp.cli.common import ExitCode, one_of, read_run, say
from auditdp.cli.run_options import RunOptions
from auditdp.errors import ConfigurationError
from auditdp.record.baseline_entries import Accepted, Entry, below, covered, entry_of
from auditdp.record.budget import Budget
from auditdp.record.differences import (
    FINDINGS,
    REGRESSIONS,
    Difference,
    Kind,
    differences,
    of_versions,
    worst_first,
)
from auditdp.record.results import RunRecord, Verdict
from auditdp.record.traces import Fate
from auditdp.runner.changes import changed_since, concerned
from auditdp.runner.plan import Collector, discover

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, Evidence
    from auditdp.runner.plan import Plan

LISTED = 20
"""Largest number of audits or files that one list names."""


def changed_targets(
    targets: Sequence[str],
    keyword: str,
    revision: str,
    collect: Collector,
    known: Collection[str] = (),
) -> tuple[list[str], tuple[str, ...], str]:
    """Return the targets that a change affects, the ids of other audits, and the base.

    The targets are ids of audits, and paths of files that do not import. The base is
    the commit since which changes count. The choice is printed to stderr, with reasons.

    Args:
        targets: The targets of the run, from which the changed ones are chosen.
        keyword: Expression that ids have to match.
        revision: The revision since which changes count.
        collect: Function that imports audit files.
        known: Ids of a baseline; they decide the exit code if no audit is affected.

    Raises:
        ConfigurationError: If git cannot determine the changes, or a target or the
            keyword is invalid.
        Exit: If no audit is affected and every file imports. The exit code is 6 if
            there is no keyword and an audit of the baseline no longer exists, and 0
            otherwise.
    """
    changed = changed_since(revision, Path.cwd())
    declared, failures = discover(targets, keyword, collect=collect)
    found = concerned(
        [(item.id, Path(item.path)) for item in declared], changed, Path.cwd().resolve()
    )
    say(
        f"since {revision} ({changed.base}): {len(found.concerned)} of {len(declared)} audits are concerned"
    )
    _list([f"{name}: {reason}" for name, reason in found.concerned.items()], "run ")
    _list(found.left_out, "left out, since nothing that it reaches changed: ")
    _list(found.untraced, "changed, and not followed because it is not Python: ")
    if not found.concerned and not failures:
        among, there = below(targets), {item.id for item in declared}
        # With a keyword, a missing id may only fail to match it.
        if gone := sorted(
            name for name in known if among(name) and name not in there and not keyword
        ):
            _list(gone, "gone, and in the baseline: ")
            raise typer.Exit(ExitCode.REGRESSED)
        say("no audit is concerned, so none was run; without --changed-since all are")
        raise typer.Exit(ExitCode.OK)
    return (
        [*found.concerned, *(path for path, _ in failures)],
        found.left_out,
        changed.base,
    )


def _list(items: Sequence[str], what: str) -> None:
    for item in items[:LISTED]:
        say(f"  {what}{item}")
    if len(items) > LISTED:
        say(f"  {what}{len(items) - LISTED} more")


@dataclass(frozen=True)
class Continuation:
    """The recorded game that ``--continue`` continues, and the options of the new run."""

    asked: RunOptions
    """The options of the new run, completed by those of the recorded run."""
    keep: bool
    """True if the log has the recorded run, and so has to be kept.

    False if an earlier attempt to continue was interrupted: then the recorded run is in
    a file of its own already.
    """
    won: float
    """The recorded log wealth of the game, in nats."""
    recorded: dict[str, Any]
    """Facts about the recorded run, for the record of the new run."""

    def of(self, plan: Plan) -> Plan:
        """Return the plan with the recorded log wealth in its one task."""
        return replace(
            plan, tasks=[replace(task, recorded=self.won) for task in plan.tasks]
        )

    def stated(self, record: RunRecord, *, kept: Path) -> RunRecord:
        """Return the record with a reference to the run that it continues.

        ``kept`` is the file to which the log of that run is copied.
        """
        where = {"log": os.path.relpath(kept)} if self.keep else {}
        return replace(
            record,
            arguments={**record.arguments, "continued": {**self.recorded, **where}},
        )


def continuation(asked: RunOptions) -> Continuation:
    """Return the continuation of one audit of the run in the log.

    Raises:
        ConfigurationError: If options contradict ``--continue``, or the audit's game
            cannot continue.
    """
    # This import loads pydantic.
    from auditdp.record.details import GameDetails

    _refuse_others(asked)
    record, keep = read_run(asked.log_path), True
    unfinished = record.arguments.get("continued")
    # The run in the log is a continuation that was interrupted. The run that it
    # continued is in another file.
    if unfinished is not None and "log" in unfinished and not record.results:
        record, keep = read_run(Path(str(unfinished["log"]))), False
    chosen = one_of(asked.continued, record.results)
    refuse_what_is_elsewhere(chosen.id)
    game = _game(chosen)
    before = str(record.arguments.get("budget", "standard"))
    (goal,) = Budget.read(f"{before},{asked.calls}").later[-1:]
    # The details are those of a game.
    assert isinstance(game.details, GameDetails)
    made = game.details.parts[-1].calls
    if isinstance(goal, int) and goal <= made:
        raise ConfigurationError(
            f"--calls {goal:,}: the game of {chosen.id} has made {made:,} calls; give "
            "the total number of calls"
        )
    # Every game has a wealth.
    assert game.log_e_value is not None
    say(
        f"{chosen.id} continues after {made:,} calls of the run of {record.started}; these are repeated first"
    )
    parameters = [
        f"{name}={value}" for name, value in parameters_of(record, chosen).items()
    ]
    return Continuation(
        asked=replace(
            asked,
            paths=[chosen.id],
            parameters=parameters,
            seed=record.root_seed,
            alpha=float(chosen.alpha or 0.05),
            budget=[before, str(goal)],
            data=data_of(record, asked.data),
            trace=record.arguments.get("trace", True),
        ),
        keep=keep,
        won=float(game.log_e_value),
        recorded={
            "run": record.run,
            "started": record.started,
            "revision": record.revision,
            "audit": chosen.id,
            "verdict": chosen.verdict.value,
            "calls": made,
            "log_e_value": game.log_e_value,
            **({} if keep or unfinished is None else {"log": str(unfinished["log"])}),
        },
    )


def _game(chosen: AuditResult) -> Evidence:
    """Return the evidence of an audit's game.

    Raises:
        ConfigurationError: If the audit has no game, or its game cannot be repeated.
    """
    if (game := chosen.game) is None:
        raise ConfigurationError(
            f"{chosen.id} ended {chosen.verdict} and has no game to continue"
        )
    # This import is slow.
    from auditdp.mechanism.protocol import OWN_RANDOMNESS

    if OWN_RANDOMNESS in chosen.reproduce:
        raise ConfigurationError(
            f"{chosen.id} cannot go on: its mechanism draws its own randomness, so "
            "its game cannot be repeated; run it again instead: e-values of "
            "independent runs may be multiplied"
        )
    return game


def _refuse_others(asked: RunOptions) -> None:
    """Check the options of ``--continue``.

    Raises:
        ConfigurationError: If an option is given that the recorded run determines, or
            if not exactly one goal is given: a number of calls, or a fault to find.
    """
    given = {
        "paths": asked.paths,
        "-k": asked.keyword,
        "-P": asked.parameters,
        "--seed": asked.seed is not None,
        "--alpha": asked.alpha is not None,
        "--resume": asked.resume,
        "--last-failed": asked.last_failed,
        "--changed-since": asked.since,
        "--mutants": asked.mutants,
        "--trace or --no-trace": asked.trace is not None,
    }
    if others := [name for name, value in given.items() if value]:
        raise ConfigurationError(
            "--continue takes audit, seed, α and parameters from the run in the log; "
            f"give it without {', '.join(others)}"
        )
    if not asked.budget:
        raise ConfigurationError(
            f"--continue {asked.continued}: give the total number of calls of its "
            "game, such as --calls 1e7, or a fault to find, such as --find tail:0.005"
        )
    if Budget.read(asked.calls).later:
        raise ConfigurationError(
            f"--calls {asked.calls}: give one number of calls, or one fault to find"
        )


def against_baseline(record: RunRecord, known: Mapping[str, Entry]) -> list[Difference]:
    """Return the differences between a run and a baseline, worst first.

    ``known`` has the entries of the baseline by id. Acceptances expire by the present
    date in UTC.
    """
    return differences(
        known, record, covered=covered(record), today=datetime.now(UTC).date()
    )


def against_revision(record: RunRecord) -> list[Difference]:
    """Return the differences that a run with ``--compare`` recorded, worst first."""
    return worst_first(list(of_versions(record)))


def against_run(before: RunRecord, record: RunRecord) -> tuple[list[Difference], int]:
    """Return the differences between two runs, and the number of audits of ``before``.

    The differences are sorted by kind, worst first. Audits that ended with ERROR in
    ``before`` are neither compared nor counted.
    """
    known = {
        result.id: entry_of(
            result,
            Accepted("it was found in the first run, too")
            if result.is_finding
            else None,
        )
        for result in before.results
        if result.verdict is not Verdict.ERROR
    }
    found = [
        _between_runs(difference) for difference in against_baseline(record, known)
    ]
    return sorted(found, key=lambda difference: list(Kind).index(difference.kind)), len(
        known
    )


def _between_runs(difference: Difference) -> Difference:
    """Return the difference from a baseline as a difference between two runs.

    In a baseline, a finding that is no longer found is a stale entry. Between runs it
    was repaired, or its audit no longer exists.
    """
    if difference.kind is not Kind.STALE:
        return difference
    if difference.result is None:
        return replace(
            difference,
            kind=Kind.GONE,
            text="this audit had a finding, and does not exist any more",
        )
    return replace(
        difference,
        kind=Kind.STRONGER,
        text=f"{difference.result.verdict} now; it was a finding before",
    )


def exit_code(
    found: Sequence[Difference], record: RunRecord, fail_on: Collection[str] = ()
) -> int:
    """Return the exit code for differences from a baseline or a revision.

    It is 1 with a finding that is new or no longer accepted, else 3 with a crash, 6
    with a regression (``REGRESSIONS``), 5 if nothing was audited, and 0 otherwise. If
    ``fail_on`` has 'changed', a changed law gives 6; other names in it do not count.
    """
    kinds = {difference.kind for difference in found}
    if kinds & set(FINDINGS):
        return ExitCode.FOUND
    if Kind.CRASHED in kinds:
        return ExitCode.CRASHED
    if kinds & set(REGRESSIONS):
        return ExitCode.REGRESSED
    if Kind.LAW in kinds and "changed" in fail_on:
        say("a changed law fails, since fail_on has changed")
        return ExitCode.REGRESSED
    return ExitCode.OK if record.audited else ExitCode.NOTHING


def code_of(
    record: RunRecord,
    fail_on: Collection[str] = (),
    *,
    missing: Collection[str] | None = None,
) -> int:
    """Return the exit code of a run without a baseline.

    It is 1 with a finding or a surviving mutant, else 3 with a crash or a missing
    result, 5 if nothing was audited, 4 with an unconfirmed refutation or an outcome of
    ``fail_on``, and 0 otherwise.

    Args:
        record: The record of the run.
        fail_on: Further outcomes that make the run fail: 'inconclusive', 'skipped'.
        missing: Ids of planned audits without a result; by default those of the record.
    """
    survived = any(
        result.mutation and result.mutation.of(Fate.SURVIVED)
        for result in record.results
    )
    if survived or any(result.is_finding for result in record.results):
        return ExitCode.FOUND
    if record.ended(Verdict.ERROR) or (record.missing if missing is None else missing):
        return ExitCode.CRASHED
    if not record.audited:
        return ExitCode.NOTHING
    if any(result.is_unconfirmed for result in record.results):
        return ExitCode.INCONCLUSIVE
    inconclusive = record.ended(Verdict.INCONCLUSIVE) or any(
        result.is_undecided for result in record.results
    )
    if ("inconclusive" in fail_on and inconclusive) or (
        "skipped" in fail_on and record.ended(Verdict.SKIPPED)
    ):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK
