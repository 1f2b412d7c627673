"""The median of a long array raises for one of two neighbours and never for the other. Needs diffprivlib alone."""

import warnings

import numpy as np
from diffprivlib import tools

warnings.simplefilter("ignore")


def raises(data, n=200):
    """Return how often the median at ε = 1 raises RuntimeError."""
    count = 0
    for _ in range(n):
        try:
            tools.median(data, epsilon=1, bounds=(0, 1))
        except RuntimeError:
            count += 1
    return count


zeros = np.zeros(2982)
other = zeros.copy()
other[-1] = 1
print(
    f"2,982 zeros: {raises(zeros)} of 200 calls raise; with one of them replaced by 1: {raises(other)} of 200"
)
