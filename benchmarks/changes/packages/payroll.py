"""Mean and median salary of a department, in thousands."""

import numpy as np

LOW, HIGH = 0.0, 100.0
CANDIDATES = np.arange(0, 101, 10)


def noisy_total(salaries, epsilon, rng):
    """Return the ε-DP total of salaries, each between LOW and HIGH."""
    clipped = [min(max(salary, LOW), HIGH) for salary in salaries]
    return sum(clipped) + rng.laplace(scale=(HIGH - LOW) / epsilon)


def mean_salary(salaries, rng, epsilon=1.0):
    """Return the ε-DP mean; half of ε for the total, half for the number."""
    total = noisy_total(salaries, epsilon / 2, rng)
    number = len(salaries) + rng.laplace(scale=2 / epsilon)
    return round(total / max(number, 1.0), 2)


def median_salary(salaries, rng, epsilon=1.0):
    """Return the ε-DP median by the exponential mechanism."""
    below = np.array([sum(salary < c for salary in salaries) for c in CANDIDATES])
    above = np.array([sum(salary > c for salary in salaries) for c in CANDIDATES])
    score = -np.abs(below - above)
    weight = np.exp(epsilon * score / 2)
    return float(rng.choice(CANDIDATES, p=weight / weight.sum()))
