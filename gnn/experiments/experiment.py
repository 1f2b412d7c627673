"""An experiment: a declared grid, a function that computes a cell, and printed numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from auditdp.errors import ConfigurationError, did_you_mean
from gnn.experiments.published import Published, Statement

Value = str | int | float | bool
Parameters = Mapping[str, Value]
Curve = Sequence[tuple[float, float]]
"""Points (x, y) with ascending x."""
Metrics = Mapping[str, float | Curve]
Cell = Callable[[Parameters, int, str], Metrics]
"""Computes one cell from (parameters, seed, device). It draws all randomness from the seed, and raises where it fails."""

Profile = Literal["quick", "paper"]
PROFILES: tuple[Profile, ...] = ("quick", "paper")
FORM = "form"
PUBLISHED, REPAIRED = "published", "repaired"
LARGEST = "largest predicted class"
"""The metric that is the share of test predictions that one class has: 1 is a constant predictor, which tables then say."""


@dataclass(frozen=True)
class Factor:
    """One axis of the grid.

    Args:
        name: What it is called, in parameters, tables and ``--only``.
        paper: Its values in the source; one value where it is a setting.
        quick: Its values in the quick profile, those of ``paper`` by default.
    """

    name: str
    paper: tuple[Value, ...]
    quick: tuple[Value, ...] = ()

    def values(self, profile: Profile) -> tuple[Value, ...]:
        """Return the values in a profile."""
        return self.quick or self.paper if profile == "quick" else self.paper


@dataclass(frozen=True)
class Metric:
    """A number, or a curve, that a cell returns.

    Args:
        name: As the cell names it.
        unit: Such as "s" or "%"; empty for a share.
        curve: What x is, where the metric is a curve; it is drawn and has no column.
    """

    name: str
    unit: str = ""
    curve: str = ""

    @property
    def label(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Guarantee:
    """The privacy of one setting: the printed ε, and the audit that supports it.

    Args:
        printed: ε that the source prints, in nats; None where it claims no privacy.
        audit: Id of the line of the ledger of claims that is about what was run, such as
            "audits/audit_edges.py::warner_rr"; empty where there is none.
        others: Ids of further lines that are about it, such as an audit of the pipeline beside one of its accounting; one
            of them that refutes goes before a certificate.
        supports: The ε that the audited claim gives at these parameters, such as ε₁ + ε₂ of a split; by default the ε of
            the audit itself, where that was made at the printed one.
        at_most: The largest loss that is possible at these parameters, proved, where the claim is refuted.
    """

    printed: float | None
    audit: str = ""
    supports: float | None = None
    others: tuple[str, ...] = ()
    at_most: float | None = None

    @property
    def audits(self) -> tuple[str, ...]:
        """All lines."""
        return (self.audit, *self.others) if self.audit else ()


@dataclass(frozen=True)
class Comparison:
    """A two-sided t-test of the source: is one value of a factor better than another?

    Args:
        metric: What is compared.
        factor: Whose two values are compared, everything else being equal.
        first: One value.
        second: The other.
        published: The p-value of the source, where it prints one.
        source: Where.
    """

    metric: str
    factor: str
    first: Value
    second: Value
    published: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Plot:
    """A plot like one of the source: a metric against a factor, or a curve.

    Args:
        metric: What is drawn upwards; a curve brings its own x.
        x: The factor to the right; empty for a curve.
        lines: The factor with one line for each of its values.
        panels: Factors with one plot for each combination of their values; of the other factors all must be settings.
        log_x: Logarithmic x.
        log_y: Logarithmic y.
        diagonal: Whether to draw y = x.
    """

    metric: str
    x: str = ""
    lines: str = ""
    panels: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False


def _never(_: Parameters) -> bool:
    return False


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper as a grid of cells.

    Args:
        name: Short name, such as "dprr-cost".
        title: What it shows, in a line.
        source: Paper, and its table or figure.
        factors: The axes of the grid, in the order of the table's columns.
        metrics: What a cell returns; it may leave some out.
        cell: Computes a cell. A module's function, so that other processes can call it.
        repetitions: How often each setting is run, by profile.
        version: To be raised whenever the cell computes something else; older records then no longer count.
        keep: Which combinations of the factors are settings of the grid.
        common: Factors, or "form", that leave the seed alone: their values are compared on the same random draws, such as
            splits.
        repaired: Which settings have a second row. Where this is given, every setting has a parameter "form":
            "published", or "repaired" for the repaired mechanism at the printed ε.
        files: Files of the data folder that a setting reads.
        published: What the source prints for (setting, metric); asked for the published form only.
        guarantee: The privacy of a setting.
        comparisons: The source's t-tests.
        plots: Plots like those of the source.
        statements: What the source says of its figures.
        notes: What a reader has to know: deviations, substitutes.
        alone: Whether cells are measured one at a time, whatever ``-n`` says: for run times.
    """

    name: str
    title: str
    source: str
    factors: tuple[Factor, ...]
    metrics: tuple[Metric, ...]
    cell: Cell
    repetitions: Mapping[Profile, int]
    version: int = 1
    keep: Callable[[Parameters], bool] = field(default=lambda _: True)
    common: tuple[str, ...] = ()
    repaired: Callable[[Parameters], bool] = field(default=_never)
    files: Callable[[Parameters], Sequence[str]] = field(default=lambda _: ())
    published: Callable[[Parameters, str], Published | None] = field(
        default=lambda _, __: None
    )
    guarantee: Callable[[Parameters], Guarantee] = field(
        default=lambda _: Guarantee(None)
    )
    comparisons: tuple[Comparison, ...] = ()
    plots: tuple[Plot, ...] = ()
    statements: tuple[Statement, ...] = ()
    notes: str = ""
    alone: bool = False

    def __post_init__(self) -> None:
        names = [factor.name for factor in self.factors]
        known = {*names, FORM} if self.has_repairs else set(names)
        if (
            len(set(names)) < len(names)
            or FORM in names
            or not all(factor.paper for factor in self.factors)
        ):
            raise ConfigurationError(
                f"experiment {self.name}: expected factors of different names other than {FORM!r}, each with a value, got "
                f"{', '.join(names)}"
            )
        if set(self.repetitions) != set(PROFILES) or min(self.repetitions.values()) < 1:
            raise ConfigurationError(
                f"experiment {self.name}: expected repetitions >= 1 for quick and paper, got {dict(self.repetitions)}"
            )
        metrics = {metric.name for metric in self.metrics}
        for plot in self.plots:
            self._check("metric", plot.metric, metrics)
            for name in filter(None, (plot.x, plot.lines, *plot.panels)):
                self._check("factor", name, known)
        for name in self.common:
            self._check("factor", name, known)
        for comparison in self.comparisons:
            self._check("metric", comparison.metric, metrics)
            self._check("factor", comparison.factor, known)

    def _check(self, kind: str, name: str, known: set[str]) -> None:
        if name not in known:
            raise ConfigurationError(
                f"experiment {self.name}: no {kind} {name!r}; {did_you_mean(name, known)}"
            )

    @property
    def has_repairs(self) -> bool:
        """True if settings have a repaired form."""
        return self.repaired is not _never

    def metric(self, name: str) -> Metric:
        """Return the metric of that name."""
        return next(metric for metric in self.metrics if metric.name == name)
