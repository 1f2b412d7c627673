"""Purchases in the two arms of an experiment."""

MOST = 5
SIGMA_SUM, SIGMA_USERS = MOST / 0.8, 1 / 0.6


def purchases(users, arm):
    """Return the purchases of an arm, at most MOST of each user."""
    return sum(min(user["purchases"], MOST) for user in users if user["arm"] == arm)


def summary(users, rng):
    """Return sums and number, 1-GDP together: 0.8 and 0.6."""
    a = purchases(users, "a") + rng.normal(scale=SIGMA_SUM)
    b = purchases(users, "b") + rng.normal(scale=SIGMA_SUM)
    number = len(users) + rng.normal(scale=SIGMA_USERS)
    return {"a": a, "b": b, "users": number}
