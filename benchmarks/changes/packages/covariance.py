"""The second moments of two measurements."""

import math

import numpy as np

DELTA = 1e-5


def within(row):
    """Return a row of Euclidean norm at most 1."""
    return row / max(math.hypot(*row), 1.0)


def sigma(epsilon, delta):
    """Return the standard deviation of the Gaussian mechanism, of sensitivity 1 (Dwork & Roth 2014, Theorem A.1)."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def moments(rows, rng, epsilon=0.9):
    """Return the noisy second moments [xx, xy, yy], (ε, δ)-DP."""
    rows = np.array([within(np.array(row, dtype=float)) for row in rows]).reshape(-1, 2)
    total = rows.T @ rows
    noise = rng.normal(scale=sigma(epsilon, DELTA), size=3)
    return total[np.triu_indices(2)] + noise
