"""A claim against every accountant that applies, and the accountants against each other.

What is said of the mechanism and what is said of accountants is kept apart. The verdict rests on proofs alone: the largest
lower bound and the smallest upper bound on ε at the claim's δ, among accountants for the claim's neighbours and sampling.
A number that is no ε, an approximation below the truth, an accountant for something else, and two proofs that contradict
each other are *findings* about accountants. They never count against the mechanism, nor for it.

What an accountant calls exact is exact for the class that it describes: optimal composition for all (ε, δ)-DP parts, say, of
which the mechanism may be a better one. So an exact accountant is a lower bound only where no proof lies below it and its
sampling is the claim's own; otherwise it is an upper bound, which it always is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from auditdp.accountants.base import ROUNDED_UP, Accountant, AccountantError, Soundness
from auditdp.claims import Claim, GaussianDP
from auditdp.results import Verdict

ANY_NEIGHBOURS = "that of "
"""How the adjacency of accountants begins whose parameters are guarantees or sensitivities, whoever the neighbours are."""
ANY_SAMPLING = "none"
"""The sampling of accountants whose parameters are guarantees of whole uses of the data, sampled or not."""
TOLERANCE = 1e-9
"""Two numbers that agree to this relative difference do not contradict each other."""


@dataclass(frozen=True)
class Answer:
    """What one accountant said.

    Attributes:
        name: The analysis and its parameters.
        soundness: What its numbers are to the truth.
        adjacency: Its neighbours.
        sampling: Its sampling.
        source: Where it is from.
        epsilon: ε at the claim's δ, whatever it may be; None where it raised.
        surely: Of a lower bound, what it is if the claim's δ and its own ε were rounded against the claim.
        finding: Why the number does not count; empty where it does.
    """

    name: str
    soundness: Soundness
    adjacency: str
    sampling: str
    source: str
    epsilon: float | None
    surely: float = 0.0
    finding: str = ""

    @property
    def counts(self) -> bool:
        """Whether the verdict may rest on it."""
        return not self.finding and self.soundness is not Soundness.APPROXIMATION


@dataclass(frozen=True)
class CrossCheck:
    """What all accountants together say of a claim.

    Attributes:
        verdict: VIOLATED, CERTIFIED, or NOT_REFUTED, about the mechanism that the accountants' parameters describe.
        statement: The verdict's reason, in one sentence.
        epsilon: The claimed ε that was compared.
        delta: At which δ.
        answers: What each accountant said at that δ.
        lower: The lower bound that counts and is largest; None where there is none.
        upper: The upper bound that counts and is smallest; None where there is none.
    """

    verdict: Verdict
    statement: str
    epsilon: float
    delta: float
    answers: tuple[Answer, ...]
    lower: Answer | None
    upper: Answer | None

    @property
    def findings(self) -> list[str]:
        """What was found out about accountants."""
        return [f"{answer.name}: {answer.finding}" for answer in self.answers if answer.finding]


def cross_check(
    claim: Claim, accountants: Iterable[Accountant], *, adjacency: str = "", sampling: str = ""
) -> CrossCheck:
    """Compare a claim with what accountants say of the mechanism that it is about.

    A claimed ε below the largest lower bound is VIOLATED, one that is no smaller than the smallest upper bound is CERTIFIED
    for the model, and what lies between is NOT_REFUTED. A Gaussian DP claim is compared at a few points of its curve, which
    can refute it but not certify it.

    Args:
        claim: What is promised.
        accountants: All that apply. One that raises is a finding.
        adjacency: The claim's neighbours, in an accountant's words; those of another adjacency are findings. Empty: the
            accountants must agree about it.
        sampling: The claim's sampling, likewise.

    Raises:
        AccountantError: If there are no accountants, or they are for different neighbours or sampling and it is not said
            which is the claim's.
    """
    listed = list(accountants)
    if not listed:
        raise AccountantError(f"cross_check: expected at least one accountant for {claim}, got none")
    adjacency = adjacency or _agreed("adjacency", [a.adjacency for a in listed], ANY_NEIGHBOURS)
    sampling = sampling or _agreed("sampling", [a.sampling for a in listed], ANY_SAMPLING)
    checks = [_at(epsilon, delta, listed, adjacency, sampling) for epsilon, delta in claim.tangents()]
    found = next((check for check in checks if check.verdict is Verdict.VIOLATED), checks[-1])
    if isinstance(claim, GaussianDP) and found.verdict is Verdict.CERTIFIED:
        statement = f"{found.statement}; a few points of a curve do not certify it"
        found = replace(found, verdict=Verdict.NOT_REFUTED, statement=statement)
    return found


def _agreed(what: str, said: Sequence[str], anything: str) -> str:
    specific = sorted({one for one in said if not one.startswith(anything)})
    if len(specific) > 1:
        raise AccountantError(
            f"cross_check: expected accountants of one {what}, got {'; '.join(specific)}; say which is claimed: {what}=..."
        )
    return specific[0] if specific else said[0]


def _at(epsilon: float, delta: float, accountants: list[Accountant], adjacency: str, sampling: str) -> CrossCheck:
    answers = _contradictions([_ask(accountant, delta, adjacency, sampling) for accountant in accountants], sampling)
    upper = min((a for a in answers if a.counts and a.soundness.is_proof), key=_epsilon, default=None)
    lower = max(_lower_bounds(answers, sampling), key=_epsilon, default=None)
    claimed = f"the claimed ε = {epsilon:.9g} at δ = {delta:.3g}"
    if lower is not None and epsilon < lower.surely:
        verdict = Verdict.VIOLATED
        statement = f"{claimed} is below {_epsilon(lower):.9g}, which {lower.name} shows to be lost"
    elif upper is not None and epsilon >= _epsilon(upper):
        verdict = Verdict.CERTIFIED
        statement = f"{claimed} is no less than {_epsilon(upper):.9g}, which {upper.name} proves"
    elif upper is not None and epsilon >= _epsilon(upper) * (1 - 4 * ROUNDED_UP):
        verdict = Verdict.NOT_REFUTED
        statement = f"{claimed} is that of {upper.name} but for rounding, neither certified nor violated"
    else:
        known = [
            f"{_epsilon(answer):.9g} ({answer.name}) from {side}"
            for answer, side in ((lower, "below"), (upper, "above"))
            if answer is not None
        ]
        verdict = Verdict.NOT_REFUTED
        statement = f"{claimed} is not decided: what is proved is {' and '.join(known) or 'nothing'}"
    return CrossCheck(verdict, _capital(statement), epsilon, delta, tuple(answers), lower, upper)


def _ask(accountant: Accountant, delta: float, adjacency: str, sampling: str) -> Answer:
    epsilon: float | None = None
    surely, finding = 0.0, ""
    try:
        epsilon = float(accountant.epsilon_at(delta))
        if accountant.soundness in (Soundness.LOWER, Soundness.EXACT):
            surely = _surely(accountant, epsilon, min(1.0, delta * (1 + 4 * ROUNDED_UP)))
    except Exception as error:  # an accountant is other people's code, and its crash is a finding about it
        finding = f"raised {type(error).__name__}: {error}"
    else:
        if math.isnan(epsilon) or epsilon < 0:
            finding = f"ε = {epsilon:.6g} at δ = {delta:.3g} is no ε"
    if not finding and accountant.adjacency != adjacency and not accountant.adjacency.startswith(ANY_NEIGHBOURS):
        finding = f"is for neighbours that {accountant.adjacency}; the claim's {adjacency}"
    if not finding and accountant.sampling not in (sampling, ANY_SAMPLING):
        finding = f"is for {accountant.sampling} batches; the claim is for {sampling}"
    return Answer(
        accountant.name,
        accountant.soundness,
        accountant.adjacency,
        accountant.sampling,
        accountant.source,
        epsilon,
        surely,
        finding,
    )


def _surely(accountant: Accountant, epsilon: float, delta: float) -> float:
    """Return an ε that is certainly lost at a δ, just below the one that the accountant gives."""
    near = epsilon * (1 - 2 * ROUNDED_UP)
    if 0 < near < math.inf and accountant.delta_at(near) > delta:
        return near
    return float(accountant.epsilon_at(delta)) * (1 - 2 * ROUNDED_UP)


def _lower_bounds(answers: Sequence[Answer], sampling: str) -> list[Answer]:
    """Return the answers that bound the mechanism's own ε from below."""
    proved = min((_epsilon(a) for a in answers if a.counts and a.soundness.is_proof), default=math.inf)
    return [
        answer
        for answer in answers
        if answer.counts
        and answer.sampling == sampling
        and (
            answer.soundness is Soundness.LOWER or (answer.soundness is Soundness.EXACT and not _below(proved, answer))
        )
    ]


def _below(epsilon: float, answer: Answer) -> bool:
    """Whether an ε is less than an answer by more than rounding."""
    return epsilon < _epsilon(answer) * (1 - TOLERANCE)


def _contradictions(answers: list[Answer], sampling: str) -> list[Answer]:
    """Say where an approximation lies below a proof, and set aside proofs that contradict each other."""
    found: dict[str, str] = {}
    for low in _lower_bounds(answers, sampling):
        for high in answers:
            if high.finding or not _below(_epsilon(high), low):
                continue
            if high.soundness is Soundness.APPROXIMATION:
                found[high.name] = (
                    f"underestimates: ε = {_epsilon(high):.6g}, but {low.name} shows at least {_epsilon(low):.6g}"
                )
            elif high.soundness.is_proof:
                said = f"at most {_epsilon(high):.6g} ({high.name}) and at least {_epsilon(low):.6g} ({low.name})"
                found[low.name] = found[high.name] = f"contradiction: ε is {said}; neither counts"
    return [replace(answer, finding=answer.finding or found.get(answer.name, "")) for answer in answers]


def _epsilon(answer: Answer) -> float:
    assert answer.epsilon is not None  # an answer without is a finding, and does not count
    return answer.epsilon


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
