"""LogisticRegression regularises by norm/4 where norm²/4 is needed, and raises where a class has no record.

Needs diffprivlib alone.
"""

import warnings

import numpy as np
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")


def frequency(x, norm=1000.0, n=1_500):
    """Return how often the coefficient at ε = 1 lies within ±2/norm."""
    model = LogisticRegression(epsilon=1, data_norm=norm, fit_intercept=False)
    return np.mean(
        [
            abs(model.fit(np.array([[0.0], [x]]), [0, 1]).coef_[0, 0]) < 2 / norm
            for _ in range(n)
        ]
    )


p, q = frequency(1000.0), frequency(0.0)
print(
    f"P(|coefficient| < 2/norm) = {p:.4f} and {q:.4f}: a factor of {p / max(q, 1 / 1_500):.0f}; ε = 1 allows 2.718"
)
for labels in ([0, 1], [0, 0]):
    try:
        LogisticRegression(epsilon=1, data_norm=1.0, fit_intercept=False).fit(
            [[0.0], [1.0]], labels
        )
        print("labels", labels, "fit")
    except ValueError as error:
        print("labels", labels, "raise ValueError:", error)
