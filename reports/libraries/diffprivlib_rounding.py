"""A sum of four doubles moves by four times its declared sensitivity. Needs diffprivlib alone."""

import numpy as np
from diffprivlib import tools

low = 2.0**52
first, second = (
    low + np.array([1.0, 1.0, 1.0, 0.0]),
    low + np.array([1.0, 1.0, 0.0, 0.0]),
)
print(
    "sums:",
    int(first.sum() - 2.0**54),
    "and",
    int(second.sum() - 2.0**54),
    "above 2^54; the sensitivity is 1",
)


def frequency(data, n=20_000):
    """Return how often the released sum at ε = 1 is above 2^54."""
    return np.mean(
        [tools.sum(data, epsilon=1, bounds=(low, low + 1)) > 2.0**54 for _ in range(n)]
    )


p, q = frequency(first), frequency(second)
print(
    f"P(above 2^54) = {p:.4f} and {q:.4f}: a factor of {p / q:.1f}; ε = 1 allows 2.718"
)
