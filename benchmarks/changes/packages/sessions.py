"""A daily report of the sessions of a web site."""

LONG = 10


class Spending:
    """What is left of ε."""

    def __init__(self, total):
        self.total = self.left = total

    def spend(self, part):
        """Return a part of ε, and take it off."""
        if part > self.left + 1e-9:
            raise ValueError("nothing is left")
        self.left -= part
        return part


def noisy(count, epsilon, rng):
    """Return a count that one session moves by 1, ε-DP."""
    return round(count + rng.laplace(scale=1 / epsilon), 1)


def report(sessions, rng, epsilon=1.0):
    """Return the ε-DP report of the lengths of sessions, in minutes."""
    budget = Spending(epsilon)
    found = {"sessions": noisy(len(sessions), budget.spend(0.4 * epsilon), rng)}
    found["long"] = noisy(sum(s > LONG for s in sessions), budget.spend(0.4 * epsilon), rng)
    if found["sessions"] > 4:
        found["short"] = noisy(sum(s < 1 for s in sessions), budget.spend(0.2 * epsilon), rng)
    return found
