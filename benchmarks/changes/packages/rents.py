"""The median rent of a quarter, by propose-test-release."""

import math

import numpy as np

DELTA = 1e-3
BOUND = 50
HIGHEST = 2000


def distance(rents):
    """Return how many rents have to be replaced until replacing one more moves the median by more than BOUND."""
    n, middle = len(rents), len(rents) // 2
    padded = np.concatenate([np.zeros(n), np.sort(np.clip(rents, 0, HIGHEST)), np.full(n, HIGHEST)])
    for k in range(n):
        gaps = [padded[n + middle + t] - padded[n + middle + t - k - 1] for t in range(k + 2)]
        if max(gaps) > BOUND:
            return k
    return n


def median_rent(rents, rng, epsilon=1.0):
    """Return the (ε, DELTA)-DP median of rents of which one may be replaced, or None where it is too sensitive."""
    far = distance(rents) + rng.laplace(scale=2 / epsilon)
    if far <= math.log(1 / (2 * DELTA)) * 2 / epsilon:
        return None
    median = np.sort(np.clip(rents, 0, HIGHEST))[len(rents) // 2]
    return float(median + rng.laplace(scale=2 * BOUND / epsilon))
