"""What a level allows: the largest probability of an event under one input, given its probability under the other.

A pair of output laws P, Q meets a claim exactly if P(A) <= F(Q(A)) for every event A, and the same with P and Q exchanged.
F(x) = 1 - f(x) for the trade-off function f of Dong, Roth & Su (2022), "Gaussian Differential Privacy", Section 2
(arXiv:1905.02383v3); it is increasing and concave, and it grows with the level, so that the claims are nested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from auditdp.errors import ConfigurationError, did_you_mean

Floats = NDArray[np.float64]


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

    def describe(self, level: float) -> str:
        """Name the claim at this level."""


@dataclass(frozen=True)
class EpsilonDelta:
    """(epsilon, delta)-DP at every epsilon: P(A) <= e^epsilon Q(A) + delta, for A and for its complement."""

    delta: float = 0.0
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise ConfigurationError(f"expected delta in [0, 1), got {self.delta!r}; 0 is pure epsilon-DP")

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
            complement = np.where(1 - q > self.delta, (1 - q - self.delta) / (1 - p), 0.0)
            return np.asarray(np.log(np.maximum(1.0, np.maximum(event, complement))))

    def describe(self, level: float) -> str:
        """Return such as '1-DP' or '(1, 1e-05)-DP'."""
        return f"({level:.6g}, {self.delta:.3g})-DP" if self.delta else f"{level:.6g}-DP"


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
            return np.asarray(np.nan_to_num(np.maximum(0.0, ndtri(p) - ndtri(q)), posinf=math.inf))

    def describe(self, level: float) -> str:
        """Return such as '1-GDP'."""
        return f"{level:.6g}-GDP"


def curve_of(parameter: str, delta: float) -> Curve:
    """Return the family of claims that a bound is about.

    Raises:
        ConfigurationError: If the parameter is unknown, or delta is not in [0, 1) or has no meaning.
    """
    if parameter == "epsilon":
        return EpsilonDelta(delta)
    if parameter != "mu":
        raise ConfigurationError(f"unknown parameter {parameter!r}; {did_you_mean(parameter, ['epsilon', 'mu'])}")
    if delta:
        raise ConfigurationError(f"delta={delta!r} has no meaning for mu; leave it out, or bound epsilon")
    return Gaussian()
