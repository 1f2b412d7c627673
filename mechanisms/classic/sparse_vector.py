"""The sparse vector technique SVT1, SVT2, SVT4, SVT5 and SVT6: which noisy answers reach a noisy threshold?

All take query answers, shape (k,), and say for each whether it was above (1), below (0), or not looked at because the
mechanism had stopped (-1): int8, shape (size, k). The variants and their numbers are those of Lyu, Su & Li (2017),
"Understanding the Sparse Vector Technique for Differential Privacy", VLDB (arXiv:1603.01699), Figure 1; variants that
release numbers are in ``numeric_sparse_vector``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.crossing_law import Crossing
from mechanisms.classic.noise import answers, laplace_noise
from mechanisms.rounding import laplace_scale
from mechanisms.validation import check_integer, check_positive

MAX_OUTCOMES = 2_000


class SparseVector:
    """Base of the variants: a threshold with Lap(ρ), answers with Lap(ν), a limited run.

    A run may end after a number of positive answers.

    A subclass gives ``rho`` and ``nu``, the two Laplace scales (``nu`` is 0 where queries get no noise), and says
    whether it stops and whether a positive answer draws the threshold's noise again.
    """

    epsilon: float
    stop: int
    threshold: float
    rho: float
    nu: float
    stops: ClassVar[bool] = True
    redraws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "epsilon", self.epsilon)
        if self.stops:
            check_integer(type(self).__name__, "stop", self.stop, 1)

    @property
    def name(self) -> str:
        """The variant and its parameters."""
        stop = f", stop={self.stop}" if self.stops else ""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}{stop}, threshold={self.threshold:g})"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the answers of ``size`` independent runs, int8, shape (size, k)."""
        return self._run(answers(self.name, data), size, rng)

    def _run(
        self, queries: Array, size: int, rng: Rng, released: list[Array] | None = None
    ) -> Array:
        """Say it, and add for each query the noisy answers that were above the threshold to ``released``, NaN elsewhere.

        Runs that have stopped draw noise as well, so that a row is one run throughout; to sort them out was measured
        to save up to about a quarter of the time.
        """
        said = []
        level = laplace_noise(size, rng, scale=self.rho)
        level += self.threshold
        stop = self.stop if self.stops else len(queries)
        left = np.full(size, stop, np.min_scalar_type(stop))
        for query in queries:
            noisy = (
                laplace_noise(size, rng, scale=self.nu) if self.nu else np.zeros(size)
            )
            noisy += query
            running = left > 0
            above = running & (noisy >= level)
            left -= above
            said.append(np.subtract(above, ~running, dtype=np.int8))
            if released is not None:
                released.append(np.where(above, noisy, np.nan))
            if self.redraws:
                level[above] = self.threshold + laplace_noise(
                    int(above.sum()), rng, scale=self.rho
                )
        return np.stack(said, axis=1)

    def flags(self, data: Array) -> FiniteLaw:
        """Return the law of the answers to all queries, rigorously enclosed.

        Raises:
            MechanismError: If there are more than 2,000 possible outputs.
        """
        return _law(self, tuple(answers(self.name, data).tolist()))

    def _probability(
        self, said: Sequence[int], queries: Sequence[float], crossing: Crossing
    ) -> arb:
        """The probability of one output: of one stretch for each draw of the threshold."""
        probability, below, above = arb(1), [], []
        for here, query in zip(said, queries, strict=True):
            (above if here == 1 else below if here == 0 else []).append(query)
            if here == 1 and self.redraws:
                probability *= crossing.probability(below, above)
                below, above = [], []
        return probability * crossing.probability(below, above)


@dataclass(frozen=True)
class Stopping(SparseVector):
    """A variant that stops.

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
        stop: How many positives it gives before it stops (c), >= 1.
        threshold: The public threshold T.
    """

    epsilon: float
    stop: int = 1
    threshold: float = 1.0


@dataclass(frozen=True)
class Endless(SparseVector):
    """A variant that does not stop.

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
        threshold: The public threshold T.
    """

    epsilon: float
    threshold: float = 1.0
    stops: ClassVar[bool] = False


@lru_cache(maxsize=256)
def _law(mechanism: SparseVector, data: tuple[float, ...]) -> FiniteLaw:
    crossing = Crossing(
        data,
        Fraction(mechanism.threshold),
        Fraction(mechanism.rho),
        Fraction(mechanism.nu),
    )
    sayable = _sayable(
        mechanism.name, len(data), mechanism.stop if mechanism.stops else len(data) + 1
    )
    with precision():
        probabilities = [
            mechanism._probability(said, data, crossing) for said in sayable
        ]
    return FiniteLaw(np.array(sayable, np.int8), probabilities)


@lru_cache(maxsize=16)
def _sayable(name: str, k: int, stop: int) -> list[tuple[int, ...]]:
    """Return every possible output for k queries and a limit of positive answers."""
    count = sum(math.comb(k, positives) for positives in range(min(stop, k + 1)))
    count += sum(math.comb(at, stop - 1) for at in range(k))
    if count > MAX_OUTCOMES:
        raise MechanismError(
            f"{name}: the law for {k} queries has {count} outcomes, expected at most {MAX_OUTCOMES}; use fewer queries or "
            "an earlier stop"
        )
    running = [
        tuple(int(j in at) for j in range(k))
        for positives in range(min(stop, k + 1))
        for at in itertools.combinations(range(k), positives)
    ]
    stopped = [
        (*(int(j in at or j == last) for j in range(last + 1)), *[-1] * (k - last - 1))
        for last in range(k)
        for at in itertools.combinations(range(last), stop - 1)
    ]
    return running + stopped


class _Flags(SparseVector):
    """A variant that releases its answers and nothing else."""

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the output, rigorously enclosed.

        Raises:
            MechanismError: If there are more than 2,000 possible outputs.
        """
        return self.flags(data)


class SVT1(_Flags, Stopping):
    """ρ ~ Lap(2/ε) once, ν ~ Lap(4c/ε) for each query, stop after c positives (Lyu et al., Algorithm 1).

    Claimed: ε-DP for any queries of sensitivity 1. True: at most ε, and nearly
    that from some 40 answers on, where all fall by 1 and the last, which alone is above, rises by 1.
    """

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 2/ε."""
        return laplace_scale(2, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 4c/ε."""
        return laplace_scale(4 * self.stop, self.epsilon)


class SVT2(_Flags, Stopping):
    """ρ ~ Lap(2c/ε), drawn again after each positive, ν ~ Lap(4c/ε), stop after c positives (Lyu et al., Algorithm 2).

    Claimed: ε-DP for any queries of sensitivity 1. True: at most ε, because each stretch up to a positive is an ε/c-DP
    mechanism of its own.

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy", Algorithm 2, as restated there.
    """

    redraws: ClassVar[bool] = True

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 2c/ε."""
        return laplace_scale(2 * self.stop, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 4c/ε."""
        return laplace_scale(4 * self.stop, self.epsilon)


class SVT4(_Flags, Stopping):
    """ρ ~ Lap(4/ε), ν ~ Lap(4/(3ε)) whatever c is, stop after c positives (Lyu et al., Algorithm 4).

    Claimed: ε-DP. True: (1+6c)/4·ε, that is 7/4·ε for c = 1: ε/4 for the threshold and 2·3ε/4 for each positive, whose
    answer may rise while the threshold's comparison falls. For monotone queries 3ε/4 for each: (1+3c)/4·ε.

    Source: Lee & Clifton (2014), "Top-k Frequent Itemsets via Differentially Private FP-trees", KDD.
    """

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 4/ε."""
        return laplace_scale(4, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 4/(3ε)."""
        return laplace_scale(Fraction(4, 3), self.epsilon)


class SVT5(_Flags, Endless):
    """ρ ~ Lap(2/ε), no noise on the queries, no stop (Lyu et al., Algorithm 5).

    Claimed: ε-DP. True: no ε at all from two queries on: "first above, second below" is possible only where the first
    answer is the larger.

    Source: Stoddard, Chen & Machanavajjhala (2014), "Differentially Private Algorithms for Empirical Machine Learning"
    (arXiv:1411.5428).
    """

    nu: ClassVar[float] = 0.0

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 2/ε."""
        return laplace_scale(2, self.epsilon)


class SVT6(_Flags, Endless):
    """ρ ~ Lap(2/ε), ν ~ Lap(2/ε), no stop (Lyu et al., Algorithm 6).

    Claimed: ε-DP. True: no ε for all k at once; for k queries at most kε/2, and the loss grows with k.

    Source: Chen, Xiao, Zhang & Xu (2015), "Differentially Private High-Dimensional Data Publication via Sampling-Based
    Inference", KDD.
    """

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 2/ε."""
        return laplace_scale(2, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 2/ε."""
        return laplace_scale(2, self.epsilon)
