"""Audits as the templates write them: what stands on a card, what on its page, with plots and tables made."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from auditdp.claims.statements import CLAIMS
from auditdp.record.details import EstimationDetails, ExactDetails, GameDetails
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Verdict,
)
from auditdp.report import numbers
from auditdp.report.facts import Table, facts, pairs, says, tables
from auditdp.report.guesses import at_most, guessing, said
from auditdp.report.html.drawings import Drawing, DrawnPair, drawing, inputs
from auditdp.report.html.plots import Interval, interval_of
from auditdp.report.numbers import as_float, level, number
from auditdp.report.sentences import Standing, reasons, refuted, standing, verdict_label

WEALTH = (
    "Wealth of the bets against the claim, over the calls. If the claim is true, the line reaches the dashed threshold "
    "1/α with probability at most α, whenever the run stops."
)
CURVE = (
    "Privacy curve: the smallest δ that goes with each ε. The claim holds where the solid line is nowhere above the "
    "dashed one."
)
SCATTER_POINTS = 240
LONGEST_NAME = 80
REFUTED = {
    Verdict.VIOLATED: "Refuted: ",
    Verdict.MISCALIBRATED: "Calibration refuted: ",
}
"""What stands before a claim that is the title of a page."""


@dataclass(frozen=True)
class Plot:
    """An image of a plot and what stands under it."""

    image: Markup
    caption: str


@dataclass(frozen=True)
class EvidenceView:
    """One kind of evidence, ready to be written; ``statement`` is empty where the audit's summary says it."""

    evidence: Evidence
    title: str
    subtitle: str
    statement: str
    facts: Sequence[tuple[str, str]]
    assumptions: Sequence[str]
    plots: Sequence[Plot]
    tables: Sequence[Table]
    pairs: Sequence[str]


@dataclass(frozen=True)
class AuditView:
    """One audit, ready to be written.

    Attributes:
        address: Where its page is, relative to the index: a file, or a place on the same page.
        reasons: Why it is a finding.
        guess: What a violation means to somebody who sees an output.
        inputs: Both inputs of the counterexample, where they can be drawn.
        instead: What holds instead.
        read: What a trace read off the code.
        refuting: How evidence refutes although the verdict is another, each with its counterexample.
    """

    result: AuditResult
    address: str
    standing: Standing
    label: str
    reasons: Sequence[str]
    title: str
    means: str
    guess: str
    inputs: DrawnPair | None
    output: Drawing | None
    instead: Sequence[str]
    read: Sequence[str]
    interval: Interval | None
    refuting: Sequence[tuple[str, Counterexample | None]]

    @property
    def heading(self) -> str:
        """The claim as the title of a page: where it is refuted, that stands before it."""
        return f"{REFUTED.get(self.result.verdict, '')}{self.title}"

    @property
    def anchor(self) -> str:
        """What its element is called on a page."""
        return f"audit-{file_name(self.result.id)}"


def file_name(audit_id: str) -> str:
    """Return the name of an audit's page, the same in every report, which no other audit has.

    >>> file_name("audits/audit_edges.py::dprr")
    'audit_edges-dprr'
    """
    plain = audit_id.removeprefix("audits/").replace(".py::", "-").replace("/", "-")
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[:LONGEST_NAME]
    if (
        name == plain
        and name == name.lower()
        and audit_id.startswith("audits/")
        and audit_id.count("/") == 1
    ):
        return name
    return f"{name}-{hashlib.sha256(audit_id.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def audit_view(
    result: AuditResult, repairs: Mapping[str, Sequence[AuditResult]], *, address: str
) -> AuditView:
    """Return what stands on the card of an audit."""
    found = result.counterexample
    return AuditView(
        result=result,
        address=address,
        standing=standing(result),
        label=verdict_label(result).replace("_", " "),
        reasons=reasons(result),
        title=first_sentence(result),
        means=meaning(result.claim),
        guess=guessing(result),
        inputs=inputs(found.pair) if found else None,
        output=drawing(found.output) if found and found.output else None,
        instead=[*_repaired(repairs.get(result.id, [])), *_bounded(result)],
        read=[f"Read off the code, {sentence}." for sentence in said(result)]
        + [
            f"Read off the code, it loses {sentence}."
            for sentence in [at_most(result)]
            if sentence
        ],
        interval=interval_of(result),
        refuting=[
            (refuted(evidence), evidence.counterexample) for evidence in result.refuting
        ],
    )


def first_sentence(result: AuditResult) -> str:
    """Return the claim in a sentence: the first paragraph of what the audit says of itself, or what the claim is."""
    already_shown = " ".join(result.description.partition("\n\n")[0].split())
    if already_shown or result.claim is None:
        return already_shown or result.id.rpartition("::")[2].replace("_", " ")
    return f"{result.mechanism or 'The mechanism'} is {result.claim.text}."


def meaning(claim: ClaimRecord | None) -> str:
    """Return what a claim of privacy says about outputs, in a sentence; empty for other claims."""
    claimed = level(claim)
    if claim is None or claimed is None or not 0 < claimed < math.inf:
        return ""
    neighbours = f" Neighbours: {claim.adjacency}." if claim.adjacency else ""
    if claim.parameter == "mu":
        apart = (
            f"two normal distributions of variance 1 with means {number(claimed)} apart"
        )
        return (
            f"Two neighbours are at least as hard to tell apart as {apart}.{neighbours}"
        )
    if claim.kind not in CLAIMS or not CLAIMS[claim.kind].is_point:
        return f"Two neighbours are at least as hard to tell apart as {claim.text} allows.{neighbours}"
    factor = (
        "e^"
        + number(claimed)
        + (f" = {number(math.exp(claimed))}" if claimed < 20 else "")
    )
    rest = (
        f", but for outputs of probability {number(claim.delta)}" if claim.delta else ""
    )
    return f"No outputs are more than {factor} times as likely on one input as on its neighbour{rest}.{neighbours}"


def _repaired(repairs: Sequence[AuditResult]) -> Iterator[str]:
    for repair in repairs:
        cost = (
            f" Cost: {repair.published.cost}"
            if repair.published and repair.published.cost
            else ""
        )
        yield f"{verdict_label(repair).replace('_', ' ')}: {first_sentence(repair)}{cost}"


def _bounded(result: AuditResult) -> Iterator[str]:
    """What the evidence that refutes bounds from above."""
    lead = result.leading
    upper = as_float(result.epsilon_upper)
    if (
        result.counterexample is None
        or lead is None
        or upper is None
        or not math.isfinite(upper)
    ):
        return
    letter, claim = numbers.symbol(result.claim), result.claim
    delta = (
        f" at δ = {number(claim.delta)}" if claim is not None and claim.delta else ""
    )
    most = numbers.bound(upper, up=True, against=level(claim))
    yield f"{letter} ≤ {most}{delta}, within the scope of the {lead.kind} evidence."


def evidence_views(result: AuditResult, *, plots: bool = True) -> list[EvidenceView]:
    """Return everything that the page of an audit shows of its evidence, with or without its plots."""
    return [_evidence(entry, result, plots) for entry in result.evidence]


def _assumptions(evidence: Evidence, result: AuditResult) -> list[str]:
    """What the evidence rests on, without what the claim and the statement say already."""
    already_shown = f"scope: {evidence.statement}; neighbours: {result.claim.adjacency if result.claim else ''}"
    return [
        text
        for text in evidence.assumptions
        if not (
            text.startswith(("scope: ", "neighbours: "))
            and says(already_shown, text.partition(": ")[2])
        )
    ]


def _evidence(evidence: Evidence, result: AuditResult, plots: bool) -> EvidenceView:
    pair = result.counterexample.pair if result.counterexample else ""
    pure = (
        result.claim is not None
        and result.claim.parameter == "epsilon"
        and not result.claim.delta
    )
    # Beside a proof a clean game's wealth, and of a pure claim the curve, show nothing that its numbers do not.
    shown = result.verdict is not Verdict.CERTIFIED or (
        evidence.verdict is Verdict.CERTIFIED and not pure
    )
    already_shown = f"{evidence.statement}; {numbers.bounds(result)}"
    return EvidenceView(
        evidence=evidence,
        title=evidence.known.title,
        subtitle=evidence.known.about,
        statement=""
        if result.summary.startswith(evidence.statement)
        else evidence.statement,
        facts=list(
            facts(evidence, result.claim, already_shown=already_shown, pair=pair)
        ),
        assumptions=_assumptions(evidence, result),
        plots=list(_plots(evidence, result.claim)) if shown and plots else [],
        tables=list(tables(evidence, result.claim)),
        pairs=list(pairs(evidence)),
    )


def _plots(evidence: Evidence, claim: ClaimRecord | None) -> Iterator[Plot]:
    from auditdp.report.html import (
        plots as figures,
    )  # loads matplotlib, which only a report with plots needs

    shown = evidence.details
    logarithmic = claim is not None and (bool(claim.delta) or claim.parameter == "mu")
    drawn = []
    if isinstance(shown, GameDetails):
        drawn.append((figures.wealth(shown), WEALTH))
    if isinstance(shown, ExactDetails):
        drawn.append((figures.privacy_curves(shown, logarithmic=logarithmic), CURVE))
    if isinstance(shown, EstimationDetails):
        crossed = (
            "A cross marks a bias that is not zero; the shaded band is the margin."
            if shown.margin is not None
            else "A cross marks a variance above its bound."
        )
        drawn.append(
            (figures.classes(shown), f"By class of inputs, with intervals. {crossed}")
        )
    if shown.scatter is not None:
        equal = " The dashed line is equality." if shown.scatter.diagonal else ""
        caption = f"A sample of the points, evenly spaced, where there are many.{equal}"
        drawn.append((figures.scatter(shown.scatter, points=SCATTER_POINTS), caption))
    for image, caption in drawn:
        if image is not None:
            yield Plot(image, caption)
