"""histogram takes weights and adds noise for a sensitivity of 1. Needs diffprivlib alone."""

import numpy as np
from diffprivlib import tools


def frequency(numbers, weights, n=20_000):
    """Return how often the first bin is 5 or more at ε = 1."""
    made = (
        tools.histogram(numbers, epsilon=1, bins=2, range=(0, 1), weights=weights)[0]
        for _ in range(n)
    )
    return np.mean([counts[0] >= 5 for counts in made])


p, q = frequency([0.2, 0.3], [1, 5]), frequency([0.2], [1])
print(
    f"P(first bin >= 5) = {p:.4f} with a number of weight 5, {q:.4f} without: a factor of {p / q:.1f}; ε = 1 allows 2.718"
)
