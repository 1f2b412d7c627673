"""Sentences about an audit, and views of its evidence, for the templates of HTML."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from auditdp.claims.statements import CLAIMS
from auditdp.record.details import EstimationDetails, ExactDetails, GameDetails
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Evidence,
    Published,
    Verdict,
)
from auditdp.report import numbers
from auditdp.report.facts import contains_phrase, evidence_facts
from auditdp.report.html import plots as figures
from auditdp.report.numbers import as_float, between, level, number
from auditdp.report.sentences import verdict_label

WEALTH = (
    "Wealth of the bets against the claim, over the calls. If the claim is true, the line "
    "reaches the dashed threshold 1/α with probability at most α, whenever the run stops."
)
CURVE = (
    "Privacy curve: the smallest δ that goes with each ε. The claim holds where the solid "
    "line is nowhere above the dashed one."
)
BIAS = "A cross marks a bias that is not zero; the shaded band is the margin."
VARIANCE = "A cross marks a variance above its bound."
SAMPLE = "A sample of the points, evenly spaced, where there are many."


def file_name(audit_id: str) -> str:
    """Return the name of the file with an audit's page, without its suffix.

    It depends on the id alone. The name of 'audits/FILE.py::NAME' is 'FILE-NAME' if it
    has at most 80 characters, no capitals and no special ones. Other names end with a digest of the id,
    so that different ids have different names.

    >>> file_name("audits/audit_edges.py::dprr")
    'audit_edges-dprr'
    """
    plain = audit_id.removeprefix("audits/").replace(".py::", "-").replace("/", "-")
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[:80]
    # Names that differ only in case are one name on some file systems.
    is_plain = name == plain == plain.lower()
    if is_plain and audit_id.startswith("audits/") and audit_id.count("/") == 1:
        return name
    digest = hashlib.sha256(audit_id.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{name}-{digest[:8]}"


def label(result: AuditResult) -> str:
    """Return the verdict in words, such as 'NOT REFUTED' or 'VIOLATED as declared'."""
    return verdict_label(result).replace("_", " ")


def heading(result: AuditResult) -> str:
    """Return the title of an audit's page, which is its ``first_sentence``.

    'Refuted: ' stands before it if the claim is refuted, and 'Calibration refuted: ' if
    the calibration is.
    """
    refuted = {
        Verdict.VIOLATED: "Refuted: ",
        Verdict.MISCALIBRATED: "Calibration refuted: ",
    }
    return f"{refuted.get(result.verdict, '')}{first_sentence(result)}"


def first_sentence(result: AuditResult) -> str:
    """Return the first paragraph of an audit's description, in one line.

    Without a description, it is a sentence with the claim, or the name of the audit.
    """
    described = " ".join(result.description.partition("\n\n")[0].split())
    if described:
        return described
    if result.claim is None:
        return result.id.rpartition("::")[2].replace("_", " ")
    return f"{result.mechanism or 'The mechanism'} is {result.claim.text}."


def meaning(claim: ClaimRecord | None) -> str:
    """Return sentences about the meaning of a claim of privacy; "" for other claims."""
    claimed = level(claim)
    if claim is None or claimed is None or not 0 < claimed < math.inf:
        return ""
    neighbours = between(" Neighbours: ", claim.adjacency, ".")
    hard = "Two neighbours are at least as hard to tell apart as"
    if claim.parameter == "mu":
        normal = "two normal distributions of variance 1 with means"
        return f"{hard} {normal} {number(claimed)} apart.{neighbours}"
    if claim.kind not in CLAIMS or not CLAIMS[claim.kind].is_point:
        return f"{hard} {claim.text} allows.{neighbours}"
    # A factor above e^20 has no meaning for a reader.
    factor = f"e^{number(claimed)}"
    if claimed < 20:
        factor += f" = {number(math.exp(claimed))}"
    if claim.delta:
        return (
            f"The probability of any set of outputs on one input is at most {factor} "
            f"times that on its neighbour, plus {number(claim.delta)}.{neighbours}"
        )
    return (
        f"No output is more than {factor} times as likely on one input as on its "
        f"neighbour.{neighbours}"
    )


def instead(result: AuditResult, repairs: Sequence[AuditResult]) -> Iterator[str]:
    """Yield sentences about the claims that hold instead of a refuted one.

    They are the claims of ``repairs``, which are audits of changed mechanisms, and a
    finite upper bound on the refuted level.
    """
    for repair in repairs:
        published = repair.published or Published("")
        cost = between(" Cost: ", published.cost)
        yield f"{label(repair)}: {first_sentence(repair)}{cost}"
    lead = result.leading
    claim = result.claim
    upper = as_float(result.epsilon_upper)
    # A finite upper bound limits how wrong the claim is.
    if result.counterexample and lead and upper is not None and math.isfinite(upper):
        limit = numbers.bound(upper, up=True, against=level(claim))
        at = numbers.at_delta(claim)
        scope = f"within the scope of the {lead.kind} evidence"
        yield f"{numbers.symbol(claim)} ≤ {limit}{at}, {scope}."


@dataclass(frozen=True)
class EvidenceView:
    """One piece of evidence, prepared for a template.

    Attributes:
        evidence: The evidence.
        statement: Its statement; empty if the summary of the audit begins with it.
        facts: (name, value) of its numbers.
        assumptions: Its assumptions, without those that statement and claim have.
        plots: (image, caption) of its plots.
    """

    evidence: Evidence
    statement: str
    facts: Sequence[tuple[str, str]]
    assumptions: Sequence[str]
    plots: Sequence[tuple[Markup, str]]


def evidence_views(result: AuditResult, *, plots: bool = True) -> list[EvidenceView]:
    """Return a view of each piece of an audit's evidence.

    With ``plots`` = False no view has plots. Beside a proof, plots that repeat its
    numbers are left out, too.
    """
    claim = result.claim
    pair = ""
    if result.counterexample:
        pair = result.counterexample.pair
    is_pure = claim and claim.parameter == "epsilon" and not claim.delta
    views = []
    for evidence in result.evidence:
        # Beside a proof, the wealth of a clean game and the curve of a pure claim
        # repeat the numbers.
        proves = evidence.verdict is Verdict.CERTIFIED and not is_pure
        is_drawn = plots and (proves or result.verdict is not Verdict.CERTIFIED)
        statement = evidence.statement
        stated = f"{statement}; {numbers.bounds(result)}"
        facts = evidence_facts(evidence, claim, already_shown=stated, pair=pair)
        if result.summary.startswith(statement):
            statement = ""
        drawn = []
        if is_drawn:
            drawn = list(_plots(evidence, claim))
        assumptions = _assumptions(evidence, claim)
        view = EvidenceView(evidence, statement, list(facts), assumptions, drawn)
        views.append(view)
    return views


def _assumptions(evidence: Evidence, claim: ClaimRecord | None) -> list[str]:
    adjacency = ""
    if claim:
        adjacency = claim.adjacency
    stated = f"scope: {evidence.statement}; neighbours: {adjacency}"
    unstated = []
    for text in evidence.assumptions:
        head, _, rest = text.partition(": ")
        # The statement has the scope, and the claim the neighbours.
        if head not in ("scope", "neighbours") or not contains_phrase(stated, rest):
            unstated.append(text)
    return unstated


def _plots(
    evidence: Evidence, claim: ClaimRecord | None
) -> Iterator[tuple[Markup, str]]:
    given = evidence.details
    image = None
    caption = ""
    if isinstance(given, GameDetails):
        image, caption = figures.wealth(given), WEALTH
    elif isinstance(given, ExactDetails):
        has_delta = bool(claim and (claim.delta or claim.parameter == "mu"))
        image = figures.privacy_curves(given, logarithmic=has_delta)
        caption = CURVE
    elif isinstance(given, EstimationDetails):
        image = figures.classes(given)
        crossed = BIAS
        if given.margin is None:
            crossed = VARIANCE
        caption = f"By class of inputs, with intervals. {crossed}"
    if image is not None:
        yield image, caption
    if given.scatter is not None:
        image = figures.scatter(given.scatter, points=240)
        caption = SAMPLE
        if given.scatter.diagonal:
            caption += " The dashed line is equality."
        if image is not None:
            yield image, caption
