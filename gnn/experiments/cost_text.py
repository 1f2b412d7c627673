"""What honesty costs, in words: a sentence and a table for each paper, and what was run where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from auditdp.report.numbers import MISSING, count, number
from gnn.experiments.catalogue.honesty import EPSILONS, NO_DATA, PAPERS
from gnn.experiments.cost import ALPHA, OUTCOMES, Difference, Line, accuracy, paired
from gnn.experiments.experiment import FORM, PUBLISHED, REPAIRED
from gnn.experiments.grid import canonical, settings
from gnn.experiments.privacy import Ledger, supported
from gnn.experiments.summary import FEWEST, Row, Summary, constant


def sentence(paper: str, found: Sequence[Line]) -> str:
    """Return what there is to say of a paper: whether it agrees, what the repair costs, and what the data is worth."""
    return " ".join(filter(None, [_numbers(paper, found), _repairs(found), _worth(found), _less(paper, found)]))


def _numbers(paper: str, found: Sequence[Line]) -> str:
    if any("RR" in line.beside for line in found):
        return _ranking(found)
    outcomes = [(line, line.outcome) for line in found if line.outcome]
    if not outcomes:
        return "Not comparable: the paper prints no accuracy for data that is here."
    names = {
        "agrees": "in agreement",
        "within the range": "within the range of single runs where something is done otherwise",
        "too few seeds": "of too few seeds",
    }
    parts = []
    for word in OUTCOMES:
        mine = [line for line, outcome in outcomes if outcome == word]
        where = "" if word == "agrees" else f": {_places(mine)}"
        parts += [f"{len(mine)} {names.get(word, word)}{where}"] if mine else []
    remark = f" {PAPERS[paper].remark}" if PAPERS[paper].remark else ""
    return f"Of {count(len(outcomes), 'printed number')}, {'; '.join(parts)}.{remark}{_without_privacy(found)}"


def _without_privacy(found: Sequence[Line]) -> str:
    """Compare the rows without privacy with what is printed of them."""
    clean = {line.data: line.clean for line in found if line.clean and accuracy(line.clean).published}
    texts = [
        f"{_shown(row)} on {data} ({_seeds(row)}, printed {number(known.mean, 3)})"
        for data, row in clean.items()
        if (known := accuracy(row).published)
    ]
    return f" Without privacy it is {', '.join(texts)}." if texts else ""


def _seeds(row: Row) -> str:
    return str(count(row.repetitions, "seed"))


def _ranking(found: Sequence[Line]) -> str:
    """DPRR prints curves alone; what they say is that it is above RR."""
    parts = []
    for line in found:
        if "RR" not in line.beside:
            continue
        difference = paired(accuracy(line.published), accuracy(line.beside["RR"]))
        word = "above" if difference.mean > 0 else "below"
        word = word if difference.seen else "not told apart from"
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
        parts.append(f"{word} RR on {line.data} at ε = {number(line.epsilon)} by {difference.text}{explained}")
    return "The paper prints no number, and has DPRR above RR; here DPRR is " + "; ".join(parts) + "."


def _places(found: Iterable[Line]) -> str:
    return ", ".join(
        f"{_place(line)} ({number(accuracy(line.published).mean, 3)} against {number(line.printed or 0.0, 3)}{_tests(line)})"
        for line in found
    )


def _tests(line: Line) -> str:
    """What was tried of a line that does not agree: what explains it, or all that does not."""
    found = line.explanation
    if found:
        return f"; by {found.words}, tested: {_shown(found.row)}"
    return "".join(f"; {each.words}, tested: {_shown(each.row)}, {_seeds(each.row)}" for each in line.readings)


def _place(line: Line) -> str:
    return f"{line.method} on {line.data} at ε = {number(line.epsilon)}"


def _repairs(found: Sequence[Line]) -> str:
    costs = [(line.epsilon, line.cost) for line in found if line.cost]
    if not costs:
        return "The audits refute no printed ε here, so that there is nothing to repair."
    parts = []
    for epsilon in EPSILONS:
        mine = [cost for at, cost in costs if at == epsilon and cost.enough]
        if mine:
            mean = number(float(np.mean([cost.mean for cost in mine])), 2)
            parts.append(f"{mean} at ε = {number(epsilon)} ({_seen(mine)})")
    text = (
        f"The repair costs {' and '.join(parts)} of accuracy on average" if parts else "What the repair costs is open"
    )
    few = [_place(line) for line in found if line.cost and not line.cost.enough]
    return text + (f"; not counted, as of fewer than {FEWEST} seeds: {'; '.join(few)}." if few else ".")


def _seen(differences: Sequence[Difference]) -> str:
    return f"p < {ALPHA:g} in {sum(each.seen for each in differences)} of {count(len(differences), 'row')}"


def _worth(found: Sequence[Line]) -> str:
    parts = []
    for form in (PUBLISHED, REPAIRED):
        rows = [line.published if form == PUBLISHED else line.repaired for line in found]
        gains = [gain for line, row in zip(found, rows, strict=True) if (gain := line.gain(row)) and gain.enough]
        if gains:
            better, worse = _signs(gains)
            parts.append(f"the {form} form is better in {better} of {count(len(gains), 'row')} and worse in {worse}")
    texts = [f"Against not using the data (p < {ALPHA:g}), {'; '.join(parts)}."] if parts else []
    notes = [constant(row) for line in found for row in (line.published, line.repaired) if row]
    if any(notes):
        always = notes.count("constant predictor")
        some = sum(map(bool, notes)) - always
        texts.append(
            f"Constant predictors are {always} of {len(notes)} rows of either form in all seeds, {some} in some."
        )
    return " ".join(texts)


def _signs(differences: Sequence[Difference]) -> tuple[int, int]:
    """Return how many are above 0, and how many below, as tested."""
    above = sum(each.seen and each.mean > 0 for each in differences)
    return above, sum(each.seen for each in differences) - above


def _less(paper: str, found: Sequence[Line]) -> str:
    """Compare with the row that leaves a part of the data unused at the same ε."""
    name, unused = PAPERS[paper].leaves
    differences = [
        paired(accuracy(line.beside[name]), accuracy(line.published)) for line in found if name in line.beside
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
    *("data", "mechanism", "ε", "paper", "published", "audits", "repaired", "audits", "best without the data"),
    *("beside, same ε", "non-private", "repair costs", "published gains on no data", "repaired gains on no data"),
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
            f"{shown(line.best_unused[1])} ({line.best_unused[0]})" if line.best_unused else MISSING,
            "; ".join(f"{beside(row)} ({name})" for name, row in line.beside.items()) or MISSING,
            beside(line.clean),
            *(
                each.text if each else MISSING
                for each in (line.cost, line.gain(line.published), line.gain(line.repaired))
            ),
        ]
        for line in found
    ]


def _audits(row: Row | None, ledger: Ledger) -> str:
    """What the audits say, without the audit that says it."""
    return supported(row.guarantee, ledger).partition(" (")[0] if row else MISSING


def _fewer(row: Row, seeds: int) -> str:
    return f", {_seeds(row)}" if row.repetitions < seeds else ""


def _shown(row: Row) -> str:
    found = accuracy(row)
    spread = f" ± {number(found.sd, 1)}" if found.sd else ""
    note = constant(row)
    return number(found.mean, 3) + spread + (f", {note}" if note and row.parameters["epsilon"] != NO_DATA else "")


def lacking(content: Summary) -> str:
    """Return which data sets have rows of fewer seeds than were planned, and how many of how many."""
    planned = content.experiment.repetitions[content.profile]
    recorded = {canonical(row.parameters): row.repetitions for row in content.rows}
    places: dict[str, Counter[int]] = {}
    for setting in settings(content.experiment, content.profile):
        seeds = recorded.get(canonical(setting), 0)
        places.setdefault(f"{setting['paper']} on {setting['data']}", Counter()).update([seeds])
    parts = []
    for place, found in places.items():
        few = [f"{seeds or 'none'} in {rows}" for seeds, rows in sorted(found.items()) if seeds < planned]
        parts += [f"{place} {', '.join(few)} of {count(found.total(), 'row')}"] if few else []
    return f"Fewer than {count(planned, 'seed')}: {'; '.join(parts)}." if parts else ""


def devices(content: Summary) -> str:
    """Return where the rows of each paper were computed: as a whole, or by data set or form where these differ."""
    parts = []
    for paper in dict.fromkeys(str(row.parameters["paper"]) for row in content.rows):
        mine = [row for row in content.rows if row.parameters["paper"] == paper]
        by_factor = [_devices(mine, factor) for factor in ("paper", "data", FORM)]
        places = next((found for found in by_factor if all(len(at) == 1 for at in found.values())), by_factor[0])
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
    """Return how many tests the table and the sentences rest on."""
    return sum(
        sum(each is not None for each in (line.cost, line.gain(line.published), line.gain(line.repaired), line.printed))
        + len(line.beside)
        + len(line.readings)
        for line in found
    )
