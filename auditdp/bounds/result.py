"""A certified lower bound: what it says, at which confidence, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.bounds.privacy_curves import Curve
from auditdp.numerics.rounding import outwards
from auditdp.record.json_fields import Number

ROUNDING = 1e-9
"""Relative error that the numerical libraries are trusted to stay within; every bound is lowered by it."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on a privacy level, certified at confidence 1 - alpha if its assumptions hold.

    Attributes:
        method: Which test it comes from, one of ``auditdp.bounds.METHODS``.
        parameter: What is bounded: 'epsilon' (in nats, at ``delta``) or 'mu' (of Gaussian DP).
        lower: The bound; whatever the data's law, it exceeds the true level with probability at most ``alpha``.
        alpha: That error probability.
        delta: The delta that goes with epsilon.
        n: How many observations the test used, after any were spent on choosing an event.
        statistic: What was observed, for a person.
        assumptions: What the statement rests on.
        source: The paper and theorem.
        claim: The level that is claimed, if any was given.
        p_value: The smallest error probability at which this method refutes the claim, or an upper bound on it.
        refuted: Whether the claim is refuted at ``alpha``: the same event as ``lower`` reaching the claim.
    """

    method: str
    parameter: str
    lower: Number
    alpha: Number
    n: int
    statistic: str
    assumptions: list[str]
    source: str
    delta: Number = 0.0
    claim: Number | None = None
    p_value: Number | None = None
    refuted: bool = False

    @property
    def statement(self) -> str:
        """One sentence that says no more than was seen."""
        confidence, curve = (
            f"{100 * (1 - self.alpha):.4g} % confidence",
            f" at delta = {self.delta:.3g}",
        )
        what = self.parameter + (curve if self.delta else "")
        text = (
            f"{what} >= {rounded_down(self.lower)} with {confidence}"
            if self.lower > 0
            else f"nothing above {what} = 0 is certified with {confidence}"
        )
        if self.claim is not None and self.p_value is not None:
            verb = "is refuted" if self.refuted else "is not refuted"
            text += f"; the claim {self.parameter} = {self.claim:.6g} {verb} (p <= {rounded_up(self.p_value)})"
        if self.parameter == "mu" and self.lower > 0:
            text += "; this refutes Gaussian DP curves below it, not a bare (epsilon, delta) statement"
        return text

    def __str__(self) -> str:
        rests = "".join(f"\n  assumes: {assumption}" for assumption in self.assumptions)
        return f"{self.method}: {self.statement}\n  saw: {self.statistic}{rests}\n  source: {self.source}"

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the bound as JSON text; an infinite number is the string "inf"."""
        return _BOUND.dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Bound:
        """Return the bound that ``to_json`` wrote.

        Raises:
            pydantic.ValidationError: If the text is not such a bound.
        """
        return _BOUND.validate_json(text)


_BOUND: TypeAdapter[Bound] = TypeAdapter(Bound)


class Question(NamedTuple):
    """What is asked of the data: a bound in a family of claims at an error probability, and whether a claim stands."""

    curve: Curve
    alpha: float
    claim: float | None


class Answer(NamedTuple):
    """The bound that a test gives, and the p-value of the claim if there is one."""

    lower: float
    p_value: float | None

    @classmethod
    def shared(cls, answers: Sequence[Answer]) -> Answer:
        """Return the best of several, each of which had an equal share of alpha."""
        p_values = [answer.p_value for answer in answers if answer.p_value is not None]
        return cls(
            max(answer.lower for answer in answers),
            len(answers) * min(p_values) if p_values else None,
        )


def rounded_down(value: float) -> str:
    """Write a lower bound with four significant digits, never above its value."""
    return outwards(value, up=False, digits=4, near=0.0)


def rounded_up(value: float) -> str:
    """Write an upper bound with two significant digits, never below its value."""
    return outwards(value, up=True, digits=2, near=0.0)
