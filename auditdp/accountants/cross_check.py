"""A claim against every accountant that applies, and the accountants against each other.

A claim is about a class of mechanisms (``description``): by default the narrowest one that the accountants describe, and it
has to lie within all the others. An accountant of a class around it bounds the claim's class from above and never from
below, for the worst of the wider class need not lie within it; an accountant of a class within it bounds it from below and
never from above. What each kind of claim takes to be certified, and to be refuted, is in ``provable``. So the verdict rests
on proofs alone, and to add or to leave out an accountant of a wider class can only turn NOT_REFUTED into CERTIFIED or back.

What is said of accountants is kept apart. A number that is no ε, an approximation below the truth, an accountant for
something else, and two proofs that contradict each other are *findings* about accountants. They never count against the
mechanism, nor for it. An accountant that raised has *failed*: it gave no answer, which is no finding about anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flint import arb

from auditdp.accountants import provable
from auditdp.accountants.accountant import (
    ROUNDED_UP,
    Accountant,
    AccountantError,
    Soundness,
    failure,
)
from auditdp.accountants.description import Description, narrowest, within
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, below
from auditdp.numerics.rounding import apart
from auditdp.record.results import Verdict

TOLERANCE = 1e-9
"""Two numbers that agree to this relative difference do not contradict each other."""
Point = tuple[float, float]
"""(ε, δ)."""
TIE = 1 + 4 * ROUNDED_UP
"""How much larger a claimed ε, and δ, may be before a loss beyond it counts: less is rounding."""


@dataclass(frozen=True)
class AccountantReply:
    """The answer of one accountant."""

    name: str
    soundness: Soundness
    """What its numbers are to the truth of what it describes."""
    adjacency: str
    sampling: str
    source: str
    value: float | None
    """ε at the claim's δ, whatever it may be, or what else was asked; None where it raised."""
    from_above: bool = False
    """Whether it describes a class around the claim's, or the claim's own."""
    from_below: bool = False
    """Whether it describes a class within the claim's, or the claim's own."""
    refutes: bool = False
    """Whether what it shows to be lost is more than the claim allows, rounding aside."""
    certifies: bool = False
    """Whether what it proves is what the claim says."""
    finding: str = ""
    """Why the number does not count; empty where it does."""
    failed: str = ""
    """Why there is no number, and what to do about it; empty where there is one."""

    @property
    def counts(self) -> bool:
        """Whether it answered, with a number against which nothing speaks."""
        return not self.finding and not self.failed

    @property
    def is_upper(self) -> bool:
        """Whether it is a proof that bounds the claim's ε from above."""
        return self.counts and self.from_above and self.soundness.is_proof

    @property
    def is_lower(self) -> bool:
        """Whether it is a proof that bounds the claim's ε from below."""
        return self.counts and self.from_below and self.soundness.is_attained


@dataclass(frozen=True)
class CrossCheck:
    """What all accountants together say of a claim."""

    verdict: Verdict
    """VIOLATED, CERTIFIED, or NOT_REFUTED, about what ``about`` describes."""
    statement: str
    about: Description
    epsilon: float
    """The claimed ε that was compared; of a curve, at a point that is broken, else one that is open."""
    delta: float
    answers: tuple[AccountantReply, ...]
    lower: AccountantReply | None
    """The lower bound that counts and is largest; None where there is none."""
    upper: AccountantReply | None
    """The upper bound that counts and is smallest; None where there is none."""
    level: tuple[float | None, float | None] = (None, None)
    """Bounds on the claim's own parameter that the worst of ``about`` needs; None where nothing is known."""

    @property
    def findings(self) -> list[str]:
        """What was found out about accountants."""
        return [
            f"{answer.name}: {answer.finding}"
            for answer in self.answers
            if answer.finding
        ]

    @property
    def failures(self) -> list[str]:
        """Which accountants gave no answer, and why."""
        return [
            f"{answer.name}: {answer.failed}"
            for answer in self.answers
            if answer.failed
        ]


def cross_check(
    claim: Claim,
    accountants: Iterable[Accountant],
    *,
    about: Description | None = None,
    attained: bool = True,
) -> CrossCheck:
    """Compare a claim with what accountants say of the mechanisms that it is about.

    A claim that something in its class breaks is VIOLATED, one that a proof for its class covers is CERTIFIED for the model,
    and what lies between is NOT_REFUTED; ``provable`` has what that takes for each kind of claim.

    Args:
        claim: What is promised.
        accountants: All that apply. One that raises has failed, and the others answer.
        about: What it is promised of: a description, or an accountant of it. None: the narrowest that is described.
        attained: Whether the worst of ``about`` is among what the claim is about. If the claim is about one mechanism of the
            class, which may be a better one, nothing bounds its loss from below.

    Raises:
        AccountantError: If there are no accountants, or it is not said what the claim is about and no accountant's
            description lies within all the others.
    """
    listed = list(accountants)
    if not listed:
        raise AccountantError(
            f"cross_check: expected at least one accountant for {claim}, got none"
        )
    subject = (
        about.describes if about is not None else _common([a.describes for a in listed])
    )
    if claim.is_point:
        check = _at(claim.level, claim.delta or 0.0, listed, subject, attained)
        low, high = (
            None if answer is None else answer.value
            for answer in (check.lower, check.upper)
        )
        return replace(check, level=(low, high))
    return _of_curve(claim, listed, subject, attained)


def _of_curve(
    claim: Claim, listed: list[Accountant], about: Description, attained: bool
) -> CrossCheck:
    """Judge a claim that says more than one (ε, δ): by bounds on its parameter, else by points of its curve."""
    points = provable.statements(claim)
    which = f", which {claim} {'contains' if isinstance(claim, AccountedDP) else 'implies'},"
    check = _at(*points[len(points) // 2], listed, about, attained, which)
    low, high = _bounds(claim, listed, about, attained)
    least, most = max(0.0, below(low)), above(high)
    with precision():
        known, broken = _between(least, most), bool(low > arb(claim.level) * arb(TIE))
    needs = f"the worst of {about.text} has {provable.measure(claim)} {known}"
    if broken or high <= arb(claim.level):
        verdict, statement = (
            Verdict.VIOLATED if broken else Verdict.CERTIFIED,
            f"{claim} is claimed, and {needs}",
        )
    else:
        check = _of_points(claim, points, listed, check, attained, which)
        verdict, statement = check.verdict, check.statement
        if known:
            statement += f"; {needs}"
    level = (least or None, most if math.isfinite(most) else None)
    return replace(check, verdict=verdict, statement=_capital(statement), level=level)


def _of_points(
    claim: Claim,
    points: list[Point],
    listed: list[Accountant],
    check: CrossCheck,
    attained: bool,
    which: str,
) -> CrossCheck:
    """Judge a claim by all points that it implies, given what was said of one of them."""
    about = check.about
    counting = [
        one for one, answer in zip(listed, check.answers, strict=True) if answer.counts
    ]
    proof = provable.own_proof(claim, about)
    standing = [
        _standing(*point, counting + ([proof] if proof else []), about, attained)
        for point in points
    ]
    for way in (Verdict.VIOLATED, Verdict.NOT_REFUTED):
        if way in standing:
            shown = _at(*points[standing.index(way)], listed, about, attained, which)
            if shown.verdict is way:
                return shown
    if all(one is Verdict.CERTIFIED for one in standing) and (
        proof or claim.is_its_points
    ):
        text = (
            f"at each of its {len(points):,} points {claim} is proved of {about.text}"
        )
        return replace(check, verdict=Verdict.CERTIFIED, statement=text)
    text = f"{claim} is not decided: {len(points):,} statements that it implies were compared, and do not imply it"
    return replace(check, verdict=Verdict.NOT_REFUTED, statement=text)


def _standing(
    epsilon: float,
    delta: float,
    counting: list[Accountant],
    about: Description,
    attained: bool,
) -> Verdict:
    """Return how one statement stands; NOT_REFUTED where nothing, or a proof and its contrary, is known."""
    holds = any(_proves(one, epsilon, delta, about) for one in counting)
    broken = any(_refutes(one, epsilon, delta, about, attained) for one in counting)
    return (
        Verdict.NOT_REFUTED
        if holds is broken
        else Verdict.CERTIFIED
        if holds
        else Verdict.VIOLATED
    )


def _bounds(
    claim: Claim, listed: list[Accountant], about: Description, attained: bool
) -> tuple[arb, arb]:
    """Return bounds on the claim's parameter: the largest that is attained within the class, the least of what is around."""
    described = [about, *(one.describes for one in listed)]
    found = [(one, *provable.bounds(claim, one)) for one in described]
    lows = [low for one, low, _ in found if attained and within(one, about)]
    highs = [high for one, _, high in found if within(about, one)]
    return max(lows, key=below, default=arb(0)), min(highs, key=above)


def _between(least: float, most: float) -> str:
    """Say which bounds are known, if any."""
    if least > 0 and most <= least * TIE:
        return f"{most:.9g}" if math.isfinite(most) else "∞"
    text = [f"no less than {least:.9g}"] * (least > 0) + [
        f"no more than {most:.9g}"
    ] * math.isfinite(most)
    return " and ".join(text)


def _common(descriptions: Sequence[Description]) -> Description:
    found = narrowest(descriptions)
    if found is None:
        texts = "; ".join(sorted({one.text for one in descriptions}))
        raise AccountantError(
            f"cross_check: expected accountants of one thing, or of classes around it, got {texts}; say which of them the "
            "claim is about: about=..."
        )
    return found


def _at(
    epsilon: float,
    delta: float,
    accountants: list[Accountant],
    about: Description,
    attained: bool,
    which: str = "",
) -> CrossCheck:
    """Compare one (ε, δ) statement, which the claim is, or which a curve contains or implies."""
    answers = _contradictions(
        [_ask(one, epsilon, delta, about, attained) for one in accountants]
    )
    upper = min((a for a in answers if a.is_upper), key=_rank, default=None)
    lower = max((a for a in answers if a.is_lower), key=_rank, default=None)
    stated = f"the claimed ε = {epsilon:.9g} at δ = {delta:.3g}{which}"
    shown = max(
        (a for a in answers if a.is_lower and a.refutes), key=_rank, default=None
    )
    if shown is not None:
        verdict = Verdict.VIOLATED
        lost = f"which {shown.name} shows to be lost by the worst of {about.text}"
        statement = f"{stated} is below {_epsilon(shown):.9g}, {lost}"
        lower = shown
    elif upper is not None and any(a.is_upper and a.certifies for a in answers):
        verdict = Verdict.CERTIFIED
        statement = f"{stated} is no less than {_epsilon(upper):.9g}, which {upper.name} proves of {about.text}"
    else:
        verdict = Verdict.NOT_REFUTED
        statement = _undecided(stated, epsilon, answers, lower, upper)
    return CrossCheck(
        verdict,
        _capital(statement),
        about,
        epsilon,
        delta,
        tuple(answers),
        lower,
        upper,
    )


def _undecided(
    stated: str,
    epsilon: float,
    answers: Sequence[AccountantReply],
    lower: AccountantReply | None,
    upper: AccountantReply | None,
) -> str:
    if upper is not None and epsilon >= _epsilon(upper) / TIE:
        return f"{stated} is that of {upper.name} but for rounding, neither certified nor violated"
    known = [
        f"{_epsilon(answer):.9g} ({answer.name}) from {side}"
        for answer, side in ((lower, "below"), (upper, "above"))
        if answer is not None
    ]
    unproved = min(
        (
            a
            for a in answers
            if a.counts and a.from_above and a.soundness is Soundness.UNPROVED
        ),
        key=_rank,
        default=None,
    )
    text = (
        f"{stated} is not decided: what is proved is {' and '.join(known) or 'nothing'}"
    )
    if unproved is not None and _epsilon(unproved) <= epsilon:
        text += f"; {unproved.name} has {_epsilon(unproved):.9g}, with rounding errors that are not bounded"
    return text


def _ask(
    accountant: Accountant,
    epsilon: float,
    delta: float,
    about: Description,
    attained: bool,
) -> AccountantReply:
    described, soundness = accountant.describes, accountant.soundness
    from_above, from_below = (
        within(about, described),
        attained and within(described, about),
    )
    found: float | None = None
    refutes = certifies = False
    finding = failed = ""
    try:
        found = float(accountant.epsilon_at(delta))
        certifies = (
            from_above
            and soundness.is_proof
            and (found <= epsilon or accountant.delta_at(epsilon) <= delta)
        )
        refutes = _refutes(accountant, epsilon, delta, about, attained)
    except Exception as error:  # an accountant is other people's code
        found, failed = None, failure(error)
    else:
        if math.isnan(found) or found < 0:
            finding = f"ε = {found:.6g} at δ = {delta:.3g} is no ε"
    if not finding and not from_above and not within(described, about):
        finding = f"is about {described.text}; the claim is about {about.text}"
    return replace(
        reply(accountant, found, failed),
        from_above=from_above,
        from_below=from_below,
        refutes=refutes,
        certifies=certifies,
        finding=finding,
    )


def reply(one: Accountant, value: float | None, failed: str = "") -> AccountantReply:
    """Return the answer of an accountant that was asked for a number."""
    return AccountantReply(
        one.name,
        one.soundness,
        one.adjacency,
        one.sampling,
        one.source,
        value,
        failed=failed,
    )


def _proves(one: Accountant, epsilon: float, delta: float, about: Description) -> bool:
    return (
        one.soundness.is_proof
        and within(about, one.describes)
        and one.delta_at(epsilon) <= delta
    )


def _refutes(
    one: Accountant, epsilon: float, delta: float, about: Description, attained: bool
) -> bool:
    if not (attained and one.soundness.is_attained and within(one.describes, about)):
        return False
    # An exact curve is rounded up, by no more than this.
    down = 1 - ROUNDED_UP if one.soundness is Soundness.EXACT else 1.0
    return one.delta_at(epsilon * TIE) * down > delta * TIE


def _contradictions(answers: list[AccountantReply]) -> list[AccountantReply]:
    """Say where a number that proves nothing lies below a proof, and set aside proofs that contradict each other."""
    found: dict[str, str] = {}
    for low in (answer for answer in answers if answer.is_lower):
        for high in answers:
            if (
                not high.counts
                or not high.from_above
                or not _epsilon(high) < _epsilon(low) * (1 - TOLERANCE)
            ):
                continue
            least, most = apart(_epsilon(low), _epsilon(high), digits=6)
            if high.soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
                found[high.name] = (
                    f"underestimates: ε = {_epsilon(high):.6g}, but {low.name} shows at least {least}"
                )
            elif high.soundness.is_proof:
                text = f"at most {most} ({high.name}) and at least {least} ({low.name})"
                found[low.name] = found[high.name] = (
                    f"contradiction: ε is {text}; neither counts"
                )
    return [
        replace(answer, finding=answer.finding or found.get(answer.name, ""))
        for answer in answers
    ]


def _rank(answer: AccountantReply) -> tuple[float, str]:
    """By ε, and by name where two are equal, so that the order of a list decides nothing."""
    return _epsilon(answer), answer.name


def _epsilon(answer: AccountantReply) -> float:
    assert (
        answer.value is not None
    )  # an answer without is a finding, and does not count
    return answer.value


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
