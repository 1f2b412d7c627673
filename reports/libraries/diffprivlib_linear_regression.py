"""LinearRegression uses the sum of x² without noise where the lower bound of x is 0. Needs diffprivlib alone."""

import warnings

import numpy as np
from diffprivlib.models import LinearRegression

warnings.simplefilter("ignore")


def frequency(x, n=1_000):
    """Return how often the coefficient at ε = 1 lies within ±1."""
    model = LinearRegression(
        epsilon=1, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False
    )
    return np.mean(
        [
            abs(model.fit(np.array(x)[:, None], np.array([0.5, 0.5])).coef_[0]) < 1
            for _ in range(n)
        ]
    )


p, q = frequency([1.0, 100.0]), frequency([1.0, 0.0])
print(
    f"P(|coefficient| < 1) = {p:.4f} and {q:.4f}: a factor of {p / max(q, 1e-3):.0f}; ε = 1 allows 2.718"
)
