"""Running totals of eight days, by a binary tree."""

import math

DAYS = 8


def nodes_of(day):
    """Return the nodes (first day, length) that make up the days before and with this one."""
    found, start, end = [], 0, day + 1
    while start < end:
        length = 1 << int(math.log2(end - start))
        found.append((start, length))
        start += length
    return found


def running_totals(days, rng, epsilon=1.0):
    """Return the ε-DP running totals of eight numbers between 0 and 1, of which one may be replaced."""
    days = [min(max(day, 0.0), 1.0) for day in days]
    levels = math.log2(DAYS) + 1
    noisy = {}
    for level in range(int(math.log2(DAYS)) + 1):
        length = 1 << level
        for start in range(0, DAYS, length):
            noisy[start, length] = sum(days[start : start + length]) + rng.laplace(scale=levels / epsilon)
    return [sum(noisy[node] for node in nodes_of(day)) for day in range(DAYS)]
