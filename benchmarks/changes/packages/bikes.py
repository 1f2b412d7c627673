"""Bike trips by station."""

STATIONS = ("harbour", "market", "park")
MOST = 3


def counted(rider):
    """Return the trips of a rider that count, MOST at most."""
    return rider[:MOST]


def departures(riders, rng, epsilon=1.0):
    """Return the ε-DP numbers of trips by station, and of those before noon; a half of ε each."""
    trips = [trip for rider in riders for trip in counted(rider)]
    scale = 2 * MOST / epsilon
    found = {}
    for station in STATIONS:
        found[station] = sum(where == station for where, _ in trips) + rng.laplace(scale=scale)
    before_noon = sum(hour < 12 for _, hour in trips)
    found["before noon"] = before_noon + rng.laplace(scale=scale)
    return found
