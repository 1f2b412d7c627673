"""Comparison of a claim with accountants, and of the accountants with each other.

A claim is about a class of mechanisms (``Description``). By default it is the narrowest
class that the accountants describe, which has to lie within all their other classes. An
accountant of a wider class bounds the claim's class from above, and never from below:
the worst mechanism of the wider class need not lie in the claim's class. An accountant
of a narrower class bounds the claim's class from below, and never from above.
``provable`` has the rules by which each kind of claim is certified or refuted. So the
verdict rests on proofs alone. An additional accountant of a wider class can turn
NOT_REFUTED into CERTIFIED, and changes no verdict in another way unless it contradicts
another proof.

Four defects of accountants are *findings*: a number that is no ε, an approximation
below a proved loss, an accountant of an unrelated class, and two proofs that contradict
each other. Findings count neither against the mechanism nor for it. An accountant that
raised an exception has *failed*. This is no finding.
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
"""Factor of a claimed ε and δ up to which an excess of the loss counts as rounding."""


@dataclass(frozen=True)
class AccountantReply:
    """The answer of one accountant about a claim, and its comparison with the claim."""

    name: str
    soundness: Soundness
    """The relation of its curve to the true curve of the class that it describes."""
    adjacency: str
    sampling: str
    source: str
    value: float | None
    """ε at the claim's δ; None if the accountant failed.

    If a command of the command line computes δ at an ε, it is this δ instead.
    """
    from_above: bool = False
    """True if the described class contains the claim's class, or is the same."""
    from_below: bool = False
    """True if the described class lies within the claim's class, or is the same.

    It is always False if ``attained`` of ``cross_check`` is False.
    """
    refutes: bool = False
    """True if it proves a loss above the claim by more than rounding (``TIE``)."""
    certifies: bool = False
    """True if it proves the claim at the compared (ε, δ)."""
    finding: str = ""
    """A defect of the accountant, for which its number does not count; else empty."""
    failed: str = ""
    """The reason that there is no number, with a remedy; empty if there is one."""

    @property
    def counts(self) -> bool:
        """True if the accountant answered, and there is no finding about its number."""
        return not self.finding and not self.failed

    @property
    def is_upper(self) -> bool:
        """True if ``value`` is a proved upper bound on ε of the claim's class."""
        return self.counts and self.from_above and self.soundness.is_proof

    @property
    def is_lower(self) -> bool:
        """True if ``value`` is a proved lower bound on ε of the claim's class."""
        return self.counts and self.from_below and self.soundness.is_attained

    @property
    def epsilon(self) -> float:
        """``value`` as a number; an AssertionError if it is None."""
        # An answer without a value has failed, and does not count.
        assert self.value is not None
        return self.value


@dataclass(frozen=True)
class CrossCheck:
    """The verdict on a claim by all accountants together."""

    verdict: Verdict
    """VIOLATED, CERTIFIED, or NOT_REFUTED, for the mechanisms of ``about``."""
    statement: str
    about: Description
    epsilon: float
    """The ε at which ``answers`` are compared, with ``delta``.

    A claim of a curve is compared at many points (ε, δ). The recorded one is a violated
    point if there is one, else an undecided point. If there is neither, or if bounds on
    the claim's parameter decide, it is the middle point.
    """
    delta: float
    answers: tuple[AccountantReply, ...]
    """The answers of the accountants, in their given order."""
    lower: AccountantReply | None
    """The answer with the largest lower bound that counts, or None."""
    upper: AccountantReply | None
    """The answer with the smallest upper bound that counts, or None."""
    level: tuple[float | None, float | None] = (None, None)
    """Bounds on the smallest parameter with which the claim holds; None if unknown.

    The lower bound comes first. The parameter of an (ε, δ) claim is ε.
    """

    @property
    def findings(self) -> list[str]:
        """The findings about accountants, each as "name: finding"."""
        return [f"{each.name}: {each.finding}" for each in self.answers if each.finding]

    @property
    def failures(self) -> list[str]:
        """The accountants that failed, each as "name: reason"."""
        return [f"{each.name}: {each.failed}" for each in self.answers if each.failed]


def cross_check(
    claim: Claim,
    accountants: Iterable[Accountant],
    *,
    about: Description | None = None,
    attained: bool = True,
) -> CrossCheck:
    """Compare a claim with the accountants of the mechanisms that it is about.

    The verdict is VIOLATED if the loss of some mechanism in the class exceeds the
    claim, CERTIFIED if a proof for the class implies the claim, and NOT_REFUTED
    otherwise. ``provable`` has the rules for each kind of claim.

    Args:
        claim: The claim.
        accountants: All accountants that apply. If one raises, it has failed, and the
            others still count.
        about: The class that the claim is about: a description, or an accountant of
            this class. None for the narrowest class that an accountant describes.
        attained: True if the worst mechanism of ``about`` is among those of the claim.
            False if the claim is about one mechanism of the class, which may lose less
            than the worst one: then no accountant bounds its loss from below.

    Raises:
        AccountantError: If there are no accountants, or ``about`` is None and no
            accountant's class lies within all the others.
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
    """The accountants and the class of a cross-check; its methods judge claims."""

    accountants: list[Accountant]
    about: Description
    attained: bool

    def judge_curve(self, claim: Claim) -> CrossCheck:
        """Return the result for a claim that consists of many (ε, δ).

        Bounds on its parameter decide first, and all its points if these do not.
        """
        points = provable.statements(claim)
        verb = "contains" if isinstance(claim, AccountedDP) else "implies"
        which = f", which {claim} {verb},"
        check = self.judge_point(*points[len(points) // 2], which)
        # Bounds on the claim's parameter decide first, and points only if these do not.
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
        """Return the result for a claim, by all points of its curve.

        Args:
            claim: The claim.
            points: The points (ε, δ) of its curve.
            check: The result at the middle point. It is returned, with another verdict
                and statement, if no point is violated or undecided.
            which: A clause about the claim, for statements about one point.
        """
        # Accountants that failed, or about which there is a finding, decide nothing.
        pairs = zip(self.accountants, check.answers, strict=True)
        counting = [each for each, answer in pairs if answer.counts]
        proof = provable.own_proof(claim, self.about)
        if proof:
            counting.append(proof)
        standing = [self._standing(*point, counting) for point in points]
        # A violated point is shown rather than an undecided one.
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
        """Return the verdict on one (ε, δ) statement.

        It is NOT_REFUTED if no accountant decides the statement, or if one proves it
        and another refutes it.
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
        """Return a lower and an upper bound on the least parameter of a true claim.

        Each class within ``about`` gives a lower bound, and the largest one is
        returned. Each class that contains ``about`` gives an upper bound, and the
        smallest one is returned.
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
        """Return the result for one (ε, δ) statement.

        ``which`` is a clause for the result's text that relates it to the claim; it is
        empty if the statement is the claim.
        """
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
            # ε may be rounded up, so δ at the claimed ε may still prove the claim.
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
    """Return the answer of an accountant before it is compared with a claim.

    It has a value, or else a reason of failure.
    """
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
    """Return the answers, with a finding for each contradiction between two of them.

    In a contradiction, a number from above is smaller than a proved number from below.
    If the number from above is no proof, the finding is about it. If both are proofs,
    it is about both.
    """
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
    """Return a sort key: ε, then the name, so that the order of input has no effect."""
    return answer.epsilon, answer.name


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
