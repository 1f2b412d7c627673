"""How long patients stay in a hospital."""

import math

LONGEST = 30


def noisy(value, moves, epsilon, rng):
    """Return a value that one patient moves by so much, ε-DP."""
    return value + rng.laplace(scale=moves / epsilon)


def summary(days, rng, epsilon=1.0):
    """Return mean and deviation of the days, ε-DP together: number, sum and squares have a third of ε each."""
    days = [min(day, LONGEST) for day in days]
    share = epsilon / 3
    number = max(noisy(len(days), 1, share, rng), 1.0)
    mean = noisy(sum(days), LONGEST, share, rng) / number
    squares = noisy(sum(day**2 for day in days), LONGEST**2, share, rng)
    return {"mean": mean, "deviation": math.sqrt(max(squares / number - mean**2, 0.0))}
