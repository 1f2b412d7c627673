"""Repeat one audit of a recorded run: ``replay``, ``confirm`` and ``run --continue``.

A record may come from somebody else. So it may not choose which files are imported or
read: only files of this project are, unless the command line names others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from auditdp.cli.project import settings
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, RunRecord
    from auditdp.runner.plan import PlanOptions, Task
    from auditdp.runner.pool import Workers


def parameters_of(record: RunRecord, chosen: AuditResult) -> dict[str, str]:
    """Return the values of ``-P`` for an audit in a recorded run, as text by name."""
    return dict(record.arguments.get("parameters", {}).get(chosen.id, {}))


def options_of(record: RunRecord, chosen: AuditResult, data: str = "") -> PlanOptions:
    """Return the plan options with which a recorded run made one of its results.

    Args:
        record: The record of the run.
        chosen: The result of the audit.
        data: The folder of data files on the command line; empty for the recorded one.

    Raises:
        ConfigurationError: If ``data`` is empty, and the recorded folder is not one of
            this project.
    """
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
        data=data_of(record, data),
        trace=recorded.get("trace", True),
    )


def task_of(chosen: AuditResult, options: PlanOptions, processes: Workers) -> Task:
    """Return the task of an audit of a recorded run.

    Raises:
        ConfigurationError: If its file is not one that collection finds below the
            working folder, or does not import.
    """
    from auditdp.runner.plan import make_plan

    refuse_what_is_elsewhere(chosen.id)
    plan = make_plan([chosen.id], options, collect=processes.collect)
    if plan.failures:
        raise ConfigurationError(plan.failures[0][1])
    return plan.tasks[0]


def data_of(record: RunRecord, data: str) -> str:
    """Return the folder of data files: ``data``, or the recorded one if it is empty.

    Raises:
        ConfigurationError: If the recorded folder is used, and is neither below the
            working folder nor below the data folder of the settings.
    """
    recorded = str(record.arguments.get("data", ""))
    if data or not recorded:
        return data
    own = [Path.cwd(), *([Path(settings().data)] if settings().data else [])]
    if not any(
        Path(recorded).resolve().is_relative_to(folder.resolve()) for folder in own
    ):
        raise ConfigurationError(
            f"the run had its data in {recorded}, which is neither below {Path.cwd()} nor the folder of the settings, and a "
            "record must not choose what is read; give it with --data if it is meant"
        )
    return recorded


def paths_of(record: RunRecord) -> tuple[str, ...]:
    """Return the targets of a recorded run: paths and ids of audits.

    Raises:
        ConfigurationError: If a target is neither below the working folder nor named by
            the settings.
    """
    here, named = Path.cwd().resolve(), settings().paths
    for path in (found := tuple(record.arguments.get("paths", ()))):
        if path not in named and not Path(
            path.partition("::")[0]
        ).resolve().is_relative_to(here):
            raise ConfigurationError(
                f"the run had audits in {path}, which is not below {here}, and a record must not choose what is imported; "
                "name it again if it is meant"
            )
    return found


def refuse_what_is_elsewhere(identifier: str) -> None:
    """Check that the file of an audit's id belongs to this project.

    Raises:
        ConfigurationError: If the file is not below the working folder, or collection
            would not find it.
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
