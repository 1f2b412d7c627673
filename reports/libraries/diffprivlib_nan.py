"""nanmean, nanvar, nanstd and nansum calibrate their noise as if nothing were missing. Needs diffprivlib alone."""

import warnings

import numpy as np
from diffprivlib import tools

warnings.simplefilter("ignore")
missing = [np.nan] * 18
first, second = np.array([*missing, 0.0, 1.0]), np.array([*missing, 0.0, 0.0])


def frequency(event, data, name, n=500, **parameters):
    """Return how often a release of ``data`` at ε = 1 is in an event."""
    return np.mean(
        [event(getattr(tools, name)(data, epsilon=1, **parameters)) for _ in range(n)]
    )


for name, event in (
    ("nanmean", lambda x: x > 0.3),
    ("nanvar", lambda x: x > 0.15),
    ("nanstd", lambda x: x > 0.4),
):
    p, q = (frequency(event, data, name, bounds=(0, 1)) for data in (first, second))
    print(
        f"{name}: P(event) = {p:.4f} and {q:.4f}, a factor of {p / max(q, 1 / 500):.1f} where ε = 1 allows 2.718"
    )
with_number, without = np.array([11.0, 11.0, 11.0]), np.array([11.0, 11.0, np.nan])
p, q = (
    frequency(lambda x: x == 30, data, "nansum", bounds=(10, 11))
    for data in (without, with_number)
)
print(
    f"nansum, bounds (10, 11): P(30) = {p:.4f} and {q:.4f}, a factor of {p / max(q, 1 / 500):.1f}"
)
