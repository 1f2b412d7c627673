"""Comparison of a claim with every accountant, and of the accountants.

A claim is about a class of mechanisms (``Description``): by default the narrowest one
that the accountants describe, and it has to lie within all the others. An accountant of
a class around it bounds the claim's class from above and never from below, for the
worst of the wider class need not lie within it; an accountant of a class within it
bounds it from below and never from above. ``provable`` has the rules by which each kind
of claim is certified or refuted. So the verdict rests on proofs alone, and to add or to
leave out an accountant of a wider class can only turn NOT_REFUTED into CERTIFIED or
back.

Judgements of accountants are kept apart. A number that is no ε, an approximation below
the truth, an accountant for something else, and two proofs that contradict each other
are *findings* about accountants. They never count against the mechanism, nor for it. An
accountant that raised has *failed*: it gave no answer, which is no finding about
anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from flint import arb

from auditdp.accountants import provable
from auditdp.accountants.accountant import (
    ROUNDED_UP,
    Accountant,
    Description,
    Soundness,
    failure,
    narrowest,
    within,
)
from auditdp.accountants.parameter_checks import AccountantError
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, below
from auditdp.numerics.rounding import apart
from auditdp.record.results import Verdict

TIE = 1 + 4 * ROUNDED_UP
"""Factor of a claimed ε, and of δ, up to which a larger loss is called rounding."""


@dataclass(frozen=True)
class AccountantReply:
    """The answer of one accountant."""

    name: str
    soundness: Soundness
    """The relation of its numbers to the truth of the class that it describes."""
    adjacency: str
    sampling: str
    source: str
    value: float | None
    """ε at the claim's δ, or another number; None if the accountant raised."""
    from_above: bool = False
    """True if it describes a class around the claim's, or the claim's own."""
    from_below: bool = False
    """True if it describes a class within the claim's, or the claim's own."""
    refutes: bool = False
    """True if it proves a loss above the claim, rounding aside."""
    certifies: bool = False
    """True if it proves the claim."""
    finding: str = ""
    """The reason that the number does not count; empty if it does."""
    failed: str = ""
    """The reason that there is no number, with a remedy; empty if there is one."""

    @property
    def counts(self) -> bool:
        """True if it answered with a number to which there is no objection."""
        return not self.finding and not self.failed

    @property
    def is_upper(self) -> bool:
        """True if it is a proof that bounds the claim's ε from above."""
        return self.counts and self.from_above and self.soundness.is_proof

    @property
    def is_lower(self) -> bool:
        """True if it is a proof that bounds the claim's ε from below."""
        return self.counts and self.from_below and self.soundness.is_attained

    @property
    def epsilon(self) -> float:
        """The number of an answer that counts."""
        # Without a value it is a failure, and does not count.
        assert self.value is not None
        return self.value


@dataclass(frozen=True)
class CrossCheck:
    """The judgement of all accountants together on a claim."""

    verdict: Verdict
    """VIOLATED, CERTIFIED, or NOT_REFUTED, about the class of ``about``."""
    statement: str
    about: Description
    epsilon: float
    """The compared ε; for a curve, at a point that is violated, else open."""
    delta: float
    answers: tuple[AccountantReply, ...]
    lower: AccountantReply | None
    """The largest lower bound that counts, or None."""
    upper: AccountantReply | None
    """The smallest upper bound that counts, or None."""
    level: tuple[float | None, float | None] = (None, None)
    """Bounds on the claim's parameter that the worst of ``about`` needs."""

    @property
    def findings(self) -> list[str]:
        """The findings about accountants."""
        return [f"{each.name}: {each.finding}" for each in self.answers if each.finding]

    @property
    def failures(self) -> list[str]:
        """The accountants that gave no answer, with the reasons."""
        return [f"{each.name}: {each.failed}" for each in self.answers if each.failed]


def cross_check(
    claim: Claim,
    accountants: Iterable[Accountant],
    *,
    about: Description | None = None,
    attained: bool = True,
) -> CrossCheck:
    """Compare a claim with the accountants of the mechanisms that it is about.

    A claim that something in its class breaks is VIOLATED, one that a proof for its
    class covers is CERTIFIED for the model, and other claims are NOT_REFUTED;
    ``provable`` has the rules for each kind of claim.

    Args:
        claim: The promise.
        accountants: All that apply. One that raises has failed, and the others answer.
        about: The class of the claim: a description, or an accountant of it. None for
            the narrowest class that is described.
        attained: Whether the worst of ``about`` is among the mechanisms of the claim.
            If the claim is about one mechanism of the class, which may be a better one,
            nothing bounds its loss from below.

    Raises:
        AccountantError: If there are no accountants, or ``about`` is missing and no
            accountant's description lies within all the others.
    """
    listed = list(accountants)
    if not listed:
        raise AccountantError(
            f"cross_check: expected at least one accountant for {claim}, got none"
        )
    about = about or _common([each.describes for each in listed])
    judge = _Judge(listed, about.describes, attained)
    if not claim.is_point:
        return judge.judge_curve(claim)
    check = judge.judge_point(claim.level, claim.delta or 0.0)
    low = check.lower.value if check.lower else None
    return replace(check, level=(low, check.upper.value if check.upper else None))


def _common(descriptions: list[Description]) -> Description:
    common = narrowest(descriptions)
    if common is None:
        texts = "; ".join(sorted({each.text for each in descriptions}))
        raise AccountantError(
            "cross_check: expected accountants of one thing, or of classes around it, got "
            f"{texts}; say which of them the claim is about: about=..."
        )
    return common


@dataclass(frozen=True)
class _Judge:
    """A judge of claims about one class, by the accountants that apply."""

    accountants: list[Accountant]
    about: Description
    attained: bool

    def judge_curve(self, claim: Claim) -> CrossCheck:
        """Judge a claim of many (ε, δ), by its parameter or by its points."""
        points = provable.statements(claim)
        verb = "contains" if isinstance(claim, AccountedDP) else "implies"
        which = f", which {claim} {verb},"
        check = self.judge_point(*points[len(points) // 2], which)
        # Divergences and Gaussian noise decide before any point does.
        low, high = self._bounds(claim)
        low_level, high_level = max(0.0, below(low)), above(high)
        with precision():
            bounds = _between(low_level, high_level)
            broken = bool(low > arb(claim.level) * arb(TIE))
        needs = f"the worst of {self.about.text} has {provable.measure(claim)} {bounds}"
        if broken or high <= arb(claim.level):
            verdict = Verdict.VIOLATED if broken else Verdict.CERTIFIED
            statement = f"{claim} is claimed, and {needs}"
        else:
            check = self._judge_points(claim, points, check, which)
            verdict, statement = check.verdict, check.statement
            if bounds:
                statement += f"; {needs}"
        level = (low_level or None, high_level if math.isfinite(high_level) else None)
        statement = _capital(statement)
        return replace(check, verdict=verdict, statement=statement, level=level)

    def _judge_points(
        self,
        claim: Claim,
        points: list[tuple[float, float]],
        check: CrossCheck,
        which: str,
    ) -> CrossCheck:
        """Judge a claim by all points of its curve, given the check of one of them."""
        # Accountants to which there is an objection decide nothing.
        pairs = zip(self.accountants, check.answers, strict=True)
        counting = [each for each, answer in pairs if answer.counts]
        proof = provable.own_proof(claim, self.about)
        if proof:
            counting.append(proof)
        standing = [self._standing(*point, counting) for point in points]
        # A point that is violated is shown before one that is open.
        for verdict in (Verdict.VIOLATED, Verdict.NOT_REFUTED):
            if verdict in standing:
                example = self.judge_point(*points[standing.index(verdict)], which)
                if example.verdict is verdict:
                    return example
        # Points prove a function of ε only if it is the curve of a proof.
        certified = set(standing) == {Verdict.CERTIFIED}
        if certified and (proof or claim.is_its_points):
            verdict = Verdict.CERTIFIED
            text = (
                f"at each of its {len(points):,} points {claim} is proved of "
                f"{self.about.text}"
            )
        else:
            verdict = Verdict.NOT_REFUTED
            text = (
                f"{claim} is not decided: {len(points):,} statements that it implies were "
                "compared, and do not imply it"
            )
        return replace(check, verdict=verdict, statement=text)

    def _standing(
        self, epsilon: float, delta: float, counting: list[Accountant]
    ) -> Verdict:
        """Return the verdict on one statement.

        It is NOT_REFUTED if nothing, or a proof and its contrary, is known.
        """
        holds = any(
            each.soundness.is_proof
            and within(self.about, each.describes)
            and each.delta_at(epsilon) <= delta
            for each in counting
        )
        broken = any(self._refutes(each, epsilon, delta) for each in counting)
        if holds is broken:
            return Verdict.NOT_REFUTED
        return Verdict.CERTIFIED if holds else Verdict.VIOLATED

    def _bounds(self, claim: Claim) -> tuple[arb, arb]:
        """Return bounds on the claim's parameter.

        They are the largest that is attained within the class, and the least of classes
        around it.
        """
        lows, highs = [arb(0)], []
        for each in (self.about, *(each.describes for each in self.accountants)):
            low, high = provable.bounds(claim, each)
            if self.attained and within(each, self.about):
                lows.append(low)
            if within(self.about, each):
                highs.append(high)
        return max(lows, key=below), min(highs, key=above)

    def judge_point(self, epsilon: float, delta: float, which: str = "") -> CrossCheck:
        """Judge one (ε, δ) statement, which is the claim or a part of it."""
        replies = [self._ask(each, epsilon, delta) for each in self.accountants]
        answers = _contradictions(replies)
        lowers = [each for each in answers if each.is_lower]
        uppers = [each for each in answers if each.is_upper]
        refuting = [each for each in lowers if each.refutes]
        upper = min(uppers, key=_rank, default=None)
        lower = max(refuting or lowers, key=_rank, default=None)
        stated = f"the claimed ε = {epsilon:.9g} at δ = {delta:.3g}{which}"
        if refuting and lower is not None:
            verdict = Verdict.VIOLATED
            statement = (
                f"{stated} is below {lower.epsilon:.9g}, which {lower.name} shows to be lost "
                f"by the worst of {self.about.text}"
            )
        elif upper is not None and any(each.certifies for each in uppers):
            verdict = Verdict.CERTIFIED
            statement = (
                f"{stated} is no less than {upper.epsilon:.9g}, which {upper.name} proves of "
                f"{self.about.text}"
            )
        else:
            verdict = Verdict.NOT_REFUTED
            statement = _undecided(stated, epsilon, answers, lower, upper)
        return CrossCheck(
            verdict,
            _capital(statement),
            self.about,
            epsilon,
            delta,
            tuple(answers),
            lower,
            upper,
        )

    def _ask(
        self, accountant: Accountant, epsilon: float, delta: float
    ) -> AccountantReply:
        described = accountant.describes
        from_above = within(self.about, described)
        lies_within = within(described, self.about)
        answer = reply(accountant, None)
        finding = ""
        try:
            value = float(accountant.epsilon_at(delta))
            certifies = from_above and accountant.soundness.is_proof
            if certifies and not value <= epsilon:
                certifies = accountant.delta_at(epsilon) <= delta
            refutes = self._refutes(accountant, epsilon, delta)
        # An accountant is other people's code.
        except Exception as error:
            answer = replace(answer, failed=failure(error))
        else:
            answer = replace(answer, value=value, certifies=certifies, refutes=refutes)
            if math.isnan(value) or value < 0:
                finding = f"ε = {value:.6g} at δ = {delta:.3g} is no ε"
        if not finding and not from_above and not lies_within:
            finding = f"is about {described.text}; the claim is about {self.about.text}"
        return replace(
            answer,
            from_above=from_above,
            from_below=self.attained and lies_within,
            finding=finding,
        )

    def _refutes(self, accountant: Accountant, epsilon: float, delta: float) -> bool:
        soundness = accountant.soundness
        if not (self.attained and soundness.is_attained):
            return False
        if not within(accountant.describes, self.about):
            return False
        loss = accountant.delta_at(epsilon * TIE)
        if soundness is Soundness.EXACT:
            # An exact curve is rounded up, by no more than this.
            loss *= 1 - ROUNDED_UP
        return loss > delta * TIE


def _between(low_level: float, high_level: float) -> str:
    """Return bounds in words; empty if there are none."""
    if low_level > 0 and high_level <= low_level * TIE:
        return f"{high_level:.9g}" if math.isfinite(high_level) else "∞"
    texts = []
    if low_level > 0:
        texts.append(f"no less than {low_level:.9g}")
    if math.isfinite(high_level):
        texts.append(f"no more than {high_level:.9g}")
    return " and ".join(texts)


def _undecided(
    stated: str,
    epsilon: float,
    answers: list[AccountantReply],
    lower: AccountantReply | None,
    upper: AccountantReply | None,
) -> str:
    if upper is not None and epsilon >= upper.epsilon / TIE:
        return (
            f"{stated} is that of {upper.name} but for rounding, neither certified nor "
            "violated"
        )
    bounds = []
    for answer, side in ((lower, "below"), (upper, "above")):
        if answer is not None:
            bounds.append(f"{answer.epsilon:.9g} ({answer.name}) from {side}")
    proved = " and ".join(bounds) or "nothing"
    text = f"{stated} is not decided: what is proved is {proved}"
    unproved = [
        each
        for each in answers
        if each.counts and each.from_above and each.soundness is Soundness.UNPROVED
    ]
    smallest = min(unproved, key=_rank, default=None)
    if smallest is not None and smallest.epsilon <= epsilon:
        text += (
            f"; {smallest.name} has {smallest.epsilon:.9g}, with rounding errors that are "
            "not bounded"
        )
    return text


def reply(
    accountant: Accountant, value: float | None, failed: str = ""
) -> AccountantReply:
    """Return the answer of an accountant: a number or a reason of failure."""
    return AccountantReply(
        accountant.name,
        accountant.soundness,
        accountant.adjacency,
        accountant.sampling,
        accountant.source,
        value,
        failed=failed,
    )


def _contradictions(answers: list[AccountantReply]) -> list[AccountantReply]:
    """Add findings about numbers below a proof, and about contradictions."""
    findings: dict[str, str] = {}
    # A proof from below is compared with every number from above.
    for low in answers:
        for high in answers:
            if not (low.is_lower and high.counts and high.from_above):
                continue
            # A smaller relative difference is no contradiction, but rounding.
            if not high.epsilon < low.epsilon * (1 - 1e-9):
                continue
            lower_text, upper_text = apart(low.epsilon, high.epsilon, digits=6)
            if high.soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
                findings[high.name] = (
                    f"underestimates: ε = {high.epsilon:.6g}, but {low.name} shows at least "
                    f"{lower_text}"
                )
            elif high.soundness.is_proof:
                findings[low.name] = findings[high.name] = (
                    f"contradiction: ε is at most {upper_text} ({high.name}) and at least {lower_text} "
                    f"({low.name}); neither counts"
                )
    return [
        replace(each, finding=each.finding or findings.get(each.name, ""))
        for each in answers
    ]


def _rank(answer: AccountantReply) -> tuple[float, str]:
    """Order by ε and then by name, so that the order of a list has no effect."""
    return answer.epsilon, answer.name


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
