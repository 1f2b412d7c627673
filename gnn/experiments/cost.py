"""The cost of honesty: published, repaired and without the data, on the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.report.numbers import number
from gnn.experiments.agreement import AGREES, DIFFERS, FEW, agrees
from gnn.experiments.catalogue.honesty import (
    CLEAN,
    EPSILONS,
    NO_DATA,
    NON_PRIVATE,
    PAPERS,
    Reading,
)
from gnn.experiments.experiment import FORM, PUBLISHED, REPAIRED
from gnn.experiments.summary import FEWEST, Measured, Row, Summary, p_value

EXPERIMENT = "honesty"
ALPHA = 0.01
"""Level of each test; the number of tests is stated beside them."""


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies.

    Attributes:
        mean: First minus second.
        p: Two-sided, of a t-test over seeds; None of fewer than three, or where nothing varies.
        seeds: How many.
    """

    mean: float
    p: float | None
    seeds: int

    @property
    def enough(self) -> bool:
        """True if there are enough seeds for a test."""
        return self.seeds >= FEWEST

    @property
    def seen(self) -> bool:
        """True if the test refutes that there is no difference."""
        return self.p is not None and self.p < ALPHA

    @property
    def text(self) -> str:
        """Such as '−0.12 (p = 0.0003)'."""
        return number(self.mean, 2) + (
            f" (p = {number(self.p, 2)})" if self.p is not None else ""
        )


def paired(first: Measured, second: Measured) -> Difference:
    """Compare two rows on the seeds of both; they share splits."""
    seeds = [seed for seed in first.by_repetition if seed in second.by_repetition]
    differences = [
        first.by_repetition[seed] - second.by_repetition[seed] for seed in seeds
    ]
    mean = float(np.mean(differences)) if differences else float("nan")
    return Difference(mean, p_value(differences), len(seeds))


@dataclass(frozen=True)
class Tested:
    """A reading, as it was tested.

    Attributes:
        words: What is done otherwise.
        row: What comes of it.
        moved: What it changes.
    """

    words: str
    row: Row
    moved: Difference


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
        readings: What may explain a difference, as another experiment tests it.
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
    readings: Sequence[Tested] = ()

    @property
    def printed(self) -> float | None:
        """The number that the paper prints."""
        found = accuracy(self.published).published
        return found.mean if found else None

    @property
    def best_unused(self) -> tuple[str, Row] | None:
        """The best of the rows that do not use the data."""
        return max(
            self.unused.items(), key=lambda each: accuracy(each[1]).mean, default=None
        )

    @property
    def cost(self) -> Difference | None:
        """Accuracy that the repair costs."""
        return (
            paired(accuracy(self.published), accuracy(self.repaired))
            if self.repaired
            else None
        )

    def gain(self, form: Row | None) -> Difference | None:
        """Accuracy above the best row that does not use the data."""
        best = self.best_unused
        return paired(accuracy(form), accuracy(best[1])) if form and best else None

    @property
    def outcome(self) -> str:
        """Comparison with the printed number: one of ``OUTCOMES``, or "" without a number."""
        if self.printed is None:
            return ""
        found = accuracy(self.published)
        if len(found.values) < FEWEST:
            return FEW
        if agrees(found, self.printed):
            return AGREES
        return EXPLAINED if self.explanation else DIFFERS

    @property
    def explanation(self) -> Tested | None:
        """The first reading that moves the accuracy, as tested, to within two sd of the printed one."""
        tested = list(self.readings)
        name, words = PAPERS[self.paper].explains
        if other := self.beside.get(name):
            tested.append(
                Tested(words, other, paired(accuracy(other), accuracy(self.published)))
            )
        reached = [
            each
            for each in tested
            if each.moved.seen and agrees(accuracy(each.row), self.printed or 0.0)
        ]
        return next(iter(reached), None)


EXPLAINED = "differs, explained"
OUTCOMES = (AGREES, EXPLAINED, DIFFERS, FEW)
"""Outcomes of a printed number. It is explained if a reading that is tested agrees with it."""


def accuracy(row: Row) -> Measured:
    """Return the accuracy of a row."""
    return row.measured["accuracy"]


def lines(content: Summary, others: Mapping[str, Summary] | None = None) -> list[Line]:
    """Return the lines of which the published form is recorded, paper by paper.

    Args:
        content: What honesty costs.
        others: Summaries of other experiments by name, where readings are tested.
    """
    rows = {_key(row): row for row in content.rows if "accuracy" in row.measured}
    found = []
    for paper, each in PAPERS.items():
        for data in each.files:
            for method in each.own(data):
                for epsilon in EPSILONS:
                    published = rows.get((paper, data, method, epsilon, PUBLISHED))
                    if published is None:
                        continue
                    at = [
                        (name, rows.get((paper, data, name, epsilon, PUBLISHED)))
                        for name in each.beside
                    ]
                    unused = [
                        (name, rows.get((paper, data, name, NO_DATA, PUBLISHED)))
                        for name in each.baselines(method)
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
                            list(
                                _tested(
                                    each.readings, data, method, epsilon, others or {}
                                )
                            ),
                        )
                    )
    return found


def _tested(
    readings: Sequence[Reading],
    data: str,
    method: str,
    epsilon: float,
    others: Mapping[str, Summary],
) -> Iterator[Tested]:
    for reading in readings:
        content = others.get(reading.experiment)
        if reading.data != data or content is None:
            continue
        usual = {"data": data, "method": method, "epsilon": epsilon, **reading.default}
        found, without = (
            _row(content, setting) for setting in (usual | reading.changed, usual)
        )
        if found:
            moved = (
                paired(accuracy(found), accuracy(without))
                if without
                else Difference(math.nan, None, 0)
            )
            yield Tested(reading.words, found, moved)


def _row(content: Summary, setting: Mapping[str, Any]) -> Row | None:
    matching = (
        row
        for row in content.rows
        if setting.items() <= row.parameters.items() and "accuracy" in row.measured
    )
    return next(matching, None)


def _key(row: Row) -> tuple[str, str, str, float, str]:
    given = row.parameters
    return (
        str(given["paper"]),
        str(given["data"]),
        str(given["method"]),
        float(given["epsilon"]),
        str(given.get(FORM, PUBLISHED)),
    )
