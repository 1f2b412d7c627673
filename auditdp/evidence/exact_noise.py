"""The declared model of additive noise: one scale and shape, around bounded answers.

Let the law be independent Laplace noise of scales b_i >= b around answers that are at
most S apart in ℓ₁. Then two neighbours lose Σ|a_i - a'_i|/b_i <= S/b. Let the law be
Gaussian noise of deviation σ around answers that are at most S apart in ℓ₂. Then two
neighbours satisfy μ-Gaussian DP with μ = ‖a - a'‖₂/σ <= S/σ, and δ(ε) grows with μ. So
S bounds the loss of all neighbours if scale and shape are the same on all inputs, and S
is the sensitivity. Comparing pairs proves neither. Both are checked on every compared
pair, and after a contradiction there is no bound.
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
from auditdp.evidence.loss_of_laws import Stated, pair_loss
from auditdp.mechanism.calls.inputs import is_sparse
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw
from auditdp.mechanism.laws.additive import exact_gaps
from auditdp.mechanism.protocol import Array, brief

NORMS = {LaplaceLaw: "l1", GaussianLaw: "l2"}
"""The norm of the distance of answers that bounds the loss, by the law's family."""


@dataclass(frozen=True)
class DeclaredNoise:
    """The declared model: noise of one scale around answers of a declared sensitivity.

    The scale and the family are those of the law of one input, ``first``.
    """

    able: Capabilities
    stated: Stated
    first: Any
    """The input whose law decides the scale and the family."""
    sensitivity: float
    """The declared sensitivity: largest distance of two neighbours' answers."""

    @property
    def law(self) -> Any:
        """The law of the first input."""
        return self.stated.law_of(self.first)

    @property
    def norm(self) -> str:
        """The norm of the sensitivity, 'l1' or 'l2'."""
        return NORMS[type(self.law)]

    def bound(self, point: dict[str, float]) -> PairLoss:
        """Return the loss of answers that are as far apart as the sensitivity.

        Args:
            point: The claim's ``epsilon`` and ``delta`` (``claimed_point``), or empty.
        """
        family, scale = type(self.law), _scale(self.law)
        spread: Any = scale if family is GaussianLaw else np.array([scale])
        far, near = (family(np.array([at]), spread) for at in (self.sensitivity, 0.0))
        return pair_loss(far, near, **point)

    def departure(self, pair: Pair) -> str:
        """Return a sentence on how a pair contradicts the model, or '' if it does not.

        Raises:
            MechanismError: If the mechanism refuses to state the law of an input.
        """
        for _, data in sides(pair):
            found = self._of_input(data)
            if found:
                return found
        return self._of_pair(pair)

    def size(self, pair: Pair) -> float:
        """Return the score of a pair in a search for contradictions of the model.

        It grows with the distance of the answers: it is the distance in ℓ₁, or the
        square of the distance in ℓ₂, over the sensitivity. It is infinite if the pair
        contradicts the model.
        """
        if self.departure(pair):
            return math.inf
        return float(self._distance(pair)) / self.sensitivity

    def _of_input(self, data: Any) -> str:
        law, first = self.stated.law_of(data), self.law
        if type(law) is not type(first):
            return f"the law is a {type(law).__name__} on {brief(data)} and a {type(first).__name__} on {brief(self.first)}"
        # A scale that depends on the data makes the loss unbounded.
        if _scale(law) != _scale(first):
            return (
                f"the scale of the noise depends on the data: {_scale(law)!r} on {brief(data)}, {_scale(first)!r} on "
                f"{brief(self.first)}"
            )
        if self.able.query is None:
            return ""
        # Noise around a query with randomness of its own has no single location, which
        # a second seed shows.
        for seed in (0, 1):
            try:
                raw = self.able.query(data, np.random.default_rng(seed))
                values = raw.toarray() if is_sparse(raw) else raw
                answers = np.ravel(values).astype(float)
            except Exception as error:
                return f"query raised {type(error).__name__} on input {brief(data)}: {error}"
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
        if not np.array_equal(_scales(first), _scales(second)):
            return f"the scale of the noise depends on the data: {pair}"
        # Squares are rational, and roots are not.
        power = 2 if self.norm == "l2" else 1
        distance = self._distance(pair)
        allowed = Fraction(self.sensitivity) * (1 + Fraction(ROUNDING_TOLERANCE))
        if distance <= allowed**power:
            return ""
        far = float(distance) ** (1 / power)
        return (
            f"the answers of {pair} are {far:.6g} apart in {self.norm}, more than the declared sensitivity "
            f"{self.sensitivity:g}"
        )

    def _distance(self, pair: Pair) -> Fraction:
        """Return the exact distance of the two locations in ℓ₁, or its square in ℓ₂."""
        gaps = exact_gaps(*(self.stated.law_of(data) for _, data in sides(pair)))
        if self.norm == "l2":
            gaps = [gap**2 for gap in gaps]
        return sum(gaps, Fraction(0))


def declared_noise(
    able: Capabilities, stated: Stated, first: Any
) -> DeclaredNoise | None:
    """Return the model that ``sensitivity`` and ``norm`` of a mechanism declare.

    Returns:
        The model, or None if the mechanism declares none that fits its law.
    """
    norm = NORMS.get(type(stated.law_of(first)))
    sensitivity = able.finite_sensitivity
    if sensitivity is None or norm is None or able.declared_norm != norm:
        return None
    return DeclaredNoise(able, stated, first, sensitivity)


def _agree(answers: Array, location: Array, scale: float) -> bool:
    """Return True if a query's value is the location of the law, up to rounding.

    Differences up to 1e-9 times the largest of all locations and the scale are allowed.
    """
    if answers.shape != location.shape:
        return False
    size = max(scale, float(np.abs(location).max(initial=0.0)))
    return bool((np.abs(answers - location) <= 1e-9 * size).all())


def _scales(law: Any) -> Any:
    return np.atleast_1d(law.sigma if isinstance(law, GaussianLaw) else law.scale)


def _scale(law: Any) -> float:
    """Return the smallest scale over the coordinates of a law."""
    return float(np.min(_scales(law)))
