"""GaussianNB: counts add up to the number of records, and sums have noise for upper − lower. Needs diffprivlib alone."""

import warnings

import numpy as np
from diffprivlib.models import GaussianNB

warnings.simplefilter("ignore")


def fitted(x, y, bounds):
    """Return a model at ε = 1."""
    return GaussianNB(epsilon=1, bounds=bounds).fit(np.array(x, float)[:, None], y)


sums = [
    {
        fitted([0] * n, [0, 1] * (n // 2) + [0] * (n % 2), (0, 1)).class_count_.sum()
        for _ in range(50)
    }
    for n in (4, 5)
]
print(
    "the counts of the classes add up to",
    sums[0],
    "for 4 records, and to",
    sums[1],
    "for 5",
)


def frequency(labels, n=1_500):
    """Return how often class 1 is said to have 3 records of mean 100."""
    found = 0
    for _ in range(n):
        model = fitted([100] * 7, labels, (100, 101))
        found += model.class_count_[1] == 3 and model.theta_[1, 0] == 100
    return found / n


p, q = frequency([0, 0, 0, 0, 1, 1, 1]), frequency([0, 0, 0, 1, 1, 1, 1])
print(
    f"P(3 records of mean 100) = {p:.4f} and {q:.4f} where one label is replaced: ε = 1 allows a factor of 2.718"
)
