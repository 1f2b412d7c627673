"""What children are asked to do: judge an audit, answer who judges, play a record again, show, trace. Values are data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from auditdp.errors import AuditError, MechanismError, Skip, Timeout
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import name_of
from auditdp.record.results import RESULT, AuditResult
from auditdp.runner.plan import Task
from auditdp.runner.processes.collecting import find
from auditdp.runner.processes.execute import judge, play_recorded, serve_task, time_limit
from auditdp.runner.traced import TRACED


def _run(task: Task, connection: Connection) -> str:
    """Return the result as JSON."""
    return RESULT.dump_json(judge(task, connection)).decode()


def _serve(task: Task, connection: Connection) -> str:
    """Answer who judges, and return nothing else."""
    serve_task(task, connection)
    return SERVED


def _again(task: Task, result: AuditResult) -> list[str]:
    try:
        return play_recorded(task, result)
    except AuditError as error:
        return [f"the recorded outputs cannot be played again: {error}"]


def _show(task: Task) -> dict[str, Any]:
    """Return the rows that spell out what one audit declares, or why they cannot be had."""
    item = find(task)
    rows: list[tuple[str, str]] = [("source", item.source or "not stated"), ("expected", item.expect)]
    if item.row:
        rows += [("published", f"{item.row}, {item.reading}" if item.reading else item.row)]
    if item.repairs:
        rows += [("repairs", item.repairs)]
    rows += [("parameter", f"{name} = {value!r}") for name, value in item.parameters.items()]
    rows += [("tried", f"{name} = {', '.join(map(str, sizes))}") for name, sizes in item.smallest.items()]
    try:
        built, _ = item.build({})
        if not built.is_formula:
            rows += [("mechanism", name_of(built.mechanism))]
            rows += [("offers", offered) for offered in capabilities(built.mechanism).offered()]
        rows += [("claim", str(built.claim))]
        rows += [("accountant", accountant.name) for accountant in built.accountants]
        rows += [("about", built.about.describes.text)] if built.about is not None else []
        if built.inputs is not None:
            rows += [("inputs", name) for name in built.inputs]
        elif not built.is_formula:
            rows += [("neighbours", built.adjacency.name)]
            rows += [("pair", str(pair)) for pair in (built.play or built.adjacency.pairs())]
        rows += [("control", name_of(control)) for control in built.controls]
    except Skip as reason:
        rows += [("skipped", str(reason))]
    except AuditError as error:
        return {"refused": str(error)}
    except BaseException as error:
        return {"crashed": f"{type(error).__name__}: {error}"}
    return {"rows": rows}


def _trace(task: Task, pairs: int) -> dict[str, Any]:
    """Return what a trace reads off the audit's mechanism, or why there is nothing."""
    from auditdp.runner.processes.tracing import traced

    try:
        with time_limit(task.timeout):
            declared = find(task)
            for overrides in declared.sizes({}):  # ascending, as a run tries them
                built, parameters = declared.build(overrides)
                found = traced(built, task.id, Path(task.root), pairs=pairs, seed=task.root_seed)
                found = replace(found, size=", ".join(f"{name} = {parameters[name]}" for name in declared.smallest))
                if any(finding.read_off for finding in found.findings):
                    break
    except Skip as reason:
        return {"skipped": str(reason)}
    except (MechanismError, Timeout) as error:
        return {"crashed": str(error)}
    except AuditError as error:
        return {"refused": str(error)}
    except BaseException as error:
        return {"crashed": f"{type(error).__name__}: {error}"}
    return {"trace": TRACED.dump_python(found, mode="json")}


SERVED = "served"
"""What the process of a mechanism says at its end, which decides nothing."""
JOBS: dict[str, Callable[..., Any]] = {"run": _run, "serve": _serve, "again": _again, "show": _show, "trace": _trace}
"""Kinds of work by name; the first argument is the task."""
