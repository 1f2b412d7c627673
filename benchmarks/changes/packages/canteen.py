"""What a canteen cooks, by vote."""

import math

DISHES = ("curry", "pasta", "soup")


def choose(votes, rng, epsilon):
    """Return an ε-DP dish by permute-and-flip: one vote replaced moves two numbers by 1."""
    best = max(votes.count(dish) for dish in DISHES)
    for dish in rng.permutation(DISHES):
        if rng.random() < math.exp(epsilon * (votes.count(dish) - best) / 2):
            return str(dish)
    raise AssertionError("the best dish is always taken")


def plan(votes, rng, epsilon=1.0):
    """Return the dish and the portions to cook, ε-DP together for a vote that is replaced."""
    dish = choose(votes, rng, epsilon / 2)
    portions = votes.count(dish) + round(rng.laplace(scale=2 / epsilon))
    return dish, max(portions, 0)
