"""Traces of code with unusual shapes.

Forty functions with one fault each and twenty that are as private as they say: streams of users, tables grouped as SQL
groups them, trees, synthesizers, federated rounds, loops of DP-SGD, local protocols; and six kinds of faults that
dp-recorder found. Each is traced on the pairs that are given, in both orders, and on others that its adjacency generates,
for at most a hundred runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import draws
from auditdp.numerics.streams import stream
from auditdp.tracing import Finding, PairTrace, Trace, TracedRun, replayed
from benchmarks.parts import Bar, Options, Part, Result, Results, Table, View
from benchmarks.traced_case import TracedCase
from benchmarks.traced_correct import CORRECT
from benchmarks.traced_models import BROKEN_MODELS
from benchmarks.traced_recorder import RECORDER
from benchmarks.traced_streams import STREAMS, TABLES

BROKEN: Sequence[TracedCase] = (*STREAMS, *TABLES, *BROKEN_MODELS)
ALL: Sequence[TracedCase] = (*BROKEN, *RECORDER, *CORRECT)
CASES = {case.name: case for case in BROKEN} | {
    f"recorder: {case.name}": case for case in RECORDER
}
CASES |= {f"correct: {case.name}": case for case in CORRECT}
RUNS = 100
PROPOSED, RIGHT = 0.8, 0.95
"""Shares of the broken ones that should be proposed for the true reason, and of these whose line should be right."""


class CountedTrace(Trace):
    """A trace that counts its runs."""

    watched = 0

    def _watched(self, *arguments: Any) -> TracedRun:
        self.watched += 1
        return super()._watched(*arguments)


def judge(case: TracedCase, seed: int, most: int = RUNS) -> Result:
    """Trace one function until it is proposed for the true reason.

    Args:
        case: The function.
        seed: Root seed.
        most: Runs at which no other pair is begun, and within which the reason has to be found.

    Returns:
        ``extent`` (the least one: full, part, none), ``runs``, ``proposed`` (kinds of all findings that are read off),
        ``true`` (whether one of them is the true reason, within so many runs), ``line`` (whether its line is right; None
        where it names none),
        ``said`` (its sentence, or the first one that is read off), ``opaque``, and ``cpu_seconds``.
    """
    started = time.process_time()
    extents, kinds, opaque = set[str](), set[str](), set[str]()
    said, true, line = "", False, None
    with CountedTrace(case.function) as trace:
        for number, (data, neighbour) in enumerate(_pairs(case, seed)):
            if trace.watched >= most:
                break
            recorded = trace.record(data, stream(seed, case.name, number))
            found: PairTrace = replayed(trace, recorded, neighbour, claim=case.claim)
            extents.add(found.extent)
            opaque |= {sentence for _, sentence in found.opaque}
            read = [finding for finding in found.findings if finding.is_read_off]
            kinds |= {finding.kind for finding in read}
            said = said or (read[0].sentence if read else "")
            if reason := next(
                (finding for finding in read if finding.kind in case.kinds), None
            ):
                said, true, line = (
                    reason.sentence,
                    trace.watched <= most,
                    _is_right(case, read, reason),
                )
                break
    extent = max(extents, key=("full", "part", "none").index)
    spent = time.process_time() - started
    return {
        "extent": extent,
        "runs": trace.watched,
        "proposed": sorted(kinds),
        "true": true,
        "line": line,
        "said": said,
        "opaque": sorted(opaque),
        "cpu_seconds": spent,
    }


def _is_right(
    case: TracedCase, read: Sequence[Finding], reason: Finding
) -> bool | None:
    """Return True if a finding of that reason is at a marked line; None without a line."""
    sites = [
        finding.site.line
        for finding in read
        if finding.kind in case.kinds and finding.site.line
    ]
    if not sites or not case.marked:
        return None
    return reason.site.line in case.marked


def _pairs(case: TracedCase, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs that are given, in both orders, and then those that the adjacency generates; again and again."""
    adjacency = case.pairs
    listed = (
        adjacency
        if isinstance(adjacency, list)
        else [(pair.data, pair.neighbour) for pair in adjacency.pairs()]
    )
    strategy = None if isinstance(adjacency, list) else offers(adjacency).generated
    generated = draws(strategy, seed=seed) if strategy is not None else iter(())
    yield from (
        pair
        for data, neighbour in listed
        for pair in ((data, neighbour), (neighbour, data))
    )
    yield from (
        (made.value.data, made.value.neighbour) for made in islice(generated, RUNS)
    )
    for _ in range(RUNS):
        yield from (
            pair
            for data, neighbour in listed
            for pair in ((data, neighbour), (neighbour, data))
        )


def _unit(name: str, seed: int) -> Result:
    return judge(CASES[name], seed)


def units(options: Options) -> dict[str, partial[Result]]:
    """Every function once."""
    return {name: partial(_unit, name, options.seed) for name in CASES}


def view(results: Results) -> View:
    """Count proposals, by their reason."""
    broken = {
        name: results[name]
        for name in CASES
        if name in results and not name.startswith("correct: ")
    }
    correct = {
        name: results[name]
        for name in CASES
        if name in results and name.startswith("correct: ")
    }
    heads = [
        "Function",
        "Group",
        "What is wrong",
        "Traced",
        "Proposed",
        "Runs",
        "What the trace says",
        "CPU s",
    ]
    tables = [
        Table(
            "Broken code, traced",
            heads,
            [_line(name, run) for name, run in broken.items()],
        ),
        Table(
            "Correct code, traced",
            heads,
            [_line(name, run) for name, run in correct.items()],
        ),
    ]
    return View(
        [*_bars(broken), _wrong_bar(correct)], [table for table in tables if table.rows]
    )


def _bars(broken: Mapping[str, Result]) -> list[Bar]:
    true = [run for run in broken.values() if run["true"]]
    named = [run for run in true if run["line"] is not None]
    right = [run for run in named if run["line"]]
    extents = Counter(run["extent"] for run in broken.values())
    missed = [name for name, run in broken.items() if not run["true"]]
    text = f"{len(true)} of {len(broken)}; traced {', '.join(f'{extents[e]} {e}' for e in ('full', 'part', 'none'))}"
    text += f"; missed: {'; '.join(missed)}" if missed else ""
    return [
        Bar(
            f"Broken code: ≥ {PROPOSED:.0%} proposed for the true reason within {RUNS} runs",
            len(true) >= PROPOSED * len(broken),
            text,
        ),
        Bar(
            f"Its line: ≥ {RIGHT:.0%} right",
            len(right) >= RIGHT * len(named),
            f"{len(right)} of {len(named)} that name one",
        ),
    ]


def _wrong_bar(correct: Mapping[str, Result]) -> Bar:
    wrong = [
        name.removeprefix("correct: ")
        for name, run in correct.items()
        if run["proposed"]
    ]
    extents = Counter(run["extent"] for run in correct.values())
    seconds = sum(run["cpu_seconds"] for run in correct.values())
    text = (
        f"{len(wrong)} of {len(correct)} proposed{': ' * bool(wrong)}{'; '.join(wrong)}"
    )
    text += f"; traced {', '.join(f'{extents[e]} {e}' for e in ('full', 'part', 'none'))}; {seconds:.1f} CPU s"
    return Bar(
        "Correct code: a wrong proposal costs a game, and no verdict", None, text
    )


def _line(name: str, run: Result) -> list[str]:
    case = CASES[name]
    proposed = ", ".join(run["proposed"]) + (" (true)" if run["true"] else "")
    said = run["said"] or "; ".join(run["opaque"])
    seconds = f"{run['cpu_seconds']:.2f}"
    return [
        case.name,
        case.group,
        case.why,
        run["extent"],
        proposed or "–",
        str(run["runs"]),
        said,
        seconds,
    ]


PART = Part("traced", "Ordinary code, traced", units, view)
