"""Accounting evidence: what accountants say of the claim, given the mechanism's parameters and its sensitivity.

Nothing is run. The claim is about a *model*: noise of the stated size on sums of the stated sensitivity over batches that
are drawn as stated. Whether the code does that is for the game and for evidence of sensitivity. CERTIFIED is said where a
proof covers the claim, VIOLATED where the loss of an attained pair exceeds it. What is found about the accountants
themselves is in the details and decides nothing (`auditdp.accountants.cross_check`).
"""

from __future__ import annotations

from collections.abc import Sequence

from auditdp.accountants.base import Accountant
from auditdp.accountants.cross_check import CrossCheck, cross_check
from auditdp.claims import Claim, GaussianDP
from auditdp.results import Counterexample, Evidence, Verdict


def accounting_evidence(
    claim: Claim, accountants: Sequence[Accountant], *, adjacency: str = "", sampling: str = ""
) -> Evidence:
    """Cross-check a claim with all accountants of its mechanism.

    Args:
        claim: What is promised.
        accountants: Accountants of the mechanism's parameters.
        adjacency: The claim's neighbours in an accountant's words, where the accountants are not all for the same.
        sampling: The claim's sampling, likewise.

    Returns:
        The verdict of the cross-check. ``details`` has the table ``accountants`` (name, soundness, epsilon at ``delta``,
        adjacency, sampling, source, finding) and the ``findings`` about them.

    Raises:
        AccountantError: If there are no accountants, or they are for different things and it is not said which is claimed.
    """
    check = cross_check(claim, accountants, adjacency=adjacency, sampling=sampling)
    leading = check.lower if check.verdict is Verdict.VIOLATED else check.upper or check.lower
    found = len(check.findings)
    remark = f" ({found} finding{'s' * (found > 1)} about accountants)" if found else ""
    whole = not isinstance(claim, GaussianDP)  # else the level is μ, and these are values of ε
    return Evidence(
        kind="accounting",
        verdict=check.verdict,
        statement=check.statement + remark,
        assumptions=[
            f"neighbours: {leading.adjacency if leading else adjacency or 'as the accountants say'}",
            f"batches: {leading.sampling if leading else sampling or 'as the accountants say'}",
            "given its sensitivity: the mechanism is what the parameters say, in noise, sensitivity and number of uses",
        ],
        epsilon_lower=check.lower.epsilon if whole and check.lower else None,
        epsilon_upper=check.upper.epsilon if whole and check.upper else None,
        counterexample=_counterexample(check),
        details={
            "claimed_epsilon": check.epsilon,
            "delta": check.delta,
            "accountants": [
                {
                    "name": answer.name,
                    "soundness": str(answer.soundness),
                    "epsilon": answer.epsilon,
                    "adjacency": answer.adjacency,
                    "sampling": answer.sampling,
                    "source": answer.source,
                    "finding": answer.finding,
                }
                for answer in check.answers
            ],
            "findings": check.findings,
        },
    )


def _counterexample(check: CrossCheck) -> Counterexample | None:
    if check.verdict is not Verdict.VIOLATED or check.lower is None:
        return None
    return Counterexample(
        pair=f"the worst data for {check.lower.name}: {check.lower.source}",
        explanation=(
            f"At δ = {check.delta:.3g} its loss is ε >= {check.lower.epsilon:.6g}; the claim allows {check.epsilon:.6g}"
        ),
    )
