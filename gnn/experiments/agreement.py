"""An answer to each printed table and figure: its numbers against ours, and the orders that it states.

A printed number agrees if it is within two standard deviations of the mean of ours, over at least three runs; the printed
number is taken as exact. A count agrees if it is equal to ours at the digits that are printed. A stated order is confirmed
at a setting if our difference has its sign and is larger than two standard deviations of the difference of two runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from gnn.experiments.experiment import FORM, PROFILES, PUBLISHED, Parameters, Value
from gnn.experiments.grid import canonical, plain, settings
from gnn.experiments.published import Ordering, Printed, Published
from gnn.experiments.published.papers import Paper
from gnn.experiments.summary import (
    FEWEST,
    Measured,
    Row,
    Summary,
    constant,
)

DEVIATIONS = 2
"""Largest distance of an agreeing number, in standard deviations of ours."""
BY_CHANCE = float(2 * stats.t.sf(DEVIATIONS * math.sqrt(FEWEST), FEWEST - 1))
"""Probability that a comparison of equal means by ``FEWEST`` runs is confirmed or reversed.

It is for paired normal differences; of independent runs, and of more runs, it is smaller.
"""
AGREES, DIFFERS, FEW, NOT_RUN = "agrees", "differs", "too few runs", "not run"
CONFIRMED, REVERSED, OPEN = "confirmed", "reversed", "within 2 sd"
PLANNED = "they are planned and not computed yet"
NO_SETTING = "our experiment leaves their settings out"


def agrees(found: Measured, printed: float) -> bool:
    """Return True if a printed number is within ``DEVIATIONS`` standard deviations of ours."""
    sd = found.sd
    return sd is not None and abs(found.mean - printed) <= DEVIATIONS * sd


@dataclass(frozen=True)
class Cell:
    """A printed number and ours.

    Attributes:
        printed: The printed number, in the unit of ours.
        experiment: The experiment that repeats it; empty if none has a record.
        measured: Ours; None if it is not run.
        note: Whether our predictors are constant.
        because: Why it is not run.
        exact: Whether equality is what counts.
    """

    printed: Published
    experiment: str = ""
    measured: Measured | None = None
    note: str = ""
    because: str = ""
    exact: bool = False

    @property
    def outcome(self) -> str:
        """``AGREES``, ``DIFFERS``, ``FEW`` or ``NOT_RUN``."""
        if self.measured is None:
            return NOT_RUN
        if self.exact:
            return AGREES if self._equal(self.measured.mean) else DIFFERS
        if len(self.measured.values) < FEWEST:
            return FEW
        return AGREES if agrees(self.measured, self.printed.mean) else DIFFERS

    def _equal(self, ours: float) -> bool:
        digits = len(f"{self.printed.mean:.12g}".partition(".")[2])
        return round(ours, digits) == self.printed.mean


@dataclass(frozen=True)
class Contrast:
    """A stated order at one setting of the other factors.

    Attributes:
        ordering: The statement.
        setting: The other factors.
        difference: Mean of ours that is stated to be higher, minus the other; None if either is not run.
        sd: Standard deviation of the difference of two runs; None with fewer than three.
        runs: Number of runs of either.
    """

    ordering: Ordering
    setting: Parameters
    difference: float | None = None
    sd: float | None = None
    runs: int = 0

    @property
    def outcome(self) -> str:
        """``CONFIRMED``, ``REVERSED``, ``OPEN``, ``FEW`` or ``NOT_RUN``."""
        if self.difference is None:
            return NOT_RUN
        if self.sd is None:
            return FEW
        if abs(self.difference) <= DEVIATIONS * self.sd:
            return OPEN
        return CONFIRMED if self.difference > 0 else REVERSED


@dataclass(frozen=True)
class Answer:
    """The answer to a table or figure.

    Attributes:
        printed: The table or figure.
        cells: Its numbers and ours.
        contrasts: The comparisons that it states, and ours.
        recorded: Number of runs of ours that are recorded in the paper profile, the repaired form left out.
        planned: Number of runs of that profile.
        quick: Number of recorded runs in the quick profile, if that is the one with more.
    """

    printed: Printed
    cells: Sequence[Cell]
    contrasts: Sequence[Contrast]
    recorded: int
    planned: int
    quick: int


def answer(printed: Printed, summaries: Mapping[str, Summary]) -> Answer:
    """Return the answer to a table or figure.

    Args:
        printed: The table or figure.
        summaries: What is recorded, by the name of the experiment. Printed numbers are compared with the paper profile.
    """
    mine = [summaries[name] for name in printed.experiments if name in summaries]
    runs = dict.fromkeys(PROFILES, 0)
    planned = 0
    for content in mine[:1]:
        experiment = content.experiment
        wanted = [
            row for row in content.rows if _matches(row.parameters, printed.where)
        ]
        runs[content.profile] = sum(row.repetitions for row in wanted)
        grid = settings(experiment, "paper")
        planned = experiment.repetitions["paper"] * sum(
            _matches(setting, printed.where) for setting in grid
        )
    return Answer(
        printed,
        _cells(printed, [each for each in mine if each.profile == "paper"]),
        [
            contrast
            for each in printed.orderings
            if each.experiment in summaries
            for contrast in _contrasts(each, summaries[each.experiment])
        ],
        recorded=runs["paper"],
        planned=planned,
        quick=runs["quick"],
    )


def answers(paper: Paper, summaries: Mapping[str, Summary]) -> list[Answer]:
    """Return the answers to all tables and figures of a paper."""
    return [answer(printed, summaries) for printed in paper.printed]


def _cells(printed: Printed, contents: Sequence[Summary]) -> list[Cell]:
    """Pair the printed numbers with ours, of the first experiment that has enough runs."""
    found: dict[tuple[str, ...], list[tuple[Row, Measured, str]]] = {}
    planned: set[tuple[str, ...]] = set()
    for content in contents:
        experiment = content.experiment
        for row in content.rows:
            for measured in row.measured.values():
                if measured.published:
                    found.setdefault(measured.published.cell, []).append(
                        (row, measured, experiment.name)
                    )
        planned |= {
            known.cell
            for setting in settings(experiment, content.profile)
            for metric in experiment.metrics
            if (known := experiment.published(setting, metric.name))
        }
    cells = []
    for number in printed.cells:
        ours = found.get(number.cell, [])
        enough = [each for each in ours if len(each[1].values) >= FEWEST]
        if not ours:
            because = _reason(printed, number, planned)
            cells.append(Cell(number, because=because, exact=printed.exact))
            continue
        row, measured, name = (enough or ours)[0]
        cells.append(
            Cell(
                measured.published or number,
                name,
                measured,
                constant(row),
                exact=printed.exact,
            )
        )
    return cells


def _reason(printed: Printed, number: Published, planned: set[tuple[str, ...]]) -> str:
    named = [
        why
        for parts, why in printed.lacking.items()
        if set(parts.split(", ")) <= set(number.cell)
    ]
    if named or printed.reason:
        return (named or [printed.reason])[0]
    return PLANNED if number.cell in planned else NO_SETTING


def _contrasts(ordering: Ordering, content: Summary) -> list[Contrast]:
    """Pair the settings that differ in the factor alone, those without a record too."""
    experiment, factor = content.experiment, ordering.factor
    rows = {canonical(row.parameters): row for row in content.rows}
    values = {plain(ordering.higher), plain(ordering.lower)}
    pairs: dict[str, dict[Value, Parameters]] = {}
    for setting in settings(experiment, content.profile):
        if _matches(setting, ordering.where) and plain(setting[factor]) in values:
            others = {name: at for name, at in setting.items() if name != factor}
            pairs.setdefault(canonical(others), {})[plain(setting[factor])] = setting
    found = []
    for pair in pairs.values():
        if len(pair) < len(values):
            continue
        higher, lower = (
            rows.get(canonical(pair[plain(value)]))
            for value in (ordering.higher, ordering.lower)
        )
        setting = {
            name: at
            for name, at in pair[plain(ordering.higher)].items()
            if name != factor
        }
        found.append(
            _contrast(
                ordering, setting, higher, lower, paired=factor in experiment.common
            )
        )
    return found


def _contrast(
    ordering: Ordering,
    setting: Parameters,
    higher: Row | None,
    lower: Row | None,
    *,
    paired: bool,
) -> Contrast:
    """Compare two rows; on common random draws by the repetitions of both."""
    first, second = (
        row.measured.get(ordering.metric) if row else None for row in (higher, lower)
    )
    if first is None or second is None:
        return Contrast(ordering, setting)
    runs = min(len(first.values), len(second.values))
    if paired:
        differences = Measured(
            {
                k: first.by_repetition[k] - second.by_repetition[k]
                for k in first.by_repetition
                if k in second.by_repetition
            }
        )
        if not differences.values:
            return Contrast(ordering, setting)
        runs = len(differences.values)
        difference, sd = differences.mean, differences.sd
    else:
        difference = first.mean - second.mean
        sd = math.hypot(first.sd or 0.0, second.sd or 0.0)
    return Contrast(ordering, setting, difference, sd if runs >= FEWEST else None, runs)


def _matches(parameters: Parameters, where: Mapping[str, Value]) -> bool:
    """Return True if a setting is of the published form and has these values."""
    return parameters.get(FORM, PUBLISHED) == PUBLISHED and all(
        plain(parameters[name]) == plain(value) for name, value in where.items()
    )
