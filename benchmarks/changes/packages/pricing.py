"""A posted price from bids."""

import math

import numpy as np

HIGHEST = 10
PRICES = list(range(1, HIGHEST + 1))


def revenues(bids, prices):
    """Return what each price would have earned."""
    return np.array([price * sum(bid >= price for bid in bids) for price in prices], dtype=float)


def posted_price(bids, rng, epsilon=1.0):
    """Return the ε-DP price of largest revenue, by the exponential mechanism."""
    prices = PRICES
    score = revenues(bids, prices)
    weight = np.exp(epsilon * (score - score.max()) / (2 * HIGHEST))
    return int(rng.choice(prices, p=weight / weight.sum()))


def two_sided_geometric(alpha, rng):
    """Return an integer with probability proportional to alpha to the power of its absolute value."""
    return int(rng.geometric(1 - alpha)) - int(rng.geometric(1 - alpha))


def sale(bids, rng, epsilon=1.0):
    """Return price and number of bids, ε-DP together."""
    price = posted_price(bids, rng, epsilon / 2)
    number = len(bids) + two_sided_geometric(math.exp(-epsilon / 2), rng)
    return price, number
