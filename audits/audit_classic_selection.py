"""The largest of noisy answers: report noisy max and the exponential mechanism.

True claims are certified on all pairs of small counts. The exact ε and where it comes from is said in each docstring; why
adjacency decides, and at which ε a claim is audited, in ``audit_classic.py``.
"""

import numpy as np

from auditdp import Audit, Pair, PureDP, QueryAnswers, audit
from mechanisms.classic import (
    ExponentialMechanism,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
)

STATDP = "Ding et al. 2018 (StatDP), arXiv:1805.10277"
DWORK_ROTH = "Dwork & Roth 2014, The Algorithmic Foundations of Differential Privacy"
ONE_SIDED = (
    "whoever wins, the others' noise given, wins with P(N > t), and t moves by at most what the claim allows: one-sided and "
    "two-sided noise of this scale lose at most the same factor"
)
LAPLACE_EQUIVALENTS = {"noise left out: draw ?, bytes in *": ONE_SIDED}


def telling(length, change):
    """Return few pairs, on which a faulty selection loses most."""
    first, *others = np.eye(length)
    ones, rising = np.ones(length), np.arange(length, dtype=float)
    if change == "one":
        return [
            *(Pair(ones, ones - step, "one below") for step in (first, *others)),
            Pair(ones - first, ones - first - others[-1], "first and last below"),
            Pair(rising, rising - others[-1], "rising"),
            Pair(ones, ones + first, "one above"),
        ]
    below, above = (
        np.r_[0, np.ones(length - 2), 2],
        np.r_[1, 0, np.full(length - 2, 2.0)],
    )
    return [
        Pair(ones, 2 * ones - 2 * first, "one below, rest above"),
        Pair(
            ones,
            np.repeat([0.0, 2.0], [length // 2, length - length // 2]),
            "half below, half above",
        ),
        Pair(below, np.r_[1, np.full(length - 2, 2.0), 1], "middle above"),
        Pair(above, np.r_[2, np.ones(length - 1)], "end below"),
        Pair(
            np.r_[2, 0, np.full(length - 2, 2.0)],
            np.r_[1, 1, np.full(length - 2, 2.0)],
            "second above",
        ),
    ]


@audit(source=f"{STATDP}, Algorithm 5")
def noisy_max1(epsilon=0.9, queries=5):
    """The index of the largest answer with Lap(2/ε) provides ε-DP where all answers may change.

    True: less than ε.

    On the pattern pairs of five answers it is .0946 at ε = .1; ε is approached as answers move apart.
    """
    return Audit(
        mechanism=NoisyMax1(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all", largest=2),
        controls=[NoisyMax1(20 * epsilon)],
        play=telling(queries, "all"),
        calls=500_000,
        equivalent_mutants=LAPLACE_EQUIVALENTS,
    )


@audit(source=f"{DWORK_ROTH}, Section 3.3, Claim 3.9")
def noisy_max1_of_counts(epsilon=0.6, queries=3):
    """The index of the largest count with Lap(1/ε) provides ε-DP where one count changes.

    Half the noise of ``noisy_max1`` is enough because answers that do not change cannot move the other way.
    """
    return Audit(
        mechanism=NoisyMax1(2 * epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, largest=2),
        controls=[NoisyMax1(30 * epsilon)],
        play=telling(queries, "one"),
        calls=1_000_000,
        equivalent_mutants=LAPLACE_EQUIVALENTS,
    )


@audit(source=f"{STATDP}, Algorithm 6")
def noisy_max2(epsilon=0.9, queries=3):
    """The index of the largest answer with Exp(2/ε) provides ε-DP where all answers may change.

    True, and exactly ε.

    Attained where the answers below the largest rise by 1 while the largest falls by 1.
    """
    return Audit(
        mechanism=NoisyMax2(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all", largest=2),
        controls=[NoisyMax2(20 * epsilon)],
        play=telling(queries, "all"),
        calls=500_000,
    )


@audit(source=f"{DWORK_ROTH}, Section 3.4, for one-sided exponential noise")
def noisy_max2_of_counts(epsilon=0.6, queries=3):
    """The index of the largest count with Exp(1/ε) provides ε-DP where one count changes.

    True, and exactly ε.
    """
    return Audit(
        mechanism=NoisyMax2(2 * epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, largest=2),
        controls=[NoisyMax2(30 * epsilon)],
        play=telling(queries, "one"),
        calls=1_000_000,
    )


@audit(source=f"{STATDP}, Algorithm 7", expect="violation")
def noisy_max3(epsilon=1.0, queries=5):
    """The largest answer with Lap(2/ε), itself, provides ε-DP where all answers may change.

    False: kε/2.

    A maximum below all answers says that k noisy answers were low, and each costs ε/2.
    """
    return Audit(
        mechanism=NoisyMax3(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
        calls=50_000,
    )


@audit(source=f"{STATDP}, Algorithm 8", expect="violation")
def noisy_max4(epsilon=1.0, queries=5):
    """The largest answer with Exp(2/ε), itself, provides ε-DP.

    False for every ε: it is never below the largest answer.

    How often that shows depends on ε: with probability (1−e^(−ε/2))^k, 3e-7 at ε = .1 and .009 at ε = 1.
    """
    return Audit(
        mechanism=NoisyMax4(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
        calls=50_000,
    )


@audit(source="McSherry & Talwar 2007, Theorem 6")
def exponential_mechanism(epsilon=0.9, queries=3):
    """Index i with probability ∝ exp(ε u_i/2) provides ε-DP where all utilities may change by 1.

    True: less than ε.
    """
    return Audit(
        mechanism=ExponentialMechanism(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all", largest=2),
        controls=[ExponentialMechanism(20 * epsilon)],
    )


@audit(
    source="McSherry & Talwar 2007, Theorem 6, with a sensitivity of 1/2",
    expect="violation",
)
def exponential_mechanism_wrong_sensitivity(epsilon=1.0, sensitivity=0.5, queries=5):
    """Index i with probability ∝ exp(ε u_i) provides ε-DP where all utilities may change by 1.

    False: up to 2ε.
    """
    return Audit(
        mechanism=ExponentialMechanism(epsilon, sensitivity),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )
