"""A line through points in the unit square, from noisy sums."""


def unit(value):
    """Return a value moved into [-1, 1]."""
    return max(-1.0, min(1.0, value))


def line(points, rng, epsilon=1.0):
    """Return slope and intercept, ε-DP: five sums that one point moves by at most 1, each with a fifth of ε."""
    points = [(unit(x), unit(y)) for x, y in points]
    scale = 5 / epsilon

    def noisy(values):
        return sum(values) + rng.laplace(scale=scale)

    n = max(noisy(1 for _ in points), 1.0)
    x, y = noisy(x for x, _ in points), noisy(y for _, y in points)
    xx, xy = noisy(x * x for x, _ in points), noisy(x * y for x, y in points)
    slope = (n * xy - x * y) / max(n * xx - x * x, 1.0)
    intercept = (y - slope * x) / n
    return {"slope": slope, "intercept": intercept}
