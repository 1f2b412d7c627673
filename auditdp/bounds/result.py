"""The certified lower bound: its statement, its confidence and its assumptions.

``Question`` is the input of every test, ``Answer`` its result, and ``Bound`` the
complete result that a user gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass as plain_dataclass
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.bounds.privacy_curves import Curve
from auditdp.numerics.rounding import outwards
from auditdp.record.json_fields import Number

ROUNDING = 1e-9
"""Assumed relative error of the numerical libraries; every bound is lowered by it."""
MIN_FIT_P = 0.01
"""P-value of an assumption below which no bound is given."""


@plain_dataclass(frozen=True)
class BoundLimits:
    """Caps on the time and the memory of a bound; none of them affects its validity.

    Attributes:
        count_cells: Number of cells into which the exact test of two counts groups the
            values of the first count.
        nuisance_intervals: Number of intervals of the nuisance parameter with which
            this test starts.
        nuisance_rounds: Number of rounds in which intervals that can still raise the
            supremum are split in four.
        event_thresholds: Number of candidates for the threshold of an event.
        nested_sets: Number of sets of guesses that a scan tests.
        simulated_scores: Number of scores that are simulated for the power of the test
            of an assumption.
        parquet_rows: Number of rows of a Parquet file that are unpacked at a time.
    """

    count_cells: int = 512
    nuisance_intervals: int = 64
    nuisance_rounds: int = 3
    event_thresholds: int = 200
    nested_sets: int = 256
    simulated_scores: int = 200_000
    parquet_rows: int = 4096


LIMITS = BoundLimits()


@dataclass(frozen=True)
class Bound:
    """A lower bound on a privacy level, certified at confidence 1 - alpha.

    Attributes:
        method: The test that gave it, one of ``auditdp.bounds.METHODS``.
        parameter: The bounded parameter: 'epsilon' (in nats, at ``delta``), 'mu' (of
            Gaussian DP), or another parameter of a claim's family, such as 'rho'.
        lower: The bound. If the assumptions hold, it exceeds the true level with
            probability at most ``alpha``, whatever the law of the data.
        alpha: That error probability.
        delta: The delta that goes with epsilon; 0 for other parameters.
        n: Number of observations in the test, without those on which the event was
            chosen.
        statistic: The observation that the test used, in words.
        assumptions: The assumptions of the statement.
        source: The paper and theorem.
        claim: The claimed level; None if none was given.
        p_value: The smallest error probability at which this method refutes the claim,
            or an upper bound on it; None without a claim.
        refuted: Whether the claim is refuted at ``alpha``: the bound before it is
            lowered by ``ROUNDING`` reaches the claim, and the p-value is at most
            ``alpha``.
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
        """One sentence: the bound, its confidence and the test of the claim."""
        confidence = f"{100 * (1 - self.alpha):.4g} % confidence"
        what = self.parameter
        if self.delta:
            what += f" at delta = {self.delta:.3g}"
        text = f"nothing above {what} = 0 is certified with {confidence}"
        if self.lower > 0:
            text = f"{what} >= {rounded_down(self.lower)} with {confidence}"
        if self.claim is not None and self.p_value is not None:
            verb = "is refuted" if self.refuted else "is not refuted"
            text += f"; the claim {self.parameter} = {self.claim:.6g} {verb} (p <= {rounded_up(self.p_value)})"
        if self.parameter == "mu" and self.lower > 0:
            text += "; this refutes Gaussian DP curves below it, not a bare (epsilon, delta) statement"
        return text

    def __str__(self) -> str:
        rests = "".join(f"\n  assumes: {assumption}" for assumption in self.assumptions)
        return f"{self.method}: {self.statement}\n  observed: {self.statistic}{rests}\n  source: {self.source}"

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
    """The input of a test: a family of claims, the error probability, and the claim.

    ``claim`` is the claimed level of the family, or None if only a bound is wanted.
    """

    curve: Curve
    alpha: float
    claim: float | None


class Answer(NamedTuple):
    """The result of a test: the lower bound, and the p-value of the claim.

    The p-value is None without a claim.
    """

    lower: float
    p_value: float | None

    @classmethod
    def shared(cls, answers: Sequence[Answer]) -> Answer:
        """Return one answer from several tests that had equal shares of alpha.

        It has the largest bound, and the smallest p-value times the number of tests,
        which may exceed 1.
        """
        p_values = [answer.p_value for answer in answers if answer.p_value is not None]
        p_value = len(answers) * min(p_values) if p_values else None
        return cls(max(answer.lower for answer in answers), p_value)


def rounded_down(value: float) -> str:
    """Return a lower bound with four significant digits, never above its value."""
    return outwards(value, up=False, digits=4, near=0.0)


def rounded_up(value: float) -> str:
    """Return an upper bound with two significant digits, never below its value."""
    return outwards(value, up=True, digits=2, near=0.0)
