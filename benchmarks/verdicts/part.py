"""The part ``verdicts``: cases by number, and the errors in their statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from auditdp.record.results import AuditResult
from benchmarks.parts import Bar, Options, Part, Result, Results, Table, View
from benchmarks.verdicts.accountants import accounting
from benchmarks.verdicts.case import ALPHA, NEVER, Case
from benchmarks.verdicts.finite import finite, remembering
from benchmarks.verdicts.others import (
    canaries,
    continuous,
    counts,
    estimates,
    guesses,
    scores,
    sensitivity,
)
from benchmarks.verdicts.whole import continued, ensemble, trainer

CASES, QUICK = 5_000, 250
CHUNK = 50
"""Cases of one unit."""
CONFIDENCE = 0.999
FAMILIES: Mapping[Callable[[Case], None], int] = {
    finite: 42,
    continuous: 8,
    accounting: 24,
    estimates: 5,
    sensitivity: 4,
    canaries: 4,
    counts: 4,
    guesses: 3,
    scores: 2,
    remembering: 2,
    trainer: 2,
}
"""Families of cases, and their numbers in a hundred."""
RARE: Mapping[int, Callable[[Case], None]] = {7: ensemble, 57: continued}
"""Cases that take seconds: one in ``EVERY`` each, by its number."""
EVERY = 400
VERDICTS = (
    "CERTIFIED",
    "EQUIVALENT",
    "VIOLATED",
    "MISCALIBRATED",
    "NOT_REFUTED",
    "INCONCLUSIVE",
    "ERROR",
)


def carried_out(seed: int, number: int) -> Case:
    """Return one case with its statements."""
    case = Case(seed, number)
    family = RARE.get(number % EVERY)
    if family is None:
        weights = np.array([*FAMILIES.values()], float)
        family = [*FAMILIES][
            int(case.rng.choice(len(weights), p=weights / weights.sum()))
        ]
    try:
        family(case)
    except Exception as error:  # of the generator itself: it is reported as what it is
        case.says(
            "generator", family.__name__, "ERROR", f"{type(error).__name__}: {error}"
        )
    return case


def chunk(seed: int, first: int, cases: int) -> Result:
    """Run some cases and count their statements."""
    rows: dict[str, Counter[str]] = {}
    wrong = []
    for number in range(first, first + cases):
        case = carried_out(seed, number)
        for said in case.said:
            row = rows.setdefault(said.row, Counter())
            row["cases"] += 1
            row[said.verdict] += 1
            row["tried"] += said.tried
            if said.wrong:
                row[
                    "by chance"
                    if said.by_chance
                    else "error"
                    if said.verdict == "ERROR"
                    else "wrong"
                ] += 1
                wrong.append(
                    {
                        "row": said.row,
                        "verdict": said.verdict,
                        "by_chance": said.by_chance,
                        "why": said.wrong,
                        "told": case.told,
                        "command": f"python -m benchmarks verdicts --case {number} --seed {seed}",
                    }
                )
    return {
        "rows": {row: dict(counted) for row, counted in rows.items()},
        "cases": cases,
        "wrong": wrong,
    }


def units(options: Options) -> dict[str, partial[Result]]:
    """Cases by their numbers, some in each unit."""
    cases = options.repeats or (QUICK if options.quick else CASES)
    return {
        f"cases/{first}": partial(chunk, options.seed, first, min(CHUNK, cases - first))
        for first in range(0, cases, CHUNK)
    }


def view(results: Results) -> View:
    """Add the units up."""
    rows: dict[str, Counter[str]] = {}
    for result in results.values():
        for row, counted in result["rows"].items():
            rows.setdefault(row, Counter()).update(counted)
    total = sum(rows.values(), Counter())
    cases = sum(result["cases"] for result in results.values())
    beyond = [row for row, n in rows.items() if n["by chance"] > limit(n["tried"])]
    found = [each for result in results.values() for each in result["wrong"]]
    complete = cases >= CASES
    bars = [
        Bar(
            f"no wrong verdict or bound that is not a matter of α, of {CASES:,} cases",
            (total["wrong"] == 0 and (complete or None))
            if total["wrong"] == 0
            else False,
            f"{total['wrong']:,} of {total['cases']:,} verdicts in {cases:,} cases",
        ),
        Bar(
            f"wrong ones that are a matter of α: at most α = {ALPHA:g} of the time, for each kind of evidence and claim",
            False if beyond else (complete or None),
            f"{total['by chance']:,} of {total['tried']:,}; beyond chance ({CONFIDENCE:.1%}): {'; '.join(beyond) or 'none'}",
        ),
        Bar(
            "no error: all input is valid",
            False if total["error"] else (complete or None),
            f"{total['error']:,}",
        ),
    ]
    return View(bars, [_counts(rows), *_listed(found)])


def limit(tried: int) -> int:
    """Return the number of errors that α explains, except for one time in a thousand."""
    return int(binom.ppf(CONFIDENCE, tried, ALPHA)) if tried else 0


def _counts(rows: Mapping[str, Counter[str]]) -> Table:
    other = sorted(
        {key for n in rows.values() for key in n if key.isupper()} - {*VERDICTS}
    )
    columns = [*VERDICTS, *other]
    lines = [
        [
            row,
            f"{n['cases']:,}",
            *(f"{n[verdict]:,}" if n[verdict] else "" for verdict in columns),
            f"{n['wrong']:,}",
            f"{n['by chance']:,} of {n['tried']:,} (≤ {limit(n['tried'])})"
            if n["tried"]
            else "",
        ]
        for row, n in sorted(rows.items())
    ]
    return Table(
        "Verdicts",
        [
            "Evidence and claim",
            "Cases",
            *columns,
            "Wrong",
            f"Wrong by chance, α = {ALPHA:g}",
        ],
        lines,
        f"Half of the cases have α = {ALPHA:g}, and count in the last column, with what α explains at {CONFIDENCE:.1%}. The "
        f"others have α = {NEVER:g}: no error by chance is to be expected, so that one counts as wrong.",
    )


def _listed(found: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Errors and wrong verdicts, those that differ in numbers alone under one heading."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in found:
        kind = (
            "error"
            if each["verdict"] == "ERROR"
            else "by chance"
            if each["by_chance"]
            else "wrong"
        )
        alike = re.sub(r"\d[\d.,e+-]*|0x\w+", "#", each["why"])[:120]
        groups.setdefault((kind, f"{each['row']}: {alike}"), []).append(each)
    titles = {"wrong": "Wrong", "error": "Errors", "by chance": "Wrong by chance"}
    tables = []
    for kind, title in titles.items():
        lines = [
            [
                each[0]["row"],
                str(len(each)),
                each[0]["why"],
                each[0]["told"],
                each[0]["command"],
            ]
            for (of, _), each in sorted(groups.items(), key=lambda item: -len(item[1]))
            if of == kind
        ]
        if lines:
            tables.append(
                Table(
                    title,
                    ["Evidence and claim", "Times", "The first", "Of", "Again"],
                    lines,
                )
            )
    return tables


def replay(seed: int, number: int) -> tuple[str, bool]:
    """Run one case, and return its statements and errors in words."""
    case = carried_out(seed, number)
    lines = [f"case {number}, seed {seed}: {case.told}"]
    for shown in case.shown:
        if isinstance(shown, AuditResult):
            lines += [f"  {e.kind}: {e.verdict}: {e.statement}" for e in shown.evidence]
            lines.append(f"  in all: {shown.verdict}: {shown.summary}")
        else:
            lines.append(f"  {shown}")
    lines += [
        f"{said.row}: {said.verdict}{': WRONG: ' + said.wrong if said.wrong else ''}"
        for said in case.said
    ]
    return "\n".join(lines), any(said.wrong for said in case.said)


PART = Part("verdicts", "Verdicts against the truth", units, view)
