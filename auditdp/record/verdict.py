"""The one verdict of an audit, drawn from all kinds of evidence.

Each kind of evidence supports statements about its own object alone.

- The *claim* is about the outputs of the code. Evidence of the kinds ``game`` and
  ``support`` samples these outputs. Exact evidence is about the law that the mechanism
  states, and accounting is about the model that its parameters describe. Both assume
  that the code follows the law or the model.
- The *calibration* is an argument for a claim: the noise is scaled to the largest
  difference between neighbours. Evidence of sensitivity refutes that argument alone.
  Larger noise than needed may keep the claim without the argument; otherwise the other
  kinds refute the claim.

So a refuted claim comes before a refuted calibration, that before a proof, and a proof
before a clean game. A certificate that assumes a sensitivity is withdrawn if the
sensitivity is refuted. If kinds of evidence contradict each other, the summary lists
assumptions of which at least one must be false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from auditdp.numerics.rounding import apart
from auditdp.record.details import CountingDetails, ExactDetails, Subject
from auditdp.record.results import PRECEDENCE, ControlResult, Evidence, Verdict, details

MISCALIBRATION = (
    "The noise is too small for the difference between two neighbours (the sensitivity), "
    "so the argument for the claim fails. The claim itself may still hold."
)
"""Meaning of the verdict MISCALIBRATED."""
DRAWS_FROM_LAW = "draws from its stated law"
"""Last words of the assumption that a mechanism draws from its stated law; they
identify this assumption."""
REMEDY = "Calibrate the noise to the difference of neighbours, or prove the claim without this sensitivity."
"""Remedy for the verdict MISCALIBRATED."""


def leading(evidence: Sequence[Evidence]) -> Evidence:
    """Return the evidence whose verdict comes first in ``PRECEDENCE``.

    If several have this verdict, it is the first of them. There must be some evidence.
    """
    return min(evidence, key=lambda each: PRECEDENCE.index(each.verdict))


def conclude(
    evidence: Sequence[Evidence], controls: Sequence[ControlResult]
) -> tuple[Verdict, str]:
    """Return the verdict of an audit, and the reason for it in one sentence.

    A control that survived makes the verdict INCONCLUSIVE. There must be some evidence.
    """
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
    """Return the verdict on the claim alone, and its summary.

    Evidence that refutes a calibration does not count.

    Returns:
        Verdict and summary, or None if there is no other evidence.
    """
    evidence = [each for each in evidence if each.verdict is not Verdict.MISCALIBRATED]
    if not evidence:
        return None
    lead = leading(evidence)
    if lead.verdict is Verdict.VIOLATED:
        return _violated(lead, evidence)
    # A proof is about the law. It does not hold for code that loses more than that law,
    # or whose counted outputs refute that it follows the law.
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
    """Return the verdict and its summary if the leading evidence refutes the claim.

    The summary names the certificates that contradict the refutation. The verdict is
    INCONCLUSIVE if only the model is refuted, and the law is certified.
    """
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
    """Return a phrase for the assumptions of a refuted certificate.

    At least one of them is false.
    """
    if certificate.known.subject is Subject.LAW:
        another_law = "the code does not draw from its stated law"
        reasons = _either([another_law, *_provisos(certificate)])
        return f"the stated law is certified, so {reasons}"
    rest = "; ".join(certificate.assumptions)
    head = f"{certificate.kind} certifies the claim if all of this is true"
    return f"{head}, and it is not: {rest}"


def _provisos(law: Evidence) -> list[str]:
    """Return why an exact bound may be wrong for code that draws from the stated law.

    There is one phrase for each assumption that may be false.
    """
    reasons = []
    sensitivity = given_sensitivity(law)
    if sensitivity is not None:
        reasons.append(
            f"two neighbours need more than the sensitivity {sensitivity:g} that the "
            "bound is given"
        )
    for text in law.assumptions:
        if not text.startswith("scope: ") and not text.endswith(DRAWS_FROM_LAW):
            reasons.append(f"this is not so: {text}")
    return reasons


def _either(reasons: Sequence[str]) -> str:
    if len(reasons) == 1:
        return reasons[0]
    return f"either {', or '.join(reasons)}"


def beyond_its_law(evidence: Sequence[Evidence]) -> str | None:
    """Return a sentence if the code loses more than the law that it states.

    The game's lower bound, with the confidence of its verdict, is compared with the
    upper bound on the loss of the stated law over all pairs. Only this comparison shows
    the fault if the claim leaves room for the larger loss.

    Returns:
        The sentence, or None if the lower bound is not above the upper one, or either
        is missing.
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
        f"{game.kind}: the code loses at least {lower_text}, and its stated law at "
        f"most {upper_text}: {reasons}"
    )


def without_fallen_certificates(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence, without certificates that assume a refuted sensitivity.

    If any evidence is MISCALIBRATED, the sensitivity is refuted. Then accounting loses
    its upper bound, and its CERTIFIED becomes NOT_REFUTED. The same holds for exact
    evidence that bounds the loss of additive noise by the declared sensitivity. Other
    evidence stays as it is, and no evidence is removed.
    """
    if not _with_verdict(evidence, Verdict.MISCALIBRATED):
        return list(evidence)
    return list(map(_without_sensitivity, evidence))


def given_sensitivity(evidence: Evidence) -> float | None:
    """Return the declared sensitivity by which exact evidence bounds the loss.

    Returns:
        The sensitivity, or None if the evidence does not assume one.
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

    Lower bound: If the claim is violated, it is that of the leading evidence, or else
    of the first other evidence that refutes and has one. For another verdict with a
    finite upper bound it is that of the game, if it has one, since the distance of both
    bounds shows how tight they are. Otherwise it is the largest of all lower bounds.

    Upper bound: It is the first finite upper bound, or else an infinite one if there is
    any. Counting is left out, since it bounds only the loss of the inputs played. An
    upper bound below the lower bound is dropped: it belongs to a law or model that the
    code does not follow.

    Each is None if no evidence has such a bound. Both are None for an inconclusive
    audit, since its evidence contradicts itself or missed a broken twin. The evidence
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
    """Return the first finite upper bound, or else an infinite one, or else None."""
    bounding = [each for each in evidence if each.known.subject is not Subject.PLAYED]
    uppers = [each.epsilon_upper for each in bounding if each.epsilon_upper is not None]
    # A finite bound of one law says more than an infinite one of another.
    finite = [upper for upper in uppers if math.isfinite(upper)]
    return next(iter([*finite, *uppers]), None)
