"""The cost of honesty in words: a sentence and a table for each paper, and the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from auditdp.report.numbers import MISSING, count, number
from gnn.experiments.catalogue.honesty import EPSILONS, NO_DATA, PAPERS
from gnn.experiments.cost import OUTCOMES, Difference, Line, accuracy, paired
from gnn.experiments.experiment import FORM, PUBLISHED, REPAIRED
from gnn.experiments.grid import canonical, settings
from gnn.experiments.privacy import Ledger, supported
from gnn.experiments.summary import FEWEST, Row, Summary, constant

NAMES = {
    "agrees": "agree",
    "within the range": "within the range of single runs done otherwise",
    "too few seeds": "of too few seeds",
}
"""Names of outcomes in text."""


def sentence(found: Sequence[Line]) -> str:
    """Return a sentence for a paper: agreement, cost of the repair, worth of the data."""
    return f"{_agreement(found)}; {_repairs(found)}{_worth(found)}."


def details(paper: str, found: Sequence[Line]) -> str:
    """Return the counts of a sentence: numbers without agreement, and rows to compare."""
    uncounted = [_place(line) for line in found if line.cost and not line.cost.enough]
    few = (
        f"What a repair costs is not counted of fewer than {FEWEST} seeds: {'; '.join(uncounted)}."
        if uncounted
        else ""
    )
    ranking = _ranking(found) if _ranked(found) else _others(found)
    return " ".join(
        filter(
            None,
            [
                ranking,
                PAPERS[paper].remark,
                _without_privacy(found),
                few,
                _constant(found),
                _less(paper, found),
            ],
        )
    )


def _ranked(found: Sequence[Line]) -> list[Line]:
    return [line for line in found if "RR" in line.beside]


def _agreement(found: Sequence[Line]) -> str:
    if ranked := _ranked(found):
        words = Counter(_against_rr(line)[0] for line in ranked)
        counted = ", ".join(f"{word} RR in {many}" for word, many in words.items())
        return f"Printed above RR, it is {counted} of {count(len(ranked), 'row')}"
    outcomes = Counter(line.outcome for line in found if line.outcome)
    if not outcomes:
        return "No number is printed for data that is here"
    counted = ", ".join(
        f"{outcomes[word]} {NAMES.get(word, word)}"
        for word in OUTCOMES
        if outcomes[word]
    )
    return f"Of {count(outcomes.total(), 'printed number')} {counted}"


def _others(found: Sequence[Line]) -> str:
    """Name the printed numbers without agreement, and the readings that were tried."""
    parts = [
        f"{_capital(NAMES.get(word, word))}: {_places(mine)}."
        for word in OUTCOMES
        if word != "agrees"
        and (mine := [line for line in found if line.outcome == word])
    ]
    return " ".join(parts)


def _without_privacy(found: Sequence[Line]) -> str:
    """Compare the rows without privacy with the printed ones."""
    clean = {
        line.data: line.clean
        for line in found
        if line.clean and accuracy(line.clean).published
    }
    texts = [
        f"{_shown(row)} on {data} ({_seeds(row)}, printed {number(known.mean, 3)})"
        for data, row in clean.items()
        if (known := accuracy(row).published)
    ]
    return f"Without privacy it is {', '.join(texts)}." if texts else ""


def _seeds(row: Row) -> str:
    return str(count(row.repetitions, "seed"))


def _against_rr(line: Line) -> tuple[str, Difference]:
    difference = paired(accuracy(line.published), accuracy(line.beside["RR"]))
    word = "above" if difference.mean > 0 else "below"
    return word if difference.seen else "not told apart from", difference


def _ranking(found: Sequence[Line]) -> str:
    """Return a sentence for DPRR, which prints curves alone: they are above RR."""
    parts = []
    for line in _ranked(found):
        word, difference = _against_rr(line)
        known = line.beside.get(PAPERS[line.paper].explains[0])
        explained = ""
        if word == "below" and known is not None:
            rest = paired(accuracy(known), accuracy(line.beside["RR"]))
            closes = not rest.seen or rest.mean > 0
            explained = (
                f", explained by {PAPERS[line.paper].explains[1]} (tested: DPRR with n known is {rest.text} above RR)"
                if closes
                else f", unexplained (with n known DPRR is still {rest.text} against RR)"
            )
        parts.append(
            f"{word} RR on {line.data} at ε = {number(line.epsilon)} by {difference.text}{explained}"
        )
    return "DPRR is " + "; ".join(parts) + "."


def _places(found: Iterable[Line]) -> str:
    return ", ".join(
        f"{_place(line)} ({number(accuracy(line.published).mean, 3)} against {number(line.printed or 0.0, 3)}{_tests(line)})"
        for line in found
    )


def _tests(line: Line) -> str:
    """Return the readings that were tried for a line without agreement."""
    found = line.explanation
    if found:
        return f"; by {found.words}, tested: {_shown(found.row)}"
    return "".join(
        f"; {each.words}, tested: {_shown(each.row)}, {_seeds(each.row)}"
        for each in line.readings
    )


def _place(line: Line) -> str:
    return f"{line.method} on {line.data} at ε = {number(line.epsilon)}"


def _repairs(found: Sequence[Line]) -> str:
    costs = [(line.epsilon, line.cost) for line in found if line.cost]
    if not costs:
        return "the audits refute no printed ε, so that there is nothing to repair"
    parts = []
    for epsilon in EPSILONS:
        mine = [cost for at, cost in costs if at == epsilon and cost.enough]
        if mine:
            mean = number(float(np.mean([cost.mean for cost in mine])), 2)
            parts.append(f"{mean} at ε = {number(epsilon)} ({_seen(mine)})")
    return (
        f"the repair costs {' and '.join(parts)}"
        if parts
        else "what the repair costs is open"
    )


def _seen(differences: Sequence[Difference]) -> str:
    return f"seen in {sum(each.seen for each in differences)} of {count(len(differences), 'row')}"


def _worth(found: Sequence[Line]) -> str:
    parts = []
    for form in (PUBLISHED, REPAIRED):
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
            but = f", and is worse in {worse}" if worse else ""
            parts.append(
                f"; the {form} form beats not using the data in {better} of {count(len(gains), 'row')}{but}"
            )
    return "".join(parts)


def _constant(found: Sequence[Line]) -> str:
    notes = [
        constant(row)
        for line in found
        for row in (line.published, line.repaired)
        if row
    ]
    if not any(notes):
        return ""
    always = notes.count("constant predictor")
    some = sum(map(bool, notes)) - always
    return f"Constant predictors are {always} of {len(notes)} rows of either form in all seeds, {some} in some."


def _signs(differences: Sequence[Difference]) -> tuple[int, int]:
    """Return the numbers of positive and of negative differences, as tested."""
    above = sum(each.seen and each.mean > 0 for each in differences)
    return above, sum(each.seen for each in differences) - above


def _less(paper: str, found: Sequence[Line]) -> str:
    """Compare with the row that leaves a part of the data unused at the same ε."""
    name, unused = PAPERS[paper].leaves
    differences = [
        paired(accuracy(line.beside[name]), accuracy(line.published))
        for line in found
        if name in line.beside
    ]
    tested = [each for each in differences if each.enough]
    if not tested:
        return ""
    above, below = _signs(tested)
    return (
        f"“{_capital(name)}”, which leaves {unused} unused at the same ε, is above the published form in {above} of "
        f"{count(len(tested), 'row')} and below it in {below}."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


COLUMNS = (
    *(
        "data",
        "mechanism",
        "ε",
        "paper",
        "published",
        "audits",
        "repaired",
        "audits",
        "best without the data",
    ),
    *(
        "beside, same ε",
        "non-private",
        "repair costs",
        "published gains on no data",
        "repaired gains on no data",
    ),
)


def table(found: Sequence[Line], ledger: Ledger, *, seeds: int) -> list[list[str]]:
    """Return a row for each line, as text; its seeds are named where these are fewer than were planned."""

    def shown(row: Row | None) -> str:
        return MISSING if row is None else _shown(row) + _fewer(row, seeds)

    def beside(row: Row | None) -> str:
        printed = accuracy(row).published if row else None
        return shown(row) + (f", printed {number(printed.mean, 3)}" if printed else "")

    return [
        [
            line.data,
            line.method,
            number(line.epsilon),
            MISSING if line.printed is None else f"{line.printed:.3g} ({line.outcome})",
            shown(line.published),
            _audits(line.published, ledger),
            shown(line.repaired),
            _audits(line.repaired, ledger),
            f"{shown(line.best_unused[1])} ({line.best_unused[0]})"
            if line.best_unused
            else MISSING,
            "; ".join(f"{beside(row)} ({name})" for name, row in line.beside.items())
            or MISSING,
            beside(line.clean),
            *(
                each.text if each else MISSING
                for each in (
                    line.cost,
                    line.gain(line.published),
                    line.gain(line.repaired),
                )
            ),
        ]
        for line in found
    ]


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
                line.printed,
            )
        )
        + len(line.beside)
        + len(line.readings)
        for line in found
    )
