"""The report of the experiments: one light HTML page, and the same tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from auditdp.report.numbers import count, duration
from auditdp.report.plain_text import printable
from gnn.experiments.agreement import BY_CHANCE, DEVIATIONS
from gnn.experiments.experiment import Experiment
from gnn.experiments.grid import plain
from gnn.experiments.plots import COST_MARKS
from gnn.experiments.sections import Costs, PaperPage, Section, show
from gnn.experiments.summary import FEWEST, Summary

TEST_COLUMNS = ("t-test", "difference of means", "p", "p in the source", "how")


def html(
    sections: Sequence[Section],
    *,
    root_seed: int,
    unrecorded: Sequence[Experiment],
    papers: Sequence[PaperPage] = (),
    costs: Costs | None = None,
) -> str:
    """Return the page: a picture and a sentence for each paper, an answer to each table and figure, what honesty costs."""
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
        papers=papers,
        costs=costs,
        legend=LEGEND,
        rule=RULE,
        fewest=FEWEST,
        not_run=not_run,
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
    papers: Sequence[PaperPage] = (),
    costs: Costs | None = None,
) -> str:
    """Return the same as Markdown, with the tables of all experiments."""
    lines = ["# Experiments", "", f"Root seed `{root_seed}`. {RULE}"]
    for paper in papers:
        lines += ["", f"## {paper.name}", "", f"{paper.source}. {paper.verdict}", ""]
        lines += [
            f"- **{place}**: {shows}. {text}" for place, shows, text in paper.answers
        ]
    if costs:
        lines += ["", "## What honesty costs", "", costs.caption, "", costs.run]
    for paper in papers:
        if not paper.figure:
            continue
        caption = f"{paper.name}: what honesty costs"
        lines += ["", f"### {caption}", "", f"![{caption}]({paper.figure})"]
        lines += ["", paper.cost, ""] + [f"- {text}" for text in paper.details]
        for columns, rows in paper.tables:
            lines += ["", *_table(columns, rows)]
    lines += ["", "## Every experiment", "", EXPLANATION]
    for each in sections:
        lines += _section(each)
    if unrecorded:
        lines += ["", "## Not run", ""]
        lines += [f"- `{e.name}`: {e.title} ({e.source})" for e in unrecorded]
    return "\n".join(printable(line) for line in lines) + "\n"


def _section(each: Section) -> list[str]:
    """Return an experiment as Markdown."""
    content, experiment = each.summary, each.summary.experiment
    lines = ["", f"### {experiment.title}", ""]
    lines.append(f"`{experiment.name}`, {experiment.source}. {progress(content)}")
    lines += ["", missing] if (missing := not_run(content)) else []
    lines += ["", experiment.notes] if experiment.notes else []
    lines += ["", f"In every row: {each.constants}."] if each.constants else []
    lines += ["", *_table(*each.table)]
    lines += ["", f"Audits: {'; '.join(each.audits)}."] if each.audits else []
    if each.others[0]:
        lines += ["", "Other metrics:", "", *_table(*each.others)]
    lines += ["", *_table(TEST_COLUMNS, each.tests)] if each.tests else []
    for file, caption in each.plots:
        lines += ["", f"![{caption}]({file})"]
    lines += ["", "What the source says:", ""] if experiment.statements else []
    lines += [
        f"- {s.source}: {s.text}{'' if s.verified else ' (not stated in its text)'}"
        for s in experiment.statements
    ]
    if each.failures:
        lines += ["", "Failed:", "", *(f"- {failure}" for failure in each.failures)]
    return lines


LEGEND = tuple(
    (sign, text, role)
    for sign, (_, text, _, role) in zip("×●■▲◆", COST_MARKS, strict=True)
)
"""Sign, meaning and colour of the marks of a picture."""
RULE = (
    f"A printed number agrees if it is within {DEVIATIONS} standard deviations (sd) of the mean of ours. The sd is that of "
    f"our runs, at least {FEWEST}. The printed number is taken as exact. Counts of data sets have to be equal. A comparison "
    "is an order that a paper states, such as “A is more accurate than B”, at one of our settings. It is "
    f"confirmed or reversed if our difference is larger than {DEVIATIONS} sd of the difference of two runs. Of equal means, "
    f"{FEWEST} runs pass this limit by chance in {BY_CHANCE:.0%} of cases, and more runs less often."
)
EXPLANATION = (
    'Numbers are means ± standard deviations over repetitions; "paper" is the printed number. "Printed ε" is the ε under '
    "which the source reports the row. The last column states the result of this project's audits for it, from the ledger "
    "of claims: the ε that a certificate covers, or a refutation. A constant predictor predicts one class for all nodes."
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


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [
        "| "
        + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line)
        + " |"
        for line in lines
    ]
