"""What the report states of an experiment and of a paper, as text without a format."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from auditdp.report.numbers import MISSING, count, number
from gnn.experiments import cost, cost_text
from gnn.experiments.agreement import Answer
from gnn.experiments.agreement_text import sentence, verdict
from gnn.experiments.cost import Line
from gnn.experiments.cost_text import Table
from gnn.experiments.experiment import FORM, LARGEST, Metric, Value
from gnn.experiments.grid import plain
from gnn.experiments.privacy import Ledger, printed, supported
from gnn.experiments.published import Published
from gnn.experiments.published.papers import Paper
from gnn.experiments.summary import Measured, Row, Summary, Test, constant

DIGITS = 4
PRINTED, SUPPORTED = "printed ε", "audits"


@dataclass(frozen=True)
class Section:
    """One experiment, ready to be written.

    Attributes:
        summary: What is recorded.
        table: The first metric of every setting, and the ε of it.
        others: The other metrics; no columns if there is none.
        audits: What the audits say, as the first table numbers it.
        constants: What is the same in every row.
        tests: The t-tests, as text.
        plots: File, from the folder of reports, and caption.
    """

    summary: Summary
    table: Table
    others: Table
    audits: Sequence[str]
    constants: str
    tests: Sequence[Sequence[str]]
    plots: Sequence[tuple[str, str]]

    @property
    def failures(self) -> list[str]:
        """The failures, a line for each cell."""
        return [
            f"{', '.join(f'{name} = {show(value)}' for name, value in row.parameters.items())}, "
            f"repetition {repetition}: {error}"
            for row in self.summary.rows
            for repetition, error in row.failures.items()
        ]


@dataclass(frozen=True)
class Costs:
    """The cost of honesty, ready to be written.

    Attributes:
        summary: What is recorded.
        lines: Its lines.
        figures: File of each paper, from the folder of reports.
        ledger: What the audits found.
    """

    summary: Summary
    lines: Sequence[Line]
    figures: Mapping[str, str]
    ledger: Ledger

    def of(self, paper: str) -> list[Line]:
        """Return the lines of a paper."""
        return [line for line in self.lines if line.paper == paper]

    @property
    def caption(self) -> str:
        """The content of the figures, and their tests."""
        return (
            f"Means are over {self.seeds} seeds if no other number is stated. A bar is one standard deviation. A hollow "
            "mark is a predictor of one class, in some seeds or all. Differences are tested by two-sided t-tests, paired "
            f"over seeds, {cost_text.tests(self.lines)} in all. Better and worse mean p < {cost.ALPHA:g}. A gain is "
            "the accuracy above the best row without the data. That row is picked by its mean on the seeds of the "
            "comparison, which favours it."
        )

    @property
    def seeds(self) -> int:
        """Number of planned seeds of each row."""
        return self.summary.experiment.repetitions[self.summary.profile]

    @property
    def run(self) -> str:
        """The recorded part, rows with fewer seeds, and the devices."""
        recorded = (
            f"{self.summary.done} of {count(self.summary.planned, 'cell')} recorded."
        )
        parts = [
            recorded,
            cost_text.lacking(self.summary),
            cost_text.devices(self.summary),
        ]
        return " ".join(filter(None, parts))


@dataclass(frozen=True)
class PaperPage:
    """One paper, ready to be written.

    Attributes:
        name: The name of its system.
        source: Where it is.
        verdict: Its results against ours, in a sentence.
        answers: The place, content and answer of each of its tables and figures.
        figure: File of its picture, from the folder of reports; empty without one.
        cost: What keeping its printed ε costs, in a sentence; empty without a record.
        details: What else there is to say of the picture.
        tables: The tables of the picture.
    """

    name: str
    source: str
    verdict: str
    answers: Sequence[tuple[str, str, str]]
    figure: str = ""
    cost: str = ""
    details: Sequence[str] = ()
    tables: Sequence[Table] = ()


def paper_page(paper: Paper, found: Sequence[Answer], costs: Costs | None) -> PaperPage:
    """Return what there is to write of a paper.

    Args:
        paper: The paper.
        found: The answers to its tables and figures.
        costs: The cost of honesty, of all papers.
    """
    page = PaperPage(
        paper.name,
        paper.source,
        verdict(found),
        [(one.printed.place, one.printed.shows, sentence(one)) for one in found],
    )
    lines = costs.of(paper.name) if costs else []
    if costs is None or not lines:
        return page
    return replace(
        page,
        figure=costs.figures[paper.name],
        cost=cost_text.sentence(lines),
        details=cost_text.details(paper.name, lines),
        tables=cost_text.tables(lines, costs.ledger, seeds=costs.seeds),
    )


def section(
    content: Summary, ledger: Ledger, plots: Sequence[tuple[str, str]]
) -> Section:
    """Return an experiment's table with the text around it."""
    experiment = content.experiment
    names = [
        *(factor.name for factor in experiment.factors),
        *([FORM] if experiment.has_repairs else []),
    ]
    varying = [
        n for n in names if len({plain(row.parameters[n]) for row in content.rows}) > 1
    ] or names[:1]
    metrics = [
        m
        for m in experiment.metrics
        if m.name != LARGEST
        and not m.curve
        and any(m.name in row.measured for row in content.rows)
    ]
    with_paper = {
        m.name
        for m in metrics
        if any(_published(row.measured.get(m.name)) for row in content.rows)
    }
    first = [m for m in metrics if m.name in with_paper][:1] or metrics[:1]
    others = [metric for metric in metrics if metric not in first]
    audits: dict[str, int] = {}
    rows, other_rows = [], []
    for row in content.rows:
        setting = [show(row.parameters[name]) for name in varying]
        words = supported(row.guarantee, ledger)
        short, detail, _ = words.partition(" (")
        if detail:
            short += f" [{audits.setdefault(words, len(audits) + 1)}]"
        rows.append(
            [
                *setting,
                *_shown(row, first, with_paper, note=constant(row)),
                str(row.repetitions),
                printed(row.guarantee),
                short,
            ]
        )
        other_rows.append([*setting, *_shown(row, others, with_paper)])
    fixed = (
        {n: show(content.rows[0].parameters[n]) for n in names if n not in varying}
        if content.rows
        else {}
    )
    return Section(
        summary=content,
        table=(
            [*varying, *_named(first, with_paper), "runs", PRINTED, SUPPORTED],
            rows,
        ),
        others=([*varying, *_named(others, with_paper)], other_rows)
        if others
        else ([], []),
        audits=[f"[{place}] {words}" for words, place in audits.items()],
        constants=", ".join(f"{name} = {value}" for name, value in fixed.items()),
        tests=[_test(test) for test in content.tests],
        plots=plots,
    )


def _named(metrics: Sequence[Metric], with_paper: Container[str]) -> list[str]:
    """Return the names of the columns of metrics."""
    columns = []
    for metric in metrics:
        columns += (
            [metric.label, "paper"] if metric.name in with_paper else [metric.label]
        )
    return columns


def _shown(
    row: Row, metrics: Sequence[Metric], with_paper: Container[str], *, note: str = ""
) -> list[str]:
    """Return the cells of metrics; a note stands with the first."""
    texts = []
    for metric in metrics:
        found = row.measured.get(metric.name)
        texts.append(mean_and_sd(found) + (f", {note}" if note else ""))
        texts += [_paper(_published(found))] if metric.name in with_paper else []
        note = ""
    return texts


def mean_and_sd(found: Measured | None) -> str:
    """Return '0.812 ± 0.004', the mean alone of one repetition, or a dash."""
    if found is None:
        return MISSING
    sd = found.sd
    return number(found.mean, DIGITS) + (
        f" ± {number(sd, 2)}" if sd is not None else ""
    )


def show(value: Value) -> str:
    """Return a value of a factor as a reader sees it."""
    return (
        value
        if isinstance(value, str)
        else number(value)
        if not isinstance(value, bool)
        else str(value).lower()
    )


def _published(found: Measured | None) -> Published | None:
    return found.published if found else None


def _paper(published: Published | None) -> str:
    if published is None:
        return MISSING
    return f"{published.mean:g}" + (
        f" ± {published.sd:g}" if published.sd is not None else ""
    )


def _test(test: Test) -> list[str]:
    of = test.comparison
    what = f"{of.metric}: {show(of.first)} against {show(of.second)}"
    paper = (
        MISSING
        if of.published is None
        else f"{of.published:g}" + (f" ({of.source})" if of.source else "")
    )
    return [what, number(test.difference), number(test.p_value, 2), paper, test.how]
