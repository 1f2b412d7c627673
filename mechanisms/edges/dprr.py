"""DPRR: degree-preserving randomised response on a neighbour list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.adjacency import Pair
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.protocol import Array, name_of
from mechanisms.cells import Rng
from mechanisms.edges.dprr_law import RowLaw, row_law
from mechanisms.edges.sparse import thinned_lists, user_ids
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.neighbour_lists import PackedLists
from mechanisms.rounding import keep_probability, laplace_scale, remaining
from mechanisms.validation import all_bits, bit_list, check_integer, check_positive

MAX_BITS = 12


@dataclass(frozen=True)
class DPRR:
    """Randomised response with ε₂, then each one is kept with a probability fitted to a noisy degree (ε₁).

    d* = d + Lap(1/ε₁), p = e^ε₂/(1+e^ε₂), q = Proj₀¹[d*/(d*(2p−1) + (n−1)(1−p))]; the list goes through randomised
    response with ε₂ and each resulting one survives with probability q. Claimed: (ε₁+ε₂)-edge LDP (Proposition 2).
    q = 1 from d* = (n−1)/2 on.

    Input: neighbour list, int8 bits, shape (n−1,). Output: int8, shape (size, n−1).

    Source: Hidano & Murakami (2022), arXiv:2202.10209, Algorithm 1.

    Note:
        ``clip_degree=False`` is the formula as printed. For d* < −(n−1)(1−p)/(2p−1) its denominator is negative and the
        quotient, which tends to 1/(2p−1) > 1 from above, projects to q = 1: a very small degree is released like a very
        large one. That costs utility, not privacy (any function of d* is post-processing). ``clip_degree=True`` sets
        d* = max(d*, 0) first, as a published implementation does.

        p and the Laplace scale are rounded towards privacy (``mechanisms.rounding``). The bits of the randomised
        response are exact; the Laplace noise and q are those of real numbers, up to rounding.

    Args:
        epsilon1: Budget of the degree in nats, finite and > 0.
        epsilon2: Budget of the bits in nats, finite and > 0.
        clip_degree: Whether a negative noisy degree counts as 0.
    """

    epsilon1: float
    epsilon2: float
    clip_degree: bool = True

    def __post_init__(self) -> None:
        check_positive("DPRR", "epsilon1", self.epsilon1)
        check_positive("DPRR", "epsilon2", self.epsilon2)

    @classmethod
    def allocated(cls, epsilon: float, n_max: int, alpha: float = 0.9) -> DPRR:
        """Return DPRR with the published split: ε₁ = max{√(8/(n_max−1)), (1−α)ε}, ε₂ = αε.

        Note:
            When the first term is the larger one, ε₁ + ε₂ exceeds ε, under which the results are plotted.
        """
        cls._check_split(epsilon, n_max, alpha)
        return cls(cls._epsilon1(epsilon, n_max, alpha), alpha * epsilon)

    @classmethod
    def allocated_within(cls, epsilon: float, n_max: int, alpha: float = 0.9) -> DPRR:
        """Return DPRR with the same ε₁ and ε₂ = ε − ε₁, so that exactly ε₁ + ε₂ <= ε: the repair.

        Raises:
            MechanismError: If ε₁ >= ε; the message says how large n_max must be.
        """
        cls._check_split(epsilon, n_max, alpha)
        epsilon1 = cls._epsilon1(epsilon, n_max, alpha)
        if epsilon1 >= epsilon:
            raise MechanismError(
                f"DPRR.allocated_within: the degree's budget {epsilon1:.4g} for n_max={n_max} leaves nothing of "
                f"epsilon={epsilon!r}; use n_max >= {int(8 / epsilon**2) + 2} or a larger epsilon"
            )
        return cls(epsilon1, remaining(epsilon, epsilon1))

    @staticmethod
    def _check_split(epsilon: float, n_max: int, alpha: float) -> None:
        check_positive("DPRR", "epsilon", epsilon)
        check_integer("DPRR", "n_max", n_max, 2)
        if not 0 < alpha < 1:
            raise MechanismError(
                f"DPRR: expected alpha strictly between 0 and 1, got {alpha!r}"
            )

    @staticmethod
    def _epsilon1(epsilon: float, n_max: int, alpha: float) -> float:
        return max(float(np.sqrt(8 / (n_max - 1))), (1 - alpha) * epsilon)

    @property
    def name(self) -> str:
        """The mechanism, its budgets and whether it clips."""
        clip = "" if self.clip_degree else ", clip_degree=False"
        return f"DPRR(epsilon1={self.epsilon1:g}, epsilon2={self.epsilon2:g}{clip})"

    @cached_property
    def scale(self) -> float:
        """Laplace scale of the noisy degree (sensitivity 1)."""
        return laplace_scale(1, self.epsilon1)

    @cached_property
    def keep(self) -> float:
        """The probability p of keeping a bit, a multiple of 2^-53."""
        return keep_probability(self.epsilon2)

    def rate(self, noisy_degree: Array, bits: int) -> Array:
        """Return q for each noisy degree."""
        t = (
            np.maximum(noisy_degree, 0.0)
            if self.clip_degree
            else np.asarray(noisy_degree, float)
        )
        with np.errstate(divide="ignore"):
            return np.clip(
                t / (t * (2 * self.keep - 1) + bits * (1 - self.keep)), 0.0, 1.0
            )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy lists, int8, shape (size, n−1)."""
        bits = bit_list(self.name, data)
        q = self.rate(
            bits.sum(dtype=np.int64) + rng.laplace(0.0, self.scale, size), len(bits)
        )
        response = bits ^ (rng.random((size, len(bits))) >= self.keep)
        return (response & (rng.random((size, len(bits))) < q[:, None])).astype(np.int8)

    def law(self, bits: int, degree: int) -> RowLaw:
        """Return the law of the output on any list of ``bits`` bits with ``degree`` ones."""
        return row_law(self.scale, self.keep, self.clip_degree, int(bits), int(degree))

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output by quadrature in floating point, shape (size,)."""
        bits, outputs = bit_list(self.name, data), np.asarray(outputs)
        law = self.law(len(bits), bits.sum(dtype=np.int64))
        return law.log_prob(
            *(outputs[:, bits == b].sum(axis=1, dtype=np.int64) for b in (1, 0))
        )

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the log likelihood ratio of each output, shape (size,)."""
        return self.log_prob(outputs, pair.data) - self.log_prob(
            outputs, pair.neighbour
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law as rigorous balls, for lists of at most 12 bits.

        Raises:
            MechanismError: If the list is longer.
        """
        bits = bit_list(self.name, data)
        if len(bits) > MAX_BITS:
            raise MechanismError(
                f"{self.name}: the law of {len(bits)} bits has 2^{len(bits)} outcomes; use at most {MAX_BITS} bits, or "
                "log_prob or ratio_enclosure"
            )
        outcomes = all_bits(len(bits))
        law = self.law(len(bits), bits.sum())
        kept, zeros = (
            outcomes[:, bits == 1].sum(axis=1),
            outcomes[:, bits == 0].sum(axis=1),
        )
        with precision():
            return FiniteLaw(
                outcomes,
                [
                    law.enclosure(int(a), int(b))
                    for a, b in zip(kept, zeros, strict=True)
                ],
            )

    def ratio_enclosure(
        self, bits: int, degree: int, own: int, ones_kept: int, zeros_set: int
    ) -> arb:
        """Return a ball that contains P(y | data)/P(y | neighbour), rigorously, for lists of any length.

        The neighbour has ``degree`` ones of ``bits``; data has one more, at a place j.

        Args:
            bits: Length of the lists, n − 1.
            degree: Ones of the neighbour, from 0 to bits − 1.
            own: The output bit at j.
            ones_kept: Ones of the output among the neighbour's ``degree`` ones.
            zeros_set: Ones of the output among the other bits − 1 − degree places.
        """
        with precision():
            above = self.law(bits, degree + 1).enclosure(ones_kept + own, zeros_set)
            return above / self.law(bits, degree).enclosure(ones_kept, zeros_set + own)

    def log_ratio_table(self, bits: int, degree: int) -> Array:
        """Return log P(y | data)/P(y | neighbour) in floating point for every class of such a pair.

        Returns:
            Array of shape (2, degree + 1, bits − degree), indexed by own, ones_kept, zeros_set (see
            ``ratio_enclosure``). Its largest absolute value is the privacy loss of these two lists.
        """
        own, k1, k0 = np.indices((2, degree + 1, bits - degree)).reshape(3, -1)
        above = self.law(bits, degree + 1).log_prob(k1 + own, k0)
        return (above - self.law(bits, degree).log_prob(k1, k0 + own)).reshape(
            2, degree + 1, bits - degree
        )

    def degree(self, outputs: Array) -> Array:
        """Return the noisy degree d̃ of each output, its number of ones, int64, shape (size,)."""
        return np.asarray(outputs).sum(axis=1, dtype=np.int64)

    def expected_degree(self, degree: int, bits: int) -> float:
        """Return E[d̃] of a list of ``bits`` bits with ``degree`` ones, by quadrature.

        E[d̃] = (d·p + (bits−d)(1−p))·E[q]. The source calls d̃ "almost unbiased".
        """
        return (degree * self.keep + (bits - degree) * (1 - self.keep)) * self.law(
            bits, degree
        ).rate_moments[0]

    def degree_variance(self, degree: int, bits: int) -> float:
        """Return V[d̃] by quadrature: the mean variance given q plus the variance of the mean given q."""
        first, second = self.law(bits, degree).rate_moments
        p, zeros = self.keep, bits - degree
        mean = degree * p + zeros * (1 - p)
        return (
            mean * first
            - (degree * p**2 + zeros * (1 - p) ** 2) * second
            + mean**2 * (second - first**2)
        )

    def whole_graph(
        self, graph: Graph, *, rng: Rng, users: Sequence[int] | Any = None
    ) -> DirectedGraph:
        """Return the noisy lists of the users (all by default), each perturbing their own row, as ``lists`` does."""
        return self.lists(PackedLists.of(graph), rng=rng, users=users).graph

    def lists(
        self, lists: PackedLists, *, rng: Rng, users: Sequence[int] | Any = None
    ) -> PackedLists:
        """Return the noisy lists of the users (all by default), each perturbing their own one.

        Time and memory are proportional to users, true ones and released ones; the figures are in reports/scale.md.
        """
        ids, bits = user_ids(lists, users), lists.nodes - 1
        q = self.rate(lists.sizes[ids] + rng.laplace(0.0, self.scale, len(ids)), bits)
        return thinned_lists(lists, ids, self.keep * q, (1 - self.keep) * q, rng)


@dataclass(frozen=True)
class NoisyDegree:
    """The number of ones that a row mechanism releases: the degree that its reader would estimate.

    Input: neighbour list. Output: int64, shape (size,).

    Args:
        mechanism: A mechanism whose output is a noisy list, int8, shape (size, k).
    """

    mechanism: Any

    @property
    def name(self) -> str:
        """The row mechanism that it reads."""
        return f"NoisyDegree({name_of(self.mechanism)})"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy degrees."""
        return np.asarray(self.mechanism(data, size, rng=rng)).sum(
            axis=1, dtype=np.int64
        )

    def output_range(self, data: Array) -> tuple[int, int]:
        """Return no ones and nothing but ones."""
        return 0, len(data)
