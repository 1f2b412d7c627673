"""What a case of the standing set is, and how its level is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from auditdp import ApproxDP, GaussianDP, PureDP, RenyiDP
from auditdp.claims.base import Claim

Function = TypeVar("Function", bound=Callable[..., Any])
Row = tuple[str, Callable[..., Any], str]
APART = (0.0, 1.0)
"""The pair of a mechanism that takes one number, unless another one is given."""
UP = 1 + 1e-9
"""A computed level is multiplied by this, so that rounding makes no true claim false."""


@dataclass(frozen=True)
class Known:
    """One mechanism.

    Attributes:
        name: What reports call it.
        function: ``f(data, rng)``.
        claim: What its authors state.
        pairs: Neighbours (data, neighbour).
        truth: The smallest level of a claim of this kind (at its δ) that holds on each of these pairs, or a number that it
            is certainly not below; infinite where no level holds.
        why: The argument.
    """

    name: str
    function: Callable[..., Any]
    claim: Claim
    pairs: Sequence[tuple[Any, Any]]
    truth: float
    why: str


class KnownCases(list[Known]):
    """A list that functions are added to where they are defined; the argument is their docstring."""

    def holds(
        self, claim: Claim, *pairs: tuple[Any, Any], truth: float | None = None
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a correct function; its claim is exact unless a smaller ``truth`` is given."""
        return self._adding(claim, pairs, claim.level if truth is None else truth)

    def loses(
        self, truth: float, *pairs: tuple[Any, Any], claim: Claim | None = None
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a leaky function, which by its authors is 1-DP unless another claim is given."""
        return self._adding(claim or PureDP(1.0), pairs, truth)

    def rows(self, claim: Claim, *rows: Row, truth: float | None = None) -> None:
        """Add functions of one number, each as (name, function, argument), that share a claim and a level."""
        level = claim.level if truth is None else truth
        self.extend(Known(name, function, claim, [APART], level, why) for name, function, why in rows)

    def _adding(self, claim: Claim, pairs: Sequence[tuple[Any, Any]], truth: float) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            name = function.__name__.replace("_", " ")
            self.append(Known(name, function, claim, pairs or [APART], truth, function.__doc__ or ""))
            return function

        return add


def gaussian_statement(mu: float, epsilon: float) -> ApproxDP:
    """Return the exact (ε, δ) statement of μ-GDP at an ε (Balle & Wang 2018, arXiv:1805.06530, Theorem 8)."""
    return ApproxDP(epsilon, GaussianDP(mu).delta_at(epsilon) * UP)


def sampled_gaussian_statement(mu: float, q: float, epsilon: float) -> ApproxDP:
    """Return the exact statement at an ε of N(0, 1) against (1 − q) N(0, 1) + q N(μ, 1), the larger of both orders.

    {mixture > e^ε N(0, 1)} is {N(μ, 1) > (e^ε − 1 + q)/q N(0, 1)}, and the other order likewise, so that both are
    multiples of the δ of μ-GDP.
    """
    factor = math.exp(epsilon)
    more = q * GaussianDP(mu).delta_at(math.log((factor - 1 + q) / q))
    kept = 1 - factor * (1 - q)
    less = kept * GaussianDP(mu).delta_at(math.log(factor * q / kept)) if kept > 0 and factor * q > kept else 0.0
    return ApproxDP(epsilon, max(more, less) * UP)


def laplace_statement(epsilon: float, at: float) -> ApproxDP:
    """Return the exact statement of a Laplace release that loses ε, at a smaller ε: δ = 1 − e^((at − ε)/2)."""
    return ApproxDP(at, -math.expm1((at - epsilon) / 2) * UP)


def laplace_divergence(epsilon: float, order: float) -> float:
    """Return the Rényi divergence of a Laplace release that loses ε (Mironov 2017, arXiv:1702.07476, Proposition 6)."""
    up, down = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return math.log(up * math.exp((order - 1) * epsilon) + down * math.exp(-order * epsilon)) / (order - 1)


def laplace_rho(epsilon: float) -> float:
    """Return the ρ of a Laplace release that loses ε (`auditdp.accountants.laplace`): its divergence of order 1."""
    return epsilon - 1 + math.exp(-epsilon)


def response_divergence(epsilon: float, order: float) -> float:
    """Return the Rényi divergence of binary randomised response that loses ε."""
    p = 1 / (1 + math.exp(-epsilon))
    return math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)


def response_rho(epsilon: float) -> float:
    """Return the ρ of binary randomised response that loses ε: its divergence of order 1."""
    return epsilon * math.tanh(epsilon / 2)


def loss_of(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest |ln p/q| of two laws over the same outcomes."""
    return max(abs(math.log(p / q)) for p, q in zip(first, second, strict=True))


def exactly(first: Sequence[float], second: Sequence[float]) -> PureDP:
    """Return the claim of pure DP that two laws over the same outcomes keep, and no smaller one."""
    return PureDP(loss_of(first, second) * UP)


def rdp(order: float, divergence: float) -> RenyiDP:
    """Return a Rényi claim whose divergence was computed."""
    return RenyiDP(order, divergence * UP)


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the table of the exponential mechanism."""
    weights = np.exp(np.array(scores, float) - max(scores))
    return [float(weight) for weight in weights / weights.sum()]
