"""``auditdp run --continue``: the game of a recorded audit, played on to more calls with all that it has won.

The first part is played again, which costs its calls once more: what forecasters have learned is in no record. Its wealth
has to be what is recorded, but for what floating point may change. Then the game goes on, and both parts are one game, in
which a true claim is refuted with probability at most the audit's α, however often one looked and whatever made one go on.
Where the claim had been refuted, the bound becomes sharper; the finding is confirmed again, on other randomness.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditdp.cli.again import data_of, parameters_of, refuse_what_is_elsewhere
from auditdp.cli.common import one_of, read_run, say
from auditdp.cli.run.options import RunOptions
from auditdp.errors import ConfigurationError
from auditdp.record.budgets import Budget

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, Evidence, RunRecord
    from auditdp.runner.plan import Plan


@dataclass(frozen=True)
class Continuation:
    """An audit whose game goes on."""

    asked: RunOptions
    """The options of the run, with those of the run that is continued."""
    keep: bool
    """Whether the log has the run that is continued."""
    won: float
    """Log wealth that is recorded."""
    recorded: dict[str, Any]
    """What the record says of the run that is continued."""

    def of(self, plan: Plan) -> Plan:
        """Return the plan with what is recorded of its one task."""
        return replace(plan, tasks=[replace(task, recorded=self.won) for task in plan.tasks])

    def stated(self, record: RunRecord, *, kept: Path) -> RunRecord:
        """Return a record that says what it continues, and where that is kept."""
        where = {"log": os.path.relpath(kept)} if self.keep else {}
        return replace(record, arguments={**record.arguments, "continued": {**self.recorded, **where}})


def continuation(asked: RunOptions) -> Continuation:
    """Return what ``--continue`` asks for, from the run in the log.

    Raises:
        ConfigurationError: If other options do not go with it, or the game of that audit cannot go on.
    """
    from auditdp.record.details import GameDetails  # loads pydantic

    _refuse_others(asked)
    record, keep = read_run(asked.log_path), True
    unfinished = record.arguments.get("continued")
    # It was interrupted: what it continued has been kept.
    if unfinished is not None and "log" in unfinished and not record.results:
        record, keep = read_run(Path(str(unfinished["log"]))), False
    chosen = one_of(asked.continued, record.results)
    refuse_what_is_elsewhere(chosen.id)
    game = _game(chosen)
    before = str(record.arguments.get("budget", "standard"))
    (goal,) = Budget.read(f"{before},{asked.calls}").further[-1:]
    assert isinstance(game.details, GameDetails)  # it is a game
    made = game.details.parts[-1].calls
    if isinstance(goal, int) and goal <= made:
        raise ConfigurationError(
            f"--calls {goal:,}: the game of {chosen.id} has made {made:,} calls; give how many it is to have altogether"
        )
    assert game.log_e_value is not None  # a game has a wealth
    say(f"{chosen.id} goes on after {made:,} calls of the run of {record.started}, which are made again first")
    parameters = [f"{name}={value}" for name, value in parameters_of(record, chosen).items()]
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
    """Return the game of an audit that may go on."""
    if (game := chosen.game) is None:
        raise ConfigurationError(f"{chosen.id} ended {chosen.verdict} and has no game that could go on")
    from auditdp.mechanism.protocol import OWN_RANDOMNESS  # slow to load

    if OWN_RANDOMNESS in chosen.reproduce:
        raise ConfigurationError(
            f"{chosen.id} cannot go on: its mechanism draws its own randomness, so its game cannot be played again; run "
            "it once more instead: e-values of independent runs may be multiplied"
        )
    return game


def _refuse_others(asked: RunOptions) -> None:
    """Raise where options are given that the run in the log has decided."""
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
            f"--continue takes audit, seed, α and parameters from the run in the log; give it without {', '.join(others)}"
        )
    if not asked.budget:
        raise ConfigurationError(
            f"--continue {asked.continued}: give how many calls its game is to have altogether, such as --calls 1e7, or a "
            "fault that it is to find, such as --find tail:0.005"
        )
    if Budget.read(asked.calls).further:
        raise ConfigurationError(f"--calls {asked.calls}: give one number, or one fault, that the game is to go on to")
