"""Report noisy max: the index of the largest noisy answer, or (wrongly) its value, with Laplace or exponential noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from flint import arb, arb_poly

from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.crossing_law import Crossing
from mechanisms.classic.noise import answers, laplace_noise
from mechanisms.rounding import laplace_scale
from mechanisms.validation import check_positive


@dataclass(frozen=True)
class NoisyMax:
    """Base of the four variants: noise of scale 2/ε on every answer.

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
    """

    epsilon: float
    exponential: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"{type(self).__name__}(epsilon={self.epsilon:g})"

    @cached_property
    def scale(self) -> float:
        """2/ε, rounded towards privacy."""
        return laplace_scale(2, self.epsilon)

    def _noisy(self, data: Array, size: int, rng: Rng) -> Iterator[Array]:
        """The noisy answers one query at a time, each float64 of shape (size,), in units of the scale."""
        draw = (
            rng.standard_exponential
            if self.exponential
            else lambda size: laplace_noise(size, rng)
        )
        for answer in answers(self.name, data) / self.scale:
            noisy = draw(size)
            noisy += answer
            yield noisy


class _Index(NoisyMax):
    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the index of the largest of ``size`` independent sets of noisy answers, int16, shape (size,)."""
        noisy = self._noisy(data, size, rng)
        best, index = next(noisy), np.zeros(size, np.int16)
        for j, here in enumerate(noisy, start=1):
            # j only grows, so that a maximum overwrites; much faster than a masked assignment
            np.maximum(index, (here > best) * np.int16(j), out=index)
            np.maximum(best, here, out=best)
        return index

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the index, rigorously enclosed."""
        queries = [Fraction(float(q)) for q in answers(self.name, data)]
        win = _wins_exponential if self.exponential else _wins_laplace
        with precision():
            probabilities = [
                win(i, queries, Fraction(self.scale)) for i in range(len(queries))
            ]
        return FiniteLaw(np.arange(len(queries), dtype=np.int16), probabilities)


def _wins_laplace(i: int, queries: Sequence[Fraction], scale: Fraction) -> arb:
    """P(answer i with Lap(scale) is the largest): all others fall below a threshold centred at answer i."""
    return Crossing(queries, queries[i], scale, scale).probability(
        [*queries[:i], *queries[i + 1 :]], []
    )


def _wins_exponential(i: int, queries: Sequence[Fraction], scale: Fraction) -> arb:
    """P(answer i with exponential noise is the largest).

    With m the largest answer, a_j = e^((q_j − m)/s) and v = e^-((y − m)/s) for the winning value y >= m, the others are
    below with probability 1 − a_j v, and ∫ f(y − q_i) ∏ (1 − a_j v) dy = ∫₀¹ a_i ∏ (1 − a_j v) dv.
    """
    top = max(queries)
    a = [ball((q - top) / scale).exp() for q in queries]
    product = arb_poly([a[i]])
    for j, weight in enumerate(a):
        if j != i:
            product *= arb_poly([1, -weight])
    return product.integral()(arb(1))


class _Value(NoisyMax):
    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the largest of ``size`` independent sets of noisy answers, float64, shape (size,)."""
        noisy = self._noisy(data, size, rng)
        best = next(noisy)
        for here in noisy:
            np.maximum(best, here, out=best)
        best *= self.scale
        return best

    def _log_cdfs(self, outputs: Array, data: Array) -> tuple[Array, Array]:
        """Logarithms of density (in units of the scale) and distribution function of every noisy answer, (size, k)."""
        x = (
            np.asarray(outputs, np.float64)[:, None] - answers(self.name, data)
        ) / self.scale
        with np.errstate(divide="ignore"):
            if self.exponential:
                return np.where(x >= 0, -x, -np.inf), np.log(
                    -np.expm1(-np.maximum(x, 0))
                )
            tail = -np.abs(x) - np.log(2)
            return tail, np.where(x < 0, tail, np.log1p(-np.exp(tail)))

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output, of d/dy ∏_j F(y − q_j), shape (size,); -inf where it is impossible."""
        density, cdf = self._log_cdfs(outputs, data)
        whole = cdf.sum(axis=1, keepdims=True)
        with np.errstate(
            invalid="ignore"
        ):  # -inf − -inf: an output below an answer, where exponential noise never is
            each = np.nan_to_num(
                whole - cdf + density, nan=-np.inf, posinf=-np.inf, neginf=-np.inf
            )
        return np.logaddexp.reduce(each, axis=1) - np.log(self.scale)

    def cdf(self, outputs: Array, data: Array) -> Array:
        """Return P(largest noisy answer <= output), shape (size,)."""
        return np.exp(self._log_cdfs(outputs, data)[1].sum(axis=1))


@dataclass(frozen=True)
class NoisyMax1(_Index):
    """The index of the largest answer with Lap(2/ε) on each. Input shape (k,). Output: int16, shape (size,).

    Claimed: ε-DP where every answer may change by 1. True: at most ε, for any k.

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 5; Dwork & Roth (2014), Section 3.3 (with scale 1/ε for
    answers that all move one way).

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
    """


@dataclass(frozen=True)
class NoisyMax2(_Index):
    """The index of the largest answer with exponential noise of scale 2/ε. Input shape (k,). Output: int16, shape (size,).

    Claimed: ε-DP where every answer may change by 1. True: at most ε; at most ε/2 where all answers move one way.

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 6; Dwork & Roth (2014), Section 3.4.

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
    """

    exponential: ClassVar[bool] = True


@dataclass(frozen=True)
class NoisyMax3(_Value):
    """The largest answer with Lap(2/ε) on each, itself. Input shape (k,). Output: float64, shape (size,).

    Claimed: ε-DP where every answer may change by 1. True: kε/2, where all k answers move one way: a very low maximum
    means that every noisy answer was low. So the claim holds for k <= 2 only.

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 7.

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
    """


@dataclass(frozen=True)
class NoisyMax4(_Value):
    """The largest answer with exponential noise of scale 2/ε, itself. Input shape (k,). Output: float64, shape (size,).

    Claimed: ε-DP where every answer may change by 1. True: no ε, because the output is never below the largest answer.

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 8.

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
    """

    exponential: ClassVar[bool] = True
