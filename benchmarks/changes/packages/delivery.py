"""Within how many minutes most deliveries arrive."""

STEPS = 5


def quantile(minutes, rng, epsilon=1.0, q=0.9):
    """Return the ε-DP q-quantile of minutes between 0 and 128, by bisection with noisy numbers."""
    low, high = 0.0, 128.0
    scale = (STEPS + 1) / epsilon
    total = len(minutes) + rng.laplace(scale=scale)
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = sum(each <= middle for each in minutes) + rng.laplace(scale=scale)
        if below < q * total:
            low = middle
        else:
            high = middle
    return (low + high) / 2
