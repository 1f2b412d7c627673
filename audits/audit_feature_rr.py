"""FeatureRR, local model: every privacy claim, as stated and as deployed, and repairs.

With public shares of the budget, privacy is certified over the whole box of records. Raw records, from which shares are
computed, are answers on a scale of few points, so that all pairs can be enumerated.
"""

from itertools import product

import numpy as np

from auditdp import AnyValues, Audit, Box, Pair, PureDP, audit
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    RecordFeatureRR,
    safe_budget,
    worst_loss,
)

HETERO_RR = "Tran et al. 2022, arXiv:2211.05766"
THREE_POINTS = (0.0, 0.5, 1.0)
UP_AND_DOWN = Pair(
    np.array([1.0, 0.0]), np.array([0.0, 1.0]), "one up, one down, against the reverse"
)
"""Shows the whole loss of two features, and features that share their noise."""
SHARES_DIFFER = Pair(
    np.array([0.5, 1.0]), np.array([0.0, 0.0]), "shares of their own that differ most"
)


def answers_on_scale(inputs):
    """Return any two records of answers on a three-point scale."""
    return AnyValues(
        [np.array(record) for record in product(THREE_POINTS, repeat=inputs)],
        finite=True,
        label=f"value LDP (any two records of {inputs} answers of 0, 1/2, 1)",
    )


def answers_with_scores(inputs):
    """Return any two records with scores.

    Equation 5 is 0/0 for records without the sensitive answer, and Equation 6 for those without importance, whose answers
    are all 1/2.
    """
    return AnyValues(
        [
            record
            for record in answers_on_scale(inputs).values
            if record[0] and (record != 0.5).any()
        ],
        finite=True,
        label=f"value LDP (any two records of {inputs} answers of 0, 1/2, 1 for which Equations 5 and 6 are defined)",
    )


def identity(features):
    """Return an extractor whose features are the raw answers themselves; the first answer is the sensitive one."""
    return LinearExtractor(tuple(map(tuple, np.eye(features))))


@audit(
    source=f"{HETERO_RR}, Algorithm 1",
    row="FeatureRR",
    reading="one feature",
    smallest={"bins": range(2, 8)},
)
def feature_rr_feature(epsilon=1.0, bins=7):
    """Pr(u|t) ∝ exp(−ε_i|u−t|/(k−1)) provides ε_i-LDP for one feature, though its normalisers differ between bins.

    True, and tight, for every k: where the ratio of probabilities is largest, at both ends, the normalisers agree.
    """
    return Audit(
        mechanism=FeatureRR(epsilon, (1.0,), bins),
        claim=PureDP(epsilon),
        pairs=Box(0, 1),
        controls=[FeatureRR(2 * epsilon, (1.0,), bins)],
        calls=20_000,
    )


@audit(
    source=f"{HETERO_RR}, Theorem 3 with line 5 of Algorithm 1",
    row="FeatureRR",
    reading="as stated, θ public",
    repairs="feature_rr_unnormalised",
)
def feature_rr(epsilon=2.0, bins=3):
    """FeatureRR provides ε_f-LDP for the whole record, with public shares θ."""
    shares = (1.0, 3.0)
    return Audit(
        mechanism=FeatureRR(epsilon, shares, bins),
        claim=PureDP(epsilon),
        pairs=Box(0, 1, len(shares)),
        play=[UP_AND_DOWN],
        controls=[FeatureRR(1.5 * epsilon, shares, bins)],
        calls=60_000,
    )


def printed_scores(importance, sensitivity, weight):
    """Return θ of Equation 7, before Algorithm 1 divides by its sum."""
    low, high = min(sensitivity), max(sensitivity)
    return tuple(
        weight * a + (1 - weight) * (low + high - b)
        for a, b in zip(importance, sensitivity, strict=True)
    )


@audit(
    source=f"{HETERO_RR}, Theorem 3 with Equation 7, without line 5 of Algorithm 1",
    expect="violation",
    row="FeatureRR",
    reading="θ of Equation 7, not yet divided by its sum",
)
def feature_rr_unnormalised(epsilon=1.0, bins=3):
    """FeatureRR with the θ of Equation 7 as they are provides ε_f-LDP for the whole record.

    False: the proof uses that they sum to 1, and they sum to γ + (1−γ)(d(β_min + β_max) − 1), here 1.5 with γ = 1/2,
    importance (1/2, 1/2, 0) and sensitivity (1, 0, 0); (d − 1)/2 + 1/2 in general for such a sensitivity.
    """
    scores = printed_scores((0.5, 0.5, 0.0), (1.0, 0.0, 0.0), 0.5)
    return Audit(
        mechanism=FeatureRR(sum(scores) * epsilon, scores, bins),
        claim=PureDP(epsilon),
        pairs=Box(0, 1, len(scores)),
        evidence=["exact"],
    )


@audit(
    source=f"{HETERO_RR}, Theorem 3 with Algorithm 1",
    expect="violation",
    row="FeatureRR",
    reading="as deployed, θ computed from the record",
    smallest={"features": range(2, 4)},
)
def feature_rr_record(epsilon=4.0, bins=4, features=3):
    """FeatureRR provides ε_f-LDP for the whole record, with shares θ that each record computes from itself.

    False from two features on. ``worst_loss`` is the closed form of the largest loss. A record attains it whose scores are
    0/0 by Equation 5, and are all the same here.
    """
    return Audit(
        mechanism=RecordFeatureRR(epsilon, identity(features), bins),
        claim=PureDP(epsilon),
        pairs=answers_with_scores(features),
        calls=5_000,
    )


@audit(
    source=f"a reading that the paper does not make: {HETERO_RR}, Algorithm 1, with θ published",
    expect="violation",
    smallest={"features": range(1, 4)},
)
def feature_rr_record_published(epsilon=4.0, bins=4, features=3):
    """FeatureRR provides ε_f-LDP for the whole record, with shares θ computed from it and known to the server.

    False for every ε, from two features on: θ is a function of the record in the clear.
    """
    return Audit(
        mechanism=RecordFeatureRR(
            epsilon, identity(features), bins, publish_shares=True
        ),
        claim=PureDP(epsilon),
        pairs=answers_on_scale(features),
        calls=5_000,
    )


@audit(
    source="derived here",
    row="FeatureRR",
    reading="θ public, from the raw record",
    repairs="feature_rr_record",
)
def feature_rr_record_public(epsilon=2.0, bins=3, features=2):
    """From the raw record, with shares θ that are public and the same for all records, FeatureRR provides ε_f-LDP."""
    shares = (1.0,) * features
    return Audit(
        mechanism=ExtractedFeatureRR(
            identity(features), FeatureRR(epsilon, shares, bins)
        ),
        claim=PureDP(epsilon),
        pairs=answers_on_scale(features),
        controls=[
            ExtractedFeatureRR(
                identity(features), FeatureRR(1.5 * epsilon, shares, bins)
            )
        ],
        play=[UP_AND_DOWN],
        calls=60_000,
        cost="none in noise: the same ε is divided among the features, by public records instead of one's own",
    )


@audit(
    source="derived here",
    row="FeatureRR",
    reading="θ from the record, smaller budget",
    repairs="feature_rr_record",
)
def feature_rr_record_budget(epsilon=4.0, bins=4, features=2):
    """With shares that each record computes from itself, a smaller budget to divide provides ε_f-LDP: ``safe_budget``."""
    budget = safe_budget(epsilon, features, bins)
    return Audit(
        mechanism=RecordFeatureRR(budget, identity(features), bins),
        claim=PureDP(epsilon),
        pairs=answers_on_scale(features),
        controls=[RecordFeatureRR(2 * epsilon, identity(features), bins)],
        play=[SHARES_DIFFER],
        calls=20_000,
        cost=(
            f"a budget of {budget:.4g} for ε = {epsilon:g} with {features} features in {bins} bins, where the whole ε loses "
            f"{float(worst_loss(epsilon, features, bins)):.4g}; {safe_budget(10, 100, 10):.3g} for ε = 10 with 100 features "
            "in 10 bins"
        ),
    )
