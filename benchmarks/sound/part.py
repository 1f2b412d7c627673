"""Does the auditor state anything false about mechanisms whose privacy is known?

Correct mechanisms have exact claims: no bound may lie below one, no sentence may be certain that it fails, and no audit may
refute it. No bound may lie below the known loss of a leaky mechanism. No harmless change may fail a check, and no right
declaration of a sensitivity may be refuted. What is found of the others is counted beside it: silence is no merit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
"""Share of correct mechanisms of which a sentence may be certain that the claim fails."""
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
        f"{kind}: {name}": partial(measured, kind, name, options.seed, seeds, quick=options.quick)
        for kind, cases in KINDS.items()
        for name in cases
    }


def measured(kind: str, name: str, seed: int, seeds: int, *, quick: bool = False) -> Result:
    """Return what is stated about one case.

    Returns:
        ``bounds`` that are too small, ``certain`` sentences against a correct mechanism, whether an audit or a check
        ``accuses``, whether a comparison saw another law (``changed``), and the ``statement`` that an audit ends with.
    """
    found: Result = {"bounds": [], "certain": [], "accuses": False, "changed": False, "statement": ""}
    calls, compared_calls = (QUICK_CALLS, QUICK_COMPARED_CALLS) if quick else (CALLS, COMPARED_CALLS)
    if kind in VERSIONS:
        change = VERSIONS[kind][name]
        compared = measuring.versions(change.old, change.new, seed, compared_calls, calls)
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
    return found | {"accuses": judged.accuses, "statement": f"{judged.verdict}: {judged.statement}"}


def false_statements(results: Results) -> dict[str, dict[str, str]]:
    """Return what was stated falsely, by what it is and by the name of the case, with the statement."""
    by_kind = {kind: _of_kind(results, kind) for kind in KINDS}
    return {
        "bounds below the loss of leaky mechanisms": _too_small(by_kind["leaky"], LEAKY),
        "bounds below the claim of correct mechanisms": _too_small(by_kind["correct"], CORRECT),
        "certain sentences against correct mechanisms": {
            name: run["certain"][0] for name, run in by_kind["correct"].items() if run["certain"]
        },
        "refutations of correct mechanisms": _accused(by_kind["correct"]),
        "accusations of harmless changes": _accused(by_kind["harmless"]),
        "harmless changes whose law is seen to change": {
            name: run["statement"] for name, run in by_kind["harmless"].items() if run["changed"]
        },
        "refutations of right calibrations": _accused(by_kind["calibrated"]),
    }


def _of_kind(results: Results, kind: str) -> dict[str, Result]:
    start = f"{kind}: "
    return {key.removeprefix(start): run for key, run in results.items() if key.startswith(start)}


def _too_small(runs: Results, cases: Sequence[Known]) -> dict[str, str]:
    truths = {known.name: known.truth for known in cases}
    return {
        name: f"at most {min(run['bounds']):.6g}; the truth is {truths[name]:.6g}"
        for name, run in runs.items()
        if run["bounds"]
    }


def _accused(runs: Results) -> dict[str, str]:
    return {name: run["statement"] for name, run in runs.items() if run["accuses"]}


def allowed(what: str, cases: int) -> int:
    """Return how many cases of a kind may have a false statement."""
    share = FALSE_BOUNDS if "leaky" in what else FALSE_SENTENCES if "sentences" in what or "bounds" in what else 0.0
    return int(share * cases)


def cases_of(what: str, results: Results) -> int:
    """Return how many cases a kind of statement was looked for in."""
    kind = "leaky" if "leaky" in what else "harmless" if "harmless" in what else "calibrated"
    return len(_of_kind(results, "correct" if "correct" in what else kind))


def view(results: Results) -> View:
    """Count what was stated falsely, and what was found."""
    bars, tables = [], []
    for what, names in false_statements(results).items():
        number = cases_of(what, results)
        most = allowed(what, number)
        bars.append(Bar(f"{what[0].upper()}{what[1:]}: ≤ {most}", len(names) <= most, f"{len(names)} of {number}"))
        if names:
            tables.append(
                Table(what[0].upper() + what[1:], ["Case", "Statement"], [list(row) for row in names.items()])
            )
    for kind, what in (("worse", "Worse changes that fail a check"), ("miscalibrated", "Wrong calibrations refuted")):
        runs = _of_kind(results, kind)
        missed = {name: run for name, run in runs.items() if not run["accuses"]}
        changed = sum(run["changed"] for run in missed.values())
        seen = f"; of the others the law is seen to change in {changed}" if missed else ""
        bars.append(Bar(what, None, f"{len(runs) - len(missed)} of {len(runs)}{seen}"))
        if missed:
            rows = [[name, run["statement"]] for name, run in missed.items()]
            tables.append(Table(f"Not among: {what[0].lower()}{what[1:]}", ["Case", "Statement"], rows))
    return View(bars, tables)


PART = Part("sound", "False statements", units, view)
