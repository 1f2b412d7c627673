"""What honesty costs: published, repaired and without the data side by side, tested on the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from auditdp.report.numbers import MISSING, count, number
from gnn.experiments.catalogue.honesty import CLEAN, EPSILONS, NO_DATA, NON_PRIVATE, PAPERS
from gnn.experiments.experiment import FORM, PUBLISHED, REPAIRED
from gnn.experiments.privacy import Ledger, supported
from gnn.experiments.summary import FEWEST, Measured, Row, Summary, constant, p_value

EXPERIMENT = "honesty"
ALPHA = 0.01
"""Of each test; how many tests there are is said beside them."""
CLOSE = 0.02
"""Accuracies that differ by no more agree, whatever a test says: the means of papers are of few repetitions themselves."""


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies.

    Attributes:
        mean: First minus second.
        p: Two-sided, of a t-test over seeds; None of fewer than three, or where nothing varies.
    """

    mean: float
    p: float | None

    @property
    def seen(self) -> bool:
        """Whether the test refutes that there is none."""
        return self.p is not None and self.p < ALPHA

    @property
    def text(self) -> str:
        """Such as '−0.12 (p = 0.0003)'."""
        return number(self.mean, 2) + (f" (p = {number(self.p, 2)})" if self.p is not None else "")


def paired(first: Measured, second: Measured) -> Difference:
    """Compare two rows on the seeds of both; they share splits."""
    seeds = [seed for seed in first.by_repetition if seed in second.by_repetition]
    differences = [first.by_repetition[seed] - second.by_repetition[seed] for seed in seeds]
    return Difference(float(np.mean(differences)) if differences else float("nan"), p_value(differences))


def against(found: Measured, printed: float) -> Difference:
    """Compare a row with a printed number, taken as exact."""
    return Difference(found.mean - printed, p_value([value - printed for value in found.values]))


@dataclass(frozen=True)
class Line:
    """A paper's mechanism on a data set at an ε.

    Attributes:
        paper: The paper.
        data: The data set.
        method: The mechanism.
        epsilon: ε as the paper counts it.
        published: The row of the published form.
        repaired: That of the repaired form, where there is one.
        unused: Rows that do not use what is protected, by name.
        beside: Other rows at the same ε, by name.
        clean: The row without privacy.
    """

    paper: str
    data: str
    method: str
    epsilon: float
    published: Row
    repaired: Row | None
    unused: Mapping[str, Row]
    beside: Mapping[str, Row]
    clean: Row | None

    @property
    def printed(self) -> float | None:
        """What the paper prints."""
        found = _accuracy(self.published).published
        return found.mean if found else None

    @property
    def best_unused(self) -> tuple[str, Row] | None:
        """The best of the rows that do not use the data."""
        return max(self.unused.items(), key=lambda each: _accuracy(each[1]).mean, default=None)

    @property
    def cost(self) -> Difference | None:
        """Accuracy that the repair costs."""
        return paired(_accuracy(self.published), _accuracy(self.repaired)) if self.repaired else None

    def gain(self, form: Row | None) -> Difference | None:
        """Accuracy above the best row that does not use the data."""
        best = self.best_unused
        return paired(_accuracy(form), _accuracy(best[1])) if form and best else None

    @property
    def outcome(self) -> str:
        """How the printed number compares: "agrees", "explained", "unexplained", "too few seeds"; "" of no number."""
        if self.printed is None:
            return ""
        found = _accuracy(self.published)
        if len(found.values) < FEWEST:
            return "too few seeds"
        if _agrees(found, self.printed):
            return "agrees"
        other = self.beside.get(PAPERS[self.paper].explains[0])
        if other is None:
            return "unexplained"
        moved, ours, theirs = paired(_accuracy(other), found), found.mean, _accuracy(other).mean
        reached = min(ours, theirs) <= self.printed <= max(ours, theirs) or _agrees(_accuracy(other), self.printed)
        return "explained" if moved.seen and reached else "unexplained"


def _accuracy(row: Row) -> Measured:
    return row.measured["accuracy"]


def _agrees(found: Measured, printed: float) -> bool:
    difference = against(found, printed)
    return abs(difference.mean) <= CLOSE or not (difference.seen or difference.p is None)


def lines(content: Summary) -> list[Line]:
    """Return the lines of which the published form is recorded, paper by paper."""
    rows = {_key(row): row for row in content.rows if "accuracy" in row.measured}
    found = []
    for paper, each in PAPERS.items():
        for data in each.files:
            for method in each.own(data):
                for epsilon in EPSILONS:
                    published = rows.get((paper, data, method, epsilon, PUBLISHED))
                    if published is None:
                        continue
                    at = [(name, rows.get((paper, data, name, epsilon, PUBLISHED))) for name in each.beside]
                    unused = [
                        (name, rows.get((paper, data, name, NO_DATA, PUBLISHED))) for name in each.baselines(method)
                    ]
                    found.append(
                        Line(
                            paper,
                            data,
                            method,
                            epsilon,
                            published,
                            rows.get((paper, data, method, epsilon, REPAIRED)),
                            {name: row for name, row in unused if row},
                            {name: row for name, row in at if row},
                            rows.get((paper, data, CLEAN, NON_PRIVATE, PUBLISHED)),
                        )
                    )
    return found


def _key(row: Row) -> tuple[str, str, str, float, str]:
    given = row.parameters
    return (
        str(given["paper"]),
        str(given["data"]),
        str(given["method"]),
        float(given["epsilon"]),
        str(given.get(FORM, PUBLISHED)),
    )


# Sentences


def sentence(paper: str, found: Sequence[Line]) -> str:
    """Return what there is to say of a paper: whether it agrees, what the repair costs, and what the data is worth."""
    return " ".join([_numbers(paper, found), _repairs(found), _worth(found)])


def _numbers(paper: str, found: Sequence[Line]) -> str:
    if any("RR" in line.beside for line in found):
        return _ranking(found)
    outcomes = [(line, line.outcome) for line in found if line.outcome]
    if not outcomes:
        return "Not comparable: the paper prints no accuracy for data that is here."
    of = {
        word: [line for line, outcome in outcomes if outcome == word] for word in ("agrees", "explained", "unexplained")
    }
    reason = PAPERS[paper].explains[1]
    parts = [f"agrees in {len(of['agrees'])} of {count(len(outcomes), 'printed number')}"] if of["agrees"] else []
    parts += (
        [f"explained by {reason} (tested) in {len(of['explained'])}: {_places(of['explained'])}"]
        if of["explained"]
        else []
    )
    parts += [f"unexplained in {len(of['unexplained'])}: {_places(of['unexplained'])}"] if of["unexplained"] else []
    return _capital("; ".join(parts)) + "."


def _ranking(found: Sequence[Line]) -> str:
    """DPRR prints curves alone; what they say is that it is above RR."""
    parts = []
    for line in found:
        if "RR" not in line.beside:
            continue
        difference = paired(_accuracy(line.published), _accuracy(line.beside["RR"]))
        word = "above" if difference.mean > 0 else "below"
        word = word if difference.seen else "not told apart from"
        known = line.beside.get(PAPERS[line.paper].explains[0])
        explained = ""
        if word == "below" and known is not None:
            rest = paired(_accuracy(known), _accuracy(line.beside["RR"]))
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
        f"{line.method} on {line.data} at ε = {number(line.epsilon)} "
        f"({number(_accuracy(line.published).mean, 3)} against {number(line.printed or 0.0, 3)})"
        for line in found
    )


def _repairs(found: Sequence[Line]) -> str:
    costs = [(line.epsilon, line.cost) for line in found if line.cost]
    if not costs:
        return "The audits refute no printed ε here, so that there is nothing to repair."
    parts = []
    for epsilon in EPSILONS:
        mine = [cost for at, cost in costs if at == epsilon]
        if mine:
            mean = number(float(np.mean([cost.mean for cost in mine])), 2)
            parts.append(
                f"{mean} at ε = {number(epsilon)} (p < {ALPHA:g} in {sum(c.seen for c in mine)} of {len(mine)} rows)"
            )
    return f"The repair costs {' and '.join(parts)} of accuracy on average."


def _worth(found: Sequence[Line]) -> str:
    parts = []
    for form in (PUBLISHED, REPAIRED):
        rows = [line.published if form == PUBLISHED else line.repaired for line in found]
        gains = [gain for line, row in zip(found, rows, strict=True) if (gain := line.gain(row))]
        if gains:
            better = sum(gain.seen and gain.mean > 0 for gain in gains)
            parts.append(f"the {form} form in {better} of {len(gains)} rows")
    texts = [f"Better than not using the data (p < {ALPHA:g}) is {' and '.join(parts)}."] if parts else []
    constants = [
        f"{line.method}{', repaired,' if row is line.repaired else ''} on {line.data} at ε = {number(line.epsilon)}"
        for line in found
        for row in (line.published, line.repaired)
        if row and constant(row) == "constant predictor"
    ]
    texts += [f"Constant predictors: {'; '.join(constants)}."] if constants else []
    return " ".join(texts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# Tables

COLUMNS = (
    *("data", "mechanism", "ε", "paper", "published", "audits", "repaired", "audits", "best without the data"),
    *("beside, same ε", "non-private", "repair costs", "published gains on no data", "repaired gains on no data"),
)


def table(found: Sequence[Line], ledger: Ledger) -> list[list[str]]:
    """Return a row for each line, as text; seeds are named where a row has fewer than another."""
    return [
        [
            line.data,
            line.method,
            number(line.epsilon),
            MISSING if line.printed is None else f"{line.printed:.3g} ({line.outcome})",
            _shown(line.published),
            _audits(line.published, ledger),
            _shown(line.repaired),
            _audits(line.repaired, ledger),
            f"{_shown(line.best_unused[1])} ({line.best_unused[0]})" if line.best_unused else MISSING,
            "; ".join(f"{_shown(row)} ({name})" for name, row in line.beside.items()) or MISSING,
            _shown(line.clean),
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


def _shown(row: Row | None) -> str:
    if row is None:
        return MISSING
    found = _accuracy(row)
    spread = f" ± {number(found.sd, 1)}" if found.sd else ""
    note = constant(row)
    return number(found.mean, 3) + spread + (f", {note}" if note and row.parameters["epsilon"] != NO_DATA else "")


def tests(found: Sequence[Line]) -> int:
    """Return how many tests the table and the sentences rest on."""
    return sum(
        sum(each is not None for each in (line.cost, line.gain(line.published), line.gain(line.repaired), line.printed))
        + len(line.beside)
        for line in found
    )
