"""One audit of a recorded run once more: what ``auditdp replay``, ``confirm`` and ``run --continue`` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from auditdp.cli.common import settings
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, RunRecord
    from auditdp.runner.plan import PlanOptions, Task
    from auditdp.runner.processes.workers import Workers


def parameters_of(record: RunRecord, chosen: AuditResult) -> dict[str, str]:
    """Return the parameters that an audit was given in a recorded run, by their names."""
    return dict(record.arguments.get("parameters", {}).get(chosen.id, {}))


def options_of(record: RunRecord, chosen: AuditResult) -> PlanOptions:
    """Return what a recorded run decided for one of its audits."""
    from auditdp.runner.plan import PlanOptions

    recorded = record.arguments
    timeout = recorded.get("timeout")
    return PlanOptions(
        root_seed=record.root_seed,
        overrides=parameters_of(record, chosen),
        alpha=float(chosen.alpha or 0.05),
        budget=str(recorded.get("budget", "standard")),
        timeout=timeout if recorded.get("timeout_for_all") else None,
        default_timeout=timeout,
        data=str(recorded.get("data", "")),
    )


def task_of(chosen: AuditResult, options: PlanOptions, processes: Workers) -> Task:
    """Plan an audit of a recorded run once more.

    Raises:
        ConfigurationError: If its file is none that collection finds below the working folder, or does not import.
    """
    from auditdp.runner.plan import make_plan

    refuse_what_is_elsewhere(chosen.id)
    plan = make_plan([chosen.id], options, collect=processes.collect)
    if plan.failures:
        raise ConfigurationError(plan.failures[0][1])
    return plan.tasks[0]


def refuse_what_is_elsewhere(identifier: str) -> None:
    """Raise unless the file of an id is one that collection finds below the working folder.

    Raises:
        ConfigurationError: If it is not.
    """
    from auditdp.runner.plan import audit_files

    here, path = Path.cwd().resolve(), Path(identifier.partition("::")[0])
    named = [text for text in settings().paths if Path(text).exists()]
    found = {file.resolve() for file, _ in audit_files([".", *named])}
    if path.resolve() not in found or not path.resolve().is_relative_to(here):
        raise ConfigurationError(
            f"{path} is no audit file that is found below {here}, and a record must not choose what is imported; go to the "
            "folder of the run, or run the audit by its id"
        )
