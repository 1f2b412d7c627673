"""Families of claims, each given by the event probabilities that a level allows.

A pair of output laws P, Q meets a claim exactly if P(A) <= F(Q(A)) for every event A,
and the same with P and Q exchanged. F(x) = 1 - f(x) for the trade-off function f of
Dong, Roth & Su (2022), "Gaussian Differential Privacy", Section 2 (arXiv:1905.02383v3);
it is increasing and concave, and it grows with the level, so that the claims are
nested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from auditdp.betting.wealth.levels import HIGHEST_LEVEL
from auditdp.bounds.bound_levels import highest_rejected
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.claims.dominating import DominatingPair
from auditdp.claims.statements import GaussianDP
from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.numerics.arrays import Floats


@dataclass(frozen=True)
class EpsilonDelta:
    """The (epsilon, delta)-DP claims: P(A) <= e^epsilon Q(A) + delta for all A."""

    delta: float = 0.0
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise ConfigurationError(
                f"expected delta in [0, 1), got {self.delta!r}; 0 is pure epsilon-DP"
            )

    def largest_p(self, q: Any, level: Any) -> Floats:
        """Return F(q), the largest P(A) that the level allows if Q(A) = q.

        It is min(1, e^epsilon q + delta, 1 - (1 - delta - q)/e^epsilon).
        """
        grown = self.delta + np.exp(level) * q
        complement = 1 - (1 - self.delta - q) * np.exp(-np.asarray(level, dtype=float))
        return np.asarray(np.minimum(1.0, np.minimum(grown, complement)))

    def smallest_q(self, p: Any, level: Any) -> Floats:
        """Return the smallest Q(A) that the level allows if P(A) = p.

        It is max(0, (p - delta)/e^epsilon, 1 - delta - e^epsilon (1 - p)).
        """
        shrunk = (p - self.delta) * np.exp(-np.asarray(level, dtype=float))
        complement = 1 - self.delta - np.exp(level) * (1 - np.asarray(p))
        return np.asarray(np.maximum(0.0, np.maximum(shrunk, complement)))

    def level(self, p: Any, q: Any) -> Floats:
        """Return the smallest epsilon that allows P(A) = p and Q(A) = q.

        It is the logarithm of max((p - delta)/q, (1 - q - delta)/(1 - p), 1).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            event = self._ratio(np.asarray(p, dtype=float), q)
            complement = self._ratio(1 - np.asarray(q, dtype=float), 1 - np.asarray(p))
            return np.asarray(np.log(np.maximum(1.0, np.maximum(event, complement))))

    def _ratio(self, p: Floats, q: Any) -> Floats:
        return np.where(p > self.delta, (p - self.delta) / q, 0.0)


@dataclass(frozen=True)
class Gaussian:
    """The mu-Gaussian DP claims, Definition 2.6 of Dong, Roth & Su (2022)."""

    delta: ClassVar[float] = 0.0
    parameter: ClassVar[str] = "mu"

    def largest_p(self, q: Any, level: Any) -> Floats:
        """Return Φ(Φ⁻¹(q) + mu), the largest P(A) that mu allows if Q(A) = q."""
        return np.asarray(ndtr(ndtri(q) + level))

    def smallest_q(self, p: Any, level: Any) -> Floats:
        """Return Φ(Φ⁻¹(p) - mu), the smallest Q(A) that mu allows if P(A) = p."""
        return np.asarray(ndtr(ndtri(p) - level))

    def level(self, p: Any, q: Any) -> Floats:
        """Return the smallest mu that allows P(A) = p and Q(A) = q.

        It is Φ⁻¹(p) - Φ⁻¹(q), or 0 if that is negative.
        """
        with np.errstate(invalid="ignore"):
            difference = np.maximum(0.0, ndtri(p) - ndtri(q))
            return np.asarray(np.nan_to_num(difference, posinf=math.inf))


@dataclass(frozen=True)
class OfClaim:
    """The family of a claim about a whole privacy curve, by dominating pairs.

    Let (p₀, q₀) be the dominating pair of the claim at a level, and A_k its k atoms
    with the largest ratio q₀/p₀. F joins the points (p₀(A_k), q₀(A_k)), that is
    F(p₀(A_k)) = q₀(A_k). ``auditdp.claims.dominating`` proves that no pair that meets
    the claim exceeds F. If the family of a claim has finitely many levels, any other
    level is replaced by the next one above, which allows more; above the highest level
    everything is allowed.
    """

    claim: Claim

    @property
    def parameter(self) -> str:
        """The name of the level: 'epsilon' or 'rho'."""
        return self.claim.parameter

    @property
    def delta(self) -> float:
        """The delta at which an accountant's epsilon is quoted; 0 if there is none."""
        return self.claim.quoted if isinstance(self.claim, AccountedDP) else 0.0

    def largest_p(self, q: Any, level: Any) -> Floats:
        """Return F(q), the largest P(A) that the level allows if Q(A) = q."""
        return self._interpolated(q, level, 0)

    def smallest_q(self, p: Any, level: Any) -> Floats:
        """Return the smallest Q(A) that the level allows if P(A) = p."""
        return self._interpolated(p, level, 1)

    def level(self, p: Any, q: Any) -> Floats:
        """Return the infimum of the levels that allow P(A) = p and Q(A) = q."""

        def lowest(p: float, q: float) -> float:
            level = highest_rejected(lambda each: self.largest_p(q, each) < p, parts=2)
            return level if level < HIGHEST_LEVEL else math.inf

        return np.asarray(np.vectorize(lowest, otypes=[float])(p, q))

    def _interpolated(self, values: Any, level: Any, axis: int) -> Floats:
        """Return F(values) if ``axis`` is 0, or F⁻¹(values) if it is 1."""
        at, levels = np.broadcast_arrays(
            np.asarray(values, dtype=float), np.asarray(level, dtype=float)
        )
        corners = self._stacked(levels.tobytes())
        known, sought = corners[axis], corners[1 - axis]
        rows, value = np.arange(len(known)), at.ravel()
        # The segment of F that contains each value.
        end = np.clip((known < value[:, None]).sum(axis=1), 1, known.shape[1] - 1)
        low, high = known[rows, end - 1], known[rows, end]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(value > low, (value - low) / (high - low), 0.0)
        first = sought[rows, end - 1]
        result = first + np.clip(part, 0.0, 1.0) * (sought[rows, end] - first)
        return np.asarray(result.reshape(at.shape))

    @cached_property
    def _stacked(self) -> Any:
        """Cached function from the bytes of an array of levels to the corners of F.

        It returns their x and their F(x), each of shape (levels, corners). The last
        corner is repeated to fill a row.
        """
        # One test evaluates F at the same levels for many values, and each level of a
        # family stands for many.
        corners_at = cache(self._corners)

        def stacked(levels: bytes) -> list[Floats]:
            corners = [corners_at(self.of_family(x)) for x in np.frombuffer(levels)]
            size = max(each.shape[1] for each in corners)
            rows = [
                np.pad(each, ((0, 0), (0, size - each.shape[1])), mode="edge")
                for each in corners
            ]
            return list(np.stack(rows, axis=1))

        return cache(stacked)

    def _corners(self, level: float | None) -> Floats:
        """Return x and F(x) of the corners of F at a level, shape (2, corners).

        If the level is None, F allows everything.
        """
        if level is None:
            return np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        pair = DominatingPair.of(self.claim.at(level).statements())
        return np.array([np.append(0.0, law.cumsum()) for law in (pair.p, pair.q)])

    def of_family(self, level: float) -> float | None:
        """Return the level of the claim's family that replaces a level.

        Returns:
            The smallest level of the family that is not below ``level``, or None if all
            are below it. If the family has all levels, it is ``level``, but at least
            1e-6.
        """
        if self.claim.levels is not None:
            return next((known for known in self.claim.levels if known >= level), None)
        # Curves of lower levels are not computed: this one allows more.
        return max(float(level), 1e-6)


Curve = EpsilonDelta | Gaussian | OfClaim
"""A family of claims, one for each level >= 0.

Attributes:
    parameter: The name of the level: 'epsilon', 'mu' or 'rho'.
    delta: The delta that goes with an epsilon, else 0.

``largest_p(q, level)`` is F(q), the largest P(A) that the level allows if Q(A) = q;
``smallest_q(p, level)`` is the smallest q with F(q) >= p. ``level(p, q)`` is the
infimum of the levels that allow P(A) = p and Q(A) = q: these probabilities refute all
levels below it.
"""


def curve_of_claim(claim: Claim) -> Curve:
    """Return the family of claims that contains a claim."""
    if isinstance(claim, GaussianDP):
        return Gaussian()
    return EpsilonDelta(claim.delta or 0.0) if claim.is_point else OfClaim(claim)


def curve_of(parameter: str, delta: float) -> Curve:
    """Return the family of claims with this parameter, at this delta.

    Args:
        parameter: 'epsilon' or 'mu'.
        delta: The delta that goes with epsilon; 0 for mu.

    Raises:
        ConfigurationError: If the parameter is unknown, or delta is not in [0, 1), or
            not 0 for mu.
    """
    if parameter == "epsilon":
        return EpsilonDelta(delta)
    if parameter != "mu":
        raise ConfigurationError(
            f"unknown parameter {parameter!r}; {did_you_mean(parameter, ['epsilon', 'mu'])}"
        )
    if delta:
        raise ConfigurationError(
            f"delta={delta!r} has no meaning for mu; leave it out, or bound epsilon"
        )
    return Gaussian()
