"""Days on which many households report bad water."""

DAYS = 6
MOST = 2


def alerts(households, rng, epsilon=1.0, threshold=4):
    """Return the first MOST days above the threshold with noisy numbers: half of ε finds them, half publishes."""
    finding = publishing = epsilon / 2
    counts = [sum(day in days for days in households) for day in range(DAYS)]
    found = {}
    level = threshold + rng.laplace(scale=2 * MOST / finding)
    for day, count in enumerate(counts):
        if count + rng.laplace(scale=4 * MOST / finding) < level:
            continue
        found[day] = count + rng.laplace(scale=MOST / publishing)
        level = threshold + rng.laplace(scale=2 * MOST / finding)
        if len(found) == MOST:
            break
    return found
