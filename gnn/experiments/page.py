"""The report of the experiments: one light HTML page, and the same tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from auditdp.report.numbers import MISSING, count, duration, number
from auditdp.report.plain_text import printable
from gnn.experiments import cost, cost_text
from gnn.experiments.catalogue.honesty import PAPERS
from gnn.experiments.cost import Line
from gnn.experiments.experiment import FORM, LARGEST, Experiment, Value
from gnn.experiments.grid import plain
from gnn.experiments.privacy import Ledger, printed, supported
from gnn.experiments.published import Published
from gnn.experiments.summary import Measured, Summary, Test, constant

DIGITS = 4
MOST_ROWS = 20
"""Largest number of rows of a table that is not folded."""
PRINTED, SUPPORTED = "printed ε", "what the audits say of it"


@dataclass(frozen=True)
class Section:
    """One experiment, ready to be written.

    Attributes:
        summary: What is recorded.
        columns: Names of the table's columns.
        rows: Its cells, as text.
        constants: What is the same in every row.
        tests: The t-tests, as text.
        plots: File, from the folder of reports, and caption.
    """

    summary: Summary
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
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
        figure: File, from the folder of reports.
        ledger: What the audits found.
    """

    summary: Summary
    lines: Sequence[Line]
    figure: str
    ledger: Ledger

    @property
    def papers(self) -> list[tuple[str, str, str, list[list[str]]]]:
        """Each paper, what there is to say of it in a sentence and more closely, and its table."""
        grouped = {
            paper: [line for line in self.lines if line.paper == paper]
            for paper in PAPERS
        }
        return [
            (
                paper,
                cost_text.sentence(found),
                cost_text.details(paper, found),
                cost_text.table(found, self.ledger, seeds=self.seeds),
            )
            for paper, found in grouped.items()
            if found
        ]

    @property
    def caption(self) -> str:
        """The content of the figure, and its tests."""
        return (
            f"Means over {self.seeds} seeds where no other number is said, bars one standard deviation, hollow marks "
            "constant predictors, in some seeds or all. Differences are tested by two-sided t-tests paired over seeds, "
            f"{cost_text.tests(self.lines)} in all, and seen where p < {cost.ALPHA:g}; printed numbers are taken as exact, "
            f"and agree within {cost.CLOSE:g}. The best row without the data is picked by its mean on the seeds that it is "
            "then compared on, which favours it."
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
        return " ".join(
            filter(
                None,
                [
                    recorded,
                    cost_text.lacking(self.summary),
                    cost_text.devices(self.summary),
                ],
            )
        )


TEST_COLUMNS = ("t-test", "difference of means", "p", "p in the source", "how")


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
    columns = list(varying)
    for metric in metrics:
        columns += (
            [metric.label, "paper"] if metric.name in with_paper else [metric.label]
        )
    rows = []
    for row in content.rows:
        texts = [show(row.parameters[name]) for name in varying]
        for metric in metrics:
            found = row.measured.get(metric.name)
            note = constant(row) if metric is metrics[0] else ""
            texts.append(mean_and_sd(found) + (f", {note}" if note else ""))
            texts += [_paper(_published(found))] if metric.name in with_paper else []
        rows.append(
            [
                *texts,
                str(row.repetitions),
                printed(row.guarantee),
                supported(row.guarantee, ledger),
            ]
        )
    fixed = (
        {n: show(content.rows[0].parameters[n]) for n in names if n not in varying}
        if content.rows
        else {}
    )
    return Section(
        summary=content,
        columns=[*columns, "runs", PRINTED, SUPPORTED],
        rows=rows,
        constants=", ".join(f"{name} = {value}" for name, value in fixed.items()),
        tests=[_test(test) for test in content.tests],
        plots=plots,
    )


def html(
    sections: Sequence[Section],
    *,
    root_seed: int,
    unrecorded: Sequence[Experiment],
    costs: Costs | None = None,
) -> str:
    """Return the page: what honesty costs, and what there is of each experiment; tables and plots are files beside it."""
    templates = Environment(
        loader=PackageLoader("gnn.experiments", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            value if isinstance(value, Markup) else printable(str(value), keep="\n")
        ),
    )
    templates.filters |= {"count": count, "duration": duration}
    return templates.get_template("experiments.html.j2").render(
        sections=sections,
        unrecorded=unrecorded,
        costs=costs,
        cost_columns=cost_text.COLUMNS,
        not_run=not_run,
        most=MOST_ROWS,
        root_seed=root_seed,
        css=Markup(
            files("auditdp.report.html")
            .joinpath("report.css")
            .read_text(encoding="utf-8")
        ),
    )


def markdown(
    sections: Sequence[Section],
    *,
    root_seed: int,
    unrecorded: Sequence[Experiment],
    costs: Costs | None = None,
) -> str:
    """Return the same as Markdown, with the tables of all experiments."""
    lines = ["# Experiments", "", f"Root seed `{root_seed}`. {EXPLANATION}"]
    if costs:
        lines += [
            "",
            "## What honesty costs",
            "",
            f"![What honesty costs]({costs.figure})",
            "",
            costs.caption,
            "",
            costs.run,
        ]
        for paper, text, more, rows in costs.papers:
            lines += [
                "",
                f"**{paper}.** {text} {more}",
                "",
                *_table(cost_text.COLUMNS, rows),
            ]
    for each in sections:
        content, experiment = each.summary, each.summary.experiment
        lines += [
            "",
            f"## {experiment.title}",
            "",
            f"`{experiment.name}`, {experiment.source}. {progress(content)}",
        ]
        lines += ["", missing] if (missing := not_run(content)) else []
        lines += ["", experiment.notes] if experiment.notes else []
        lines += ["", f"In every row: {each.constants}."] if each.constants else []
        lines += ["", *_table(each.columns, each.rows)]
        lines += ["", *_table(TEST_COLUMNS, each.tests)] if each.tests else []
        lines += [
            text
            for file, caption in each.plots
            for text in ("", f"![{caption}]({file})")
        ]
        lines += ["", "What the source says:", ""] if experiment.statements else []
        lines += [
            f"- {s.source}: {s.text}{'' if s.verified else ' (not stated in its text)'}"
            for s in experiment.statements
        ]
        lines += (
            ["", "Failed:", "", *(f"- {failure}" for failure in each.failures)]
            if each.failures
            else []
        )
    lines += (
        [
            "",
            "## Not run",
            "",
            *(f"- `{e.name}`: {e.title} ({e.source})" for e in unrecorded),
        ]
        if unrecorded
        else []
    )
    return "\n".join(printable(line) for line in lines) + "\n"


EXPLANATION = (
    'Numbers are means ± standard deviations over repetitions; "paper" is what the source prints. "Printed ε" is the ε '
    "under which the source reports the row; the last column is what this project's audits say of it for what was run, from "
    "the ledger of claims: the ε that a certificate covers, or what refutes it. A constant predictor names one class always."
)


def progress(content: Summary) -> str:
    """Return the recorded part of the grid."""
    return (
        f"Profile {content.profile}: {content.done:,} of {count(content.planned, 'cell')} recorded, "
        f"{duration(content.seconds)} of computing."
    )


def not_run(content: Summary) -> str:
    """Return the values of factors without any record."""
    parts = []
    for factor in content.experiment.factors:
        known = {plain(row.parameters[factor.name]) for row in content.rows}
        lacking = [
            show(value)
            for value in factor.values(content.profile)
            if plain(value) not in known
        ]
        parts += [f"{factor.name} {', '.join(lacking)}"] if lacking else []
    return f"Not run: {'; '.join(parts)}." if parts else ""


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


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [
        "| "
        + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line)
        + " |"
        for line in lines
    ]
