"""Printed results of the five papers: tables as numbers, figures as statements.

One module a paper. Nothing here was measured by this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Published:
    """A number that a paper prints.

    Attributes:
        mean: The number, in the paper's unit.
        source: Table or section.
        sd: The standard deviation (or what follows ±) where it is printed.
        cell: Its row and column, such as ("Cora", "GCN", "RR", "ε = 8").
    """

    mean: float
    source: str
    sd: float | None = None
    cell: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """A statement of a paper about a figure, in this project's words.

    Attributes:
        source: Figure or section.
        text: What it says.
        verified: Whether the paper's text says so; a figure's own points cannot be read in the text.
    """

    source: str
    text: str
    verified: bool = True


@dataclass(frozen=True)
class Ordering:
    """A paper's statement, in its text or by bold type, that a metric is higher at one value of a factor than at another.

    Attributes:
        text: The statement, in this project's words.
        experiment: The experiment whose published rows test it.
        metric: The metric that is compared.
        factor: The factor whose two values are compared, all other factors being equal.
        higher: Its value with the higher metric.
        lower: Its value with the lower metric.
        remark: How ours differ from it, such as by their data, in a sentence.
        where: Values of other factors that the statement is about.
    """

    text: str
    experiment: str
    metric: str
    factor: str
    higher: str | float
    lower: str | float
    where: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Printed:
    """A table or figure of a paper.

    Attributes:
        place: Its number, such as "Table 2".
        shows: Its content, in this project's words.
        experiments: Names of the experiments that repeat it as printed, the first one first; none if nothing repeats it.
        cells: Its printed numbers; none of a figure, whose points cannot be read in the text.
        orderings: Its statements, or those of the text about it, that experiments test.
        lacking: Why cells of certain rows and columns are not run, by these, such as "LastFM, MBM".
        remark: How ours differ from it, such as by their data, in a sentence.
        where: Values of factors that select its part of the experiments.
        reason: Why nothing is run, or why nothing that is run can be compared.
        exact: Whether its numbers count something, so that one run decides whether they are equal.
        plot: Whether it shows measurements; a diagram or a list of symbols does not.
    """

    place: str
    shows: str
    experiments: tuple[str, ...] = ()
    cells: tuple[Published, ...] = ()
    orderings: tuple[Ordering, ...] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""
    where: Mapping[str, str | float] = field(default_factory=dict)
    reason: str = ""
    exact: bool = False
    plot: bool = True


def diagram(place: str, shows: str) -> Printed:
    """Return a figure or table without measurements."""
    return Printed(place, shows, reason="it shows no measurement", plot=False)
