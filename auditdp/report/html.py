"""The verification report: one self-contained HTML page with inline plots, to read, print and hand on.

The page needs no script and loads nothing. Everything that comes from a record is escaped; only the plots, which
``auditdp.report.svg`` escapes itself, are inserted as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from auditdp.report import numbers
from auditdp.report.facts import PAIRS_SHOWN, Table, facts, mapping, pairs, plain, says, tables
from auditdp.report.ledger import ledger
from auditdp.report.numbers import as_float, number
from auditdp.report.standing import (
    AS_DECLARED,
    Standing,
    audited_claims,
    by_standing,
    detectable,
    mutants_by_fate,
    mutation_score,
    named,
    reasons,
    role,
    run_meaning,
    standing,
    verdict_label,
)
from auditdp.report.svg import style_sheet
from auditdp.report.text import printable
from auditdp.report.wording import CLEAN_RUN, MEANINGS, SIGNS
from auditdp.results import AuditResult, ClaimRecord, Evidence, RunRecord, Verdict

SCATTER_POINTS = 240  # in one plot, where a report has few of them
SCATTER_POINTS_OF_REPORT = 1600
COMMON = 3  # what so many audits have in common is said once
MANY = 24  # audits; a report of more leaves to the JSON record what beside a proof is decoration

KINDS = {
    "game": ("Game", "bets on which of two neighbours produced the output"),
    "exact": ("Exact", "the law of the output, enumerated or bounded"),
    "counting": ("Counting", "how often each output came on the inputs played, which bounds their loss from above"),
    "sensitivity": ("Sensitivity", "what is computed before the noise, on two neighbours"),
    "accounting": ("Accounting", "the claim, recomputed by independent accountants"),
    "estimation": ("Estimation", "what is promised about the estimates"),
    "one_run": ("One run", "many canaries in one execution"),
    "support": ("Support", "whether the last bits of floating-point outputs betray the input"),
}

PLOTS = {
    "Wealth": "of the bets against the claim, over the calls. If the claim is true, the line reaches the dashed threshold "
    "1/α with probability at most α, whenever the run stops.",
    "Privacy curve": "the smallest δ that goes with each ε. The claim holds where the solid line is nowhere above the "
    "dashed one.",
}
"""What a plot shows that many audits have."""


@dataclass(frozen=True)
class Plot:
    """An inline SVG and what stands under it: a name in ``PLOTS`` or a text of its own."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class EvidenceView:
    """One kind of evidence, ready to be written.

    ``statement`` is empty where the audit's summary says it; ``common`` are the numbers of the assumptions that stand in the
    page's list.
    """

    evidence: Evidence
    title: str
    statement: str
    facts: Sequence[tuple[str, str]]
    common: Sequence[int]
    assumptions: Sequence[str]
    plots: Sequence[Plot]
    tables: Sequence[Table]
    pairs: Sequence[str]


@dataclass(frozen=True)
class AuditView:
    """One audit, ready to be written.

    ``anchor`` is its address in the page; ``command`` is empty where it is the common one.
    """

    result: AuditResult
    anchor: str
    standing: Standing
    label: str
    reasons: Sequence[str]
    command: str
    evidence: Sequence[EvidenceView]


@dataclass(frozen=True)
class Common:
    """What many audits have in common: assumptions, the command that reproduces AUDIT, and whether there are ``MANY``."""

    assumptions: Sequence[str]
    command: str
    many: bool


def report(record: RunRecord) -> str:
    """Return the record as one HTML page."""
    from auditdp.report.overview import overview as draw  # loads matplotlib, which only a report with plots needs

    groups = by_standing(record)
    ordered = [result for results in groups.values() for result in results]
    scatters = sum("scatter" in evidence.details for result in ordered for evidence in result.evidence)
    points = min(SCATTER_POINTS, SCATTER_POINTS_OF_REPORT // max(1, scatters))
    common = _common(ordered)
    views = [_audit(result, index, points, common) for index, result in enumerate(ordered, start=1)]
    shown = [entry for view in views for entry in view.evidence]
    drawn = {plot.caption for entry in shown for plot in entry.plots}
    overview = draw(ordered, prefix="o")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            record=record,
            views=views,
            groups={key: [view for view in views if view.standing is key] for key in groups},
            headings=HEADINGS,
            overview=Markup(overview) if overview else None,
            claims=audited_claims(record),
            ledger=ledger(record),
            anchors={view.result.id: view.anchor for view in views},
            mutated=any(result.mutation is not None for result in record.results),
            common=common,
            kinds=sorted({KINDS[kind] for kind in KINDS if any(entry.evidence.kind == kind for entry in shown)}),
            plots={name: text for name, text in PLOTS.items() if name in drawn},
            pairs_shown=PAIRS_SHOWN,
            shares=Counter((entry.purpose, entry.alpha) for entry in record.alpha_ledger),
            total_alpha=sum(entry.alpha for entry in record.alpha_ledger),
            plot_styles=Markup(style_sheet()),
            signs=SIGNS,
            meanings=MEANINGS,
            clean_run=CLEAN_RUN,
            run_meaning=run_meaning(record),
            standings=Standing,
            as_declared=AS_DECLARED,
        )
    )


HEADINGS: dict[Standing, str] = {
    Standing.FINDING: "Findings: to be looked at",
    Standing.DECLARED: "Declared violations, found again",
    Standing.MISCALIBRATED: "Declared miscalibrations, found again",
    Standing.CERTIFIED: "Certified",
    Standing.EQUIVALENT: "Equivalent within the margin",
    Standing.NOT_REFUTED: "Not refuted",
    Standing.INCONCLUSIVE: "Inconclusive",
    Standing.ERROR: "Errors",
    Standing.SKIPPED: "Skipped",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("auditdp.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value), keep="\n"),
    )
    environment.filters |= {
        "bounds": numbers.bounds,
        "breakable": _breakable,
        "count": numbers.count,
        "detectable": detectable,
        "duration": numbers.duration,
        "e_value": numbers.e_value,
        "number": number,
        "paragraphs": _paragraphs,
        "plain": plain,
        "slug": lambda verdict: verdict.value.lower().replace("_", "-"),
    }
    environment.globals |= {
        "interval": numbers.interval,
        "mutants_by_fate": mutants_by_fate,
        "mutation_score": mutation_score,
        "named": named,
        "role": role,
    }
    return environment


def _common(results: Sequence[AuditResult]) -> Common:
    rests = Counter(
        text for result in results for evidence in result.evidence for text in _assumptions(evidence, result)
    )
    commands = Counter(_command(result) for result in results if result.id in result.reproduce)
    command, times = max(commands.items(), key=lambda item: item[1], default=("", 0))
    assumptions = [text for text, many in rests.most_common() if many >= COMMON]
    return Common(assumptions, command if times >= COMMON else "", len(results) > MANY)


def _command(result: AuditResult) -> str:
    return result.reproduce.replace(result.id, "AUDIT")


def _assumptions(evidence: Evidence, result: AuditResult) -> list[str]:
    """What the evidence rests on, without what the claim and the statement say already; its mechanism is 'the mechanism'."""
    said = f"scope: {evidence.statement}; neighbours: {result.claim.adjacency if result.claim else ''}"
    name = result.mechanism
    return [
        text.replace(name, "the mechanism") if name else text
        for text in evidence.assumptions
        if not (text.startswith(("scope: ", "neighbours: ")) and says(said, text.partition(": ")[2]))
    ]


def _audit(result: AuditResult, index: int, points: int, common: Common) -> AuditView:
    evidence = [
        _evidence(entry, result, f"a{index}-{place}", points, common) for place, entry in enumerate(result.evidence)
    ]
    return AuditView(
        result=result,
        anchor=f"audit-{index}",
        standing=standing(result),
        label=verdict_label(result).replace("_", " "),
        reasons=reasons(result),
        command="" if _command(result) == common.command and not result.counterexample else result.reproduce,
        evidence=evidence,
    )


def _evidence(evidence: Evidence, result: AuditResult, prefix: str, points: int, common: Common) -> EvidenceView:
    title, _ = KINDS.get(evidence.kind, (evidence.kind.replace("_", " ").capitalize(), ""))
    statement = "" if result.summary.startswith(evidence.statement) else evidence.statement
    pair = result.counterexample.pair if result.counterexample else ""
    rests = _assumptions(evidence, result)
    proved = result.verdict is Verdict.CERTIFIED
    pure = result.claim is not None and result.claim.parameter == "epsilon" and not result.claim.delta
    brief = common.many and proved and (pure or evidence.verdict is not Verdict.CERTIFIED)
    return EvidenceView(
        evidence=evidence,
        title=title,
        statement=statement,
        facts=list(facts(evidence, result.claim, said=f"{evidence.statement}; {numbers.bounds(result)}", pair=pair)),
        common=[common.assumptions.index(text) + 1 for text in rests if text in common.assumptions],
        assumptions=[text for text in rests if text not in common.assumptions],
        plots=[] if brief else list(_plots(evidence, result.claim, prefix, points)),
        tables=list(tables(evidence)),
        pairs=[] if brief else list(pairs(evidence)),
    )


def _plots(evidence: Evidence, claim: ClaimRecord | None, prefix: str, points: int) -> Iterator[Plot]:
    from auditdp.report import figures

    details = evidence.details
    logarithmic = claim is not None and (bool(claim.delta) or claim.parameter == "mu")
    drawn = [
        (
            figures.wealth(details, prefix=f"{prefix}w"),
            "Wealth",
        ),
        (
            figures.privacy_curves(details, logarithmic=logarithmic, prefix=f"{prefix}c"),
            "Privacy curve",
        ),
        (
            figures.classes(details, prefix=f"{prefix}b"),
            "By class of inputs, with intervals. "
            + (
                "A cross marks a bias that is not zero; the shaded band is the margin."
                if as_float(details.get("margin")) is not None
                else "A cross marks a variance above its bound."
            ),
        ),
        (
            figures.scatter(details, points=points, prefix=f"{prefix}s"),
            "A sample of the points, evenly spaced, where there are many."
            + (" The dashed line is equality." if mapping(details.get("scatter")).get("diagonal") else ""),
        ),
    ]
    for svg, caption in drawn:
        if svg is not None:
            yield Plot(Markup(svg), caption)


def _paragraphs(text: str) -> list[Markup]:
    """The paragraphs of a docstring, escaped, with what stands between double backticks as code."""
    found = []
    for paragraph in text.strip().split("\n\n"):
        parts = printable(" ".join(paragraph.split())).split("``")
        marked = [
            escape(part) if k % 2 == 0 else Markup("<code>{}</code>").format(part) for k, part in enumerate(parts)
        ]
        found += [Markup("").join(marked)] if paragraph.strip() else []
    return found


def _breakable(audit_id: str) -> Markup:
    """An audit id that may be broken after its separators, where a column is narrow."""
    written = escape(printable(audit_id))
    for separator in ("/", "::", "["):
        written = Markup(written.replace(Markup(separator), Markup(f"{separator}<wbr>")))
    return written
