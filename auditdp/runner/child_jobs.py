"""The jobs of child processes, which return plain data (``JOBS``).

A child judges an audit, answers the judging process about the mechanism, repeats a
finding on its recorded outputs, describes an audit, or traces its mechanism.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import judge_recorded, run_audit
from auditdp.auditing.remote_audit import AuditElsewhere, DeclaredElsewhere
from auditdp.auditing.serving import Served
from auditdp.configuration import DATA_VARIABLE
from auditdp.errors import (
    AuditError,
    ConfigurationError,
    MechanismError,
    MissingExtraError,
    Skip,
    Timeout,
    raised_in,
)
from auditdp.files import FileLimits, without_middle
from auditdp.mechanism.calls.allowance import allowance, allowing
from auditdp.mechanism.calls.channel import Channel, ForeignError, answer
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import OWN_RANDOMNESS, is_seeded, name_of
from auditdp.numerics.streams import one_thread
from auditdp.record.budget import Budget
from auditdp.record.details import Subject
from auditdp.record.results import (
    REFUTATIONS,
    RESULT,
    AuditResult,
    Evidence,
    Published,
    Verdict,
)
from auditdp.record.traces import Mutation
from auditdp.runner.collecting import find, printable
from auditdp.runner.places import place_of
from auditdp.runner.plan import Task
from auditdp.runner.run_record import TRACED
from auditdp.runner.sandbox import explained

if TYPE_CHECKING:
    from auditdp.runner.version_comparison import ComparedAudit

LATER = 0.5
"""Seconds after its time limit in which an audit's mechanism may still answer."""
MOST_BITS = 63
"""Largest number of bits of a parameter that is recorded as an integer; larger integers
are recorded as hexadecimal text."""


def judge(task: Task, connection: Connection) -> AuditResult:
    """Run one audit in the judging process, and return its result.

    Any failure becomes a result with the verdict ERROR and the reason; none is raised.
    The task keys the randomness. So the result, except for its times, depends on the
    task and on the code of the audit alone.

    Args:
        task: The audit to run.
        connection: The pipe to the process of the mechanism.
    """
    started, cpu = time.perf_counter(), time.process_time()
    declared: DeclaredElsewhere | None = None
    built: AuditElsewhere | None = None
    parameters: dict[str, Any] = dict(task.overrides)

    def without_result(verdict: Verdict, summary: str) -> AuditResult:
        spent: dict[str, Any] = {
            "seconds": time.perf_counter() - started,
            "cpu_seconds": time.process_time() - cpu,
        }
        said = without_middle(printable(summary))
        return AuditResult(
            id=task.id, verdict=verdict, summary=said, alpha=task.alpha, **spent
        )

    try:
        seconds = math.inf if task.timeout is None else task.timeout
        with (
            contextlib.redirect_stdout(sys.stderr),
            _environment(task),
            time_limit(task.timeout),
            allowing(seconds=seconds),
        ):
            declared = DeclaredElsewhere.of(
                Channel(connection), task.id, task.expect, task.overrides
            )
            built, parameters, settings, result = _audit(task, declared)
            # An audit without a mechanism has no mutants.
            wanted = task.mutants and not built.is_formula
            # Otherwise every mutant would be refuted as well.
            if wanted and result.verdict not in REFUTATIONS:
                exact = next(
                    (
                        evidence
                        for evidence in result.evidence
                        if evidence.known.subject is Subject.LAW
                    ),
                    None,
                )
                try:
                    result = replace(result, mutation=built.mutation(settings, exact))
                except Timeout as late:
                    # Earlier findings stand.
                    result = replace(
                        result,
                        summary=f"{result.summary}. Nothing is known about its mutants: {late}",
                    )
    except Skip as reason:
        result = without_result(Verdict.SKIPPED, str(reason))
    except BaseException as error:
        # A mechanism may raise anything, such as SystemExit or KeyboardInterrupt. None
        # of it is a finding.
        result = without_result(Verdict.ERROR, explained(_explain(task, error)))
    if result.claim is not None and declared is not None and not result.claim.source:
        result = replace(result, claim=replace(result.claim, source=declared.source))
    whole = replace(
        result,
        expected=task.expect,
        description=declared.description if declared is not None else "",
        parameters={name: _plain(value) for name, value in parameters.items()},
        reproduce=task.reproduce
        + (
            ""
            if built is None or is_seeded(built.mechanism)
            else f"  # {OWN_RANDOMNESS}"
        ),
        published=_published(declared, built),
        mechanism_at=None if built is None else built.held.at,
        audit_at=None if declared is None else declared.held.at,
    )
    if (problem := _not_storable(whole)) is None:
        return whole
    without = without_result(
        Verdict.ERROR, f"{task.id}: its result cannot be stored: {problem}"
    )
    return replace(without, expected=task.expect, reproduce=task.reproduce)


def serve_task(task: Task, connection: Connection) -> None:
    """Answer the judging process about the mechanism, until it closes the pipe.

    Printed text goes to stderr.
    """
    place = partial(place_of, root=Path(task.root))
    with (
        contextlib.redirect_stdout(sys.stderr),
        _environment(task),
        _other(task) as compared,
        one_thread(),
        contextlib.ExitStack() as stack,
    ):
        served = Served(
            partial(find, task),
            stack,
            place=place,
            mutation=_mutation,
            compared=compared,
            plain=_plain,
        )

        def answered(what: str, arguments: tuple[Any, ...]) -> Any:
            # The judging process stops at its time limit. An answer that it no longer
            # waits for ends soon after, and this process can answer again.
            seconds = allowance().seconds
            with time_limit(
                max(seconds, 0.0) + LATER if math.isfinite(seconds) else None
            ):
                return served.answered(what, arguments)

        answer(connection, task.path, answered, explained)


def _mutation(built: Audit, settings: Settings, exact: Evidence | None) -> Mutation:
    from auditdp.auditing.mutant_score import mutation

    return mutation(built, settings, exact=exact)


@contextlib.contextmanager
def _other(task: Task) -> Iterator[Callable[[Audit, Settings], ComparedAudit] | None]:
    """Start the process of the other revision, before the audit is built.

    Yields:
        The function that compares both versions; None without another revision.
    """
    if task.against is None:
        yield None
        return
    from auditdp.runner.version_comparison import compared
    from auditdp.runner.version_process import OtherVersion

    with OtherVersion(task) as other:
        yield lambda built, settings: compared(built, task, other, settings)


def _audit(
    task: Task, declared: DeclaredElsewhere
) -> tuple[AuditElsewhere, dict[str, Any], Settings, AuditResult]:
    """Run the audit, at ascending sizes until one is refuted.

    Every size has an equal share of α, so all of them together err with probability at
    most that of the task. If a violation is declared, a refuted calibration does not
    end the search for the violation. An unconfirmed refutation that is not declared
    ends the search: the result of a larger size would hide it.

    Returns:
        The audit, its parameters, the settings and the result, all of the last size
        that was run.
    """
    sizes = declared.sizes(task.overrides)
    refuted = (Verdict.VIOLATED,) if declared.expect == "violation" else REFUTATIONS
    budget = Budget.read(task.budget)
    # Mutants have small faults, which need all calls.
    if task.mutants:
        budget = replace(budget, is_limit=False)
    if budget.later and len(sizes) > 1:
        raise ConfigurationError(
            f"{task.id} tries several sizes, each in a game of its own, so it cannot "
            "go on; run it for one of them first, "
            f"with -P {next(iter(declared.smallest))}=..."
        )
    without: list[str] = []
    for overrides in sizes:
        built, parameters = declared.build(overrides)
        size = ", ".join(f"{name} = {parameters[name]}" for name in declared.smallest)
        key = task.id if len(sizes) == 1 else f"{task.id}[{size}]"
        settings = Settings(
            alpha=task.alpha / len(sizes),
            budget=budget,
            root_seed=task.root_seed,
            key=key,
            recorded=task.recorded,
            trace=task.trace,
        )
        played, versions = built, None
        if task.against is not None:
            from auditdp.runner.version_comparison import ComparedAudit

            played, versions = built.compared(settings)
            settings = ComparedAudit(versions).settings(settings)
        found = run_audit(played, settings)
        result = replace(
            found,
            id=task.id,
            alpha=task.alpha,
            versions=versions,
            expected=declared.expect,
        )
        if result.verdict in refuted or result.is_unconfirmed:
            break
        without.append(size)
    if without and result.verdict in refuted:
        what = (
            "violation" if result.verdict is Verdict.VIOLATED else "larger difference"
        )
        result = replace(
            result,
            summary=f"{result.summary}. No {what} was found at {' or '.join(without)}",
        )
    return built, parameters, settings, result


def play_recorded(task: Task, result: AuditResult) -> list[str]:
    """Repeat the findings of a result on their recorded outputs.

    Returns:
        A sentence for each finding; [] if no outputs were recorded.
    """
    if not result.recorded:
        return []
    with _environment(task):
        built, _ = find(task).build(task.overrides)
        return judge_recorded(
            built,
            result,
            Settings(task.alpha, Budget.read(task.budget), task.root_seed, task.id),
        )


def _published(
    declared: DeclaredElsewhere | None, built: AuditElsewhere | None
) -> Published | None:
    if declared is None or not declared.row:
        return None
    repaired = (
        f"{declared.id.partition('::')[0]}::{declared.repairs}"
        if declared.repairs
        else ""
    )
    cost, decides = (built.cost, built.decides) if built is not None else ("", "")
    return Published(declared.row, declared.reading, repaired, cost, decides)


def _not_storable(result: AuditResult) -> str | None:
    """Return the reason for which a result cannot be written; None if it can.

    A figure or a name may contain data that JSON cannot express, or the result may be
    too large.
    """
    try:
        size = len(RESULT.dump_json(result))
    except (ValueError, TypeError) as error:
        return str(error)
    return (
        f"it has {size:,} bytes, and at most {FileLimits.result_bytes:,} are kept"
        if size > FileLimits.result_bytes
        else None
    )


def _plain(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return hex(value)
    return (
        value if isinstance(value, bool | int | float | None) else printable(str(value))
    )


def _explain(task: Task, error: BaseException) -> str:
    error = MissingExtraError.of(error) or error
    if isinstance(error, AuditError | Timeout):
        return f"{task.id}: {error}"
    place = (
        error.place if isinstance(error, ForeignError) else raised_in(error, task.path)
    )
    return f"{task.id}: {type(error).__name__}: {error}" + (
        f" ({place})" if place else ""
    )


@contextlib.contextmanager
def _environment(task: Task) -> Iterator[None]:
    """Set the environment variable of the data folder during the block."""
    before = os.environ.get(DATA_VARIABLE)
    if task.data:
        os.environ[DATA_VARIABLE] = task.data
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(DATA_VARIABLE, None)
        else:
            os.environ[DATA_VARIABLE] = before


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``Timeout`` in the block after some seconds, and every second after that.

    It uses the alarm signal, which interrupts Python code and most system calls. If
    code is stuck in native code, or catches every exception, the parent ends the
    process. Without a limit, or outside the main thread, nothing is raised.
    """
    usable = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
    )
    if seconds is None or not usable:
        yield
        return

    def stop(*_: Any) -> None:
        raise Timeout(
            f"stopped after {seconds:g} seconds; raise --timeout, lower --budget, or "
            "give the audit fewer calls"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(task: Task, connection: Connection) -> str:
    """Return the result of an audit as JSON."""
    return RESULT.dump_json(judge(task, connection)).decode()


def _serve(task: Task, connection: Connection) -> str:
    """Answer the judging process, and return a constant at the end."""
    serve_task(task, connection)
    return SERVED


def _again(task: Task, result: AuditResult) -> list[str]:
    try:
        return play_recorded(task, result)
    except AuditError as error:
        return [f"the recorded outputs cannot be played again: {error}"]


def _show(task: Task) -> dict[str, Any]:
    """Return rows (name, text) that describe an audit, or the reason for a failure.

    The only key of the result is 'rows', 'refused' or 'crashed'.
    """
    item = find(task)
    rows: list[tuple[str, str]] = [
        ("source", item.source or "not stated"),
        ("expected", item.expect),
    ]
    if item.row:
        rows += [
            ("published", f"{item.row}, {item.reading}" if item.reading else item.row)
        ]
    if item.repairs:
        rows += [("repairs", item.repairs)]
    rows += [
        ("parameter", f"{name} = {value!r}") for name, value in item.parameters.items()
    ]
    rows += [
        ("tried", f"{name} = {', '.join(map(str, sizes))}")
        for name, sizes in item.smallest.items()
    ]
    try:
        built, _ = item.build({})
        if not built.is_formula:
            rows += [("mechanism", name_of(built.mechanism))]
            rows += [
                ("offers", offered)
                for offered in capabilities(built.mechanism).offered()
            ]
        rows += [("claim", str(built.claim))]
        rows += [("accountant", accountant.name) for accountant in built.accountants]
        rows += (
            [("about", built.about.describes.text)] if built.about is not None else []
        )
        if built.inputs is not None:
            rows += [("inputs", name) for name in built.inputs]
        elif not built.is_formula:
            rows += [("neighbours", built.adjacency.name)]
            rows += [
                ("pair", str(pair)) for pair in (built.play or built.adjacency.pairs())
            ]
        rows += [("control", name_of(control)) for control in built.controls]
    except Skip as reason:
        rows += [("skipped", str(reason))]
    except AuditError as error:
        return {"refused": str(error)}
    # The factory is a user's code, which may also raise SystemExit.
    except BaseException as error:
        return {"crashed": f"{type(error).__name__}: {error}"}
    return {"rows": rows}


def _trace(task: Task, pairs: int) -> dict[str, Any]:
    """Return the trace of an audit's mechanism, or the reason for a failure.

    The only key of the result is 'trace', 'skipped', 'refused' or 'crashed'. If the
    audit tries several sizes, the trace is of the first size with a finding that the
    trace understands completely, or else of the last size.

    Args:
        task: The audit.
        pairs: Limit of the generated pairs.
    """
    from auditdp.runner.audit_traces import traced

    try:
        with time_limit(task.timeout):
            declared = find(task)
            # A run tries the sizes in ascending order.
            for overrides in declared.sizes({}):
                built, parameters = declared.build(overrides)
                found = traced(
                    built, task.id, Path(task.root), pairs=pairs, seed=task.root_seed
                )
                found = replace(
                    found,
                    size=", ".join(
                        f"{name} = {parameters[name]}" for name in declared.smallest
                    ),
                )
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
"""Value of the last message of a mechanism's process; no result depends on it."""
JOBS: dict[str, Callable[..., Any]] = {
    "run": _run,
    "serve": _serve,
    "again": _again,
    "show": _show,
    "trace": _trace,
}
"""The function of each kind of work. Its first argument is the task."""
