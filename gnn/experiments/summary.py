"""Records as rows: mean ± sd over repetitions, printed numbers, and t-tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from gnn.experiments.experiment import (
    FORM,
    LARGEST,
    PROFILES,
    PUBLISHED,
    Comparison,
    Curve,
    Experiment,
    Guarantee,
    Parameters,
    Profile,
    Value,
)
from gnn.experiments.grid import canonical, cells, plain, settings
from gnn.experiments.published import Published
from gnn.experiments.record import CellRecord


@dataclass(frozen=True)
class Measured:
    """A metric of one setting over its repetitions.

    Attributes:
        by_repetition: One value of each repetition that did not fail.
        published: What the source prints.
    """

    by_repetition: Mapping[int, float]
    published: Published | None = None

    @property
    def values(self) -> list[float]:
        """One value of each repetition."""
        return list(self.by_repetition.values())

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float | None:
        """Their standard deviation with n − 1, None of a single one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Row:
    """One setting.

    Attributes:
        parameters: The setting.
        measured: Its metrics, without curves.
        curves: The mean curve of each metric that is one, over repetitions at equal x.
        guarantee: Its privacy.
        repetitions: How many were finished.
        failures: The error of each cell that failed, by repetition.
        devices: Where the finished ones computed.
    """

    parameters: Parameters
    measured: Mapping[str, Measured]
    curves: Mapping[str, Curve]
    guarantee: Guarantee
    repetitions: int
    failures: Mapping[int, str]
    devices: frozenset[str]


@dataclass(frozen=True)
class Test:
    """A two-sided t-test.

    Attributes:
        comparison: What is compared.
        difference: Mean of the first minus mean of the second.
        p_value: Two-sided; None where there is too little to compare or nothing varies.
        how: Which test, on how many numbers.
    """

    __test__ = False  # no test of pytest's

    comparison: Comparison
    difference: float | None
    p_value: float | None
    how: str


@dataclass(frozen=True)
class Summary:
    """An experiment and all that is recorded of one profile under one root seed.

    Attributes:
        experiment: The experiment.
        profile: Which profile.
        rows: Settings of which something is recorded, in the order of the grid.
        done: Cells that are recorded without an error.
        planned: Cells of the profile's grid.
        tests: The source's comparisons.
        seconds: Wall time of all recorded cells.
        stamps: Different (revision, environment, device) of the records.
    """

    experiment: Experiment
    profile: Profile
    rows: Sequence[Row]
    done: int
    planned: int
    tests: Sequence[Test]
    seconds: float
    stamps: Sequence[tuple[str, str, str]]


def summary(
    experiment: Experiment,
    records: Mapping[str, CellRecord],
    *,
    root_seed: int,
    profile: Profile | None = None,
) -> Summary:
    """Return the summary of one profile, by default the one with more recorded cells.

    Args:
        experiment: The experiment.
        records: Its records, by key; those of other versions and root seeds are left out.
        root_seed: The seed of the runs.
        profile: Which profile.
    """
    grids = {
        each: cells(experiment, profile=each, root_seed=root_seed) for each in PROFILES
    }
    found = {
        each: [cell for cell in grid if cell.key in records]
        for each, grid in grids.items()
    }
    chosen: Profile = (
        profile
        if profile is not None
        else max(reversed(PROFILES), key=lambda each: len(found[each]))
    )
    mine = [records[cell.key] for cell in found[chosen]]
    by_setting: dict[str, list[CellRecord]] = {}
    for cell, record in zip(found[chosen], mine, strict=True):
        by_setting.setdefault(canonical(cell.parameters), []).append(record)
    rows = [
        _row(experiment, setting, by_setting[canonical(setting)])
        for setting in settings(experiment, chosen)
        if canonical(setting) in by_setting
    ]
    return Summary(
        experiment=experiment,
        profile=chosen,
        rows=rows,
        done=sum(not record.error for record in mine),
        planned=len(grids[chosen]),
        tests=[
            _test(rows, each, common=each.factor in experiment.common)
            for each in experiment.comparisons
        ]
        if rows
        else [],
        seconds=sum(record.seconds for record in mine),
        stamps=list(
            dict.fromkeys(
                (record.revision, record.environment, record.device) for record in mine
            )
        ),
    )


def _row(
    experiment: Experiment, setting: Parameters, records: Sequence[CellRecord]
) -> Row:
    fine = [record for record in records if not record.error]
    measured: dict[str, Measured] = {}
    curves: dict[str, Curve] = {}
    for metric in experiment.metrics:
        values = {
            record.repetition: record.metrics[metric.name]
            for record in fine
            if metric.name in record.metrics
        }
        if metric.curve and values:
            curves[metric.name] = _mean_curve(
                value for value in values.values() if not isinstance(value, int | float)
            )
        elif values:
            known = setting.get(FORM, PUBLISHED) == PUBLISHED
            published = experiment.published(setting, metric.name) if known else None
            numbers = {
                k: float(value)
                for k, value in values.items()
                if isinstance(value, int | float)
            }
            measured[metric.name] = Measured(numbers, published)
    return Row(
        parameters=setting,
        measured=measured,
        curves=curves,
        guarantee=experiment.guarantee(setting),
        repetitions=len(fine),
        failures={
            record.repetition: record.error for record in records if record.error
        },
        devices=frozenset(record.device for record in fine),
    )


def _mean_curve(curves: Iterable[Curve]) -> Curve:
    heights: dict[float, list[float]] = {}
    for curve in curves:
        for x, y in curve:
            heights.setdefault(x, []).append(y)
    return [(x, float(np.mean(heights[x]))) for x in sorted(heights)]


def _test(rows: Sequence[Row], comparison: Comparison, *, common: bool) -> Test:
    """Pair the settings that differ in the factor alone; of a single pair, compare the repetitions.

    Repetitions are paired where both values were run on common random draws, and independent otherwise (Welch's test).
    """
    sides: list[dict[str, Mapping[int, float]]] = [
        {
            _without(row.parameters, comparison.factor): row.measured[
                comparison.metric
            ].by_repetition
            for row in rows
            if plain(row.parameters[comparison.factor]) == plain(value)
            and comparison.metric in row.measured
        }
        for value in (comparison.first, comparison.second)
    ]
    pairs = [(sides[0][rest], sides[1][rest]) for rest in sides[0] if rest in sides[1]]
    if not pairs:
        return Test(comparison, None, None, "nothing to compare is recorded")
    means = [
        (float(np.mean(list(a.values()))), float(np.mean(list(b.values()))))
        for a, b in pairs
    ]
    difference = float(np.mean([a - b for a, b in means]))
    if len(pairs) > 1:
        how = f"paired, {len(pairs)} settings, each the mean of its repetitions"
        return Test(
            comparison,
            difference,
            p_value([a - b for a, b in means]),
            _told(how, len(pairs)),
        )
    first, second = pairs[0]
    if common:
        differences = [first[k] - second[k] for k in first if k in second]
        how = f"paired, {len(differences)} repetitions of one setting"
        return Test(
            comparison, difference, p_value(differences), _told(how, len(differences))
        )
    if min(len(first), len(second)) < FEWEST:
        return Test(
            comparison,
            difference,
            None,
            "fewer than three repetitions of one setting: no test",
        )
    p = stats.ttest_ind(
        list(first.values()), list(second.values()), equal_var=False
    ).pvalue
    how = f"Welch's, {len(first)} and {len(second)} repetitions of one setting"
    return Test(comparison, difference, float(p) if np.isfinite(p) else None, how)


FEWEST = 3
"""Smallest number of pairs for a t-test; with two pairs it has one degree of freedom and
no meaning."""


def _told(how: str, pairs: int) -> str:
    return how if pairs >= FEWEST else f"{how}: fewer than three, no test"


def p_value(differences: Sequence[float]) -> float | None:
    """Return p of a two-sided t-test, H0: mean 0; None of fewer than three, or where they vary by rounding alone."""
    if len(differences) < FEWEST or np.ptp(differences) <= 1e-9 * np.max(
        np.abs(differences)
    ):
        return None
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def constant(row: Row) -> str:
    """Return "constant predictor" where all predictions of every repetition are one class, in how many if not all, or ""."""
    found = row.measured.get(LARGEST)
    alike = sum(value == 1 for value in found.values) if found else 0
    if not found or not alike:
        return ""
    return (
        "constant predictor"
        if alike == len(found.values)
        else f"constant predictor in {alike} of {len(found.values)}"
    )


def _without(parameters: Parameters, factor: str) -> str:
    rest: dict[str, Value] = {
        name: value for name, value in parameters.items() if name != factor
    }
    return canonical(rest)
