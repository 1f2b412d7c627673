"""Are broken trainers found from the pair that a user would give, by ``audit_training`` as it is called without options?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec

from auditdp import audit_training
from auditdp.record.details import GameDetails
from benchmarks.parts import Bar, Options, Result, Table, median
from benchmarks.trainer_cases import TRAINERS

BROKEN, CORRECT = "broken trainer, ", "correct trainer alone, "
SEEDS = 10
"""Games of each correct trainer; each broken one has one."""
FOUND, SOON, TRAININGS, SECONDS = 18, 13, 100, 30.0
"""Of twenty broken trainers, so many are to be found, and so many within these trainings and CPU seconds."""


def found(name: str, seed: int) -> Result:
    """Audit a trainer and say what came of it."""
    trainer, started = TRAINERS[name], time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch and Opacus about tiny models
        result = audit_training(trainer.train, trainer.claim, trainer.pair, seed=seed)
    (evidence,) = result.evidence
    assert isinstance(evidence.details, GameDetails)
    traced = evidence.details.trace
    lines = {finding.line for finding in traced.findings} if traced else set()
    return {
        "verdict": result.verdict.value,
        "trainings": result.calls,
        "refuted_at": evidence.details.refuted_at,
        "traced": traced.runs if traced else 0,
        "named": not lines.isdisjoint(trainer.lines),
        "said": traced.findings[0].sentence if traced and traced.findings else "",
        "cpu_seconds": time.process_time() - started,
    }


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit for each game; those of libraries that are not there are left out."""
    made: dict[str, partial[Result]] = {}
    for name, trainer in TRAINERS.items():
        if trainer.needs and find_spec(trainer.needs) is None:
            continue
        kind, games = (
            (BROKEN, 1)
            if trainer.is_broken
            else (CORRECT, 1 if options.quick else SEEDS)
        )
        for k in range(options.repeats or games):
            made[f"{kind}{name}/{k}"] = partial(found, name, options.seed + k)
    return made


def bars(groups: Mapping[str, list[Result]]) -> list[Bar]:
    """Count findings, their speed, and accusations."""
    broken = [
        run
        for row, runs in groups.items()
        if row.startswith(BROKEN)
        for run in runs[:1]
    ]
    correct = [
        run for row, runs in groups.items() if row.startswith(CORRECT) for run in runs
    ]
    hits = [run for run in broken if run["verdict"] == "VIOLATED"]
    soon = [
        run
        for run in hits
        if run["trainings"] <= TRAININGS and run["cpu_seconds"] <= SECONDS
    ]
    false = sum(run["verdict"] == "VIOLATED" for run in correct)
    named = sum(run["named"] for run in broken)
    whole = len(broken) == sum(trainer.is_broken for trainer in TRAINERS.values())
    return [
        Bar(
            f"Broken trainers, from an ordinary pair: ≥ {FOUND} of 20 are found, ≥ {SOON} of them within {TRAININGS:,} "
            f"trainings and {SECONDS:g} CPU s",
            len(hits) >= FOUND and len(soon) >= SOON if whole else None,
            f"{len(hits)} of {len(broken)}, {len(soon)} of them so soon; the line of the mistake is named for {named}",
        ),
        Bar(
            f"Correct trainers, ten games each: none accused in {SEEDS} seeds",
            false == 0
            if false or len(correct) == SEEDS * (len(TRAINERS) - 20)
            else None,
            f"{false} of {len(correct)} games",
        ),
    ]


def tables(groups: Mapping[str, list[Result]]) -> list[Table]:
    """Return the outcome of each trainer."""
    lines = []
    for row, runs in groups.items():
        if row.startswith((BROKEN, CORRECT)):
            hits = sum(run["verdict"] == "VIOLATED" for run in runs)
            trainings, seconds = (
                median([run["trainings"] for run in runs]),
                median([run["cpu_seconds"] for run in runs]),
            )
            named = "yes" if all(run["named"] for run in runs) else "–"
            lines.append(
                [
                    row,
                    f"{hits} of {len(runs)}",
                    f"{trainings:,.0f}",
                    f"{seconds:.1f}",
                    named,
                    runs[0]["said"],
                ]
            )
    heads = [
        "Trainer",
        "Refuted",
        "Trainings",
        "CPU s",
        "Line named",
        "What the trace says",
    ]
    note = "The pair that a user would give, and no options. All trainings count, those of the trace and the search, too."
    return [Table("Trainers as they are written", heads, lines, note=note)]
