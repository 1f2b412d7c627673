"""The one verdict of an audit, drawn from all kinds of evidence.

Each kind of evidence supports statements about its own object alone.

- The *claim* is about the outputs of the code, which the game and evidence of the
  support sample. Exact evidence is about the law that the mechanism states, and
  accounting about the model that its parameters describe; both assume that the code
  follows the law or the model.
- The *calibration*, noise scaled to the largest difference between neighbours, is an
  argument for a claim. Evidence of sensitivity refutes that argument alone: noise with
  slack keeps the claim without it, and if the noise has no slack, the other kinds
  refute the claim.

So a refuted claim comes before a refuted calibration, that before a proof, and a proof
before a clean game. A certificate that is given a sensitivity falls with it. If kinds
of evidence contradict each other, the summary names the assumptions of which one must
be false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from auditdp.numerics.rounding import apart
from auditdp.record.details import CountingDetails, ExactDetails, Subject
from auditdp.record.results import PRECEDENCE, ControlResult, Evidence, Verdict, details

MISCALIBRATION = (
    "The noise is calibrated to less than the difference of two neighbours, so the "
    "argument for the claim fails. The claim itself may still hold."
)
"""Meaning of the verdict MISCALIBRATED."""
REMEDY = "Calibrate the noise to the difference of neighbours, or prove the claim without this sensitivity."
"""Remedy for the verdict MISCALIBRATED."""


def leading(evidence: Sequence[Evidence]) -> Evidence:
    """Return the first evidence with the verdict that takes precedence."""
    return min(evidence, key=lambda each: PRECEDENCE.index(each.verdict))


def conclude(
    evidence: Sequence[Evidence], controls: Sequence[ControlResult]
) -> tuple[Verdict, str]:
    """Draw one verdict and its summary; a surviving control makes it INCONCLUSIVE."""
    verdict, summary = _concluded(evidence)
    # An audit that misses a broken twin could miss any fault of the mechanism.
    surviving = [control.name for control in controls if control.survived]
    if not surviving:
        return verdict, summary
    return Verdict.INCONCLUSIVE, (
        f"The audit has no power: it did not refute the broken {', '.join(surviving)}; "
        f"for the mechanism itself: {verdict}, {summary}"
    )


def _concluded(evidence: Sequence[Evidence]) -> tuple[Verdict, str]:
    about_claim = of_claim(evidence)
    refuted = _with_verdict(evidence, Verdict.MISCALIBRATED)
    if not refuted:
        # There is evidence about the claim.
        assert about_claim is not None
        return about_claim
    calibration = refuted[0]
    # An audit may ask for evidence of sensitivity alone.
    if about_claim is None:
        return Verdict.MISCALIBRATED, (
            f"{calibration.statement}. No other evidence was requested, so the claim "
            "that rests on this calibration was not audited"
        )
    verdict, summary = about_claim
    # A violated claim outranks its refuted calibration.
    if verdict is Verdict.VIOLATED:
        return verdict, f"{summary}; {calibration.kind}: {calibration.statement}"
    if verdict is Verdict.CERTIFIED:
        summary += (
            "; so the law has slack for what the neighbours need, or is not that of such "
            "noise around this query"
        )
    summary = f"{calibration.statement}. On the claim itself: {verdict}, {summary}"
    return Verdict.MISCALIBRATED, summary


def _with_verdict(evidence: Sequence[Evidence], verdict: Verdict) -> list[Evidence]:
    return [each for each in evidence if each.verdict is verdict]


def of_claim(evidence: Sequence[Evidence]) -> tuple[Verdict, str] | None:
    """Return the verdict on the claim without refuted calibrations, and its summary.

    Returns:
        The pair, or None if all evidence refutes a calibration.
    """
    evidence = [each for each in evidence if each.verdict is not Verdict.MISCALIBRATED]
    if not evidence:
        return None
    lead = leading(evidence)
    if lead.verdict is Verdict.VIOLATED:
        return _violated(lead, evidence)
    # A proof is about the law. It does not hold for code that loses more than that law,
    # or that counting refutes to follow it.
    subject = lead.known.subject
    if _with_verdict(evidence, Verdict.CERTIFIED):
        beyond = beyond_its_law(evidence)
        undecided = lead.verdict is Verdict.INCONCLUSIVE
        if subject is Subject.PLAYED and undecided:
            beyond = beyond or lead.statement
        if beyond is not None and (undecided or lead.verdict is Verdict.CERTIFIED):
            summary = f"{beyond}; what is certified is the law, and not the code"
            return Verdict.INCONCLUSIVE, summary
    if subject is Subject.LAW and lead.verdict is Verdict.CERTIFIED:
        for counted in details(evidence, CountingDetails):
            if counted.followed is not None:
                return lead.verdict, f"{lead.statement}; {counted.followed}"
    return lead.verdict, lead.statement


def _violated(lead: Evidence, evidence: Sequence[Evidence]) -> tuple[Verdict, str]:
    """Return the verdict of evidence that refutes, with its contradictions."""
    certificates = _with_verdict(evidence, Verdict.CERTIFIED)
    # Code that breaks a certified claim does not follow its law.
    laws = [each for each in certificates if each.known.subject is Subject.LAW]
    violated = _with_verdict(evidence, Verdict.VIOLATED)
    # A proof of the law and a refuted model contradict each other, and neither is the
    # code.
    if laws and all(each.known.subject is Subject.MODEL for each in violated):
        law = laws[0]
        model = "the law that is stated is not that of the accountants’ model"
        return Verdict.INCONCLUSIVE, (
            f"{lead.kind}: {lead.statement}; {law.kind}: {law.statement}; so "
            f"{_either([model, *_provisos(law)])}"
        )
    statements = [lead.statement, *map(_contradicted, certificates)]
    if lead.known.subject is Subject.LAW:
        undecided = _with_verdict(evidence, Verdict.INCONCLUSIVE)
        statements += [
            each.statement for each in undecided if each.known.subject is Subject.PLAYED
        ]
    return lead.verdict, "; ".join(statements)


def _contradicted(certificate: Evidence) -> str:
    """Return the assumptions of a certificate, of which one is false."""
    if certificate.known.subject is Subject.LAW:
        another_law = "the code does not draw from the law that it states"
        reasons = _either([another_law, *_provisos(certificate)])
        return f"the stated law is certified, so {reasons}"
    rest = "; ".join(certificate.assumptions)
    head = f"{certificate.kind} certifies the claim if all of this is true"
    return f"{head}, and it is not: {rest}"


def _provisos(law: Evidence) -> list[str]:
    """Return the assumptions of an exact bound, besides that the code has its law."""
    reasons = []
    sensitivity = given_sensitivity(law)
    if sensitivity is not None:
        reasons.append(
            f"two neighbours need more than the sensitivity {sensitivity:g} that the "
            "bound is given"
        )
    for text in law.assumptions:
        if not text.startswith("scope: ") and "draws from the law" not in text:
            reasons.append(f"this is not so: {text}")
    return reasons


def _either(reasons: Sequence[str]) -> str:
    if len(reasons) == 1:
        return reasons[0]
    return f"either {', or '.join(reasons)}"


def beyond_its_law(evidence: Sequence[Evidence]) -> str | None:
    """Compare the game's lower bound with the upper bound of the stated law.

    The claim may be true if the code loses more than its law: then the law has slack,
    and this comparison alone shows the fault.

    Returns:
        A sentence, or None unless the loss that the game certifies, with the confidence
        of its verdict, exceeds the law's loss on every pair of neighbours.
    """
    law = next((e for e in evidence if e.known.subject is Subject.LAW), None)
    game = next((e for e in evidence if e.known.opposes), None)
    if law is None or game is None:
        return None
    lower, upper = game.epsilon_lower, law.epsilon_upper
    if lower is None or upper is None or lower <= upper:
        return None
    # Rounding must not make both numbers equal.
    lower_text, upper_text = apart(lower, upper)
    reasons = _either(["it does not draw from that law", *_provisos(law)])
    return (
        f"{game.kind}: the code loses at least {lower_text}, and the law that it states at "
        f"most {upper_text}: {reasons}"
    )


def without_fallen_certificates(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Withdraw every certificate and upper bound that is given a refuted sensitivity.

    Accounting is always given one; exact evidence is given one if it bounds additive
    noise by the declared sensitivity.
    """
    if not _with_verdict(evidence, Verdict.MISCALIBRATED):
        return list(evidence)
    return list(map(_without_sensitivity, evidence))


def given_sensitivity(evidence: Evidence) -> float | None:
    """Return the sensitivity by which exact evidence bounds the loss.

    Returns:
        The declared sensitivity, or None if the bound is over all pairs.
    """
    exact = evidence.details
    if isinstance(exact, ExactDetails):
        return exact.given_sensitivity
    return None


def _without_sensitivity(evidence: Evidence) -> Evidence:
    is_model = evidence.known.subject is Subject.MODEL
    if not is_model and given_sensitivity(evidence) is None:
        return evidence
    evidence = replace(evidence, epsilon_upper=None)
    # Without its certificate, other evidence keeps its verdict.
    if evidence.verdict is not Verdict.CERTIFIED:
        return evidence
    statement = (
        "Not certified, since the sensitivity on which it rests is refuted: "
        f"{evidence.statement}"
    )
    return replace(evidence, verdict=Verdict.NOT_REFUTED, statement=statement)


def bounds(
    evidence: Sequence[Evidence], verdict: Verdict
) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound that belong to the verdict of an audit.

    The lower bound of a violated claim is that of the leading evidence, or else of the
    first other evidence that refutes. For another verdict with a finite upper bound it
    is the game's lower bound, so that the two show each other's quality; otherwise it
    is the largest of all lower bounds. An upper bound below the lower one belongs to a
    law or model that the code does not follow, and is left out. Counting bounds the
    inputs played alone, so it gives no upper bound here. An inconclusive audit has no
    bounds, since its evidence contradicts itself or missed a broken twin; the evidence
    keeps its own bounds.
    """
    if verdict is Verdict.INCONCLUSIVE:
        return None, None
    upper = _upper_bound(evidence)
    lead = leading(evidence)
    if lead.verdict is Verdict.VIOLATED:
        refuting = [lead, *_with_verdict(evidence, Verdict.VIOLATED)]
        lower = next(iter(_lower_bounds(refuting)), None)
    else:
        lower = max(_lower_bounds(evidence), default=None)
        opposing = _lower_bounds([each for each in evidence if each.known.opposes])
        if opposing and upper is not None and math.isfinite(upper):
            lower = opposing[0]
    if lower is not None and upper is not None and upper < lower:
        upper = None
    return lower, upper


def _lower_bounds(evidence: Sequence[Evidence]) -> list[float]:
    return [each.epsilon_lower for each in evidence if each.epsilon_lower is not None]


def _upper_bound(evidence: Sequence[Evidence]) -> float | None:
    """Return the first finite upper bound, an infinite one without it, or None."""
    bounding = [each for each in evidence if each.known.subject is not Subject.PLAYED]
    uppers = [each.epsilon_upper for each in bounding if each.epsilon_upper is not None]
    # A finite bound of one law says more than an infinite one of another.
    finite = [upper for upper in uppers if math.isfinite(upper)]
    return next(iter([*finite, *uppers]), None)
