"""The one verdict of an audit, drawn from all kinds of evidence, each of which says no more than what it is about.

- The *claim* is about the outputs of the code, which the game and evidence of the support look at. Exact evidence is about
  the law that the mechanism states, accounting about the model that its parameters describe; that the code is so is assumed.
- The *calibration*, noise scaled to what two neighbours need, is an argument for a claim. Evidence of sensitivity refutes
  the argument alone: noise with slack keeps the claim all the same, and where it does not the other kinds show it.

So a refuted claim comes before a refuted calibration, that before a proof, and a proof before a clean game. A certificate
that is given a sensitivity falls with it. Where kinds of evidence contradict each other, the summary says what cannot be so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from auditdp.numerics.rounding import apart
from auditdp.record.details import CountingDetails, ExactDetails, Subject
from auditdp.record.results import PRECEDENCE, ControlResult, Evidence, Verdict, details

MISCALIBRATION = (
    "The noise is calibrated to less than two neighbours need: the argument for the claim fails; the claim itself may still "
    "hold."
)
"""What the verdict MISCALIBRATED says."""
REMEDY = "Calibrate the noise to what neighbours need, or argue for the claim without this sensitivity."
"""What to do about it."""


def leading(evidence: Sequence[Evidence]) -> Evidence:
    """Return the evidence whose verdict comes first; of several with one verdict, the first that was gathered."""
    return min(evidence, key=lambda e: PRECEDENCE.index(e.verdict))


def conclude(
    evidence: Sequence[Evidence], controls: Sequence[ControlResult]
) -> tuple[Verdict, str]:
    """Draw one verdict, with a summary that says what each kind of evidence is about; surviving controls beat all."""
    verdict, summary = _concluded(evidence)
    surviving = [control.name for control in controls if control.survived]
    if surviving:
        return Verdict.INCONCLUSIVE, (
            f"The audit has no power: it did not refute the broken {', '.join(surviving)}; for the mechanism itself: "
            f"{verdict}, {summary}"
        )
    return verdict, summary


def _concluded(evidence: Sequence[Evidence]) -> tuple[Verdict, str]:
    calibration = next(
        (e for e in evidence if e.verdict is Verdict.MISCALIBRATED), None
    )
    about_claim = of_claim(evidence)
    if calibration is None:
        assert about_claim is not None  # there is some evidence
        return about_claim
    if about_claim is None:
        return Verdict.MISCALIBRATED, (
            f"{calibration.statement}. Nothing else was asked for: whether a claim that rests on this calibration holds all "
            "the same was not audited"
        )
    verdict, summary = about_claim
    if verdict is Verdict.VIOLATED:
        return verdict, f"{summary}; {calibration.kind}: {calibration.statement}"
    if verdict is Verdict.CERTIFIED:
        summary += "; so the law has slack for what the neighbours need, or is not that of such noise around this query"
    return (
        Verdict.MISCALIBRATED,
        f"{calibration.statement}. Of the claim itself: {verdict}, {summary}",
    )


def of_claim(evidence: Sequence[Evidence]) -> tuple[Verdict, str] | None:
    """Return the verdict on the claim itself, refuted calibrations aside, and its summary; None where nothing is left."""
    evidence = [e for e in evidence if e.verdict is not Verdict.MISCALIBRATED]
    if not evidence:
        return None
    lead = leading(evidence)
    about = lead.known.subject
    certificates = [e for e in evidence if e.verdict is Verdict.CERTIFIED]
    if lead.verdict is Verdict.VIOLATED:
        law = next((e for e in certificates if e.known.subject is Subject.LAW), None)
        violated = [e for e in evidence if e.verdict is Verdict.VIOLATED]
        if law is not None and all(e.known.subject is Subject.MODEL for e in violated):
            return Verdict.INCONCLUSIVE, (
                f"{lead.kind}: {lead.statement}; {law.kind}: {law.statement}; so "
                f"{_either(['the law that is stated is not that of the accountants’ model', *_provisos(law)])}"
            )
        unlike = [
            e.statement
            for e in evidence
            if e.known.subject is Subject.PLAYED
            and e.verdict is Verdict.INCONCLUSIVE
            and about is Subject.LAW
        ]
        statements = [lead.statement, *map(_contradicted, certificates), *unlike]
        return lead.verdict, "; ".join(statements)
    beyond = beyond_its_law(evidence) if certificates else None
    if (
        about is Subject.PLAYED
        and certificates
        and lead.verdict is Verdict.INCONCLUSIVE
    ):
        beyond = beyond or lead.statement
    if beyond is not None and lead.verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE):
        return (
            Verdict.INCONCLUSIVE,
            f"{beyond}; what is certified is the law, and not the code",
        )
    followed = [
        counted.followed
        for counted in details(evidence, CountingDetails)
        if counted.followed is not None
    ]
    if about is Subject.LAW and lead.verdict is Verdict.CERTIFIED and followed:
        return lead.verdict, f"{lead.statement}; {followed[0]}"
    return lead.verdict, lead.statement


def _contradicted(certificate: Evidence) -> str:
    """Say what follows where a claim is refuted that is certified for a law or a model: something assumed is not so."""
    if certificate.known.subject is Subject.LAW:
        reasons = [
            "the code does not draw from the law that it states",
            *_provisos(certificate),
        ]
        return f"the stated law is certified, so {_either(reasons)}"
    rest = "; ".join(certificate.assumptions)
    return f"{certificate.kind} certifies the claim where all of this is so, and it is not: {rest}"


def _provisos(law: Evidence) -> list[str]:
    """What else may be wrong where an exact bound does not hold for the code, beside that it has another law."""
    given = given_sensitivity(law)
    reasons = (
        []
        if given is None
        else [
            f"two neighbours need more than the sensitivity {given:g} that the bound is given"
        ]
    )
    rest = [
        text
        for text in law.assumptions
        if not text.startswith("scope: ") and "draws from the law" not in text
    ]
    return reasons + [f"this is not so: {text}" for text in rest]


def _either(reasons: Sequence[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"either {', or '.join(reasons)}"


def beyond_its_law(evidence: Sequence[Evidence]) -> str | None:
    """Return how the game shows that the code does not draw from the law that it states, if it does.

    It does where the loss that it shows, with the confidence of its verdict, is more than the law allows on any pair of
    neighbours. The claim may be true all the same: then the law has slack, and only this comparison sees the fault.
    """
    law = next((e for e in evidence if e.known.subject is Subject.LAW), None)
    game = next((e for e in evidence if e.known.opposes), None)
    if (
        law is None
        or game is None
        or law.epsilon_upper is None
        or game.epsilon_lower is None
    ):
        return None
    if game.epsilon_lower <= law.epsilon_upper:
        return None
    least, most = apart(game.epsilon_lower, law.epsilon_upper)
    return (
        f"{game.kind}: the code loses at least {least}, and the law that it states at most {most}: "
        f"{_either(['it does not draw from that law', *_provisos(law)])}"
    )


def without_fallen_certificates(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence with every certificate and upper bound withdrawn that was given a sensitivity that is refuted.

    Accounting is always given one; exact evidence is where it bounds additive noise by the declared sensitivity.
    """
    if not any(e.verdict is Verdict.MISCALIBRATED for e in evidence):
        return list(evidence)
    return [
        _fallen(e)
        if e.known.subject is Subject.MODEL or given_sensitivity(e) is not None
        else e
        for e in evidence
    ]


def given_sensitivity(evidence: Evidence) -> float | None:
    """Return the declared sensitivity, where exact evidence bounds the loss by it and not by all pairs."""
    return (
        evidence.details.given_sensitivity
        if isinstance(evidence.details, ExactDetails)
        else None
    )


def _fallen(evidence: Evidence) -> Evidence:
    if evidence.verdict is not Verdict.CERTIFIED:
        return replace(evidence, epsilon_upper=None)
    statement = f"Not certified, since the sensitivity that this is given is refuted: {evidence.statement}"
    return replace(
        evidence, verdict=Verdict.NOT_REFUTED, statement=statement, epsilon_upper=None
    )


def bounds(
    evidence: Sequence[Evidence], verdict: Verdict
) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound that go with the verdict of an audit.

    A violated claim's lower bound is of the evidence that leads, or of the first other that shows the violation. Else, where
    an upper bound is known, the game's lower bound stands against it, so that the two show each other's quality, and
    elsewhere it is the largest of any evidence. An upper bound below the lower one is that of a law or model which the code
    does not follow, and is left out. What counting bounds from above is about the inputs played alone, so it is none here.
    An inconclusive audit has no bounds: its evidence, which keeps its own, contradicts itself or missed a broken twin.
    """
    if verdict is Verdict.INCONCLUSIVE:
        return None, None
    lead = leading(evidence)
    lowers = [e.epsilon_lower for e in evidence if e.epsilon_lower is not None]
    opposing = next(
        (
            e.epsilon_lower
            for e in evidence
            if e.known.opposes and e.epsilon_lower is not None
        ),
        None,
    )
    known = [e for e in evidence if e.known.subject is not Subject.PLAYED]
    uppers = [e.epsilon_upper for e in known if e.epsilon_upper is not None]
    upper = next((u for u in uppers if math.isfinite(u)), max(uppers, default=None))
    if lead.verdict is Verdict.VIOLATED:
        showing = [lead, *(e for e in evidence if e.verdict is Verdict.VIOLATED)]
        least = next(
            (e.epsilon_lower for e in showing if e.epsilon_lower is not None), None
        )
    elif upper is not None and math.isfinite(upper) and opposing is not None:
        least = opposing
    else:
        least = max(lowers, default=None)
    return (
        least,
        None if least is not None and upper is not None and upper < least else upper,
    )
