"""Encoders of features, local model: every privacy claim, and promises of estimates.

Where a record is a vector of a box, privacy is certified over the whole box. Raw inputs of what happens before an encoder
are answers on a scale of few points, so that all pairs can be enumerated.
"""

from dataclasses import dataclass

import numpy as np

from auditdp import Audit, Box, Pair, PureDP, Records, Unbiased, VarianceAtMost, audit
from mechanisms.features import (
    Everybody,
    MinMaxScaled,
    MultiBit,
    OneBit,
    OneReport,
    PublicBounds,
    RangeEstimates,
    Rectified,
)

LPGNN = "Sajadmanesh & Gatica-Perez 2021, arXiv:2006.05535"
SENT_EQUIVALENTS = {
    "noise left out: *permuted in NumpyBackend.subsets*": (
        "which features are sent does not depend on the record, however it is chosen"
    )
}


# The encoder and its estimates.


@audit(
    source=f"{LPGNN}, multi-bit encoder", row="multi-bit encoder", reading="as stated"
)
def multi_bit(epsilon=4.5, dimension=3):
    """The multi-bit encoder with the published number of sent features provides ε-LDP for records in [α, β]^d.

    Half of the features up and half down, against the reverse, show the whole loss, and bits that share their noise.
    """
    pairs = Box(0, 1, dimension)
    return Audit(
        mechanism=MultiBit(epsilon, dimension),
        claim=PureDP(epsilon),
        pairs=pairs,
        play=pairs.pairs()[-1:],
        controls=[MultiBit(1.5 * epsilon, dimension, sampled=2)],
        calls=60_000,
        equivalent_mutants=SENT_EQUIVALENTS,
    )


@audit(
    source=f"{LPGNN}, multi-bit encoder with m = d", row="1-bit", reading="as stated"
)
def one_bit(epsilon=1.5, dimension=3):
    """The 1-bit mechanism on every feature, with ε/d each, provides ε-LDP for records in [α, β]^d."""
    pairs = Box(0, 1, dimension)
    return Audit(
        mechanism=OneBit(epsilon, dimension),
        claim=PureDP(epsilon),
        pairs=pairs,
        play=pairs.pairs()[-1:],
        controls=[OneBit(1.5 * epsilon, dimension)],
        calls=40_000,
        equivalent_mutants=SENT_EQUIVALENTS,
    )


@dataclass(frozen=True)
class Rescaled:
    """Estimates of one encoder's feature by the rectifier of another one: biased."""

    sent: MultiBit
    rectifier: MultiBit

    @property
    def name(self):
        """Both encoders."""
        return f"feature 0 of {self.sent.name} rectified as of {self.rectifier.name}"

    def __call__(self, data, size, *, rng):
        """Return the estimates."""
        return self.rectifier.rectify(self.sent(data, size, rng=rng)[:, 0])

    def output_range(self, data):
        """Return the estimates made of −1 and of 1."""
        return tuple(self.rectifier.rectify(np.array([-1, 1])))


def first_feature(data):
    """Return the estimated number."""
    return float(data[0])


def records_by_value(dimension, values=(-1.0, 0.5, 2.0)):
    """Return records whose first feature takes each value; the others are at the low end."""
    return {
        f"x = {x:g}": [np.array([x] + [values[0]] * (dimension - 1))] for x in values
    }


@audit(
    source=f"{LPGNN}, multi-bit rectifier",
    row="multi-bit rectifier",
    reading="as stated",
)
def multi_bit_rectifier(epsilon=4.5, dimension=3, margin=0.25):
    """The multi-bit rectifier is unbiased, for features in [α, β] = [−1, 2]."""
    encoder = MultiBit(epsilon, dimension, -1.0, 2.0)
    return Audit(
        mechanism=Rectified(encoder),
        claim=Unbiased(first_feature, margin),
        inputs=records_by_value(dimension),
        controls=[Rescaled(encoder, MultiBit(epsilon / 2, dimension, -1.0, 2.0))],
        calls=60_000,
    )


@audit(
    source=f"{LPGNN}, variance of the multi-bit rectifier",
    row="multi-bit rectifier",
    reading="its variance",
)
def multi_bit_variance(epsilon=4.5, dimension=3):
    """The estimate's variance is at most (d/m)((β−α)/2·(e^(ε/m)+1)/(e^(ε/m)−1))², which it is in the middle."""
    encoder = MultiBit(epsilon, dimension, -1.0, 2.0)
    slope = np.tanh(epsilon / encoder.m / 2)
    bound = dimension / encoder.m * (1.5 / slope) ** 2
    return Audit(
        mechanism=Rectified(encoder),
        claim=VarianceAtMost(float(bound), first_feature),
        inputs=records_by_value(dimension),
        controls=[
            Rectified(MultiBit(0.9 * epsilon, dimension, -1.0, 2.0, sampled=encoder.m))
        ],
        calls=60_000,
        equivalent_mutants={
            "seed fixed: *": "an estimate that is the same in every run has variance 0"
        },
        decides="nothing sampled: in the middle of the range the bound is attained; it follows in closed form from the law",
    )


# Scaling by the range of the population.

SCALE = (-1.0, 0.0, 1.0)


@audit(
    source=f"published pipelines, before the encoder of {LPGNN}",
    expect="violation",
    row="min–max scaling",
    reading="as deployed, everything of everybody released",
    smallest={"users": range(1, 4)},
)
def min_max(epsilon=1.0, users=3):
    """Features scaled by the population's least and greatest value, then encoded, still have ε-LDP for a user's record.

    False from two users on: the scaled records of the others depend on it. With n users the loss is exactly nε.
    """
    return Audit(
        mechanism=MinMaxScaled(OneBit(epsilon, 1), users),
        claim=PureDP(epsilon),
        pairs=Records(users, SCALE),
        calls=5_000,
    )


@audit(
    source=f"published code of {LPGNN} (class Normalize)",
    expect="violation",
    row="min–max scaling",
    reading="as deployed, features that are the same for everybody dropped",
    smallest={"users": range(1, 4)},
)
def min_max_dropped(epsilon=1.0, users=3):
    """Scaling that drops features without a range, then encoding, still has ε-LDP for a user's record.

    False from two users on, for every ε: whether a feature is released depends on one record, if all others agree.
    """
    return Audit(
        mechanism=MinMaxScaled(OneBit(epsilon, 1), users, "drop"),
        claim=PureDP(epsilon),
        pairs=Records(users, SCALE),
        calls=5_000,
    )


@audit(
    source=f"early published code of {LPGNN} (function one_bit)",
    expect="violation",
    row="min–max scaling",
    reading="as deployed, estimates in the range of the population released",
)
def min_max_estimates(epsilon=1.0):
    """Features scaled by the population's range, encoded, and estimated in that range, have ε-LDP for a user's record.

    False for every ε: estimates show the range exactly. Both populations have a range: the code stops without one.
    """
    zero, minus = np.array([[0.0], [1.0]]), np.array([[-1.0], [1.0]])
    return Audit(
        mechanism=RangeEstimates(MinMaxScaled(OneBit(epsilon, 1), 2)),
        claim=PureDP(epsilon),
        pairs=[Pair(zero, minus, "one of two users has another number")],
        calls=5_000,
    )


@audit(
    source="derived here",
    row="min–max scaling",
    reading="one user's report, seen alone",
)
def min_max_one_report(epsilon=1.0, users=3):
    """After min–max scaling, any one user's report that is seen alone keeps ε, whoever's record is replaced."""
    return Audit(
        mechanism=OneReport(MinMaxScaled(OneBit(epsilon, 1), users)),
        claim=PureDP(epsilon),
        pairs=Records(users, SCALE),
        controls=[OneReport(MinMaxScaled(OneBit(1.5 * epsilon, 1), users))],
        calls=20_000,
    )


@audit(
    source="derived here",
    row="min–max scaling",
    reading="what holds: n users lose nε",
    repairs="min_max",
)
def min_max_everybody(epsilon=0.5, users=3):
    """After min–max scaling, everything that n users release has nε-DP for a user's record, and no less."""
    return Audit(
        mechanism=MinMaxScaled(OneBit(epsilon, 1), users),
        claim=PureDP(users * epsilon),
        pairs=Records(users, SCALE),
        controls=[MinMaxScaled(OneBit(1.5 * epsilon, 1), users)],
        calls=20_000,
        cost=f"no change of the pipeline, but n times the ε: {2708 * epsilon:,.0f} for ε = {epsilon:g} and 2,708 users",
    )


@audit(
    source="derived here",
    row="min–max scaling",
    reading="public bounds and clipping",
    repairs="min_max",
)
def public_bounds(epsilon=1.0, users=2, bound=1.0):
    """Features clipped to public bounds, then encoded, have ε-LDP for a user's record, whatever numbers it holds."""
    encoder, wider = (
        MultiBit(epsilon, 1, -bound, bound),
        MultiBit(epsilon, 1, -2 * bound, 2 * bound),
    )
    ratio = wider.variance(0.0) / encoder.variance(0.0)
    return Audit(
        mechanism=PublicBounds(encoder, users),
        claim=PureDP(epsilon),
        pairs=Records(users, (-2 * bound, -bound, 0.0, bound, 2 * bound)),
        controls=[
            PublicBounds(MultiBit(1.5 * epsilon, 1, -bound, bound), users),
            MinMaxScaled(OneBit(epsilon, 1), users),
        ],
        calls=20_000,
        cost=(
            f"the variance of the noise grows with the square of the bounds' width: {encoder.variance(0.0):.4g} at "
            f"ε = {epsilon:g} with bounds as wide as the population's range, {ratio:.3g} times that with bounds twice as "
            "wide (and where they clip, a bias)"
        ),
    )


@audit(
    source=LPGNN,
    row="multi-bit encoder",
    reading="as deployed, everybody's records in public bounds",
)
def multi_bit_everybody(epsilon=2.0, users=2, dimension=2):
    """Everybody encodes their own record in public bounds: ε for one record, since the others' reports do not change."""
    return Audit(
        mechanism=Everybody(MultiBit(epsilon, dimension), users),
        claim=PureDP(epsilon),
        pairs=Records(users, (0.0, 1.0), dimension),
        controls=[Everybody(MultiBit(1.5 * epsilon, dimension), users)],
        calls=60_000,
        equivalent_mutants=SENT_EQUIVALENTS,
    )
