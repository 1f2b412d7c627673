"""Running the tasks of a plan, in this process or in joblib workers; nothing here decides a verdict."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditdp.collection import collect
from auditdp.declaration import DATA_VARIABLE, Audit, Declared
from auditdp.errors import AuditError, MissingExtraError, Skip, Timeout
from auditdp.judgement import Settings, judge_recorded, run_audit
from auditdp.mechanism import OWN_RANDOMNESS, is_seeded
from auditdp.mutation.score import mutation
from auditdp.results import REFUTATIONS, RESULT, AuditResult, Published, Verdict
from auditdp.runner.plan import BUDGETS, MOST_CALLS, Task

_collected: dict[str, list[Declared]] = {}


def run_task(task: Task) -> AuditResult:
    """Run one audit and return its result; whatever goes wrong is an ERROR with its reason, never an exception.

    The outcome depends on the task alone, since randomness is keyed by it. What the audit prints goes to standard error.
    """
    started, cpu = time.perf_counter(), time.process_time()
    declared = built = None
    parameters: dict[str, Any] = dict(task.overrides)

    def without_result(verdict: Verdict, summary: str) -> AuditResult:
        spent: dict[str, Any] = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        return AuditResult(id=task.id, verdict=verdict, summary=_printable(summary), alpha=task.alpha, **spent)

    try:
        with contextlib.redirect_stdout(sys.stderr), _environment(task), _time_limit(task.timeout):
            declared = _find(task)
            built, parameters, settings, result = _audit(task, declared)
            wanted = task.mutants and not built.is_formula  # without a mechanism there is none to break
            if wanted and result.verdict not in REFUTATIONS:  # else every mutant is refuted as well
                exact = next((evidence for evidence in result.evidence if evidence.kind == "exact"), None)
                result = replace(result, mutation=mutation(built, settings, exact=exact))
    except Skip as reason:
        result = without_result(Verdict.SKIPPED, str(reason))
    except (Exception, SystemExit, Timeout) as error:
        result = without_result(Verdict.ERROR, _explain(task, error))
    if (problem := _not_storable(result)) is not None:
        result = without_result(Verdict.ERROR, f"{task.id}: its result cannot be stored: {problem}")
    if result.claim is not None and declared is not None and not result.claim.source:
        result = replace(result, claim=replace(result.claim, source=declared.source))
    return replace(
        result,
        expected=task.expect,
        description=declared.description if declared is not None else "",
        parameters={name: _plain(value) for name, value in parameters.items()},
        reproduce=task.reproduce + ("" if built is None or is_seeded(built.mechanism) else f"  # {OWN_RANDOMNESS}"),
        published=_published(declared, built),
    )


def _audit(task: Task, declared: Declared) -> tuple[Audit, dict[str, Any], Settings, AuditResult]:
    """Run the audit, at ascending sizes up to the first that is refuted where it tries several; return what was run last.

    Every size has an equal share of α, so that all of them together err with probability at most the task's. A refuted
    calibration does not end the search for a violation that is declared.
    """
    sizes = declared.sizes(task.overrides)
    refuted = (Verdict.VIOLATED,) if declared.expect == "violation" else REFUTATIONS
    most = MOST_CALLS.get(task.budget) if declared.expect == "holds" and not task.mutants else None
    without: list[str] = []
    for overrides in sizes:
        built, parameters = declared.build(overrides)
        size = ", ".join(f"{name} = {parameters[name]}" for name in declared.smallest)
        key = task.id if len(sizes) == 1 else f"{task.id}[{size}]"
        settings = Settings(task.alpha / len(sizes), BUDGETS[task.budget], task.root_seed, key, most)
        result = replace(run_audit(built, settings), id=task.id, alpha=task.alpha)
        if result.verdict in refuted:
            break
        without.append(size)
    if without and result.verdict in refuted:
        what = "violation" if result.verdict is Verdict.VIOLATED else "larger difference"
        result = replace(result, summary=f"{result.summary}. No {what} was found at {' or '.join(without)}")
    return built, parameters, settings, result


def play_recorded(task: Task, result: AuditResult) -> list[str]:
    """Return what comes of playing the findings of a result again on their recorded outputs, a line for each."""
    if not any("outputs" in (evidence.details.get("confirmation") or {}) for evidence in result.evidence):
        return []
    with _environment(task):
        built, _ = _find(task).build(task.overrides)
        return judge_recorded(built, result, Settings(task.alpha, BUDGETS[task.budget], task.root_seed, task.id))


def _published(declared: Declared | None, built: Audit | None) -> Published | None:
    if declared is None or not declared.row:
        return None
    repaired = f"{declared.id.partition('::')[0]}::{declared.repairs}" if declared.repairs else ""
    cost, decides = (built.cost, built.decides) if built is not None else ("", "")
    return Published(declared.row, declared.reading, repaired, cost, decides)


def _not_storable(result: AuditResult) -> str | None:
    """Return why a result cannot be written as JSON: a figure or name that holds something else than plain data."""
    try:
        RESULT.dump_json(result)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _printable(text: str) -> str:
    """Escape what cannot be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _find(task: Task) -> Declared:
    if task.path not in _collected:
        _collected[task.path] = collect(Path(task.path), Path(task.root))
    return next(d for d in _collected[task.path] if d.id == task.id)


def _explain(task: Task, error: BaseException) -> str:
    error = MissingExtraError.of(error) or error
    if isinstance(error, AuditError | Timeout):
        return f"{task.id}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = next((f for f in reversed(frames) if f.filename == task.path), frames[-1] if frames else None)
    place = f" ({Path(where.filename).name}, line {where.lineno})" if where else ""
    return f"{task.id}: {type(error).__name__}: {error}{place}"


@contextlib.contextmanager
def _environment(task: Task) -> Iterator[None]:
    """Make the data folder visible to audits of this task, whichever process runs it."""
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
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``Timeout`` in the block after so many seconds of wall time.

    Uses the alarm signal, which reaches Python code and most waiting. A worker that is stuck in native code is ended by
    ``_in_worker`` instead; with one worker, and on systems without this signal, such a mechanism is not stopped.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not usable:
        yield
        return

    def stop(*_: Any) -> None:
        raise Timeout(
            f"stopped after {seconds:g} seconds; raise --timeout, lower --budget, or give the audit fewer calls"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _in_worker(task: Task, folder: str, position: int) -> AuditResult:
    """Run a task in a worker, leaving a mark while it runs so that a dead worker's task is known."""
    import faulthandler

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends its workers
    mark = Path(folder) / str(position)
    mark.touch()
    quiet = open(os.devnull, "w")  # noqa: SIM115 - must outlive this block: faulthandler writes to it as the process dies
    if task.timeout is not None:
        faulthandler.dump_traceback_later(task.timeout + 5, exit=True, file=quiet)
    try:
        return run_task(task)
    finally:
        faulthandler.cancel_dump_traceback_later()
        quiet.close()
        mark.unlink()


def execute(tasks: Sequence[Task], *, workers: int = 1) -> Iterator[AuditResult]:
    """Yield the results of the tasks as they are finished.

    With one worker everything runs in this process, in order. With more, joblib distributes whole audits; a worker that
    dies (a crash in native code, out of memory, stuck there beyond its time limit) costs only the audit that it was
    running, which becomes an ERROR; audits beside it are run again.

    Args:
        tasks: What to run.
        workers: Number of processes.
    """
    if workers == 1:
        for task in tasks:
            yield run_task(task)
        return
    waiting = dict(enumerate(tasks))
    alone: set[int] = set()
    while waiting:
        together = [k for k in waiting if k not in alone] or [next(iter(waiting))]
        before = len(waiting)
        with tempfile.TemporaryDirectory(prefix="auditdp-") as folder:
            for position, result in _parallel({k: waiting[k] for k in together}, folder, workers):
                del waiting[position]
                yield result
            crashed = [int(mark.name) for mark in Path(folder).iterdir() if int(mark.name) in waiting]
        # Marks tell which audits ran when a worker died; alone, each shows whether it is the one that kills its worker.
        for position in crashed:
            if len(together) == 1:
                yield _died(waiting.pop(position))
            alone.add(position)
        if not crashed and len(waiting) == before:  # no worker lived long enough to start anything
            for position in together:
                yield _died(waiting.pop(position))


def _parallel(tasks: dict[int, Task], folder: str, workers: int) -> Iterator[tuple[int, AuditResult]]:
    """Yield (position, result) from joblib workers until all are done or the pool breaks."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    jobs = (delayed(_positioned)(k, task, folder) for k, task in tasks.items())
    with contextlib.suppress(BrokenProcessPool):
        yield from Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")(jobs)


def _positioned(position: int, task: Task, folder: str) -> tuple[int, AuditResult]:
    return position, _in_worker(task, folder, position)


def _died(task: Task) -> AuditResult:
    return AuditResult(
        id=task.id,
        verdict=Verdict.ERROR,
        summary=(
            f"{task.id}: the process that ran it died (a crash in native code, out of memory, or stuck there beyond "
            "--timeout); run it alone under a debugger, or lower its budget"
        ),
        expected=task.expect,
        alpha=task.alpha,
        reproduce=task.reproduce,
    )
