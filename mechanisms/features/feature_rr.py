"""FeatureRR of HeteroRR: every feature's bin through randomised response that prefers near bins, with its share of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import Envelope, FiniteLaw, precision
from auditdp.mechanism.protocol import Array, brief
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.rounding import GRID
from mechanisms.validation import check_integer, check_positive

MAX_OUTCOMES = 2**12
LEAST_BUDGET = 2.0**-30
"""A feature's budget below this is not spent at all."""
HALVINGS = range(44, 2, -1)
"""Share of a budget that rounding uses: 2^-44, or the next sufficient power of 1/2."""


def bins_of(features: Values, bins: int, xp: Any) -> Values:
    """Return the bin t = max(1, ⌈kz⌉) of every feature z in [0, 1], as floats of the same shape."""
    return xp.clip(xp.ceil(bins * features), 1, bins)


def bin_law(epsilon: float, bins: int, place: int) -> list[arb]:
    """Return P(u | t) ∝ exp(−ε|u−t|/(k−1)) for u = 1..k, enclosed at the working precision; t = place."""
    weights = [
        (-arb(epsilon) * abs(u - place) / (bins - 1)).exp() for u in range(1, bins + 1)
    ]
    total = sum(weights, arb(0))
    return [weight / total for weight in weights]


@dataclass(frozen=True)
class FeatureRR:
    """A feature in bin t of k is released as bin u with probability ∝ exp(−ε_i|u−t|/(k−1)), ε_i = θ_iε, θ public.

    Input: features z, float64 in [0, 1], shape (d,); t = max(1, ⌈kz⌉). Output: bins, int16 in 1..k, shape (size, d).

    Claimed: ε_f-LDP for the whole record, ε_f = ε (Theorem 3). True for public θ, and exactly ε. Let r = e^(−ε_i/(k−1)) and
    S(t) = Σ_u r^|u−t|. P(u|t)/P(u|t′) is at most r^-|t−t′| S(t′)/S(t), attained at u = t. S(t)(1−r) = 1 + r − r^t −
    r^(k−t+1), so r^-(t′−1)S(t′) grows with t′, by r^-t′(1−r²)(1−r^(k−t′))/(1−r) a step, and S is least at both ends: the
    ratio is largest between the ends, where S(1) = S(k), and is r^-(k−1) = e^ε_i. So the exponential mechanism's factor 2
    is not needed here, for any k. The coordinates are independent, and all reach their worst case at once.

    Source: Tran, Lai, Phan et al. (2022), "Heterogeneous Randomized Response for Differential Privacy in Graph Neural
    Networks", arXiv:2211.05766, Algorithm 1 and Theorem 3.

    Note:
        The probabilities are multiples of 2^-53, made from a budget that is smaller by a relative 2^-44 or what rounding
        takes, so that no ratio exceeds e^ε_i; the deployed bins have exactly these probabilities.

    Args:
        epsilon: Privacy loss of the whole record in nats, finite and > 0.
        shares: θ, non-negative weights of the features, d of them; divided by their sum.
        bins: Number of bins k, >= 2.
    """

    epsilon: float
    shares: tuple[float, ...]
    bins: int

    def __post_init__(self) -> None:
        check_positive("FeatureRR", "epsilon", self.epsilon)
        check_integer("FeatureRR", "bins", self.bins, 2)
        if (
            not self.shares
            or not all(math.isfinite(s) and s >= 0 for s in self.shares)
            or not sum(self.shares) > 0
        ):
            raise MechanismError(
                f"FeatureRR: expected shares, finite numbers >= 0 that are not all 0, got {self.shares!r}; for equal shares "
                "give a 1 for every feature"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget and the numbers of features and bins."""
        return f"FeatureRR(epsilon={self.epsilon:g}, {len(self.shares)} features in {self.bins} bins)"

    @cached_property
    def budgets(self) -> list[float]:
        """ε_i of every feature, rounded down, so that they sum to at most ε."""
        total = sum(map(Fraction, self.shares))
        exact = [
            Fraction(share) * Fraction(self.epsilon) / total for share in self.shares
        ]
        return [
            math.nextafter(float(e), 0.0) if Fraction(float(e)) > e else float(e)
            for e in exact
        ]

    @cached_property
    def steps(self) -> Array:
        """P(u | t) of every feature in units of 2^-53: int64, shape (d, k, k), t and u from 1 at index 0."""
        return np.array(
            [_steps(budget, self.bins) for budget in self.budgets], np.int64
        )

    def _features(self, values: Values, rng: Rng) -> Values:
        features = backend_of(rng).array(values)
        if features.ndim != 2 or features.shape[1] != len(self.shares):
            raise MechanismError(
                f"{self.name}: expected features of shape (n, {len(self.shares)}), got {tuple(features.shape)}"
            )
        if not bool(((features >= 0) & (features <= 1)).all()):
            raise MechanismError(
                f"{self.name}: expected features in [0, 1], got {brief(values)}; scale and clip them"
            )
        return features

    def _places(self, data: Any) -> list[int]:
        features = self._features(
            np.asarray(data, np.float64)[None], np.random.default_rng(0)
        )
        return [int(t) for t in bins_of(features, self.bins, np)[0]]

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return the released bins of n records, int16, shape (n, d)."""
        backend = backend_of(rng)
        xp, places = (
            backend.xp,
            bins_of(self._features(values, rng), self.bins, backend.xp),
        )
        thresholds = backend.array(np.cumsum(self.steps, axis=2)[:, :, :-1] / GRID)
        features = xp.asarray(
            backend.array(np.arange(len(self.shares))), dtype=xp.int64
        )
        at = thresholds[features, xp.asarray(places - 1, dtype=xp.int64)]
        return released_bins(backend, at)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases of one record, int16, shape (size, d)."""
        return self.perturb(
            np.repeat(np.asarray(data, np.float64)[None], size, axis=0), rng=rng
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, where there are at most 2^12 outputs.

        Raises:
            MechanismError: If there are more.
        """
        rows = [
            [Fraction(int(s), GRID) for s in self.steps[i, t - 1]]
            for i, t in enumerate(self._places(data))
        ]
        return product_law(self.name, rows)

    def envelope(self) -> Envelope:
        """Return the extremes of every output over [0, 1]^d, where there are at most 2^12 outputs."""
        least, most = self.steps.min(axis=1), self.steps.max(axis=1)
        lowest, highest = self.steps.argmin(axis=1), self.steps.argmax(axis=1)
        outputs = _outputs(self.name, self.bins, len(self.shares))

        def over(table: Array, output: tuple[int, ...]) -> Fraction:
            return math.prod(
                (Fraction(int(table[i, u - 1]), GRID) for i, u in enumerate(output)),
                start=Fraction(1),
            )

        def at(table: Array, output: tuple[int, ...]) -> Array:
            return np.array(
                [(table[i, u - 1] + 0.5) / self.bins for i, u in enumerate(output)]
            )

        return Envelope(
            outputs=outputs,
            least=[over(least, output) for output in outputs],
            most=[over(most, output) for output in outputs],
            inputs=[(at(highest, output), at(lowest, output)) for output in outputs],
        )

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,)."""
        rows = np.array(
            [self.steps[i, t - 1] for i, t in enumerate(self._places(data))]
        )
        return np.log(rows[np.arange(len(rows)), np.asarray(outputs) - 1] / GRID).sum(
            axis=1
        )


def _steps(budget: float, bins: int) -> list[list[int]]:
    """The tables P(u | t) in units of 2^-53, with all ratios at most e^budget for certain."""
    if budget < LEAST_BUDGET:
        row = [GRID // bins] * bins
        return [[GRID - sum(row[1:]), *row[1:]]] * bins
    for halving in HALVINGS:
        with precision():
            rows = [
                [
                    int((p * GRID).mid().floor().unique_fmpz())
                    for p in bin_law(budget * (1 - 2.0**-halving), bins, t)
                ]
                for t in range(1, bins + 1)
            ]
            for t, row in enumerate(rows):
                row[t] += GRID - sum(row)
            columns = list(zip(*rows, strict=True))
            if all(
                min(c) > 0 and bool(arb(max(c)) / min(c) <= arb(budget).exp())
                for c in columns
            ):
                return rows
    raise MechanismError(
        f"FeatureRR: a feature's budget of {budget!r} is too large for multiples of 2^-53; use at most 30"
    )


def released_bins(backend: Any, thresholds: Values) -> Values:
    """The bin of each feature: 1 and one more for every threshold that a uniform number reaches."""
    uniform = backend.uniform(*thresholds.shape[:-1])[..., None]
    return backend.xp.asarray(
        1 + (uniform >= thresholds).sum(-1), dtype=backend.xp.int16
    )


def _outputs(name: str, bins: int, features: int) -> list[tuple[int, ...]]:
    """All vectors of bins.

    Raises:
        MechanismError: If there are more than 2^12.
    """
    if bins**features > MAX_OUTCOMES:
        raise MechanismError(
            f"{name}: {bins**features} outputs, at most {MAX_OUTCOMES}; use log_prob, or fewer features or bins"
        )
    return list(product(range(1, bins + 1), repeat=features))


def product_law(name: str, rows: list[list[Any]]) -> FiniteLaw:
    """The law of independent bins."""
    outputs = _outputs(name, len(rows[0]), len(rows))
    with precision():
        probabilities = [
            math.prod(row[u - 1] for row, u in zip(rows, output, strict=True))
            for output in outputs
        ]
    return FiniteLaw(np.array(outputs, np.int16), probabilities)
