"""Embeddings as users release them: FeatureRR, and the local mechanisms that the source compares it with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditdp.mechanism.protocol import Array
from gnn.pipelines.hetero_rr.extractor import embedded
from gnn.validation import check_choice, check_count, check_positive
from mechanisms.backend import backend_of
from mechanisms.cells import Rng
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MultiBit,
    RecordFeatureRR,
)
from mechanisms.numeric import (
    Duchi,
    Hybrid,
    Piecewise,
    PMSub,
    Scalar,
    ThreeOutput,
    every_feature,
    sampled_features,
)

NUMERIC: dict[str, Callable[[float], Scalar]] = {
    "Duchi": Duchi,
    "Piecewise": Piecewise,
    "Hybrid": Hybrid,
    "Three-output": ThreeOutput,
    "Sub-optimal": PMSub,
}
METHODS = ("FeatureRR", *NUMERIC, "LPGNN", "clean")
USED = ("every", "sampled")
INPUTS = ("as released", "standardised")


@dataclass(frozen=True)
class FeatureRelease:
    """The release of an embedding.

    Args:
        method: "FeatureRR"; a mechanism for numbers, of ``NUMERIC``; "LPGNN", the multi-bit encoder with its rectifier;
            or "clean".
        epsilon: ε_f of a record in nats.
        form: Of FeatureRR: "published", each record computes its shares θ of the budget from itself; or "repaired", θ is
            the mean of public records' shares.
        used: Of a mechanism for numbers: "every" feature with ε/d, or "sampled" ones, ⌊ε/2.5⌋ with more of the budget.
        inputs: What the network is given: numbers "as released", or "standardised", each feature over all nodes (which is
            post-processing).
        bins: k of FeatureRR.
        gamma: γ of FeatureRR, the weight of importance against sensitivity.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    method: str = "FeatureRR"
    epsilon: float = 1.0
    form: Literal["published", "repaired"] = "published"
    used: Literal["every", "sampled"] = "every"
    inputs: Literal["as released", "standardised"] = "as released"
    bins: int = 10
    gamma: float = 0.5

    def __post_init__(self) -> None:
        owner = "FeatureRelease"
        check_choice(owner, "method", self.method, METHODS)
        check_choice(owner, "form", self.form, ("published", "repaired"))
        check_choice(owner, "used", self.used, USED)
        check_choice(owner, "inputs", self.inputs, INPUTS)
        check_count(owner, "bins", self.bins, least=2)
        if not math.isinf(self.epsilon):
            check_positive(owner, "epsilon", self.epsilon)


def released_features(
    records: Array,
    extractor: LinearExtractor,
    release: FeatureRelease,
    *,
    public: Array,
    rng: Rng,
) -> Array:
    """Return the server's data of every node's embedding, float64, shape (nodes, width).

    Source: Tran et al. (2022), arXiv:2211.05766, Algorithm 1 and Section V.

    Note:
        The server scales nothing back: a released bin u stands for u/k, as printed. Estimates of the mechanisms for numbers
        and of the rectifier are unbiased.

    Args:
        records: Raw records, shape (nodes, inputs).
        extractor: Of the embedding.
        release: How it is released.
        public: Ids of nodes whose raw records are public, for shares of the repaired form.
        rng: The users' randomness.

    Raises:
        MechanismError: If a record is outside [0, 1], or the budget is too small or large for the mechanism.
    """
    z = _released(records, extractor, release, public, rng)
    if release.inputs == "standardised":
        spread = z.std(axis=0)
        z = (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return z


def _released(
    records: Array,
    extractor: LinearExtractor,
    release: FeatureRelease,
    public: Array,
    rng: Rng,
) -> Array:
    width = len(extractor.weights)
    if release.method == "FeatureRR":
        if release.form == "published":
            own = RecordFeatureRR(
                release.epsilon, extractor, release.bins, gamma=release.gamma
            )
            return np.asarray(own.perturb(records, rng=rng)) / release.bins
        shares = extractor.shares(records[public], release.gamma, backend_of(rng)).mean(
            axis=0
        )
        response = FeatureRR(release.epsilon, tuple(shares.tolist()), release.bins)
        return (
            np.asarray(
                ExtractedFeatureRR(extractor, response).perturb(records, rng=rng)
            )
            / release.bins
        )
    z = embedded(extractor, records)
    if release.method == "clean":
        return z
    if release.method == "LPGNN":
        encoder = MultiBit(release.epsilon, width)
        return np.asarray(encoder.rectify(encoder.perturb(z, rng=rng)))
    over = every_feature if release.used == "every" else sampled_features
    mechanism = over(NUMERIC[release.method], release.epsilon, width)
    return np.asarray((mechanism.perturb(2 * z - 1, rng=rng) + 1) / 2)
