"""KMeans: the attribute inertia_ has no noise. Needs diffprivlib alone."""

import warnings

import numpy as np
from diffprivlib.models import KMeans

warnings.simplefilter("ignore")
points = np.array([[0.0], [0.0], [1.0], [1.0], [0.0]])
other = points.copy()
other[-1] = 1.0


def distance(data, centres):
    """Return the sum of squared distances to the nearest centres."""
    return ((data[:, None, 0] - centres[None, :, 0]) ** 2).min(axis=1).sum()


for data in (points, other):
    matches = []
    for _ in range(50):
        model = KMeans(2, epsilon=1, bounds=(0, 1)).fit(data)
        matches.append(
            [
                abs(model.inertia_ - distance(guess, model.cluster_centers_)) < 1e-9
                for guess in (points, other)
            ]
        )
    print(
        "inertia_ is that of the first input, of the second:", np.mean(matches, axis=0)
    )
