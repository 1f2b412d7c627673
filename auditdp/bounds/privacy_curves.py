"""What a level allows: the largest probability of an event under one input, given its probability under the other.

A pair of output laws P, Q meets a claim exactly if P(A) <= F(Q(A)) for every event A, and the same with P and Q exchanged.
F(x) = 1 - f(x) for the trade-off function f of Dong, Roth & Su (2022), "Gaussian Differential Privacy", Section 2
(arXiv:1905.02383v3); it is increasing and concave, and it grows with the level, so that the claims are nested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from auditdp.bounds.bound_levels import HIGHEST, highest_rejected
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.claims.dominating import DominatingPair
from auditdp.claims.statements import GaussianDP
from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.numerics.arrays import Floats

LEAST_LEVEL = 1e-6
"""Lower levels of a claim's curve are taken for this one, which allows more."""


class Curve(Protocol):
    """A family of claims, one for each level >= 0."""

    @property
    def parameter(self) -> str:
        """What the level is called: 'epsilon' or 'mu'."""

    @property
    def delta(self) -> float:
        """The delta that goes with an epsilon; 0 for mu."""

    def most(self, q: Any, level: Any) -> Floats:
        """Return F(q): the largest P(A) that the level allows where Q(A) = q."""

    def least(self, p: Any, level: Any) -> Floats:
        """Return the smallest q with F(q) >= p."""

    def level(self, p: Any, q: Any) -> Floats:
        """Return the infimum of the levels that allow P(A) = p and Q(A) = q: all below it are refuted by them."""


@dataclass(frozen=True)
class EpsilonDelta:
    """(epsilon, delta)-DP at every epsilon: P(A) <= e^epsilon Q(A) + delta, for A and for its complement."""

    delta: float = 0.0
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise ConfigurationError(
                f"expected delta in [0, 1), got {self.delta!r}; 0 is pure epsilon-DP"
            )

    def most(self, q: Any, level: Any) -> Floats:
        """Return min(1, e^epsilon q + delta, 1 - (1 - delta - q)/e^epsilon)."""
        grown = self.delta + np.exp(level) * q
        complement = 1 - (1 - self.delta - q) * np.exp(-np.asarray(level, dtype=float))
        return np.asarray(np.minimum(1.0, np.minimum(grown, complement)))

    def least(self, p: Any, level: Any) -> Floats:
        """Return max(0, (p - delta)/e^epsilon, 1 - delta - e^epsilon (1 - p))."""
        shrunk = (p - self.delta) * np.exp(-np.asarray(level, dtype=float))
        complement = 1 - self.delta - np.exp(level) * (1 - np.asarray(p))
        return np.asarray(np.maximum(0.0, np.maximum(shrunk, complement)))

    def level(self, p: Any, q: Any) -> Floats:
        """Return the larger of ln((p - delta)/q) and ln((1 - q - delta)/(1 - p)), at least 0."""
        p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            event = np.where(p > self.delta, (p - self.delta) / q, 0.0)
            complement = np.where(
                1 - q > self.delta, (1 - q - self.delta) / (1 - p), 0.0
            )
            return np.asarray(np.log(np.maximum(1.0, np.maximum(event, complement))))


@dataclass(frozen=True)
class Gaussian:
    """mu-Gaussian DP at every mu: F(q) = Φ(Φ⁻¹(q) + mu) (Dong, Roth & Su 2022, Definition 2.6)."""

    delta: ClassVar[float] = 0.0
    parameter: ClassVar[str] = "mu"

    def most(self, q: Any, level: Any) -> Floats:
        """Return Φ(Φ⁻¹(q) + mu)."""
        return np.asarray(ndtr(ndtri(q) + level))

    def least(self, p: Any, level: Any) -> Floats:
        """Return Φ(Φ⁻¹(p) - mu)."""
        return np.asarray(ndtr(ndtri(p) - level))

    def level(self, p: Any, q: Any) -> Floats:
        """Return Φ⁻¹(p) - Φ⁻¹(q), at least 0."""
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.nan_to_num(np.maximum(0.0, ndtri(p) - ndtri(q)), posinf=math.inf)
            )


@dataclass(frozen=True)
class OfClaim:
    """The family of a claim of a whole curve: F is that of the dominating pair at each level.

    F joins the points (P(A_k), Q(A_k)) of the k atoms that are surest, of which ``auditdp.claims.dominating`` proves
    that no pair which keeps the claim is above. Where a claim has some levels only, those of its family, any other
    stands for the next one above, which allows more; above the highest everything is allowed.
    """

    claim: Claim
    _corners: dict[float, tuple[Floats, Floats]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _stacks: dict[bytes, tuple[Floats, Floats]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def parameter(self) -> str:
        """What the level is called: 'epsilon' or 'rho'."""
        return self.claim.parameter

    @property
    def delta(self) -> float:
        """The delta at which an accountant's epsilon is quoted; 0 where there is none."""
        return self.claim.quoted if isinstance(self.claim, AccountedDP) else 0.0

    def most(self, q: Any, level: Any) -> Floats:
        """Return F(q)."""
        return self._joined(q, level, 0)

    def least(self, p: Any, level: Any) -> Floats:
        """Return the smallest q with F(q) >= p."""
        return self._joined(p, level, 1)

    def level(self, p: Any, q: Any) -> Floats:
        """Return the infimum of the levels that allow P(A) = p and Q(A) = q, by bisection; 0 and infinity included."""

        def lowest(p: float, q: float) -> float:
            rejected = highest_rejected(
                lambda levels: self.most(q, levels) < p, parts=2
            )
            return rejected if rejected < HIGHEST else math.inf

        return np.asarray(np.vectorize(lowest, otypes=[float])(p, q))

    def _joined(self, values: Any, level: Any, axis: int) -> Floats:
        """Return where the line through the corners is, on the other axis, that has these values on one axis first."""
        at, levels = np.broadcast_arrays(
            np.asarray(values, dtype=float), np.asarray(level, dtype=float)
        )
        corners = self._stacked(levels.ravel())
        known, sought = corners[axis], corners[1 - axis]
        rows, value = np.arange(len(known)), at.ravel()
        end = np.clip((known < value[:, None]).sum(axis=1), 1, known.shape[1] - 1)
        low, high = known[rows, end - 1], known[rows, end]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(value > low, (value - low) / (high - low), 0.0)
        found = sought[rows, end - 1] + np.clip(part, 0.0, 1.0) * (
            sought[rows, end] - sought[rows, end - 1]
        )
        return np.asarray(found.reshape(at.shape))

    def _stacked(self, levels: Floats) -> tuple[Floats, Floats]:
        """Return the corners of F at some levels, each shape (levels, corners); the last one as often as needed."""
        key = levels.tobytes()
        if key not in self._stacks:
            corners = [self._at(float(level)) for level in levels]
            most = max(len(p) for p, _ in corners)
            p, q = (
                np.array(
                    [
                        np.pad(each[k], (0, most - len(each[k])), mode="edge")
                        for each in corners
                    ]
                )
                for k in (0, 1)
            )
            self._stacks[key] = p, q
        return self._stacks[key]

    def _at(self, level: float) -> tuple[Floats, Floats]:
        """Return the corners of F at a level."""
        at = self.of_family(level)
        if at is None:
            return np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])
        if at not in self._corners:
            pair = DominatingPair.of(self.claim.at(at).statements())
            self._corners[at] = (
                np.append(0.0, pair.p.cumsum()),
                np.append(0.0, pair.q.cumsum()),
            )
        return self._corners[at]

    def of_family(self, level: float) -> float | None:
        """Return the level of the claim that stands for a level, which is refuted with it; None where all is allowed."""
        if self.claim.levels is not None:
            return next((known for known in self.claim.levels if known >= level), None)
        return max(level, LEAST_LEVEL)


def curve_of_claim(claim: Claim) -> Curve:
    """Return the family of claims that a claim is one of."""
    if isinstance(claim, GaussianDP):
        return Gaussian()
    return EpsilonDelta(claim.delta or 0.0) if claim.is_point else OfClaim(claim)


def curve_of(parameter: str, delta: float) -> Curve:
    """Return the family of claims that a bound is about.

    Raises:
        ConfigurationError: If the parameter is unknown, or delta is not in [0, 1) or has no meaning.
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
