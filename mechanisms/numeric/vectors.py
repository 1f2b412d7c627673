"""Records of many numbers, each number perturbed by a mechanism for one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import Envelope, FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.numeric.scalar import Scalar, check_budget, inside, record, records
from mechanisms.rounding import portion
from mechanisms.validation import check_integer

MAX_OUTCOMES = 10_000


@dataclass(frozen=True)
class NumericVector:
    """k of d features, chosen uniformly without replacement, go through a mechanism for one number with ε/k each, times d/k.

    The other features become 0. With k = d every feature is perturbed and nothing is scaled.

    Claimed: ε-LDP for the whole record, unbiased. True: given the choice, which does not depend on the record, k outputs
    lose at most ε/k each, and all at once where two records differ in every feature; the scaling is public.

    Source: Wang et al. (2019), arXiv:1907.00782, Algorithm 4; Zhao et al. (2020), arXiv:2004.08856.

    Note:
        ε/k is rounded down to a double.

    Args:
        kind: The mechanism for one number, such as ``Duchi``; it is given its budget.
        epsilon: Privacy loss of the whole record in nats, finite and > 0.
        dimension: d, >= 1.
        sampled: k, between 1 and d; d unless given.
        split: Whether each chosen feature has ε/k; else it has all of ε, which makes the record's loss kε.
        rescaled: Whether outputs are multiplied by d/k; else they estimate kx/d.
    """

    kind: Callable[[float], Scalar]
    epsilon: float
    dimension: int
    sampled: int | None = None
    split: bool = True
    rescaled: bool = True

    def __post_init__(self) -> None:
        check_budget("NumericVector", self.epsilon)
        check_integer("NumericVector", "dimension", self.dimension, 1)
        check_integer("NumericVector", "sampled", self.chosen, 1)
        if self.chosen > self.dimension:
            raise MechanismError(
                f"NumericVector: expected sampled <= dimension={self.dimension}, got {self.sampled!r}; a feature is sampled "
                "at most once"
            )

    @property
    def name(self) -> str:
        """The mechanism for one number, and how many features."""
        return f"{self.one.name} on {self.chosen} of {self.dimension} features"

    @property
    def chosen(self) -> int:
        """The number of features that are perturbed."""
        return self.dimension if self.sampled is None else self.sampled

    @cached_property
    def one(self) -> Scalar:
        """The mechanism for one number, with its share of the budget."""
        share = self.chosen if self.split else 1
        return self.kind(
            self.epsilon if share == 1 else portion(self.epsilon, Fraction(1, share))
        )

    @cached_property
    def factor(self) -> float:
        """Factor of the outputs."""
        return self.dimension / self.chosen if self.rescaled else 1.0

    def perturb(self, values: Any, *, rng: Rng) -> Values:
        """Return one noisy record for each row, float64, shape (n, d), on the generator's device.

        Raises:
            MechanismError: If a number is outside [−1, 1], or the rows have another length.
        """
        backend = backend_of(rng)
        x = records(self.name, inside(self.name, values, backend), self.dimension)
        noisy = self.factor * self.one.draw(x, backend)
        if self.chosen == self.dimension:
            return noisy
        return backend.xp.where(
            backend.subsets(len(x), self.dimension, self.chosen), noisy, 0.0
        )

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy records, float64, shape (size, d)."""
        return self.perturb(
            np.tile(record(self.name, data, self.dimension), (size, 1)), rng=rng
        )

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of each output, shape (size,); where there are densities, those before the scaling.

        Feature by feature, sums over which ones were chosen: one that is not 0 was, one that is 0 may have been if the
        mechanism for one number can return 0.
        """
        x, y = (
            record(self.name, data, self.dimension),
            np.asarray(outputs, dtype=np.float64),
        )
        with np.errstate(divide="ignore"):
            logs = np.log(np.arange(self.chosen + 1) == 0) + np.zeros(
                (len(y), 1)
            )  # by the number chosen so far: none
        for number, column in zip(x, y.T, strict=True):
            used = logs[:, :-1] + self._one_log_prob(column, number)[:, None]
            unused = np.where(column[:, None] == 0, logs, -np.inf)
            logs = np.logaddexp(
                unused, np.pad(used, ((0, 0), (1, 0)), constant_values=-np.inf)
            )
        return logs[:, -1] - math.log(math.comb(self.dimension, self.chosen))

    def _one_log_prob(self, column: Array, number: float) -> Array:
        """Return the scalar mechanism's log probabilities of outputs before the factor."""
        plain = column / self.factor
        for atom in self.one.atoms:
            plain[column == self.factor * atom] = atom
        found = self.one.log_prob(plain, number)
        return found if 0.0 in self.one.atoms else np.where(column == 0, -np.inf, found)

    def law(self, data: Any) -> FiniteLaw:
        """Return the exact law as Fractions, where the mechanism for one number has finitely many outputs.

        Raises:
            MechanismError: If it has not, or there are more than 10,000 outcomes.
        """
        if (
            not self.one.finite
            or (len(self.one.atoms) + 1) ** self.dimension > MAX_OUTCOMES
        ):
            raise MechanismError(
                f"{self.name}: more than {MAX_OUTCOMES:,} outcomes; use fewer features, or log_prob"
            )
        found = {((), 0): Fraction(1, math.comb(self.dimension, self.chosen))}
        for number in record(self.name, data, self.dimension):
            one = self.one.distribution(number)
            steps = [(0.0, 0, Fraction(1))]
            steps += [
                (self.factor * y, 1, p)
                for y, p in zip(one.outcomes.tolist(), one.probabilities, strict=True)
            ]
            longer = defaultdict(Fraction)
            for ((outcome, used), before), (y, more, p) in product(
                found.items(), steps
            ):
                longer[(*outcome, y), used + more] += before * p
            found = longer
        outcomes = {
            outcome: p for (outcome, used), p in found.items() if used == self.chosen
        }
        return FiniteLaw(np.array(list(outcomes)), list(outcomes.values()))

    def envelope(self) -> Envelope:
        """Return that of the mechanism for one number, used k times, on records that repeat its inputs."""
        one = self.one.envelope()
        inputs = [
            tuple(np.repeat(x, self.dimension) for x in pair) for pair in one.inputs
        ]
        return Envelope(one.outputs, one.least, one.most, inputs, uses=self.chosen)

    def variance(self, x: Any) -> Any:
        """Return the variance of each feature's output, shape (d,): with factor c, c²(k/d)(V(x) + x²) − (ck/d)²x²."""
        numbers, share = (
            record(self.name, x, self.dimension),
            self.chosen / self.dimension,
        )
        second = self.one.variance(numbers) + numbers**2
        return self.factor**2 * share * second - (self.factor * share * numbers) ** 2


def every_feature(
    kind: Callable[[float], Scalar], epsilon: float, dimension: int
) -> NumericVector:
    """Return the mechanism with ε/r for each of r features."""
    return NumericVector(kind, epsilon, dimension)


def sampled_features(
    kind: Callable[[float], Scalar], epsilon: float, dimension: int
) -> NumericVector:
    """Return the mechanism with ε/k for each of k = max(1, min(d, ⌊ε/2.5⌋)) sampled features, outputs scaled by d/k."""
    return NumericVector(
        kind,
        epsilon,
        dimension,
        sampled=max(1, min(dimension, math.floor(epsilon / 2.5))),
    )


@dataclass(frozen=True)
class Feature:
    """The output for one feature of a record, as an estimate of it. Output: float64, shape (size,).

    Args:
        whole: The mechanism for the record.
        index: Which feature.
    """

    whole: NumericVector
    index: int = 0

    @property
    def name(self) -> str:
        """The mechanism, and which feature."""
        return f"feature {self.index} of {self.whole.name}"

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return the feature's output of ``size`` independent runs."""
        return self.whole(data, size, rng=rng)[:, self.index]

    def output_range(self, data: Any) -> tuple[float, float] | None:
        """Return that of the mechanism for one number, times the factor; 0, which stands for no output, lies within."""
        ends = self.whole.one.output_range(data)
        return ends and (self.whole.factor * ends[0], self.whole.factor * ends[1])
