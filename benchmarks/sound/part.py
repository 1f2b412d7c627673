"""False statements of the auditor about mechanisms with known privacy.

Correct mechanisms have exact claims: no bound may lie below one, no sentence may be certain that it fails, and no audit may
refute it. No bound may lie below the known loss of a leaky mechanism. No harmless change may fail a check, and no right
declaration of a sensitivity may be refuted. What is found of the others is counted beside it: silence is no merit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.parts import Bar, Options, Part, Result, Results, Table, View
from benchmarks.sound import measuring
from benchmarks.sound.calibrated import RIGHT, WRONG
from benchmarks.sound.case import Known
from benchmarks.sound.changes import CHANGES, Change
from benchmarks.sound.correct import CORRECT
from benchmarks.sound.leaky import LEAKY

SEEDS = 3
CALLS, COMPARED_CALLS = 500, 2_000
QUICK_CALLS, QUICK_COMPARED_CALLS = 40, 200
FALSE_BOUNDS = 0.075
"""Share of leaky mechanisms of which a stated bound may be too small: limits that the documentation names."""
FALSE_SENTENCES = 0.02
"""Share of correct mechanisms of which a bound may be too small, or a sentence certain that the claim fails."""
MECHANISMS: Mapping[str, Mapping[str, Known]] = {
    "correct": {known.name: known for known in CORRECT},
    "leaky": {known.name: known for known in LEAKY},
    "calibrated": {known.name: known for known in RIGHT},
    "miscalibrated": {known.name: known for known in WRONG},
}
VERSIONS: Mapping[str, Mapping[str, Change]] = {
    "harmless": {change.name: change for change in CHANGES if not change.worse},
    "worse": {change.name: change for change in CHANGES if change.worse},
}
KINDS: Mapping[str, Mapping[str, Known | Change]] = {**MECHANISMS, **VERSIONS}


def units(options: Options) -> dict[str, Callable[[], Result]]:
    """Every case once; ``repeats`` are seeds of its traces."""
    seeds = options.repeats or (1 if options.quick else SEEDS)
    return {
        f"{kind}: {name}": partial(
            measured, kind, name, options.seed, seeds, quick=options.quick
        )
        for kind, cases in KINDS.items()
        for name in cases
    }


def measured(
    kind: str, name: str, seed: int, seeds: int, *, quick: bool = False
) -> Result:
    """Return the statements about one case.

    Returns:
        ``bounds`` that are too small, ``certain`` sentences against a correct mechanism, whether an audit or a check
        ``accuses``, whether a comparison saw another law (``changed``), and the ``statement`` that an audit ends with.
    """
    found: Result = {
        "bounds": [],
        "certain": [],
        "accuses": False,
        "changed": False,
        "statement": "",
    }
    calls, compared_calls = (
        (QUICK_CALLS, QUICK_COMPARED_CALLS) if quick else (CALLS, COMPARED_CALLS)
    )
    if kind in VERSIONS:
        change = VERSIONS[kind][name]
        compared = measuring.versions(
            change.old, change.new, seed, compared_calls, calls
        )
        return found | {
            "accuses": compared.is_caught,
            "changed": compared.changed,
            "statement": compared.statement,
        }
    known = MECHANISMS[kind][name]
    if kind in ("correct", "leaky"):
        stated = measuring.stated(known, range(seed, seed + seeds))
        found["bounds"] = stated.too_small(known.truth)
        found["certain"] = list(stated.certain)
    if kind == "leaky":
        return found
    judged = measuring.judged(known, seed, calls)
    return found | {
        "accuses": judged.accuses,
        "statement": f"{judged.verdict}: {judged.statement}",
    }


@dataclass(frozen=True)
class FalseStatement:
    """A kind of statement that is false of every case of one kind.

    Attributes:
        what: What it is, in words.
        kind: The kind of cases.
        share: Share of them of which it may be made.
        of: Returns the statement of a case by its name and result; empty where none was made.
    """

    what: str
    kind: str
    share: float
    of: Callable[[str, Result], str]

    def made(self, results: Results) -> dict[str, str]:
        """Return the statements that were made, by the name of the case."""
        found = {
            name: self.of(name, run)
            for name, run in _of_kind(results, self.kind).items()
        }
        return {name: statement for name, statement in found.items() if statement}

    def bar(self, results: Results) -> Bar:
        """Return the number of cases with such a statement, and whether it is acceptable."""
        number, made = len(_of_kind(results, self.kind)), len(self.made(results))
        most = int(self.share * number)
        return Bar(f"{self.what}: ≤ {most}", made <= most, f"{made} of {number}")


def _too_small(kind: str) -> Callable[[str, Result], str]:
    def of(name: str, run: Result) -> str:
        truth = MECHANISMS[kind][name].truth
        return (
            f"at most {min(run['bounds']):.6g}; the truth is {truth:.6g}"
            if run["bounds"]
            else ""
        )

    return of


def _if(key: str) -> Callable[[str, Result], str]:
    return lambda _, run: run["statement"] if run[key] else ""


FALSE_STATEMENTS = (
    FalseStatement(
        "Bounds below the loss of leaky mechanisms",
        "leaky",
        FALSE_BOUNDS,
        _too_small("leaky"),
    ),
    FalseStatement(
        "Bounds below the claim of correct mechanisms",
        "correct",
        FALSE_SENTENCES,
        _too_small("correct"),
    ),
    FalseStatement(
        "Certain sentences against correct mechanisms",
        "correct",
        FALSE_SENTENCES,
        lambda _, run: next(iter(run["certain"]), ""),
    ),
    FalseStatement("Refutations of correct mechanisms", "correct", 0.0, _if("accuses")),
    FalseStatement("Accusations of harmless changes", "harmless", 0.0, _if("accuses")),
    FalseStatement(
        "Harmless changes whose law is seen to change", "harmless", 0.0, _if("changed")
    ),
    FalseStatement(
        "Refutations of right calibrations", "calibrated", 0.0, _if("accuses")
    ),
)


def _of_kind(results: Results, kind: str) -> dict[str, Result]:
    start = f"{kind}: "
    return {
        key.removeprefix(start): run
        for key, run in results.items()
        if key.startswith(start)
    }


def view(results: Results) -> View:
    """Count false statements and findings."""
    bars = [false.bar(results) for false in FALSE_STATEMENTS]
    tables = [
        Table(false.what, ["Case", "Statement"], [list(row) for row in made.items()])
        for false in FALSE_STATEMENTS
        if (made := false.made(results))
    ]
    for kind, what in (
        ("worse", "Worse changes that fail a check"),
        ("miscalibrated", "Wrong calibrations refuted"),
    ):
        runs = _of_kind(results, kind)
        missed = {name: run for name, run in runs.items() if not run["accuses"]}
        changed = sum(run["changed"] for run in missed.values())
        seen = (
            f"; of the others the law is seen to change in {changed}" if missed else ""
        )
        bars.append(Bar(what, None, f"{len(runs) - len(missed)} of {len(runs)}{seen}"))
        if missed:
            rows = [[name, run["statement"]] for name, run in missed.items()]
            tables.append(Table(f"Not among: {what}", ["Case", "Statement"], rows))
    return View(bars, tables)


PART = Part("sound", "False statements", units, view)
