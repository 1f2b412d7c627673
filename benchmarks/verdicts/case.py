"""A case: an audited object, the truth about it, and the wrong ones of its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp import (
    AccountedDP,
    ApproxDP,
    Audit,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.claim import Claim
from auditdp.mechanism.laws import precision
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.details import CountingDetails
from auditdp.record.results import AuditResult, Evidence, Verdict
from benchmarks.verdicts.truth import BITS, Truth, holds, level

Rng = np.random.Generator
ALPHA, NEVER = 0.05, 1e-9
"""Half of the cases measure how often α errs; in the other half no error by chance is to be expected, so one is none."""
PROOFS = ("exact", "accounting", "sensitivity")
NEAR = (1e-2, 1e-4, 1e-9, 1e-13)
FAR = (0.3, 0.7, 1.5, 3.0)
ROUNDED = arb(1 + 1e-9)
"""A bound may lie so far on the wrong side, where it was written in doubles."""


@dataclass(frozen=True)
class Said:
    """One verdict.

    Attributes:
        row: The kind of evidence and the claim.
        verdict: Of it, or ERROR.
        wrong: What of it is not so; empty where all is.
        by_chance: Whether α covers such an error.
        tried: Whether α could have shown at ``ALPHA``.
    """

    row: str
    verdict: str
    wrong: str = ""
    by_chance: bool = False
    tried: bool = False


@dataclass
class Case:
    """One case, keyed by its seed and number.

    Attributes:
        seed: Root seed.
        number: Which case.
        told: What is audited, in words.
        said: The verdicts.
        shown: The results of the audits.
    """

    seed: int
    number: int
    told: str = ""
    said: list[Said] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)

    @cached_property
    def rng(self) -> Rng:
        """The generator of the case."""
        return stream(self.seed, "verdicts", self.number)

    @cached_property
    def alpha(self) -> float:
        """The error probability of its audits."""
        return ALPHA if self.number % 2 else NEVER

    def pick(self, options: Any) -> Any:
        """Return one of some things."""
        return options[int(self.rng.integers(len(options)))]

    def near(self) -> float:
        """Return a factor just inside the truth, just outside, or far from it."""
        return (
            float(self.pick(FAR))
            if self.rng.random() < 0.3
            else 1 + float(self.pick(NEAR)) * self.pick((-1, 1))
        )

    def says(
        self,
        kind: str,
        about: str,
        verdict: Any,
        wrong: str = "",
        *,
        by_chance: bool = False,
    ) -> None:
        """Record a verdict: an error that α covers is one by chance only where α is not next to nothing."""
        chance = by_chance and self.alpha == ALPHA
        self.said.append(
            Said(
                f"{kind}: {about}", str(verdict), wrong, chance and bool(wrong), chance
            )
        )

    def attempt(self, kind: str, about: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action; an error is recorded, and None returned."""
        try:
            found = action()
        except Exception as error:  # whatever it is, the input was valid
            self.says(kind, about, "ERROR", f"{type(error).__name__}: {error}")
            return None
        self.shown.append(found)
        return found

    def audit(
        self,
        built: Callable[[], Audit],
        claim: Claim,
        code: Truth,
        *,
        law: Truth | None = None,
        calls: int = 0,
        further: tuple[int, ...] = (),
    ) -> None:
        """Run an audit and judge all of its statements.

        Args:
            built: Makes the audit.
            claim: Its claim.
            code: What is true of the code, or of the model.
            law: What is true of the law that is stated; ``code`` itself where the code draws from it.
            calls: Calls of its game.
            further: What the game goes on to.
        """
        self.told += f", {claim}, α = {self.alpha:g}, {calls} calls"
        settings = Settings(
            self.alpha,
            Budget(max(calls, 1), later=further),
            self.seed,
            f"case {self.number}",
        )
        result = self.attempt(
            "whole audit", type(claim).__name__, lambda: run_audit(built(), settings)
        )
        if result is not None:
            self.judge(result, claim, code, law)

    def judge(
        self, result: AuditResult, claim: Claim, code: Truth, law: Truth | None
    ) -> None:
        """Return the errors of each kind of evidence, and of the whole."""
        about = type(claim).__name__
        for evidence in result.evidence:
            truth = law if evidence.kind == "exact" and law is not None else code
            wrong = _wrong_bounds(evidence, claim, truth)
            wrong += _wrong_verdict(evidence.verdict, claim, truth)
            if (
                evidence.kind == "counting"
                and evidence.verdict is Verdict.INCONCLUSIVE
                and law is code
            ):
                wrong += ["the code draws from its law"]
            self.says(
                evidence.kind,
                about,
                evidence.verdict,
                "; ".join(wrong),
                by_chance=evidence.kind not in PROOFS,
            )
        wrong: list[str] = []
        proofs = [e for e in result.evidence if e.kind in PROOFS]
        proved = [e for e in proofs if e.verdict is result.verdict]
        by_chance = not proved
        if law is None or law is code or not proved:
            wrong += _wrong_verdict(result.verdict, claim, code)
            if beyond := _beyond(
                result.epsilon_lower, result.epsilon_upper, level(code, claim)
            ):
                wrong += beyond
                bounds = {result.epsilon_lower, result.epsilon_upper} - {None}
                by_chance &= not any(
                    {e.epsilon_lower, e.epsilon_upper} & bounds for e in proofs
                )
        # A game of too few calls is rightly INCONCLUSIVE.
        too_few = any(
            e.kind == "game" and e.verdict is Verdict.INCONCLUSIVE
            for e in result.evidence
        )
        if result.verdict is Verdict.INCONCLUSIVE and law is code and not too_few:
            wrong.append("INCONCLUSIVE, and the code draws from its law")
        self.says(
            "whole audit", about, result.verdict, "; ".join(wrong), by_chance=by_chance
        )


def _wrong_verdict(verdict: Verdict, claim: Claim, truth: Truth) -> list[str]:
    if verdict not in (Verdict.VIOLATED, Verdict.CERTIFIED):
        return []
    true = holds(truth, claim)
    if true is None or true is (verdict is Verdict.CERTIFIED):
        return []
    low, high = level(truth, claim)
    with precision(BITS):
        known = f"{claim.parameter} is {low.str(12, radius=False)}, at most {high.str(12, radius=False)}"
    return [f"{verdict} of a {'true' if true else 'false'} claim ({known})"]


def _beyond(
    lower: float | None, upper: float | None, truth: tuple[arb, arb]
) -> list[str]:
    """Say which of two bounds is on the wrong side of the truth."""
    wrong, (low, high) = [], truth
    with precision(BITS):
        if lower is not None and bool(arb(lower) > high * ROUNDED):
            wrong.append(
                f"lower bound {lower!r} above the truth, at most {high.str(12, radius=False)}"
            )
        if upper is not None and bool(arb(upper) * ROUNDED < low):
            wrong.append(
                f"upper bound {upper!r} below the truth, at least {low.str(12, radius=False)}"
            )
    return wrong


def _wrong_bounds(evidence: Evidence, claim: Claim, truth: Truth) -> list[str]:
    """Say which bounds are wrong: those of counting have a δ of their own."""
    if evidence.kind == "sensitivity":
        return []
    counted = evidence.details
    if not isinstance(counted, CountingDetails):
        return _beyond(
            evidence.epsilon_lower, evidence.epsilon_upper, level(truth, claim)
        )
    wrong = []
    with precision(BITS):
        for bound in counted.upper_bounds or ():
            wrong += _beyond(
                None, bound.epsilon, truth.epsilon(arb(float(bound.delta)))
            )
        if counted.delta_at_claim is not None:
            wrong += _beyond(
                None, counted.delta_at_claim, truth.delta(arb(float(claim.level)))
            )
    return wrong


def claim_near(case: Case, truth: Truth, kinds: Any = ()) -> Claim | None:
    """Return a claim near the truth or far from it; None if the truth gives no claim."""
    kind, near = (
        case.pick(
            kinds
            or (PureDP, ApproxDP, GaussianDP, RenyiDP, ZeroConcentratedDP, AccountedDP)
        ),
        case.near(),
    )
    anywhere = float(case.rng.uniform(0.05, 4.0))
    delta = float(10.0 ** case.rng.uniform(-13, -0.3))
    with precision(BITS):
        if kind is PureDP:
            return PureDP(_scaled(truth.epsilon(arb(0)), near, anywhere))
        if kind is ApproxDP and case.rng.random() < 0.5:
            return ApproxDP(_scaled(truth.epsilon(arb(delta)), near, anywhere), delta)
        if kind is ApproxDP:
            epsilon = anywhere * _scaled(truth.epsilon(arb(delta)), 1.0, 1.0) / 2
            found = float(truth.delta(arb(epsilon))[0]) * near
            return ApproxDP(epsilon, found if 1e-300 < found < 1 else delta)
        if kind is GaussianDP:
            return GaussianDP(_scaled(truth.mu(), near, anywhere))
        if kind is RenyiDP:
            order = float(case.pick((1.1, 1.5, 2.0, 4.0, 16.0, 64.0)))
            return RenyiDP(order, _scaled(truth.renyi(arb(order)), near, anywhere))
        if kind is ZeroConcentratedDP:
            return ZeroConcentratedDP(_scaled(truth.rho(), near, anywhere))
        return _curve_near(
            truth, near, _scaled(truth.epsilon(arb(delta)), 1.0, anywhere)
        )


def _scaled(limits: tuple[arb, arb], factor: float, otherwise: float) -> float:
    value = float((limits[0] if factor < 1 else limits[1]).mid()) * factor
    return value if 1e-6 < value < 500 else otherwise


def _curve_near(truth: Truth, near: float, end: float) -> Claim | None:
    """Return a curve through some points of the true one, δ of each by a factor."""
    points = []
    for epsilon in np.linspace(0, end, 5).tolist():
        low, high = truth.delta(arb(epsilon))
        delta = float(low if near < 1 else high) * near
        if 1e-12 < delta < 1:
            points.append((epsilon, delta))
    if len(points) < 2:
        return None
    return AccountedDP(points, quoted=points[-1][1])
