"""The field's benchmark: twelve mechanisms at ε₀ = .1 on the pattern pairs, and every false claim among the classics.

Peers' figures were measured on two cores at confidence .95: DP-Sniper (logistic) with 6e7 to 1.2e8 calls in all,
StatDP with 1.5 to 4.2e7 calls to search and 2e7 a side to verify, DP-Auditorium (hockey-stick) with 1.8 to 3.6e7. The
oracle is Clopper–Pearson on the best event at 2e7 draws a side; DP-Auditorium's ratios are to its own oracle at 5e5 a
side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auditdp import ApproxDP, Pair, PureDP, QueryAnswers
from benchmarks.oracle import Event, best_event, true_epsilon
from mechanisms.classic import (
    SVT1,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    ExponentialMechanism,
    Gaussian,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    NoisyMax1,
    NoisyMax3,
    NoisyMax4,
    OneTimeRappor,
    PrefixSum,
    TruncatedGeometric,
)

EPSILON = 0.1


@dataclass(frozen=True)
class Peer:
    """The result of another auditor on a row.

    Attributes:
        bound: Its lower bound on ε; None where it found none.
        ratio: The bound over its oracle's; None where it found none.
        cpu_seconds: User and system time.
    """

    bound: float | None
    ratio: float | None
    cpu_seconds: float


@dataclass(frozen=True)
class Row:
    """One row of the benchmark.

    Attributes:
        name: What the literature calls the mechanism.
        definition: What it computes.
        mechanism: The mechanism.
        adjacency: The neighbours; the pairs are its patterns, in either order.
        oracle: The oracle's bound as measured with the peers, to compare ``best_event`` with.
        peers: Figures of DP-Sniper, StatDP and DP-Auditorium, by name; a peer that was not run is missing.
    """

    name: str
    definition: str
    mechanism: Any
    adjacency: QueryAnswers
    oracle: float
    peers: dict[str, Peer]

    @property
    def pairs(self) -> list[Pair]:
        """The pattern pairs."""
        return self.adjacency.pairs()

    @cached_property
    def true_epsilon(self) -> float:
        """The exact ε over these pairs, from the law."""
        return true_epsilon(self.mechanism, self.pairs)

    @cached_property
    def best_event(self) -> Event:
        """The event with the largest expected bound at 2e7 draws a side, from the law."""
        return best_event(self.mechanism, self.pairs)


def _peers(
    sniper: tuple[float, float, float],
    statdp: tuple[float, float, float] | None,
    auditorium: Any,
) -> dict[str, Peer]:
    found = {
        "DP-Sniper": Peer(*sniper),
        "StatDP": statdp and Peer(*statdp),
        "DP-Auditorium": Peer(*auditorium),
    }
    return {name: peer for name, peer in found.items() if peer is not None}


ONE = QueryAnswers(1)
COUNTS = QueryAnswers(5)
FIVE = QueryAnswers(5, "all")
TEN = QueryAnswers(10, "all")

ROWS = (
    Row(
        "Laplace",
        "x + Lap(1/ε₀)",
        LaplaceSum(EPSILON),
        ONE,
        0.0991,
        _peers((0.0929, 0.94, 21), (0.0994, 1.00, 26), (0.0850, 0.90, 22)),
    ),
    Row(
        "NoisyHist1",
        "q + Lap(1/ε₀)^5",
        NoisyHistogram1(EPSILON),
        COUNTS,
        0.0991,
        _peers((0.0892, 0.90, 27), (0.0993, 1.00, 43), (0.0800, 0.85, 25)),
    ),
    Row(
        "NoisyHist2",
        "q + Lap(ε₀)^5",
        NoisyHistogram2(EPSILON),
        COUNTS,
        9.908,
        _peers((4.601, 0.46, 27), (9.881, 1.00, 52), (6.08, 0.64, 37)),
    ),
    Row(
        "NoisyMax1",
        "argmax(q + Lap(2/ε₀))",
        NoisyMax1(EPSILON),
        FIVE,
        0.0928,
        _peers((0.0862, 0.93, 55), (0.0922, 0.99, 78), (0.0338, 0.41, 31)),
    ),
    Row(
        "NoisyMax3",
        "max(q + Lap(2/ε₀))",
        NoisyMax3(EPSILON),
        FIVE,
        0.2448,
        _peers((0.2391, 0.98, 58), (0.1931, 0.79, 127), (0.130, 0.60, 37)),
    ),
    Row(
        "NoisyMax4",
        "max(q + Exp(2/ε₀))",
        NoisyMax4(EPSILON),
        FIVE,
        2.402,
        _peers((0.345, 0.14, 53), (0.196, 0.08, 122), (None, None, 36)),
    ),
    Row(
        "OneTimeRAPPOR",
        "Bloom filter h = 4, k = 20, permanent randomised response f = .95",
        OneTimeRappor(),
        ONE,
        0.5934,
        _peers((0.5920, 1.00, 50), None, (0.390, 0.70, 46)),
    ),
    Row(
        "SVT1",
        "ρ ~ Lap(2/ε₀), ν ~ Lap(4c/ε₀), stop after c; c = 1, T = .5",
        SVT1(EPSILON, stop=1, threshold=0.5),
        TEN,
        0.0826,
        _peers((0.0790, 0.96, 108), (0.0607, 0.73, 63), (0.0088, 0.17, 34)),
    ),
    Row(
        "SVT4",
        "ρ ~ Lap(4/ε₀), ν ~ Lap(4/(3ε₀)) whatever c, stop after c; c = 1, T = 1",
        SVT4(EPSILON, stop=1, threshold=1.0),
        TEN,
        0.1654,
        _peers((0.1671, 1.01, 98), (0.1641, 0.99, 149), (None, None, 34)),
    ),
    Row(
        "SVT5",
        "ρ ~ Lap(2/ε₀), no query noise, no stop; T = 1",
        SVT5(EPSILON, threshold=1.0),
        TEN,
        12.48,
        _peers((1.756, 0.14, 51), (12.485, 1.00, 141), (None, None, 43)),
    ),
    Row(
        "SVT6",
        "ρ ~ Lap(2/ε₀), ν ~ Lap(2/ε₀), no stop; T = 1",
        SVT6(EPSILON, threshold=1.0),
        TEN,
        0.3684,
        _peers((0.2644, 0.72, 78), (0.3235, 0.88, 275), (0.0975, 0.39, 45)),
    ),
    Row(
        "PrefixSum",
        "prefix sums of q + Lap(1/ε₀)",
        PrefixSum(EPSILON),
        TEN,
        0.9637,
        _peers((0.4998, 0.52, 79), None, (0.305, 0.38, 46)),
    ),
)


@dataclass(frozen=True)
class FalseClaim:
    """A claim that is false for these neighbours, to count the calls that refute it.

    Attributes:
        name: What the literature calls the mechanism, and what is wrong.
        mechanism: The mechanism.
        claim: The claim.
        adjacency: The neighbours; at least one of its patterns breaks the claim.
    """

    name: str
    mechanism: Any
    claim: PureDP | ApproxDP
    adjacency: QueryAnswers

    @property
    def pairs(self) -> list[Pair]:
        """The pattern pairs."""
        return self.adjacency.pairs()

    @cached_property
    def true_epsilon(self) -> float:
        """The exact pure ε over these pairs, from the law; infinite for Gaussian noise and floats."""
        return (
            math.inf
            if isinstance(self.mechanism, Gaussian | NaiveLaplace)
            else true_epsilon(self.mechanism, self.pairs)
        )


_CLAIM = PureDP(EPSILON)

FALSE_CLAIMS = (
    FalseClaim("LaplaceSum, all answers change", LaplaceSum(EPSILON), _CLAIM, FIVE),
    FalseClaim(
        "LaplaceParallel, one copy's claim", LaplaceParallel(EPSILON, 20), _CLAIM, ONE
    ),
    FalseClaim(
        "NoisyHist1, all answers change", NoisyHistogram1(EPSILON), _CLAIM, FIVE
    ),
    FalseClaim("NoisyHist2", NoisyHistogram2(EPSILON), _CLAIM, COUNTS),
    FalseClaim("NoisyMax3", NoisyMax3(EPSILON), _CLAIM, FIVE),
    FalseClaim("NoisyMax4", NoisyMax4(EPSILON), _CLAIM, FIVE),
    FalseClaim("SVT3", SVT3(EPSILON), _CLAIM, TEN),
    FalseClaim("SVT4", SVT4(EPSILON), _CLAIM, TEN),
    FalseClaim("SVT5", SVT5(EPSILON), _CLAIM, TEN),
    FalseClaim("SVT6", SVT6(EPSILON), _CLAIM, TEN),
    FalseClaim("PrefixSum, all answers change", PrefixSum(EPSILON), _CLAIM, TEN),
    FalseClaim(
        "TruncatedGeometric, natural logarithm",
        TruncatedGeometric(EPSILON, 5, "natural"),
        _CLAIM,
        ONE,
    ),
    FalseClaim("OneTimeRAPPOR, half the hashes", OneTimeRappor(), PureDP(0.4), ONE),
    FalseClaim(
        "ExponentialMechanism, half the sensitivity",
        ExponentialMechanism(EPSILON, 0.5),
        _CLAIM,
        FIVE,
    ),
    FalseClaim(
        "Gaussian, σ = 1/ε", Gaussian(1.0, 1e-5, "laplace"), ApproxDP(1.0, 1e-5), ONE
    ),
    FalseClaim("NaiveLaplace, float32", NaiveLaplace(EPSILON), _CLAIM, ONE),
)
"""Without the shuffled batches, whose neighbours are of another kind (``audits/audit_classic.py``)."""
