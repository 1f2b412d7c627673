"""The cost of honesty in words: sentences and two tables for each paper, and the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from auditdp.report.numbers import MISSING, count, number
from gnn.experiments.agreement import DEVIATIONS, FEW
from gnn.experiments.catalogue.honesty import EPSILONS, NO_DATA, PAPERS
from gnn.experiments.cost import (
    AGREES,
    ALPHA,
    DIFFERS,
    EXPLAINED,
    OUTCOMES,
    Difference,
    Line,
    accuracy,
    paired,
)
from gnn.experiments.experiment import FORM, PUBLISHED, REPAIRED
from gnn.experiments.grid import canonical, settings
from gnn.experiments.privacy import Ledger, supported
from gnn.experiments.summary import FEWEST, Row, Summary, constant
from gnn.experiments.words import counted, joined

FORMS = {PUBLISHED: "As published", REPAIRED: "Repaired"}


def sentence(found: Sequence[Line]) -> str:
    """Return a sentence for a paper: the accuracy that its repair costs."""
    costs = [(line.epsilon, line.cost) for line in found if line.cost]
    if not costs:
        return "Our audits refute no printed ε, so that nothing has to be repaired."
    parts = []
    for epsilon in EPSILONS:
        mine = [cost for at, cost in costs if at == epsilon and cost.enough]
        if mine:
            mean = round(float(np.mean([cost.mean for cost in mine])), 3)
            parts.append(
                f"{number(mean or 0.0)} at ε = {number(epsilon)} ({_seen(mine)})"
            )
    if not parts:
        return f"The cost of keeping the printed ε is open: fewer than {FEWEST} seeds."
    return f"Keeping the printed ε costs an accuracy of {' and '.join(parts)}."


def details(paper: str, found: Sequence[Line]) -> list[str]:
    """Return what else there is to say of a paper, a statement each."""
    return [
        *_worth(found),
        *_less(paper, found),
        *_ranking(found),
        *_numbers(found),
        *_without_privacy(found),
        *_constant(found),
        *_few(found),
        *filter(None, [PAPERS[paper].remark]),
    ]


def _seen(differences: Sequence[Difference]) -> str:
    """Return the number of rows and of those whose difference a test confirms."""
    seen = sum(each.seen for each in differences)
    if len(differences) == 1:
        return f"one row, p {'<' if seen else '≥'} {ALPHA:g}"
    if seen in (0, len(differences)):
        return f"{len(differences)} rows, p {'<' if seen else '≥'} {ALPHA:g}"
    return f"{len(differences)} rows, {seen} with p < {ALPHA:g}"


def _rows(some: int, differences: Sequence[Difference]) -> str:
    if not some:
        return "in no row"
    if len(differences) == 1:
        return "in its one row"
    return f"in {some} of {len(differences)} rows"


def _worth(found: Sequence[Line]) -> list[str]:
    parts = []
    for form, name in FORMS.items():
        rows = [
            line.published if form == PUBLISHED else line.repaired for line in found
        ]
        gains = [
            gain
            for line, row in zip(found, rows, strict=True)
            if (gain := line.gain(row)) and gain.enough
        ]
        if gains:
            better, worse = _signs(gains)
            parts.append(
                f"{name}, it is better than not using the protected data {_rows(better, gains)}, "
                f"and worse {_rows(worse, gains)}."
            )
    return parts


def _less(paper: str, found: Sequence[Line]) -> list[str]:
    """Compare with the row that leaves a part of the data unused at the same ε."""
    name, unused = PAPERS[paper].leaves
    differences = [
        paired(accuracy(line.beside[name]), accuracy(line.published))
        for line in found
        if name in line.beside
    ]
    tested = [each for each in differences if each.enough]
    if not tested:
        return []
    above, below = _signs(tested)
    return [
        f"“{_capital(name)}” does not use {unused} at the same ε. It is better than the published form "
        f"{_rows(above, tested)}, and worse {_rows(below, tested)}."
    ]


def _ranking(found: Sequence[Line]) -> list[str]:
    """Return the comparison with RR of a paper that plots itself above RR."""
    parts = []
    for line in found:
        if "RR" not in line.beside:
            continue
        against = paired(accuracy(line.published), accuracy(line.beside["RR"]))
        word = ("above" if against.mean > 0 else "below") if against.seen else ""
        at = f"{line.data} at ε = {number(line.epsilon)}"
        result = (
            f"{word} RR by {number(abs(against.mean), 2)}"
            if word
            else "not told apart from RR"
        )
        p = f" (p = {number(against.p, 2)})" if against.p is not None else ""
        parts.append(f"Ours is {result}{p} on {at}.")
        if word == "below":
            parts += _below(line)
    return [f"The paper plots {found[0].method} above RR.", *parts] if parts else []


def _below(line: Line) -> list[str]:
    """Return whether the reading that may explain a rank below RR does."""
    name, words = PAPERS[line.paper].explains
    known = line.beside.get(name)
    if known is None:
        return []
    rest = paired(accuracy(known), accuracy(line.beside["RR"]))
    closes = not rest.seen or rest.mean > 0
    verb = "explains" if closes else "does not explain"
    return [f"{_capital(words)} {verb} it: with {name}, the difference is {rest.text}."]


def _numbers(found: Sequence[Line]) -> list[str]:
    """Return the printed numbers of the figure by outcome, those that differ by name."""
    outcomes = Counter(line.outcome for line in found if line.outcome)
    if not outcomes:
        return []
    named = {
        AGREES: f"within {DEVIATIONS} sd of ours",
        EXPLAINED: f"within {DEVIATIONS} sd of another reading alone",
        DIFFERS: f"more than {DEVIATIONS} sd from ours",
        FEW: f"of fewer than {FEWEST} seeds",
    }
    parts = counted(*((outcomes[each], named[each]) for each in OUTCOMES))
    parts = [
        f"Of {count(outcomes.total(), 'printed number')} in the picture, {joined(parts)}."
    ]
    for line in found:
        if line.outcome in (EXPLAINED, DIFFERS):
            parts.append(
                f"{_place(line)}: {number(accuracy(line.published).mean, 3)} against the printed "
                f"{number(line.printed or 0.0, 3)}.{_tests(line)}"
            )
    return parts


def _tests(line: Line) -> str:
    """Return the readings that were tried for a number that differs."""
    found = line.explanation
    tried = [found] if found else line.readings
    return "".join(
        f" With {each.words} it is {_shown(each.row)} ({_seeds(each.row)})."
        for each in tried
    )


def _without_privacy(found: Sequence[Line]) -> list[str]:
    """Compare the rows without privacy with the printed ones."""
    clean = {
        line.data: line.clean
        for line in found
        if line.clean and accuracy(line.clean).published
    }
    return [
        f"Without privacy it is {_shown(row)} on {data} ({_seeds(row)}), where {number(known.mean, 3)} is printed."
        for data, row in clean.items()
        if (known := accuracy(row).published)
    ]


def _constant(found: Sequence[Line]) -> list[str]:
    notes = [
        constant(row)
        for line in found
        for row in (line.published, line.repaired)
        if row
    ]
    if not any(notes):
        return []
    always = notes.count("constant predictor")
    some = sum(map(bool, notes)) - always
    return [
        f"Of {len(notes)} rows of either form, {always} predict one class for all nodes in every seed, and {some} in some "
        "seeds."
    ]


def _few(found: Sequence[Line]) -> list[str]:
    places = [_place(line) for line in found if line.cost and not line.cost.enough]
    if not places:
        return []
    return [
        f"With fewer than {FEWEST} seeds, no cost is stated for {'; '.join(places)}."
    ]


def _seeds(row: Row) -> str:
    return str(count(row.repetitions, "seed"))


def _place(line: Line) -> str:
    return f"{line.method} on {line.data} at ε = {number(line.epsilon)}"


def _signs(differences: Sequence[Difference]) -> tuple[int, int]:
    """Return the numbers of positive and of negative differences, as tested."""
    above = sum(each.seen and each.mean > 0 for each in differences)
    return above, sum(each.seen for each in differences) - above


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


Table = tuple[list[str], list[list[str]]]
"""Names of columns, and rows of text."""
PLACE = ("data", "mechanism", "ε")
ACCURACY = (
    "paper",
    "published",
    "repaired",
    "best without the data",
    "non-private",
)
DIFFERENCES = (
    "audits of the published form",
    "audits of the repaired form",
    "repair costs",
    "gain, published",
    "gain, repaired",
    "beside, same ε",
)


def tables(found: Sequence[Line], ledger: Ledger, *, seeds: int) -> tuple[Table, Table]:
    """Return the accuracies, and the differences with the statements of the audits, a row for each line.

    A column without an entry is left out. Seeds are named where they are fewer than were planned.
    """

    def shown(row: Row | None) -> str:
        return MISSING if row is None else _shown(row) + _fewer(row, seeds)

    def beside(row: Row | None) -> str:
        printed = accuracy(row).published if row else None
        return shown(row) + (f", printed {number(printed.mean, 3)}" if printed else "")

    accuracies, differences = [], []
    for line in found:
        place = [line.data, line.method, number(line.epsilon)]
        best = line.best_unused
        accuracies.append(
            [
                *place,
                MISSING
                if line.printed is None
                else f"{line.printed:.3g} ({line.outcome})",
                shown(line.published),
                shown(line.repaired),
                f"{shown(best[1])} ({best[0]})" if best else MISSING,
                beside(line.clean),
            ]
        )
        gains = (line.cost, line.gain(line.published), line.gain(line.repaired))
        others = [f"{beside(row)} ({name})" for name, row in line.beside.items()]
        differences.append(
            [
                *place,
                _audits(line.published, ledger),
                _audits(line.repaired, ledger),
                *(each.text if each else MISSING for each in gains),
                "; ".join(others) or MISSING,
            ]
        )
    return _filled((*PLACE, *ACCURACY), accuracies), _filled(
        (*PLACE, *DIFFERENCES), differences
    )


def _filled(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Leave out columns without an entry."""
    kept = [k for k in range(len(columns)) if any(row[k] != MISSING for row in rows)]
    return [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]


def _audits(row: Row | None, ledger: Ledger) -> str:
    """Return the statement of the audits, without their names."""
    return supported(row.guarantee, ledger).partition(" (")[0] if row else MISSING


def _fewer(row: Row, seeds: int) -> str:
    return f", {_seeds(row)}" if row.repetitions < seeds else ""


def _shown(row: Row) -> str:
    found = accuracy(row)
    spread = f" ± {number(found.sd, 1)}" if found.sd else ""
    note = constant(row)
    return (
        number(found.mean, 3)
        + spread
        + (f", {note}" if note and row.parameters["epsilon"] != NO_DATA else "")
    )


def lacking(content: Summary) -> str:
    """Return the data sets whose rows have fewer seeds than planned, with the numbers."""
    planned = content.experiment.repetitions[content.profile]
    recorded = {canonical(row.parameters): row.repetitions for row in content.rows}
    places: dict[str, Counter[int]] = {}
    for setting in settings(content.experiment, content.profile):
        seeds = recorded.get(canonical(setting), 0)
        places.setdefault(f"{setting['paper']} on {setting['data']}", Counter()).update(
            [seeds]
        )
    parts = []
    for place, found in places.items():
        few = [
            f"{seeds or 'none'} in {rows}"
            for seeds, rows in sorted(found.items())
            if seeds < planned
        ]
        parts += (
            [f"{place} {', '.join(few)} of {count(found.total(), 'row')}"]
            if few
            else []
        )
    return f"Fewer than {count(planned, 'seed')}: {'; '.join(parts)}." if parts else ""


def devices(content: Summary) -> str:
    """Return the devices that computed the rows of each paper."""
    parts = []
    for paper in dict.fromkeys(str(row.parameters["paper"]) for row in content.rows):
        mine = [row for row in content.rows if row.parameters["paper"] == paper]
        by_factor = [_devices(mine, factor) for factor in ("paper", "data", FORM)]
        places = next(
            (
                found
                for found in by_factor
                if all(len(at) == 1 for at in found.values())
            ),
            by_factor[0],
        )
        texts = [f"{value} {' and '.join(sorted(at))}" for value, at in places.items()]
        parts.append(texts[0] if paper in places else f"{paper} {', '.join(texts)}")
    return f"Computed on: {'; '.join(parts)}."


def _devices(rows: Iterable[Row], factor: str) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for row in rows:
        value = str(row.parameters.get(factor, PUBLISHED))
        found[value] = found.get(value, frozenset()) | row.devices
    return found


def tests(found: Sequence[Line]) -> int:
    """Return the number of tests behind the table and the sentences."""
    return sum(
        sum(
            each is not None
            for each in (
                line.cost,
                line.gain(line.published),
                line.gain(line.repaired),
            )
        )
        + len(line.beside)
        + len(line.readings)
        for line in found
    )
