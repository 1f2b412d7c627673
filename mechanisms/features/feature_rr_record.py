"""FeatureRR from the raw record, with public shares of ε, and as deployed, with shares that each record computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.features.extractor import LinearExtractor
from mechanisms.features.feature_rr import (
    FeatureRR,
    bin_law,
    bins_of,
    product_law,
    released_bins,
)
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class ExtractedFeatureRR:
    """FeatureRR end to end with public shares: features are extracted from a raw record and released as bins.

    Input: raw record, float64 in [0, 1], shape (inputs,). Output: bins, int16, shape (size, d).

    Claimed and true: the ε of ``FeatureRR`` for the whole raw record, whatever the extractor. It is the first repair of
    ``RecordFeatureRR``.

    Args:
        extractor: The features.
        response: What happens to them; as many shares as features.
    """

    extractor: LinearExtractor
    response: FeatureRR

    def __post_init__(self) -> None:
        if len(self.response.shares) != len(self.extractor.weights):
            raise MechanismError(
                f"ExtractedFeatureRR: expected {len(self.extractor.weights)} shares, one a feature, got "
                f"{self.response.shares!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism from the raw record."""
        return f"{self.response.name} of extracted features, shares public"

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return the released bins of n raw records, int16, shape (n, d)."""
        features = self.extractor.features(
            self.extractor.records(values, rng), backend_of(rng)
        )
        return self.response.perturb(features, rng=rng)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases of one raw record."""
        return self.perturb(
            np.repeat(np.asarray(data, np.float64)[None], size, axis=0), rng=rng
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law for a raw record as Fractions."""
        rng = np.random.default_rng(0)
        records = self.extractor.records(np.asarray(data, np.float64)[None], rng)
        return self.response.distribution(
            self.extractor.features(records, backend_of(rng))[0]
        )


@dataclass(frozen=True)
class RecordFeatureRR:
    """FeatureRR end to end as deployed: a raw record in, bins out, with shares θ that are computed from the record.

    Input: raw record, float64 in [0, 1], shape (inputs,). Output: bins, int16, shape (size, d); with ``publish_shares``
    they are followed by θ, float64, shape (size, 2d).

    Claimed: ε_f-LDP for the whole record. False from two features on: budgets differ between records. With
    S(e) = Σ_{j<k} e^(−ej/(k−1)), features that are all in the first bin and share ε equally lose, against features all in
    the last bin of which one has all of ε, ε + ln S(ε) + (d−1) ln k − d ln S(ε/d). That is more than ε because ln S is
    strictly convex, and no two records lose more (``worst_loss``). If θ is published too, it is a function of the record
    in the clear, and no ε holds.

    Source: Tran, Lai, Phan et al. (2022), arXiv:2211.05766, Algorithm 1 and Theorem 3.

    Args:
        epsilon: Budget that each record divides among its features, in nats, finite and > 0.
        extractor: The features, and their importance and sensitivity.
        bins: Number of bins k, >= 2.
        gamma: Weight γ of importance against sensitivity, in [0, 1].
        publish_shares: Whether θ is released beside the bins.
    """

    epsilon: float
    extractor: LinearExtractor
    bins: int
    gamma: float = 0.5
    publish_shares: bool = False

    def __post_init__(self) -> None:
        check_positive("RecordFeatureRR", "epsilon", self.epsilon)
        check_integer("RecordFeatureRR", "bins", self.bins, 2)
        if not 0 <= self.gamma <= 1:
            raise MechanismError(
                f"RecordFeatureRR: expected gamma in [0, 1], got {self.gamma!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget, and whether the shares are released."""
        published = " and published" if self.publish_shares else ""
        sizes = f"{len(self.extractor.weights)} features in {self.bins} bins"
        return f"FeatureRR(epsilon={self.epsilon:g}, {sizes}), shares computed from the record{published}"

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return the release of each of n raw records, shape (n, d), or (n, 2d) with the shares."""
        backend = backend_of(rng)
        xp, records = backend.xp, self.extractor.records(values, rng)
        shares = self.extractor.shares(records, self.gamma, backend)
        places = bins_of(self.extractor.features(records, backend), self.bins, xp)[
            :, :, None
        ]
        distances = abs(backend.array(np.arange(1, self.bins + 1)) - places)
        weights = xp.exp(
            -self.epsilon * shares[:, :, None] * distances / (self.bins - 1)
        )
        cumulative = xp.cumsum(weights, 2)
        released = released_bins(backend, cumulative[:, :, :-1] / cumulative[:, :, -1:])
        return (
            xp.concatenate([released, shares], 1) if self.publish_shares else released
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases of one raw record."""
        return self.perturb(
            np.repeat(np.asarray(data, np.float64)[None], size, axis=0), rng=rng
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law for a raw record, enclosed, where there are at most 2^12 outputs.

        Raises:
            MechanismError: If there are more.
        """
        rng = np.random.default_rng(0)
        backend = backend_of(rng)
        records = self.extractor.records(np.asarray(data, np.float64)[None], rng)
        shares = self.extractor.shares(records, self.gamma, backend)
        places = bins_of(self.extractor.features(records, backend), self.bins, np)[0]
        with precision():
            rows = [
                bin_law(arb(float(self.epsilon)) * arb(float(share)), self.bins, int(t))
                for share, t in zip(shares[0], places, strict=True)
            ]
        law = product_law(self.name, rows)
        if not self.publish_shares:
            return law
        published = np.repeat(shares, len(law.outcomes), axis=0)
        return FiniteLaw(
            np.concatenate([law.outcomes, published], axis=1), law.probabilities
        )


def worst_loss(epsilon: float, features: int, bins: int) -> arb:
    """Return the largest loss between two records that divide ε among d features in any ways, enclosed.

    ε + ln S(ε) + (d−1) ln k − d ln S(ε/d), with S(e) = Σ_{j<k} e^(−ej/(k−1)).

    A feature with budget e has a largest probability of 1/S(e), that of an end bin in which it is, and one with budget
    e′ a smallest one of e^-e′/S(e′), that of the same bin for the other end (``FeatureRR``). So the largest loss is the
    sum of e′_i + ln S(e′_i) − ln S(e_i), and Σ e′_i = ε. ln S is convex, being a log-sum-exp: over budgets that sum to ε,
    Σ ln S(e′_i) is largest where one feature has everything, and Σ ln S(e_i) least where all have the same.
    """

    def log_sum(budget: arb) -> arb:
        return sum(
            ((-budget * j / (bins - 1)).exp() for j in range(bins)), arb(0)
        ).log()

    with precision():
        whole = arb(float(epsilon))
        return (
            whole
            + log_sum(whole)
            + (features - 1) * arb(bins).log()
            - features * log_sum(whole / features)
        )


def safe_budget(epsilon: float, features: int, bins: int) -> float:
    """Return a budget, the largest up to a relative 2^-40, that records may divide as they like at a loss of at most ε.

    The second repair of FeatureRR: shares stay each record's own secret, and the budget is less than ε. The loss
    grows with the budget, from 0; bisection, decided in outward-rounded arithmetic.
    """
    check_positive("safe_budget", "epsilon", epsilon)
    low, high = 0.0, float(epsilon)
    for _ in range(60):
        middle = (low + high) / 2
        with precision():
            holds = bool(worst_loss(middle, features, bins) <= arb(float(epsilon)))
        low, high = (middle, high) if holds else (low, middle)
    return low
