"""The declared model of additive noise: one scale and shape whatever the data, around answers of bounded sensitivity.

Let the law be independent Laplace noise of scales b_i >= b around answers at most S apart in ℓ₁: two neighbours lose
Σ|a_i - a'_i|/b_i <= S/b. Let it be Gaussian noise of deviation σ around answers at most S apart in ℓ₂: two neighbours are
‖a - a'‖₂/σ <= S/σ-Gaussian DP, and δ(ε) grows with μ. So S bounds the loss of all neighbours, given that scale and shape are
the same on all inputs, and that S is the sensitivity. Looking at pairs proves neither. Both are compared on every pair that
is looked at, and one pair that does not agree leaves no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.adjacency import sides
from auditdp.evidence.exact_losses import ROUNDING_TOLERANCE, PairLoss
from auditdp.evidence.noise_loss import gaussian_loss, laplace_loss
from auditdp.evidence.stated_laws import Stated
from auditdp.mechanism.calls.inputs import is_sparse
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw
from auditdp.mechanism.protocol import Array, brief

NORMS = {LaplaceLaw: "l1", GaussianLaw: "l2"}
"""In which norm the distance of the answers bounds the loss."""
QUERY_TOLERANCE = 1e-9
"""Difference of location and query, relative to the larger of location and scale, that is called rounding."""
SEEDS = (0, 1)
"""Of the query's own randomness; noise around a query that draws any is no noise of one location."""


@dataclass(frozen=True)
class DeclaredNoise:
    """Noise of the scale that one input shows, around answers of a declared sensitivity."""

    able: Capabilities
    stated: Stated
    first: Any
    """The input that the others are compared with."""
    sensitivity: float
    """S."""

    @property
    def law(self) -> Any:
        """The law of the first input."""
        return self.stated.law_of(self.first)

    @property
    def norm(self) -> str:
        """The norm of the sensitivity."""
        return NORMS[type(self.law)]

    def bound(self, asked: dict[str, float]) -> PairLoss:
        """Return the loss of answers that are as far apart as the sensitivity; ``asked`` is a point of the curve δ(ε)."""
        scale, ends = _scale(self.law), (np.array([self.sensitivity]), np.zeros(1))
        if isinstance(self.law, GaussianLaw):
            far, near = (GaussianLaw(at, scale) for at in ends)
            return gaussian_loss(far, near, **asked)
        return laplace_loss(*(LaplaceLaw(at, np.array([scale])) for at in ends))

    def departure(self, pair: Pair) -> str:
        """Return how a pair departs from the model, in words; empty where it agrees.

        Raises:
            MechanismError: If the mechanism refuses to state the law of an input.
        """
        return next(
            filter(None, (self._of_input(data) for _, data in sides(pair))), ""
        ) or self._of_pair(pair)

    def size(self, pair: Pair) -> float:
        """Return how near a pair is to departing: what a search makes large; infinite where it departs."""
        if self.departure(pair):
            return math.inf
        return float(self._distance(pair)) / self.sensitivity

    def _of_input(self, data: Any) -> str:
        law = self.stated.law_of(data)
        if type(law) is not type(self.law):
            families = [type(each).__name__ for each in (law, self.law)]
            return f"the law is a {families[0]} on {brief(data)} and a {families[1]} on {brief(self.first)}"
        if _scale(law) != _scale(self.law):
            return (
                f"the scale of the noise depends on the data: {_scale(law)!r} on {brief(data)}, {_scale(self.law)!r} on "
                f"{brief(self.first)}"
            )
        if self.able.query is None:
            return ""
        for seed in SEEDS:
            try:
                answers = self.able.query(data, np.random.default_rng(seed))
                answers = np.ravel(
                    answers.toarray() if is_sparse(answers) else answers
                ).astype(float)
            except Exception as error:
                return f"query raised {type(error).__name__}: {error} (on input {brief(data)})"
            if not _agree(answers, np.asarray(law.location), _scale(law)):
                return (
                    f"the law is not of noise around the query: on {brief(data)} its location is {brief(law.location)} and "
                    f"the query {brief(answers)}"
                )
        return ""

    def _of_pair(self, pair: Pair) -> str:
        first, second = (self.stated.law_of(data) for _, data in sides(pair))
        if np.shape(first.location) != np.shape(second.location):
            return f"how many numbers are released depends on the data: {pair}"
        if not np.array_equal(*(_scales(law) for law in (first, second))):
            return f"the scale of the noise depends on the data: {pair}"
        power = 2 if self.norm == "l2" else 1
        if (
            self._distance(pair)
            > (Fraction(self.sensitivity) * (1 + Fraction(ROUNDING_TOLERANCE))) ** power
        ):
            far = float(self._distance(pair)) ** (1 / power)
            return (
                f"the answers of {pair} are {far:.6g} apart in {self.norm}, more than the declared sensitivity "
                f"{self.sensitivity:g}"
            )
        return ""

    def _distance(self, pair: Pair) -> Fraction:
        """The exact distance of the two locations in ℓ₁, or its square in ℓ₂."""
        first, second = (self.stated.law_of(data) for _, data in sides(pair))
        gaps = (
            abs(Fraction(float(a)) - Fraction(float(b)))
            for a, b in zip(first.location, second.location, strict=True)
        )
        return sum((gap**2 for gap in gaps) if self.norm == "l2" else gaps, Fraction(0))


def declared_noise(
    able: Capabilities, stated: Stated, first: Any
) -> DeclaredNoise | None:
    """Return the model that a mechanism declares by ``sensitivity`` and ``norm``; None where it declares none that fits."""
    law = stated.law_of(first)
    if (
        able.finite_sensitivity is None
        or type(law) not in NORMS
        or able.declared_norm != NORMS[type(law)]
    ):
        return None
    return DeclaredNoise(able, stated, first, able.finite_sensitivity)


def _agree(answers: Array, location: Array, scale: float) -> bool:
    """Return whether a query's value is the location of the law, up to rounding."""
    if answers.shape != location.shape:
        return False
    size = max(scale, float(np.abs(location).max(initial=0.0)))
    return bool((np.abs(answers - location) <= QUERY_TOLERANCE * size).all())


def _scales(law: Any) -> Any:
    return np.atleast_1d(law.sigma if isinstance(law, GaussianLaw) else law.scale)


def _scale(law: Any) -> float:
    """The smallest scale of a coordinate."""
    return float(np.min(_scales(law)))
