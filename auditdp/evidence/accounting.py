"""Accounting evidence: privacy accountants' bounds for the stated parameters.

Nothing is run. The claim is about a *model*: noise of the stated size on sums of the
stated sensitivity over batches that are drawn as stated. Whether the code does that is
tested by the game and by evidence of sensitivity.

The verdict is CERTIFIED if a proof covers every mechanism of the described class. It is
VIOLATED if one mechanism of the class loses more than the claim allows. If the audit
has a mechanism that runs, VIOLATED also needs a description of that mechanism
(``Audit(about=...)``). Findings about the accountants themselves are in the details and
decide nothing (``auditdp.accountants.cross_checks``).
"""

from __future__ import annotations

from collections.abc import Sequence

from auditdp.accountants import (
    Accountant,
    AccountantError,
    CrossCheck,
    Description,
    cross_check,
)
from auditdp.claims.claim import Claim
from auditdp.evidence.request import EvidenceRequest
from auditdp.numerics.rounding import at_least
from auditdp.record.details import AccountantAnswer, AccountingDetails
from auditdp.record.results import Counterexample, Evidence, Verdict


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return the evidence of the accountants of an audit.

    The accountants are about a class of mechanisms. If the audit runs a mechanism and
    does not describe it, the mechanism may lose less than the worst member of the
    class. Then nothing refutes the claim.

    Returns:
        The evidence, or None if there are no accountants or the mechanism is a broken
        twin.
    """
    # The computation draws nothing.
    del alpha
    if not request.accountants or request.control:
        return None
    about = request.about
    attained = about is not None or request.mechanism is None
    return accounting_evidence(
        request.privacy, request.accountants, about=about, attained=attained
    )


def accounting_evidence(
    claim: Claim,
    accountants: Sequence[Accountant],
    *,
    about: Description | None = None,
    attained: bool = True,
) -> Evidence:
    """Return the evidence of a cross-check of a claim with all its accountants.

    Args:
        claim: The claim.
        accountants: The accountants of the mechanism.
        about: The class of mechanisms that the claim is about; by default the narrowest
            class that an accountant describes.
        attained: Whether the claim is about the worst mechanism of the class, as the
            claim of a formula is. Otherwise the mechanism may be a better one, and
            nothing refutes the claim.

    Returns:
        Evidence with the verdict CERTIFIED, VIOLATED or NOT_REFUTED.

    Raises:
        AccountantError: If there are no accountants; if ``about`` is missing and no
            accountant's class lies within all others; or if all accountants failed and
            the claim is undecided.
    """
    check = cross_check(claim, accountants, about=about, attained=attained)
    failed = "; ".join(check.failures)
    # An undecided claim without any answer is an error, and not a result.
    none_answered = len(check.failures) == len(check.answers)
    if check.verdict is Verdict.NOT_REFUTED and none_answered:
        raise AccountantError(f"no accountant answered: {failed}")
    found = len(check.findings)
    remark = f" ({found} finding{'s' * (found > 1)} about accountants)" if found else ""
    remark += f" (no answer: {failed})" if failed else ""
    text = check.about.text
    better = "" if attained else "; the mechanism is among them, and may lose less"
    answers = [
        AccountantAnswer(
            name=answer.name,
            soundness=str(answer.soundness),
            epsilon=answer.value,
            adjacency=answer.adjacency,
            sampling=answer.sampling,
            source=answer.source,
            finding=answer.finding or answer.failed,
        )
        for answer in check.answers
    ]
    return Evidence(
        kind="accounting",
        verdict=check.verdict,
        statement=check.statement + remark,
        assumptions=[
            f"neighbours: {check.about.adjacency}",
            f"batches: {check.about.sampling}",
            f"about: {text}{better}",
            "given its sensitivity: noise, sensitivity and number of uses of the "
            "mechanism are those of the parameters",
        ],
        epsilon_lower=check.level[0],
        epsilon_upper=check.level[1],
        counterexample=_counterexample(check),
        details=AccountingDetails(
            claimed_epsilon=check.epsilon,
            about=text,
            delta=check.delta,
            accountants=answers,
            findings=check.findings,
        ),
    )


def _counterexample(check: CrossCheck) -> Counterexample | None:
    if check.verdict is not Verdict.VIOLATED:
        return None
    # The accountant whose lower bound is reported may be a check alone.
    worst, shown = f"the worst of {check.about.text}", check.lower
    if shown is None or shown.value is None or not shown.refutes:
        return Counterexample(pair=worst, explanation=check.statement)
    return Counterexample(
        pair=f"{worst}, by {shown.name}: {shown.source}",
        explanation=(
            f"At δ = {check.delta:.3g} its loss is ε "
            f"{at_least(shown.value, check.epsilon, digits=6)}; the claim "
            f"allows {check.epsilon:.6g}"
        ),
    )
