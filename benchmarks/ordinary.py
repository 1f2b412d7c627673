"""Does an audit with default settings judge code as engineers write it?

Sixty mechanisms that nobody wrote for an audit: forty with one fault each (``ordinary_noise.py``, ``ordinary_outputs.py``),
and twenty that are exactly as private as they say (``ordinary_correct.py``). The broken ones are audited once, the correct
ones with several seeds, each by ``auditdp.check`` with the calls of the budget `standard` and nothing chosen; and all sixty
once by ``auditdp.assert_private``, as in an ordinary test, with its own calls and its own α.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from auditdp import assert_private, check
from auditdp.errors import AuditError, PrivacyViolation
from auditdp.record.budget import BUDGETS
from auditdp.record.results import REFUTATIONS, AuditResult, Verdict
from auditdp.report.numbers import number
from benchmarks.ordinary_case import Case
from benchmarks.ordinary_correct import CORRECT
from benchmarks.ordinary_noise import NOISE
from benchmarks.ordinary_outputs import OUTPUTS
from benchmarks.parts import (
    ALPHA,
    Bar,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    grouped,
    median,
)

BROKEN: Sequence[Case] = (*NOISE, *OUTPUTS)
CASES = {case.name: case for case in (*BROKEN, *CORRECT)}
ERROR = "ERROR"
ASSERTED = "as an assertion"
SEEDS = 20
WANTED = 38
"""Broken mechanisms that should be found, of forty."""


def judge(case: Case, seed: int, *, calls: int | None = BUDGETS["standard"]) -> Result:
    """Audit one mechanism as anybody would who knows no settings.

    Args:
        case: The mechanism.
        seed: Root seed.
        calls: Calls of ``check``; None for ``assert_private`` as it is.

    Returns:
        ``verdict`` (a Verdict or ERROR), ``statement`` (what the audit says of it), ``calls`` that were made (None after an
        error), ``refuted_at`` (calls of the game until the claim fell, or None), and ``cpu_seconds``.
    """
    started = time.process_time()
    try:
        result = _asserted(case, seed) if calls is None else _checked(case, seed, calls)
    except AuditError as error:
        found: Result = {
            "verdict": ERROR,
            "statement": str(error),
            "calls": None,
            "refuted_at": None,
        }
    else:
        games = [
            evidence.details.refuted_at
            for evidence in result.evidence
            if evidence.kind == "game"
        ]
        found = {
            "verdict": result.verdict.value,
            "statement": result.summary,
            "calls": result.calls,
            "refuted_at": next(iter(games), None),
        }
    return found | {"cpu_seconds": time.process_time() - started}


def _checked(case: Case, seed: int, calls: int) -> AuditResult:
    return check(
        case.mechanism, case.claim, case.pairs, calls=calls, alpha=ALPHA, seed=seed
    )


def _asserted(case: Case, seed: int) -> AuditResult:
    try:
        return assert_private(case.mechanism, case.claim, case.pairs, seed=seed)
    except PrivacyViolation as violation:
        refuted: AuditResult = violation.result
        return refuted


def is_found(case: Case, run: Result) -> bool:
    """Return True if an audit refuted the claim, or refused dependent calls."""
    refused = (
        run["verdict"] == ERROR
        and bool(case.refusal)
        and case.refusal in run["statement"]
    )
    return refused or is_accused(run)


def is_accused(run: Result) -> bool:
    """Return True if an audit objects to the claim or its noise."""
    return run["verdict"] != ERROR and Verdict(run["verdict"]) in REFUTATIONS


def _unit(name: str, seed: int, calls: int | None) -> Result:
    return judge(CASES[name], seed, calls=calls)


def units(options: Options) -> dict[str, partial[Result]]:
    """One audit and one assertion of every mechanism; ``repeats`` are seeds of every correct one's audits."""
    calls = BUDGETS["standard"] // (10 if options.quick else 1)
    seeds = options.repeats or (2 if options.quick else SEEDS)
    made = {
        case.name: partial(_unit, case.name, options.seed, calls) for case in BROKEN
    }
    for k in range(seeds):
        for case in CORRECT:
            made[f"{case.name}/{k}"] = partial(
                _unit, case.name, options.seed + k, calls
            )
    return made | {
        f"{ASSERTED}: {name}": partial(_unit, name, options.seed, None)
        for name in CASES
    }


def view(results: Results) -> View:
    """Count findings and accusations, and name the missed cases."""
    groups = grouped(results)
    broken = {case.name: groups[case.name][0] for case in BROKEN if case.name in groups}
    correct = {case.name: groups[case.name] for case in CORRECT if case.name in groups}
    asserted = {
        name: groups[key][0]
        for name in CASES
        if (key := f"{ASSERTED}: {name}") in groups
    }
    missed = [name for name, run in broken.items() if not is_found(CASES[name], run)]
    tables = [
        Table(
            "Broken ordinary code",
            [
                "Mechanism",
                "Fault",
                "Claim",
                "True level",
                "Verdict",
                "Calls until refuted",
                "CPU s",
                ASSERTED.capitalize(),
            ],
            [
                _line(CASES[name], run, asserted.get(name))
                for name, run in broken.items()
            ],
            note=f"One audit each at α = {ALPHA:g}. The true level is that on the pairs that the audit was given. An "
            "assertion has fewer calls and a far smaller α, so that it fails by chance once in a million tests.",
        ),
        Table(
            "Broken ordinary code that was missed",
            ["Mechanism", "What is wrong", "What the audit says"],
            [
                [
                    name,
                    CASES[name].why,
                    f"{broken[name]['verdict']}: {broken[name]['statement']}",
                ]
                for name in missed
            ],
        ),
        Table(
            "Correct ordinary code",
            [
                "Mechanism",
                "Claim",
                "Why it holds",
                "Audits",
                "Accused",
                "Verdicts",
                "CPU s an audit",
                ASSERTED.capitalize(),
            ],
            [
                _correct_line(CASES[name], runs, asserted.get(name))
                for name, runs in correct.items()
            ],
        ),
    ]
    bars = [_found_bar(broken, missed), _accused_bar(correct), _asserted_bar(asserted)]
    return View(bars, [table for table in tables if table.rows])


def _found_bar(broken: Mapping[str, Result], missed: Sequence[str]) -> Bar:
    text = f"{len(broken) - len(missed)} of {len(broken)} found" + (
        f"; missed: {'; '.join(missed)}" if missed else ""
    )
    met = len(broken) - len(missed) >= WANTED if len(broken) == len(BROKEN) else None
    return Bar(
        f"Broken ordinary code: ≥ {WANTED} of {len(BROKEN)} found at `standard` in default settings",
        met,
        text,
    )


def _accused_bar(correct: Mapping[str, Sequence[Result]]) -> Bar:
    audits = [run for runs in correct.values() for run in runs]
    accused = [name for name, runs in correct.items() if any(map(is_accused, runs))]
    errors = [
        name
        for name, runs in correct.items()
        if any(run["verdict"] == ERROR for run in runs)
    ]
    text = f"{sum(map(is_accused, audits))} of {len(audits)} audits accuse" + (
        f": {'; '.join(accused)}" if accused else ""
    )
    text += f"; not audited, but an error: {'; '.join(errors)}" if errors else ""
    complete = len(correct) == len(CORRECT) and all(
        len(runs) >= SEEDS for runs in correct.values()
    )
    met = not accused and not errors if complete else None
    return Bar(
        f"Correct ordinary code: all {len(CORRECT)} audited and none accused, {SEEDS} seeds each",
        met,
        text,
    )


def _asserted_bar(asserted: Mapping[str, Result]) -> Bar:
    failing = sum(
        is_found(case, asserted[case.name]) for case in BROKEN if case.name in asserted
    )
    wrong = [
        case.name
        for case in CORRECT
        if case.name in asserted and _ended(asserted[case.name]) != "passes"
    ]
    met = not wrong if len(asserted) == len(CASES) else None
    text = f"{failing} of {len(BROKEN)} broken ones fail; of {len(CORRECT)} correct ones {len(wrong)} do"
    text += f": {'; '.join(wrong)}" if wrong else ""
    return Bar(
        "The same through `assert_private`, nothing chosen: every correct one passes",
        met,
        text,
    )


def _ended(run: Result) -> str:
    """Return the outcome of an assertion."""
    return (
        "error"
        if run["verdict"] == ERROR
        else "fails"
        if run["verdict"] == Verdict.VIOLATED
        else "passes"
    )


def _line(case: Case, run: Result, asserted: Result | None) -> list[str]:
    refuted_at = "–" if run["refuted_at"] is None else f"{run['refuted_at']:,}"
    verdict = run["verdict"] if is_found(case, run) else f"{run['verdict']} (missed)"
    return [
        case.name,
        case.fault,
        str(case.claim),
        number(case.level),
        verdict,
        refuted_at,
        f"{run['cpu_seconds']:.1f}",
        "not run" if asserted is None else _ended(asserted),
    ]


def _correct_line(
    case: Case, runs: Sequence[Result], asserted: Result | None
) -> list[str]:
    verdicts = ", ".join(
        f"{count} {verdict}"
        for verdict, count in Counter(run["verdict"] for run in runs).items()
    )
    accused, seconds = (
        sum(map(is_accused, runs)),
        median([run["cpu_seconds"] for run in runs]),
    )
    ended = "not run" if asserted is None else _ended(asserted)
    return [
        case.name,
        str(case.claim),
        case.why,
        str(len(runs)),
        str(accused),
        verdicts,
        f"{seconds:.1f}",
        ended,
    ]


PART = Part("ordinary", "Ordinary code", units, view)
