"""Titles that a library lent to many readers."""

import math

DELTA = 1e-5
EACH = 2


def popular(readers, rng, epsilon=1.0):
    """Return titles with noisy numbers of readers, (ε, DELTA)-DP for a reader, of whose titles EACH count."""
    lent = {}
    for titles in readers:
        for title in sorted(set(titles))[:EACH]:
            lent[title] = lent.get(title, 0) + 1
    scale = EACH / epsilon
    threshold = 1 + scale * math.log(EACH / (2 * DELTA))
    released = {}
    for title in sorted(lent):
        noisy = lent[title] + rng.laplace(scale=scale)
        if noisy > threshold:
            released[title] = round(noisy)
    return released
