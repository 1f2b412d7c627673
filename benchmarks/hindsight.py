"""Peers of fixed sample size beside the game: how many calls each needs if somebody knew the best number beforehand.

A peer gets independent outputs of both inputs, half of the calls each, and refutes where its lower bound on ε at confidence
1 - ALPHA is above the claim. All games share one number of calls, the best in hindsight: the k-th number of what is
returned is the smallest of ``BUDGETS`` with which k games or more refute, so that its median and its 90 % quantile
are budgets with which so many do. jax-privacy's Split takes outputs that are single numbers as scores. privacy-estimates
takes counts of one event, and is given the best one of the true likelihood ratio for that budget, which nobody knows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.mechanism.protocol import Array
from auditdp.numerics.binomial import lower_limit, upper_limit
from benchmarks.parts import ALPHA, Rng

BUDGETS = 0.5 * 1.25 ** np.arange(14)
"""Calls over the limit for sequential tests: .5 to 9.1."""
THRESHOLDS = 400
SPLIT, BEST = "jax-privacy, Split", "privacy-estimates, best event"

Draw = Callable[[int, Rng], tuple[Array, Array]]
"""Draws outputs of either input, as numbers that are larger if they resemble the first.
"""
Bound = Callable[[Array, Array], float]


def split(first: Array, second: Array, delta: float) -> float:
    """Return jax-privacy's bound from scores, by a threshold that is chosen on a part of them."""
    auditing: Any = importlib.import_module("jax_privacy.auditing")
    auditor = auditing.CanaryScoreAuditor(first, second)
    return float(
        auditor.epsilon_clopper_pearson(
            ALPHA, delta, threshold_strategy=auditing.Split(seed=0)
        )
    )


def best_event(
    first: Array, second: Array, delta: float, *, known: tuple[Array, Array]
) -> float:
    """Return privacy-estimates' bound from the best threshold, known from many draws."""
    package: Any = importlib.import_module("privacy_estimates")
    n = len(first)
    thresholds = np.unique(
        np.quantile(known[0], np.linspace(0, 1, THRESHOLDS), method="inverted_cdf")
    )
    p, q = (
        1 - np.searchsorted(np.sort(odds), thresholds) / len(odds) for odds in known
    )
    ratios = (lower_limit(n * p, n, ALPHA / 2) - delta) / upper_limit(
        n * q, n, ALPHA / 2
    )
    threshold = thresholds[int(np.argmax(ratios))]
    right, wrong = (int((odds >= threshold).sum()) for odds in (first, second))
    counts = package.AttackResults(FN=n - right, FP=wrong, TN=n - wrong, TP=right)
    return float(package.compute_eps_lo(counts, delta, ALPHA, "beta"))


def calls_of(
    bound: Callable[[Array, Array], float],
    draw: Draw,
    epsilon: float,
    limit: float,
    rngs: Sequence[Rng],
) -> list[int | None]:
    """Return the smallest budgets with which one game or more refutes, two or more, and so on; None beyond the last."""
    budgets = [2 * max(10, round(times * limit / 2)) for times in BUDGETS]
    refuted = np.zeros((len(rngs), len(budgets)), dtype=bool)
    for game, rng in enumerate(rngs):
        first, second = draw(budgets[-1] // 2, rng)
        for k, calls in enumerate(budgets):
            refuted[game, k] = (
                bound(first[: calls // 2], second[: calls // 2]) > epsilon
            )
    many = refuted.sum(axis=0)
    return [
        next((b for b, n in zip(budgets, many, strict=True) if n >= k), None)
        for k in range(1, len(rngs) + 1)
    ]
