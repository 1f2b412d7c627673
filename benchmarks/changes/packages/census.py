"""A census table of three levels: the country, its regions, their districts."""

import math

REGIONS = {"north": ("fjord", "moor"), "south": ("bay", "hills", "plain")}
SHARES = {"country": 0.2, "region": 0.3, "district": 0.5}


def geometric(epsilon, rng):
    """Return an integer of probability proportional to exp(-epsilon times its absolute value)."""
    p = 1 - math.exp(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def table(people, rng, epsilon=1.0):
    """Return the ε-DP table of the people, each given by a district; districts are moved to add up to the country."""

    def noisy(count, level):
        return count + geometric(SHARES[level] * epsilon, rng)

    country = noisy(len(people), "country")
    regions, districts = {}, {}
    for region, members in REGIONS.items():
        regions[region] = noisy(sum(person in members for person in people), "region")
        for district in members:
            count = people.count(district)
            districts[district] = noisy(count, "district")
    missing = (country - sum(districts.values())) / len(districts)
    adjusted = {district: count + missing for district, count in districts.items()}
    return {"country": country, "regions": regions, "districts": adjusted}
