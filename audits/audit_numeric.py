"""Numeric mechanisms on features, local model: privacy, bias and variance, of one number and of whole records.

Privacy is certified over the whole domain: for every output the least and the most that any number of [−1, 1] gives it,
with the very doubles that are deployed. The mechanisms round towards privacy, so the exact ε is at most the claimed one,
and less by no more than 1e-14. A record of numbers loses what its features lose together.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp import ApproxDP, Audit, Box, PureDP, Unbiased, VarianceAtMost, audit
from mechanisms.numeric import (
    Duchi,
    Feature,
    GaussianFeatures,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
    every_feature,
    sampled_features,
)

DUCHI = "Duchi, Jordan & Wainwright 2018, JASA 113"
WANG = "Wang et al. 2019, arXiv:1907.00782"
ZHAO = "Zhao et al. 2020, arXiv:2004.08856"
DWORK = "Dwork, McSherry, Nissim & Smith 2006"
BALLE = "Balle & Wang 2018, arXiv:1805.06530, Theorem 8"
NUMBERS = (-1.0, -0.6, 0.0, 0.25, 1.0)
COIN = "each part is ε-LDP and shows in the output, so that any probability of the coin will do that ignores the number"
SAMPLE = "which features are sampled plays no part in the loss"
ONE_COIN = (
    "given a coin that all features share, each is still ε/r-LDP with noise of its own"
)
ONE_FEATURE = "one feature is released, so there is none that it shares its noise with"
UNUSED = (
    "for ε <= .61 Duchi's noise alone is used, and that of an unused draw is as good"
)
HYBRID_EQUIVALENTS = {
    "noise *: draw 1, random in NumpyBackend.uniform, called by Hybrid.draw": COIN
}
RECORD_EQUIVALENTS = {
    "one noise for all coordinates: draw 1, random in NumpyBackend.uniform, called by Hybrid.draw": ONE_COIN
}
SAMPLED_EQUIVALENTS = {"noise left out: draw *, permuted in *": SAMPLE}
CONSTANT = "an estimate that is the same in every run has variance 0"


@dataclass(frozen=True)
class Times:
    """A mechanism whose outputs are multiplied: biased, and of another variance."""

    mechanism: Any
    factor: float

    @property
    def name(self):
        """The mechanism and the factor."""
        return f"{self.factor:g} times {self.mechanism.name}"

    def __call__(self, data, size, *, rng):
        """Return the multiplied outputs."""
        return self.factor * self.mechanism(data, size, rng=rng)

    def output_range(self, data):
        """Return the multiplied range."""
        return tuple(self.factor * end for end in self.mechanism.output_range(data))


def private(kind, epsilon):
    """Audit ε-LDP over any two numbers; the control has twice the budget."""
    pairs = Box(-1, 1)
    return Audit(
        mechanism=kind(epsilon),
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[kind(2 * epsilon)],
        play=pairs.pairs()[:2],
        calls=16_000,
        equivalent_mutants=HYBRID_EQUIVALENTS if kind is Hybrid else {},
    )


def the_number(data):
    """Return the number itself, which every mechanism estimates."""
    return float(data[0])


def numbers(values=NUMBERS):
    """Return each number as a class of inputs of its own."""
    return {f"x = {x:g}": [np.array([x])] for x in values}


def unbiased(mechanism, margin=0.1):
    """Audit that the mean is the number, up to a margin that 25,000 calls can detect."""
    return Audit(
        mechanism=mechanism,
        claim=Unbiased(the_number, margin),
        inputs=numbers(),
        controls=[Times(mechanism, 1.2)],
        calls=25_000 * len(NUMBERS),
    )


def variance_at_most(mechanism, bound, worst):
    """Audit a published worst case of the variance, up to a twentieth, at the input where it is attained among others.

    It is attained, so without the twentieth more calls would come nearer to it for ever. That it is the exact variance of
    the exact law is shown by tests.
    """
    return Audit(
        mechanism=mechanism,
        claim=VarianceAtMost(1.05 * bound, the_number),
        inputs=numbers(sorted({-1.0, 0.0, worst})),
        controls=[Times(mechanism, 1.2)],
        calls=150_000,
        equivalent_mutants={"seed fixed: *": CONSTANT},
    )


@audit(source=DUCHI, row="Duchi", reading="as stated")
def duchi(epsilon=1.0):
    """Duchi's mechanism provides ε-LDP for a number of [−1, 1]."""
    return private(Duchi, epsilon)


@audit(source=DUCHI, row="Duchi", reading="as stated")
def duchi_unbiased(epsilon=1.0):
    """Duchi's mechanism is unbiased."""
    return unbiased(Duchi(epsilon))


@audit(
    source=f"{DUCHI}; worst case as in {WANG}, Section III",
    row="Duchi",
    reading="as stated",
)
def duchi_variance(epsilon=1.0):
    """Duchi's mechanism has variance at most ((E+1)/(E−1))², at 0."""
    e = math.exp(epsilon)
    return variance_at_most(Duchi(epsilon), ((e + 1) / (e - 1)) ** 2, 0.0)


@audit(source=f"{WANG}, Algorithm 2", row="Piecewise", reading="as stated")
def piecewise(epsilon=1.0):
    """The piecewise mechanism provides ε-LDP for a number of [−1, 1]."""
    return private(Piecewise, epsilon)


@audit(source=f"{WANG}, Algorithm 2", row="Piecewise", reading="as stated")
def piecewise_unbiased(epsilon=1.0):
    """The piecewise mechanism is unbiased."""
    return unbiased(Piecewise(epsilon))


@audit(source=f"{WANG}, Section III-B", row="Piecewise", reading="as stated")
def piecewise_variance(epsilon=1.0):
    """The piecewise mechanism has variance at most 4t/(3(t−1)²), t = e^(ε/2), at ±1."""
    t = math.exp(epsilon / 2)
    return variance_at_most(Piecewise(epsilon), 4 * t / (3 * (t - 1) ** 2), 1.0)


@audit(source=f"{ZHAO} (PM-SUB)", row="PM-SUB", reading="as stated")
def pm_sub(epsilon=1.0):
    """PM-SUB, the piecewise mechanism with t = e^(ε/3), provides ε-LDP for a number of [−1, 1]."""
    return private(PMSub, epsilon)


@audit(source=f"{ZHAO} (PM-SUB)", row="PM-SUB", reading="as stated")
def pm_sub_unbiased(epsilon=1.0):
    """PM-SUB is unbiased."""
    return unbiased(PMSub(epsilon))


@audit(source=f"{ZHAO} (PM-SUB)", row="PM-SUB", reading="as stated")
def pm_sub_variance(epsilon=1.0):
    """PM-SUB has variance at most (t+1)/(E−1) + (E+t)((t+1)³+E−1)/(3t²(E−1)²), t = e^(ε/3), at ±1."""
    e, t = math.exp(epsilon), math.exp(epsilon / 3)
    bound = (t + 1) / (e - 1) + (e + t) * ((t + 1) ** 3 + e - 1) / (
        3 * t**2 * (e - 1) ** 2
    )
    return variance_at_most(PMSub(epsilon), bound, 1.0)


@audit(source=f"{WANG}, Section III-C", row="Hybrid", reading="as stated, ε > .61")
def hybrid(epsilon=1.0):
    """The hybrid of Piecewise and Duchi provides ε-LDP for a number of [−1, 1]."""
    return private(Hybrid, epsilon)


@audit(source=f"{WANG}, Section III-C", row="Hybrid", reading="as stated, ε <= .61")
def hybrid_small(epsilon=0.6):
    """The hybrid provides ε-LDP where it is Duchi's mechanism alone."""
    audited = private(Hybrid, epsilon)
    return replace(
        audited,
        equivalent_mutants=audited.equivalent_mutants
        | {"noise reused: draw *": UNUSED},
    )


@audit(source=f"{WANG}, Section III-C", row="Hybrid", reading="as stated")
def hybrid_unbiased(epsilon=1.0):
    """The hybrid of Piecewise and Duchi is unbiased."""
    return unbiased(Hybrid(epsilon))


@audit(source=f"{WANG}, Section III-C", row="Hybrid", reading="as stated, ε > .61")
def hybrid_variance(epsilon=1.0):
    """The hybrid has variance at most (t+3)/(3t(t−1)) + (E+1)²/(t(E−1)²), t = e^(ε/2), the same for every number."""
    e, t = math.exp(epsilon), math.exp(epsilon / 2)
    return variance_at_most(
        Hybrid(epsilon),
        (t + 3) / (3 * t * (t - 1)) + (e + 1) ** 2 / (t * (e - 1) ** 2),
        0.5,
    )


@audit(
    source=f"{ZHAO} (Three-Outputs)",
    row="Three-output",
    reading="as stated, ln 2 < ε < ln 5.53",
)
def three_output(epsilon=1.0):
    """The three-output mechanism provides ε-LDP for a number of [−1, 1], where a is the root of a cubic."""
    return private(ThreeOutput, epsilon)


@audit(
    source=f"{ZHAO} (Three-Outputs)", row="Three-output", reading="as stated, ε < ln 2"
)
def three_output_small(epsilon=0.6):
    """The three-output mechanism provides ε-LDP where a = 0: then it is Duchi's."""
    return private(ThreeOutput, epsilon)


@audit(
    source=f"{ZHAO} (Three-Outputs)",
    row="Three-output",
    reading="as stated, ε >= ln 5.53",
)
def three_output_large(epsilon=2.0):
    """The three-output mechanism provides ε-LDP where a = E/(E+2), the largest a with which it does."""
    return private(ThreeOutput, epsilon)


@audit(source=f"{ZHAO} (Three-Outputs)", row="Three-output", reading="as stated")
def three_output_unbiased(epsilon=1.0):
    """The three-output mechanism is unbiased."""
    return unbiased(ThreeOutput(epsilon))


@audit(
    source=f"{ZHAO} (Three-Outputs)",
    row="Three-output",
    reading="as stated, ln 2 < ε < ln 5.53",
)
def three_output_variance(epsilon=1.0):
    """The printed a makes the largest variance, C²(1−a) + C⁴b²/4 at |x| = C²b/2, least over 0 <= a <= E/(E+2)."""
    e = math.exp(epsilon)
    a = np.linspace(0, e / (e + 2), 1_000_001)
    square, b = (e * (e + 1) / ((e - 1) * (e - a))) ** 2, a * (e - 1) / e
    at = np.minimum(square * b / 2, 1)
    largest = square * (1 - a + b * at) - at**2
    return variance_at_most(
        ThreeOutput(epsilon), float(largest.min()), float(at[largest.argmin()])
    )


@audit(
    source=DWORK,
    row="Laplace, analytic Gaussian on features",
    reading="Laplace, as stated",
)
def laplace_feature(epsilon=1.0):
    """Laplace noise of scale 2/ε provides ε-LDP for a number of [−1, 1]."""
    return private(LaplaceFeature, epsilon)


@audit(
    source=DWORK,
    row="Laplace, analytic Gaussian on features",
    reading="Laplace, as deployed",
)
def laplace_features(epsilon=2.0, dimension=4):
    """Laplace noise of scale 2r/ε on each of r features provides ε-LDP for the whole record."""
    return record_private(every_feature, LaplaceFeature, epsilon, dimension)


@audit(
    source=BALLE,
    row="Laplace, analytic Gaussian on features",
    reading="Gaussian, as deployed",
)
def gaussian_features(epsilon=1.0, delta=1e-2, dimension=4):
    """Gaussian noise calibrated to 2√d provides (ε, δ)-LDP for a record of d numbers of [−1, 1]."""
    return Audit(
        mechanism=GaussianFeatures(epsilon, delta, dimension),
        claim=ApproxDP(epsilon, delta),
        pairs=Box(-1, 1, dimension),
        controls=[GaussianFeatures(2 * epsilon, delta, dimension)],
        calls=24_000,
    )


PLAYED = ("highest against lowest", "middle against lowest", "one coordinate")


def record_private(use, kind, epsilon, dimension):
    """Audit ε-LDP over any two records; the control has twice the budget.

    Opposite corners show what all features lose together, the middle what zeros lose, and one feature shows noise that
    features share.
    """
    pairs = Box(-1, 1, dimension)
    return Audit(
        mechanism=use(kind, epsilon, dimension),
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[use(kind, 2 * epsilon, dimension)],
        play=[pair for pair in pairs.pairs() if pair.name in PLAYED],
        calls=40_000,
        equivalent_mutants={
            **(HYBRID_EQUIVALENTS | RECORD_EQUIVALENTS if kind is Hybrid else {}),
            **({} if use is every_feature else SAMPLED_EQUIVALENTS),
        },
    )


USES = "d-dimensional use of the numeric mechanisms"
EACH = f"{WANG}, Section IV (ε split equally over all features)"
SAMPLED = f"{WANG}, Algorithm 4; {ZHAO}"


@audit(source=EACH, row=USES, reading="ε/r for each of r features, Duchi")
def every_feature_duchi(epsilon=2.0, dimension=4):
    """Duchi's mechanism with ε/r on each of r features provides ε-LDP for the whole record."""
    return record_private(every_feature, Duchi, epsilon, dimension)


@audit(source=EACH, row=USES, reading="ε/r for each of r features, Piecewise")
def every_feature_piecewise(epsilon=2.0, dimension=2):
    """The piecewise mechanism with ε/r on each of r features provides ε-LDP for the whole record."""
    return record_private(every_feature, Piecewise, epsilon, dimension)


@audit(source=EACH, row=USES, reading="ε/r for each of r features, PM-SUB")
def every_feature_pm_sub(epsilon=2.0, dimension=2):
    """PM-SUB with ε/r on each of r features provides ε-LDP for the whole record."""
    return record_private(every_feature, PMSub, epsilon, dimension)


@audit(source=EACH, row=USES, reading="ε/r for each of r features, Hybrid")
def every_feature_hybrid(epsilon=2.0, dimension=2):
    """The hybrid with ε/r on each of r features provides ε-LDP for the whole record."""
    return replace(
        record_private(every_feature, Hybrid, epsilon, dimension), calls=100_000
    )


@audit(source=EACH, row=USES, reading="ε/r for each of r features, Three-output")
def every_feature_three_output(epsilon=2.0, dimension=2):
    """The three-output mechanism with ε/r on each of r features provides ε-LDP for the whole record."""
    return record_private(every_feature, ThreeOutput, epsilon, dimension)


@audit(
    source=SAMPLED,
    row=USES,
    reading="ε/k for each of k sampled features, k = 1, Piecewise",
)
def sampled_one(epsilon=1.5, dimension=3):
    """Piecewise on k = max(1, min(d, ⌊ε/2.5⌋)) of d features, with ε/k each, provides ε-LDP for the record (k = 1)."""
    audited = record_private(sampled_features, Piecewise, epsilon, dimension)
    shared = "one noise for all coordinates: draw *, random in NumpyBackend.uniform, called by Piecewise.draw"
    return replace(
        audited, equivalent_mutants=audited.equivalent_mutants | {shared: ONE_FEATURE}
    )


@audit(
    source=SAMPLED,
    row=USES,
    reading="ε/k for each of k sampled features, k = 2, Three-output",
)
def sampled_two(epsilon=2.0, dimension=3):
    """The three-output mechanism on 2 of 3 sampled features, with ε/2 each, provides ε-LDP for the record.

    The number of sampled features plays no part in the privacy, so k = 2 is audited at an ε at which faults show.
    """
    whole, split = (
        two_of(ThreeOutput, epsilon, dimension, split).variance(np.ones(dimension))[0]
        for split in (0, 1)
    )
    cost = f"the variance of a feature's estimate at x = 1 is {split:.4g} instead of {whole:.4g} (ε = {epsilon:g})"
    return replace(record_private(two_of, ThreeOutput, epsilon, dimension), cost=cost)


@audit(
    source=f"a reading that the papers do not make: {SAMPLED}, with ε for each of k sampled features",
    expect="violation",
    smallest={"dimension": [1, 2, 3]},
)
def sampled_whole_budget(epsilon=2.0, dimension=2):
    """The three-output mechanism on min(d, 2) sampled features, with all of ε for each, provides ε-LDP for the record.

    A sentence such as "k sampled features, scaled by d/k" can be read so. False for k >= 2: the record loses kε, since
    its features lose ε each, and all at once. With one feature the reading is harmless.
    """
    return Audit(
        mechanism=two_of(ThreeOutput, epsilon, dimension, False),
        claim=PureDP(epsilon),
        pairs=Box(-1, 1, dimension),
        calls=20_000,
    )


def two_of(kind, epsilon, dimension, split=True):
    """Return two sampled features, or one where there is no other."""
    return NumericVector(
        kind, epsilon, dimension, sampled=min(dimension, 2), split=split
    )


@audit(source=SAMPLED, row=USES, reading="sampled features, scaled by d/k")
def sampled_unbiased(epsilon=5.0, dimension=3):
    """Two of three sampled features, with ε/2 each, scaled by d/k, estimate every feature without bias."""

    def feature(rescaled):
        return Feature(
            NumericVector(ThreeOutput, epsilon, dimension, sampled=2, rescaled=rescaled)
        )

    return Audit(
        mechanism=feature(True),
        claim=Unbiased(the_number, 0.1),
        inputs={
            f"x = {x:g}": [np.r_[x, np.linspace(-1, 1, dimension - 1)]]
            for x in (-1.0, 0.4, 1.0)
        },
        controls=[feature(False)],
        calls=75_000,
    )
