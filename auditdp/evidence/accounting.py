"""Accounting evidence: what accountants say of the claim, given the mechanism's parameters and its sensitivity.

Nothing is run. The claim is about a *model*: noise of the stated size on sums of the stated sensitivity over batches that
are drawn as stated. Whether the code does that is for the game and for evidence of sensitivity. CERTIFIED is said where a
proof covers the claim, VIOLATED where something that is described loses more than is claimed of all of it. Beside a
mechanism that is only if the audit says what the mechanism is (``Audit(about=...)``). What is found about the accountants
themselves is in the details and decides nothing (`auditdp.accountants.cross_checks`).
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
    """Accountants, which are about the class that is described; the mechanism may be a better one than its worst."""
    del alpha  # nothing is drawn
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
    """Cross-check a claim with all accountants of its mechanism.

    The claim is ``about`` a class of mechanisms, the narrowest that the accountants describe unless given; about its worst
    one where ``attained``, as that of a formula is. A mechanism of the class may be a better one, so that nothing refutes a
    claim about it.

    Raises:
        AccountantError: If there are no accountants, or they are for different things and it is not said which is claimed,
            or all of them failed and nothing is known without them.
    """
    check = cross_check(claim, accountants, about=about, attained=attained)
    if check.verdict is Verdict.NOT_REFUTED and len(check.failures) == len(
        check.answers
    ):
        raise AccountantError(f"no accountant answered: {'; '.join(check.failures)}")
    found = len(check.findings)
    remark = f" ({found} finding{'s' * (found > 1)} about accountants)" if found else ""
    remark += f" (no answer: {'; '.join(check.failures)})" if check.failures else ""
    return Evidence(
        kind="accounting",
        verdict=check.verdict,
        statement=check.statement + remark,
        assumptions=[
            f"neighbours: {check.about.adjacency}",
            f"batches: {check.about.sampling}",
            f"about: {check.about.text}"
            + (
                ""
                if attained
                else "; the mechanism is one of them, and maybe a better one"
            ),
            "given its sensitivity: the mechanism is what the parameters say, in noise, sensitivity and number of uses",
        ],
        epsilon_lower=check.level[0],
        epsilon_upper=check.level[1],
        counterexample=_counterexample(check),
        details=AccountingDetails(
            claimed_epsilon=check.epsilon,
            about=check.about.text,
            delta=check.delta,
            accountants=[
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
            ],
            findings=check.findings,
        ),
    )


def _counterexample(check: CrossCheck) -> Counterexample | None:
    if check.verdict is not Verdict.VIOLATED:
        return None
    worst, shown = f"the worst of {check.about.text}", check.lower
    if shown is None or shown.value is None or not shown.refutes:
        return Counterexample(pair=worst, explanation=check.statement)
    return Counterexample(
        pair=f"{worst}, by {shown.name}: {shown.source}",
        explanation=(
            f"At δ = {check.delta:.3g} its loss is ε {at_least(shown.value, check.epsilon, digits=6)}; the claim "
            f"allows {check.epsilon:.6g}"
        ),
    )
