"""A claim against every accountant that applies, and the accountants against each other.

A claim is about a class of mechanisms (``description``): by default the narrowest one that the accountants describe, and it
has to lie within all the others. An accountant of a class around it bounds the claim's class from above and never from
below, for the worst of the wider class need not lie within it; an accountant of a class within it bounds it from below and
never from above. So the verdict rests on proofs alone, and to add or to leave out an accountant of a wider class can only
turn NOT_REFUTED into CERTIFIED or back.

What is said of accountants is kept apart. A number that is no ε, an approximation below the truth, an accountant for
something else, and two proofs that contradict each other are *findings* about accountants. They never count against the
mechanism, nor for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from flint import arb

from auditdp.accountants.base import ROUNDED_UP, Accountant, AccountantError, Soundness
from auditdp.accountants.description import Description, narrowest, within
from auditdp.claims import Claim, GaussianDP
from auditdp.laws import precision
from auditdp.laws.balls import above
from auditdp.laws.gaussian import gaussian_delta
from auditdp.results import Verdict

TOLERANCE = 1e-9
"""Two numbers that agree to this relative difference do not contradict each other."""
TIE = 1 + 4 * ROUNDED_UP
"""How much larger a claimed ε, and δ, may be before a loss beyond it counts: less is rounding."""


@dataclass(frozen=True)
class Answer:
    """What one accountant said.

    Attributes:
        name: The analysis and its parameters.
        soundness: What its numbers are to the truth of what it describes.
        adjacency: Its neighbours.
        sampling: Its sampling.
        source: Where it is from.
        epsilon: ε at the claim's δ, whatever it may be; None where it raised.
        from_above: Whether it describes a class around the claim's, or the claim's own.
        from_below: Whether it describes a class within the claim's, or the claim's own.
        refutes: Whether what it shows to be lost is more than the claim allows, rounding aside.
        certifies: Whether what it proves is what the claim says.
        finding: Why the number does not count; empty where it does.
    """

    name: str
    soundness: Soundness
    adjacency: str
    sampling: str
    source: str
    epsilon: float | None
    from_above: bool = False
    from_below: bool = False
    refutes: bool = False
    certifies: bool = False
    finding: str = ""

    @property
    def is_upper(self) -> bool:
        """Whether it is a proof that bounds the claim's ε from above."""
        return not self.finding and self.from_above and self.soundness.is_proof

    @property
    def is_lower(self) -> bool:
        """Whether it is a proof that bounds the claim's ε from below."""
        return not self.finding and self.from_below and self.soundness.is_attained


@dataclass(frozen=True)
class CrossCheck:
    """What all accountants together say of a claim.

    Attributes:
        verdict: VIOLATED, CERTIFIED, or NOT_REFUTED, about what ``about`` describes.
        statement: The verdict's reason, in one sentence.
        about: The class of mechanisms that the claim is about.
        epsilon: The claimed ε that was compared.
        delta: At which δ.
        answers: What each accountant said at that δ.
        lower: The lower bound that counts and is largest; None where there is none.
        upper: The upper bound that counts and is smallest; None where there is none.
    """

    verdict: Verdict
    statement: str
    about: Description
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
    claim: Claim, accountants: Iterable[Accountant], *, about: Description | None = None, attained: bool = True
) -> CrossCheck:
    """Compare a claim with what accountants say of the mechanisms that it is about.

    A claim that something in its class breaks is VIOLATED, one that a proof for its class covers is CERTIFIED for the model,
    and what lies between is NOT_REFUTED. A Gaussian DP claim is compared at a few points of its curve, which can refute it
    but not certify it.

    Args:
        claim: What is promised.
        accountants: All that apply. One that raises is a finding.
        about: What it is promised of: a description, or an accountant of it. None: the narrowest that is described.
        attained: Whether the worst of ``about`` is among what the claim is about. If the claim is about one mechanism of the
            class, which may be a better one, nothing bounds its loss from below.

    Raises:
        AccountantError: If there are no accountants, or it is not said what the claim is about and no accountant's
            description lies within all the others.
    """
    listed = list(accountants)
    if not listed:
        raise AccountantError(f"cross_check: expected at least one accountant for {claim}, got none")
    subject = about.describes if about is not None else _common([a.describes for a in listed])
    checks = [_at(epsilon, delta, listed, subject, attained) for epsilon, delta in _points(claim)]
    found = next((check for check in checks if check.verdict is Verdict.VIOLATED), checks[-1])
    if isinstance(claim, GaussianDP) and found.verdict is Verdict.CERTIFIED:
        statement = f"{found.statement}; a few points of a curve do not certify it"
        found = replace(found, verdict=Verdict.NOT_REFUTED, statement=statement)
    return found


def _common(descriptions: Sequence[Description]) -> Description:
    found = narrowest(descriptions)
    if found is None:
        texts = "; ".join(sorted({one.text for one in descriptions}))
        raise AccountantError(
            f"cross_check: expected accountants of one thing, or of classes around it, got {texts}; say which of them the "
            "claim is about: about=..."
        )
    return found


def _points(claim: Claim) -> Iterator[tuple[float, float]]:
    """The (ε, δ) statements that a claim implies, δ rounded up."""
    for epsilon, delta in claim.tangents():
        if isinstance(claim, GaussianDP):
            with precision():
                delta = above(gaussian_delta(arb(claim.mu), arb(epsilon)))  # in floats it may be too small
        yield epsilon, delta


def _at(epsilon: float, delta: float, accountants: list[Accountant], about: Description, attained: bool) -> CrossCheck:
    answers = _contradictions([_ask(one, epsilon, delta, about, attained) for one in accountants])
    upper = min((a for a in answers if a.is_upper), key=_rank, default=None)
    lower = max((a for a in answers if a.is_lower), key=_rank, default=None)
    claimed = f"the claimed ε = {epsilon:.9g} at δ = {delta:.3g}"
    shown = max((a for a in answers if a.is_lower and a.refutes), key=_rank, default=None)
    if shown is not None:
        verdict = Verdict.VIOLATED
        lost = f"which {shown.name} shows to be lost by the worst of {about.text}"
        statement = f"{claimed} is below {_epsilon(shown):.9g}, {lost}"
        lower = shown
    elif upper is not None and any(a.is_upper and a.certifies for a in answers):
        verdict = Verdict.CERTIFIED
        statement = f"{claimed} is no less than {_epsilon(upper):.9g}, which {upper.name} proves of {about.text}"
    else:
        verdict = Verdict.NOT_REFUTED
        statement = _undecided(claimed, epsilon, answers, lower, upper)
    return CrossCheck(verdict, _capital(statement), about, epsilon, delta, tuple(answers), lower, upper)


def _undecided(
    claimed: str, epsilon: float, answers: Sequence[Answer], lower: Answer | None, upper: Answer | None
) -> str:
    if upper is not None and epsilon >= _epsilon(upper) / TIE:
        return f"{claimed} is that of {upper.name} but for rounding, neither certified nor violated"
    known = [
        f"{_epsilon(answer):.9g} ({answer.name}) from {side}"
        for answer, side in ((lower, "below"), (upper, "above"))
        if answer is not None
    ]
    unproved = min(
        (a for a in answers if not a.finding and a.from_above and a.soundness is Soundness.UNPROVED),
        key=_rank,
        default=None,
    )
    said = f"{claimed} is not decided: what is proved is {' and '.join(known) or 'nothing'}"
    if unproved is not None and _epsilon(unproved) <= epsilon:
        said += f"; {unproved.name} has {_epsilon(unproved):.9g}, with rounding errors that are not bounded"
    return said


def _ask(accountant: Accountant, epsilon: float, delta: float, about: Description, attained: bool) -> Answer:
    described, soundness = accountant.describes, accountant.soundness
    from_above, from_below = within(about, described), attained and within(described, about)
    found: float | None = None
    refutes = certifies = False
    finding = ""
    try:
        found = float(accountant.epsilon_at(delta))
        certifies = from_above and soundness.is_proof and found <= epsilon
        if from_below and soundness.is_attained:
            # An exact curve is rounded up, by no more than this.
            down = 1 - ROUNDED_UP if soundness is Soundness.EXACT else 1.0
            refutes = accountant.delta_at(epsilon * TIE) * down > delta * TIE
    except Exception as error:  # an accountant is other people's code, and its crash is a finding about it
        finding = f"raised {type(error).__name__}: {error}"
    else:
        if math.isnan(found) or found < 0:
            finding = f"ε = {found:.6g} at δ = {delta:.3g} is no ε"
    if not finding and not from_above and not within(described, about):
        finding = f"is about {described.text}; the claim is about {about.text}"
    return Answer(
        accountant.name,
        soundness,
        accountant.adjacency,
        accountant.sampling,
        accountant.source,
        found,
        from_above,
        from_below,
        refutes,
        certifies,
        finding,
    )


def _contradictions(answers: list[Answer]) -> list[Answer]:
    """Say where a number that proves nothing lies below a proof, and set aside proofs that contradict each other."""
    found: dict[str, str] = {}
    for low in (answer for answer in answers if answer.is_lower):
        for high in answers:
            if high.finding or not high.from_above or not _epsilon(high) < _epsilon(low) * (1 - TOLERANCE):
                continue
            if high.soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
                found[high.name] = (
                    f"underestimates: ε = {_epsilon(high):.6g}, but {low.name} shows at least {_epsilon(low):.6g}"
                )
            elif high.soundness.is_proof:
                said = f"at most {_epsilon(high):.6g} ({high.name}) and at least {_epsilon(low):.6g} ({low.name})"
                found[low.name] = found[high.name] = f"contradiction: ε is {said}; neither counts"
    return [replace(answer, finding=answer.finding or found.get(answer.name, "")) for answer in answers]


def _rank(answer: Answer) -> tuple[float, str]:
    """By ε, and by name where two are equal, so that the order of a list decides nothing."""
    return _epsilon(answer), answer.name


def _epsilon(answer: Answer) -> float:
    assert answer.epsilon is not None  # an answer without is a finding, and does not count
    return answer.epsilon


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
