"""Seventy-three changes of twelve further packages, as replacements of text.

They were written before any of them was audited, as teams make them. For each that is worse there are neighbours that the
changed code tells apart better than the claim allows; each that is harmless keeps the claim.
"""

_LENT = """        for title in sorted(set(titles))[:EACH]:
            lent[title] = lent.get(title, 0) + 1
"""
_DRAWN = """    for title in sorted(lent):
        noisy = lent[title] + rng.laplace(scale=scale)
"""
_STATIONS = """    for station in STATIONS:
        found[station] = sum(where == station for where, _ in trips) + rng.laplace(scale=scale)
"""
_COMPARED = "        if count + rng.laplace(scale=4 * MOST / finding) < level:\n            continue\n"
_LEVEL = """        level = threshold + rng.laplace(scale=2 * MOST / finding)
        if len"""
_NEAREST = "np.array([np.argmin([np.hypot(*(point - centre)) for centre in found]) for point in points])"
_NUMBER = "            number = len(members)"
_FLIPS = """    best = max(votes.count(dish) for dish in DISHES)
    for dish in rng.permutation(DISHES):
        if rng.random() < math.exp(epsilon * (votes.count(dish) - best) / 2):
            return str(dish)
    raise AssertionError("the best dish is always taken")
"""
_UPDATES = """        for client in clients:
            total = total + clipped(np.array(client) - model)
"""
_SUMS = """    for product in PRICES:
        total = sum(each[product] for each in capped)
        found[product] = total + rng.laplace(scale=CAP / (0.8 * epsilon))
"""
_WAVES = """    waves = np.zeros(HOURS // 2 + 1, dtype=complex)
    for household in households:
        load = np.array(household, dtype=float)
        load = load / max(1.0, float(np.linalg.norm(load)))
        waves = waves + np.fft.rfft(load, norm="ortho")
"""
_RELEASED = "    kept[:KEPT] = waves[:KEPT] + noise\n"
_REFUSED = """        return None
    median"""

WORSE = (
    ("bikes", "all trips count", "return rider[:MOST]", "return rider"),
    ("bikes", "ε is not split", "scale = 2 * MOST / epsilon", "scale = MOST / epsilon"),
    (
        "bikes",
        "quiet stations are left out",
        "for station in STATIONS:",
        "for station in sorted({where for where, _ in trips}):",
    ),
    (
        "bikes",
        "retried until positive",
        '    found["before noon"] = before_noon + rng.laplace(scale=scale)\n',
        '    found["before noon"] = -1\n    while found["before noon"] < 0:\n'
        '        found["before noon"] = before_noon + rng.laplace(scale=scale)\n',
    ),
    ("loans", "numbers without noise", "= round(noisy)", "= lent[title]"),
    (
        "loans",
        "δ forgotten",
        "threshold = 1 + scale * math.log(EACH / (2 * DELTA))",
        "threshold = 3",
    ),
    (
        "loans",
        "all titles of a reader count",
        "sorted(set(titles))[:EACH]",
        "sorted(set(titles))",
    ),
    (
        "loans",
        "most lent first",
        "in sorted(lent):",
        "in sorted(lent, key=lent.get, reverse=True):",
    ),
    (
        "census",
        "shares above one",
        '"region": 0.3, "district": 0.5',
        '"region": 0.5, "district": 1.0',
    ),
    (
        "census",
        "the country is exact",
        'country = noisy(len(people), "country")',
        "country = len(people)",
    ),
    (
        "census",
        "empty districts stay empty",
        'districts[district] = noisy(count, "district")',
        'districts[district] = noisy(count, "district") if count else 0',
    ),
    (
        "census",
        "adds up to the true number",
        "missing = (country -",
        "missing = (len(people) -",
    ),
    (
        "census",
        "regions are drawn again until positive",
        '        regions[region] = noisy(sum(person in members for person in people), "region")\n',
        "        regions[region] = -1\n        while regions[region] < 0:\n"
        '            regions[region] = noisy(sum(person in members for person in people), "region")\n',
    ),
    (
        "alerts",
        "compared without noise",
        "if count + rng.laplace(scale=4 * MOST / finding) < level",
        "if count < level",
    ),
    (
        "alerts",
        "never stops",
        "        if len(found) == MOST:\n            break\n",
        "",
    ),
    (
        "alerts",
        "published without noise",
        "= count + rng.laplace(scale=MOST / publishing)",
        "= count",
    ),
    (
        "alerts",
        "the worst day where there is none",
        "    return found\n",
        "    return found or {max(range(DAYS), key=counts.__getitem__): None}\n",
    ),
    (
        "clusters",
        "each round has all of ε",
        "share = epsilon / ROUNDS",
        "share = epsilon",
    ),
    (
        "clusters",
        "points are not clipped",
        "np.clip(np.array(points, dtype=float).reshape(-1, 2), -1, 1)",
        "np.array(points, dtype=float).reshape(-1, 2)",
    ),
    (
        "clusters",
        "starts at two of the points",
        "found = START.copy()",
        "found = points[:2].copy() if len(points) >= 2 else START.copy()",
    ),
    (
        "clusters",
        "an empty cluster stays",
        _NUMBER,
        f"            if len(members) == 0:\n                continue\n{_NUMBER}",
    ),
    ("canteen", "exponent without its half", "- best) / 2)", "- best))"),
    (
        "canteen",
        "most votes first",
        "rng.permutation(DISHES)",
        "sorted(DISHES, key=votes.count, reverse=True)",
    ),
    (
        "canteen",
        "dishes that were voted for",
        "rng.permutation(DISHES)",
        "rng.permutation(sorted(set(votes)))",
    ),
    (
        "canteen",
        "enough for all votes",
        "max(portions, 0)",
        "max(portions, votes.count(dish))",
    ),
    (
        "canteen",
        "half the noise",
        "rng.laplace(scale=2 / epsilon)",
        "rng.laplace(scale=1 / epsilon)",
    ),
    (
        "delivery",
        "each step has all of ε",
        "for each in minutes) + rng.laplace(scale=scale)",
        "for each in minutes) + rng.laplace(scale=1 / epsilon)",
    ),
    (
        "delivery",
        "the range of the data",
        "low, high = 0.0, 128.0",
        "low, high = float(min(minutes, default=0)), float(max(minutes, default=128))",
    ),
    (
        "delivery",
        "one noise for all steps",
        "for each in minutes) + rng.laplace(scale=scale)",
        "for each in minutes) + total - len(minutes)",
    ),
    (
        "delivery",
        "a time that was measured",
        "    return (low + high) / 2\n",
        "    return min(minutes, key=lambda each: abs(each - (low + high) / 2), default=high)\n",
    ),
    (
        "federated",
        "clipped after the sum",
        _UPDATES,
        "        for client in clients:\n            total = total + np.array(client) - model\n"
        "        total = clipped(total)\n",
    ),
    (
        "federated",
        "rounds do not count",
        "math.sqrt(ROUNDS / (2 * rho))",
        "math.sqrt(1 / (2 * rho))",
    ),
    (
        "federated",
        "divided by the true number",
        "size=DIMENSION)) / size",
        "size=DIMENSION)) / max(len(clients), 1)",
    ),
    (
        "federated",
        "each number is clipped",
        "return update * min(1.0, CLIP / max(float(np.linalg.norm(update)), 1e-12))",
        "return np.clip(update, -CLIP, CLIP)",
    ),
    (
        "federated",
        "a seed for reproducible models",
        "    model = np.zeros(DIMENSION)\n",
        "    model = np.zeros(DIMENSION)\n    rng = np.random.default_rng(42)\n",
    ),
    ("baskets", "no cap", "min(1.0, CAP / max(sum(paid.values()), 1))", "1.0"),
    ("baskets", "shares above one", "CAP / (0.8 * epsilon)", "CAP / epsilon"),
    (
        "baskets",
        "what has no price is an error",
        "basket.count(product) * PRICES[product] for product in PRICES}",
        "basket.count(product) * PRICES[product] for product in dict.fromkeys([*PRICES, *basket])}",
    ),
    (
        "baskets",
        "few customers are not published",
        "    found = {",
        "    if len(baskets) < 5:\n        return {}\n    found = {",
    ),
    (
        "power",
        "curves of any norm",
        "load / max(1.0, float(np.linalg.norm(load)))",
        "load",
    ),
    ("power", "transform without its factor", 'rfft(load, norm="ortho")', "rfft(load)"),
    ("power", "real noise", " + 1j * rng.normal(scale=1 / mu, size=KEPT)", ""),
    (
        "power",
        "fast waves as they are",
        _RELEASED,
        "    kept = waves.copy()\n    kept[:KEPT] += noise\n",
    ),
    (
        "power",
        "the largest waves",
        _RELEASED,
        "    largest = np.argsort(-np.abs(waves))[:KEPT]\n    kept[largest] = waves[largest] + noise\n",
    ),
    (
        "stays",
        "squares move as days do",
        "for day in days), LONGEST**2",
        "for day in days), LONGEST",
    ),
    (
        "stays",
        "the longest stay is taken from the data",
        "    days = [min(day, LONGEST) for day in days]\n",
        "    LONGEST = max(days, default=1)\n",
    ),
    (
        "stays",
        "mean of few is not published",
        "    share =",
        "    if len(days) < 5:\n        return None\n    share =",
    ),
    (
        "stays",
        "divided by the true number",
        "number = max(noisy(len(days), 1, share, rng), 1.0)",
        "number = max(len(days), 1)",
    ),
    (
        "rents",
        "the distance is exact",
        "distance(rents) + rng.laplace(scale=2 / epsilon)",
        "distance(rents)",
    ),
    (
        "rents",
        "δ forgotten",
        "if far <= math.log(1 / (2 * DELTA)) * 2 / epsilon:",
        "if far <= 0:",
    ),
    (
        "rents",
        "says how far it was",
        _REFUSED,
        '        return f"refused at {distance(rents)}"\n    median',
    ),
    (
        "rents",
        "all of ε for the median",
        "scale=2 * BOUND / epsilon",
        "scale=BOUND / epsilon",
    ),
)

HARMLESS = (
    (
        "bikes",
        "stations by numpy",
        _STATIONS,
        "    import numpy as np\n\n    where = [STATIONS.index(station) for station, _ in trips]\n"
        "    noisy = np.bincount(np.array(where, dtype=int), minlength=3) + rng.laplace(scale=scale, size=3)\n"
        "    found = dict(zip(STATIONS, noisy.tolist()))\n",
    ),
    (
        "loans",
        "noise in one draw",
        _DRAWN,
        "    for title, noise in zip(sorted(lent), rng.laplace(scale=scale, size=len(lent))):\n"
        "        noisy = lent[title] + noise\n",
    ),
    ("loans", "a higher threshold", "threshold = 1 +", "threshold = 3 +"),
    (
        "census",
        "a counter of districts",
        "            count = people.count(district)\n",
        "            count = sum(1 for person in people if person == district)\n",
    ),
    (
        "census",
        "floats that add up",
        'return {"country": country,',
        'return {"country": float(country),',
    ),
    ("alerts", "one level for all alerts", _LEVEL, "        if len"),
    (
        "alerts",
        "a named number",
        _COMPARED,
        "        noisy = rng.laplace(loc=count, scale=4 * MOST / finding)\n"
        "        if noisy < level:\n            continue\n",
    ),
    (
        "clusters",
        "distances by numpy",
        _NEAREST,
        "np.linalg.norm(points[:, None] - found, axis=2).argmin(axis=1)",
    ),
    ("clusters", "three rounds", "ROUNDS = 2", "ROUNDS = 3"),
    (
        "canteen",
        "exponential noise in place of flips",
        _FLIPS,
        "    return max(DISHES, key=lambda dish: epsilon * votes.count(dish) / 2 + rng.exponential())\n",
    ),
    ("delivery", "four steps", "STEPS = 5", "STEPS = 4"),
    # It is compared, not released: each of five steps moves by 0.9 at most, in noise of scale 6 / ε.
    (
        "delivery",
        "an exact number",
        "total = len(minutes) + rng.laplace(scale=scale)",
        "total = len(minutes)",
    ),
    (
        "delivery",
        "a difference of exponentials",
        "for each in minutes) + rng.laplace(scale=scale)",
        "for each in minutes) + rng.exponential(scale) - rng.exponential(scale)",
    ),
    (
        "federated",
        "all clients at once",
        _UPDATES,
        "        if clients:\n            moves = np.array(clients) - model\n"
        "            total = (moves / np.maximum(np.linalg.norm(moves, axis=1, keepdims=True) / CLIP, 1.0)).sum(axis=0)\n",
    ),
    (
        "federated",
        "standard normal noise",
        "rng.normal(scale=sigma, size=DIMENSION)",
        "sigma * rng.standard_normal(DIMENSION)",
    ),
    (
        "baskets",
        "the list of prices as well",
        "    return found\n",
        '    return found | {"products": len(PRICES)}\n',
    ),
    (
        "baskets",
        "one draw for all products",
        _SUMS,
        "    noise = rng.laplace(scale=CAP / (0.8 * epsilon), size=len(PRICES))\n"
        "    for product, drawn in zip(PRICES, noise):\n"
        "        found[product] = sum(each[product] for each in capped) + drawn\n",
    ),
    (
        "power",
        "the sum is transformed",
        _WAVES,
        "    loads = [np.array(household, dtype=float) for household in households]\n"
        "    total = sum((load / max(1.0, float(np.linalg.norm(load))) for load in loads), np.zeros(HOURS))\n"
        '    waves = np.fft.rfft(total, norm="ortho")\n',
    ),
    ("stays", "rounded to a tenth", '{"mean": mean,', '{"mean": round(mean, 1),'),
    (
        "stays",
        "more noise for the mean",
        "mean = noisy(sum(days), LONGEST,",
        "mean = noisy(sum(days), 1.2 * LONGEST,",
    ),
    (
        "rents",
        "partitioned in place of sorted",
        "median = np.sort(np.clip(rents, 0, HIGHEST))[len(rents) // 2]",
        "median = np.partition(np.clip(rents, 0, HIGHEST), len(rents) // 2)[len(rents) // 2]",
    ),
)
