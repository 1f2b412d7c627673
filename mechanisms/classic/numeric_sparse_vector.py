"""Sparse vector techniques that release numbers: SVT3, with the noise of the comparison, and NumericSVT, with fresh noise.

Both return float64 of shape (size, 2k): for each query whether it was above (1), below (0) or not looked at because the
mechanism had stopped (-1), and then for each query the number released, NaN where none was.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from auditdp.adjacency import Pair
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.crossing_law import Crossing
from mechanisms.classic.noise import answers, laplace_noise
from mechanisms.classic.sparse_vector import Stopping
from mechanisms.rounding import laplace_scale

MAX_QUERIES = 33


class SVT3(Stopping):
    """ρ ~ Lap(2/ε), ν ~ Lap(2c/ε), releases the noisy answers that are above (Lyu et al. 2017, Algorithm 3).

    Claimed: ε-DP. True: no ε for all k at once: the number released says that the noisy threshold was below it, so that
    a very low one makes every "below" before it cost as much as its noise, ε/(2c).

    Source: Roth's lecture notes (2011), "The Sparse Vector Technique", as restated by Lyu, Su & Li.
    """

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 2/ε."""
        return laplace_scale(2, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 2c/ε."""
        return laplace_scale(2 * self.stop, self.epsilon)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the flags and the released numbers of ``size`` independent runs, float64, shape (size, 2k)."""
        queries = answers(self.name, data)
        numbers: list[Array] = []
        said = self._run(queries, size, rng, numbers)
        return np.hstack([said, np.stack(numbers, axis=1)])

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output, shape (size,).

        With v the released numbers, all of them reached the threshold τ iff τ <= min v, so the density is
        ∏_above f_ν(v − q) ∫_{τ <= min v} f_ρ(τ − T) ∏_below F_ν(τ − q) dτ.
        """
        queries = answers(self.name, data)
        said, numbers = np.split(np.asarray(outputs), 2, axis=1)
        lowest = np.fmin.reduce(numbers, axis=1, initial=np.inf)
        exact = [Fraction(float(q)) for q in queries]
        crossing = Crossing(
            exact, Fraction(self.threshold), Fraction(self.rho), Fraction(self.nu)
        )
        log_mass = np.empty(len(said))
        _, first, pattern = np.unique(
            (said + 1) @ self._digits(len(queries)),
            return_index=True,
            return_inverse=True,
        )
        for i, flags in enumerate(said[first]):
            here = pattern == i
            below = [q for q, flag in zip(exact, flags, strict=True) if flag == 0]
            log_mass[here] = np.log(_mass(lowest[here], below, crossing))
        return log_mass + _log_laplace(numbers - queries, self.nu)

    def _digits(self, k: int) -> Array:
        """Powers of 3, exact in doubles, that number the outputs for k queries."""
        if k > MAX_QUERIES:
            raise MechanismError(
                f"{self.name}: log_prob takes at most {MAX_QUERIES} queries, got {k}"
            )
        return 3.0 ** np.arange(k)


def _log_laplace(noise: Array, scale: float) -> Array:
    """Log density of the numbers of each row that are there, shape (size,)."""
    return np.nan_to_num(-np.abs(noise) / scale - np.log(2 * scale)).sum(axis=1)


def _mass(upto: Array, below: Sequence[Fraction], crossing: Crossing) -> Array:
    """P(τ <= upto, and every answer of ``below`` is below τ) in floating point, shape (size,)."""
    mass, before = np.empty(len(upto)), 0.0
    centre, density = float(crossing.centre), 1 / (2 * float(crossing.rho))
    for piece in crossing.pieces:
        low = -np.inf if piece.low is None else float(piece.low)
        high = np.inf if piece.high is None else float(piece.high)
        here = (low < upto) & (upto <= high)
        mass[here], start, end = before, low - centre, upto[here] - centre
        with precision():
            for power, coefficient in piece.product(below, []):
                if coefficient != 0:
                    rate = float(piece.rate(power))
                    grown = (
                        (np.exp(rate * end) - np.exp(rate * start)) / rate
                        if rate
                        else end - start
                    )
                    mass[here] += float(coefficient.mid()) * density * grown
                    before += float((coefficient * piece.moment(power)).mid())
    return mass


class NumericSVT(Stopping):
    """ρ ~ Lap(3/ε), ν ~ Lap(6c/ε), and answers that are above released with fresh Lap(3c/ε); stop after c of them.

    Claimed: ε-DP for any queries of sensitivity 1. True: at most ε: a third for the threshold, a third for the
    comparisons and a third for the numbers.

    Source: Wang, Ding, Wang, Kifer & Zhang (2019), "Proving Differential Privacy with Shadow Execution", PLDI
    (arXiv:1903.12254; Numerical Sparse Vector).
    """

    @property
    def rho(self) -> float:
        """Scale of the threshold's noise, 3/ε."""
        return laplace_scale(3, self.epsilon)

    @property
    def nu(self) -> float:
        """Scale of a query's noise, 6c/ε."""
        return laplace_scale(6 * self.stop, self.epsilon)

    @property
    def fresh(self) -> float:
        """Scale of a released number's noise, 3c/ε."""
        return laplace_scale(3 * self.stop, self.epsilon)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the flags and the released numbers of ``size`` independent runs, float64, shape (size, 2k)."""
        queries = answers(self.name, data)
        said = self._run(queries, size, rng)
        numbers = np.stack(
            [query + laplace_noise(size, rng, scale=self.fresh) for query in queries],
            axis=1,
        )
        return np.hstack([said, np.where(said == 1, numbers, np.nan)])

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output: of the flags, and of the numbers given the flags; shape (size,)."""
        said, numbers = np.split(np.asarray(outputs), 2, axis=1)
        return self.flags(data).log_prob(said) + _log_laplace(
            numbers - answers(self.name, data), self.fresh
        )

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the log-likelihood ratio of each output on a pair, shape (size,)."""
        return self.log_prob(outputs, pair.data) - self.log_prob(
            outputs, pair.neighbour
        )
