"""A peer: the sequential kernel test of González, Dulce-Rubio, Ramdas & Ribero (2025, arXiv:2509.07055v1), from its text.

One output of either input is taken at a time. With g_t = k(x_t, ·) - k(y_t, ·), the wealth is multiplied by
1 + λ_t (<f_t, g_t> - τ), where f_t is in the unit ball of the kernel's space (online gradient ascent) and λ_t is a fraction
(online Newton steps), both from earlier outputs. Where every statement (ε, δ) of a claim holds, <f, g> is expected to be at
most the maximum mean discrepancy, which is at most τ = √2 (e^ε - 1 + 2 δ)/(e^ε + 1) for each of them (its Theorem 3.1), so
the smallest is taken. The bandwidth is the median distance among the first 20 outputs of either input, which are not bet on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from auditdp import Pair
from auditdp.claims.claim import Claim
from auditdp.numerics.arrays import Floats

LOOKED_AT = 20
NEWTON = 2 / (2 - math.log(3))
LARGEST_SLOPE = math.sqrt(2)
"""Norm of g: kernels here are between 0 and 1."""


def threshold(claim: Claim) -> float:
    """Return the largest maximum mean discrepancy that a claim allows."""
    epsilon, delta = claim.statements().T
    return float(
        np.min(
            math.sqrt(2) * (np.tanh(epsilon / 2) + 2 * delta / (np.exp(epsilon) + 1))
        )
    )


def refuted_at(
    mechanism: Any,
    claim: Claim,
    pair: Pair,
    *,
    calls: int,
    alpha: float,
    rng: np.random.Generator,
) -> int | None:
    """Return after how many calls the test refutes a claim about single numbers, None if not within ``calls``."""
    steps, tau = calls // 2, threshold(claim)
    x, y = (
        np.asarray(mechanism(data, steps, rng=rng), float).ravel()
        for data in (pair.data, pair.neighbour)
    )
    # Most distances of bits may be 0.
    width = (
        float(np.median(pdist(np.concatenate([x[:LOOKED_AT], y[:LOOKED_AT]])[:, None])))
        or 1.0
    )

    def kernel(first: Floats, second: float) -> Floats:
        return np.asarray(np.exp(-np.square((first - second) / width) / 2))

    weights = np.zeros(steps)
    squares, norm, wealth, fraction, curvature = 0.0, 0.0, 0.0, 0.0, 1.0
    most = 1 / (2 * (LARGEST_SLOPE + tau))
    for t in range(LOOKED_AT, steps):
        past = slice(LOOKED_AT, t)
        products = (
            kernel(x[past], x[t])
            - kernel(x[past], y[t])
            + kernel(y[past], y[t])
            - kernel(y[past], x[t])
        )
        won = float(weights[past] @ products)
        own = 2 * (1 - float(kernel(x[t : t + 1], y[t])[0]))
        payoff = won - tau
        wealth += math.log1p(fraction * payoff)
        if wealth >= math.log(1 / alpha):
            return 2 * (t + 1)
        slope = -payoff / (1 + fraction * payoff)
        curvature += slope**2
        fraction = min(max(fraction - NEWTON * slope / curvature, 0.0), most)
        squares += own
        rate = 1 / (2 * math.sqrt(squares)) if squares else 0.0
        weights[t] = rate
        norm = math.sqrt(max(norm**2 + 2 * rate * won + rate**2 * own, 0.0))
        if norm > 1:
            weights[LOOKED_AT : t + 1] /= norm
            norm = 1.0
    return None
