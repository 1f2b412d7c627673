"""Weekly alarms and waiting times of a clinic."""

import numpy as np

WEEKS = 6
BUCKETS = ("short", "medium", "long")


def first_alarm(visits, rng, epsilon=1.0, threshold=3):
    """Return the first week with more visits than the threshold, -1 for none: the sparse vector technique, ε-DP."""
    counts = np.bincount(np.array(visits, dtype=int), minlength=WEEKS)[:WEEKS]
    level = threshold + rng.laplace(scale=2 / epsilon)
    for week, count in enumerate(counts):
        noisy = count + rng.laplace(scale=4 / epsilon)
        if noisy >= level:
            return week
    return -1


def bucket_of(minutes):
    """Return the name of a waiting time."""
    return BUCKETS[0] if minutes < 15 else BUCKETS[1] if minutes < 60 else BUCKETS[2]


def waiting_times(minutes, rng, epsilon=1.0):
    """Return the ε-DP histogram of waiting times."""
    buckets = [bucket_of(each) for each in minutes]
    found = {}
    for bucket in BUCKETS:
        found[bucket] = max(0.0, buckets.count(bucket) + rng.laplace(scale=1 / epsilon))
    return found
