"""Streams of events of users, and tables grouped as SQL groups them: broken ones."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from auditdp import PureDP, Rows
from benchmarks.ordinary_case import Rng, geometric_noise
from benchmarks.traced_case import LOSS, REUSE, ROUND, SCALE, SEED, TracedCases

STREAMS = TracedCases("streams")
TABLES = TracedCases("group-bys")
WEEK = range(7)
VISITS = [("ann", 0), ("ann", 3), ("ann", 5), ("bob", 3), ("bob", 3)]
NUMBERS = Rows(st.integers(0, 10), "add/remove", most=6)


def without(events: Sequence[tuple[str, Any]], user: str) -> list[tuple[str, Any]]:
    """Return the events of all other users."""
    return [event for event in events if event[0] != user]


@STREAMS.broken(
    PureDP(1.0),
    [(VISITS, without(VISITS, "ann"))],
    LOSS,
    why="A user is counted on three days, each for ε.",
)
def daily_active(events: list[tuple[str, int]], rng: Rng) -> list[float]:
    """Return how many users there are on each day."""
    seen = {(user, day) for user, day in events}
    return [sum(d == day for _, d in seen) + rng.laplace() for day in WEEK]  # here


@STREAMS.broken(
    PureDP(1.0),
    [(VISITS, without(VISITS, "ann"))],
    LOSS,
    why="The cap is that of an event, the user has 3.",
)
def spent_time(events: list[tuple[str, int]], rng: Rng) -> float:
    """Return the minutes of all users, at most 4 each."""
    total = 0.0
    for _, minutes in events:
        total += min(minutes, 4)
    return total + rng.laplace(0, 4)  # here


class Levels:
    """The dyadic sums of a stream: one for each level that a position closes."""

    def __init__(self, depth: int) -> None:
        self.sums = [0.0] * depth

    def push(self, value: float, position: int) -> Iterator[tuple[int, float]]:
        """Add a value; yield the levels that are complete, with their sums."""
        for level in range(len(self.sums)):
            self.sums[level] += value
            if position % 2**level == 2**level - 1:
                yield level, self.sums[level]
                self.sums[level] = 0.0


@STREAMS.broken(
    PureDP(1.0),
    [([0, 1, 1, 1], [1, 1, 1, 1]), ([0, 0, 0, 0], [0, 0, 1, 0])],
    LOSS,
    why="The first event is in the sums of three levels that are released, and the scale is for two.",
)
def counted_stream(bits: list[int], rng: Rng) -> list[float]:
    """Return the running count, by dyadic sums."""
    levels, parts, released = Levels(3), {}, []
    for position, bit in enumerate(bits):
        for level, total in levels.push(bit, position):
            parts[level] = total + rng.laplace(scale=2.0)  # here
            for below in range(level):
                parts.pop(below, None)
        released.append(sum(parts.values()))
    return released


@STREAMS.broken(
    PureDP(1.0),
    [([0, 1, 0, 0, 1], [0, 1, 1, 0, 1])],
    LOSS,
    why="An event lies in three windows, and the noise is for one.",
)
def windows(events: list[int], rng: Rng) -> list[int]:
    """Return the count of the last three steps at each step."""
    out = []
    for end in range(1, len(events) + 1):
        out.append(
            sum(events[max(0, end - 3) : end]) + geometric_noise(1.0, rng)
        )  # here
    return out


@STREAMS.broken(
    PureDP(1.0),
    [([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])],
    LOSS,
    why="The state keeps the exact value, so each step shows it again.",
)
def smoothed(values: list[float], rng: Rng) -> list[float]:
    """Return an exponential average of values in 0..1 at each step."""
    state, shown = 0.0, []
    for value in values:
        state = 0.9 * state + value
        shown.append(state + rng.laplace())  # here
    return shown


@STREAMS.broken(
    PureDP(1.0),
    [([0, 1, 9, 10, 11], [0, 1, 10, 11]), ([0, 1, 9, 10, 11], [0, 1, 9, 10])],
    ROUND,
    why="There are as many numbers as sessions, and an event between two joins them.",
)
def sessions(times: list[int], rng: Rng) -> list[float]:
    """Return the lengths of sessions of at most 60, which a gap of more than 8 ends."""
    parts: list[list[int]] = []
    for time in times:
        if parts and time - parts[-1][-1] <= 8:
            parts[-1].append(time)
        else:
            parts.append([time])
    return [min(part[-1] - part[0], 60) + rng.laplace(scale=60.0) for part in parts]


@STREAMS.broken(
    PureDP(1.0),
    NUMBERS,
    ROUND,
    LOSS,
    why="The count that passes the noisy threshold is given as it is.",
)
def alert(readings: list[int], rng: Rng) -> int | None:
    """Return the count of high readings, once it is above a noisy threshold."""
    threshold = 2 + rng.laplace(scale=1.0)
    high = sum(reading > 5 for reading in readings)
    return high if high > threshold else None


@STREAMS.broken(
    PureDP(1.0),
    [(5, 6)],
    REUSE,
    SEED,
    LOSS,
    ROUND,
    why="The seed is written down, so that the noise is known: it is none.",
)
def reproducible_count(count: int) -> float:
    """Return a count with noise."""
    return count + np.random.default_rng(42).laplace()  # here


@TABLES.broken(
    PureDP(1.0),
    Rows(st.sampled_from(("Oslo", "Rome", "Bonn")), "add/remove", most=5),
    ROUND,
    why="Keys are those of the data.",
)
def cities(rows: list[str], rng: Rng) -> dict[str, float]:
    """Return a noisy count of each city."""
    return {city: n + rng.laplace() for city, n in sorted(Counter(rows).items())}


FRAME = pd.DataFrame({"dept": ["a", "a", "b", "b"], "wage": [10.0, 40.0, 30.0, 20.0]})


@TABLES.broken(
    PureDP(1.0),
    [(FRAME, FRAME.drop(index=1).reset_index(drop=True))],
    ROUND,
    why="The size of the group is exact.",
)
def mean_wage(frame: Any, rng: Rng) -> dict[str, float]:
    """Return the mean wage, at most 50, of each department, and how many people it is of."""
    found = {}
    for dept in ("a", "b"):
        wages = frame.loc[frame.dept == dept, "wage"].clip(0, 50)
        found[dept] = (wages.sum() + rng.laplace(scale=50.0)) / max(len(wages), 1)
        found[f"{dept}_n"] = len(wages)
    return found


@TABLES.broken(
    PureDP(1.0),
    [(["x", "x", "x", "y"], ["x", "x", "y"])],
    ROUND,
    why="Whether a group is there is decided by its exact count.",
)
def having(rows: list[str], rng: Rng) -> dict[str, float]:
    """Return counts of groups of at least three: ``HAVING count(*) >= 3``."""
    return {
        key: len(group) + rng.laplace()
        for key, items in groupby(sorted(rows))
        if len(group := list(items)) >= 3
    }


ORDERS = [(1, 20.0), (1, 30.0), (1, 25.0), (2, 10.0)]


@TABLES.broken(
    PureDP(1.0),
    [(({1: "no", 2: "se"}, ORDERS), ({2: "se"}, ORDERS))],
    LOSS,
    why="A customer who is removed takes three orders along in the join.",
)
def orders_by_country(
    tables: tuple[dict[int, str], list[tuple[int, float]]], rng: Rng
) -> dict[str, float]:
    """Return how many orders there are by country."""
    customers, orders = tables
    counts = dict.fromkeys(("no", "se"), 0)
    for customer, _ in orders:
        if customer in customers:
            counts[customers[customer]] += 1
    return {
        country: count + rng.laplace(scale=1.0) for country, count in counts.items()
    }  # here


@TABLES.broken(
    PureDP(1.0),
    [(["a", "b", "b"], ["a", "a", "b", "b"])],
    ROUND,
    why="The winner is the exact one.",
)
def top_category(rows: list[str], rng: Rng) -> tuple[str, float]:
    """Return the category with most rows, and its noisy count."""
    (name, count), *_ = sorted(
        Counter(rows).most_common(), key=lambda item: (-item[1], item[0])
    )
    return name, count + rng.laplace(scale=1.0)


@TABLES.broken(
    PureDP(1.0),
    Rows(st.integers(0, 100), "add/remove", least=1, most=5),
    LOSS,
    why="A median moves by half of the range.",
)
def median_age(ages: list[int], rng: Rng) -> float:
    """Return the median age."""
    return float(np.median(ages)) + rng.laplace(scale=10.0)  # here


@TABLES.broken(
    PureDP(1.0),
    [(VISITS, without(VISITS, "ann"))],
    LOSS,
    why="The set has a user once a page, and a user has many pages.",
)
def visitors(events: list[tuple[str, int]], rng: Rng) -> dict[int, float]:
    """Return how many distinct users each page has."""
    users = defaultdict(set)
    for user, page in events:
        users[page].add(user)
    del rng
    return {page: len(users[page]) + random.gauss(0, 1) for page in WEEK}  # here


@TABLES.broken(
    PureDP(1.0),
    [(np.array([[3, 1], [2, 2]]), np.array([[3, 1], [2, 3]]))],
    REUSE,
    LOSS,
    why="One draw a line, so that differences along it are exact.",
)
def pivot(table: Any, rng: Rng) -> Any:
    """Return a pivot table with noise."""
    return table + rng.laplace(scale=1.0, size=(table.shape[0], 1))  # here


@TABLES.broken(
    PureDP(1.0),
    [([1.0, 5.0], [1.0, 5.0, 9.0])],
    SCALE,
    why="The clipping bound, and the scale with it, is a quantile of the data.",
)
def adaptive_sum(values: list[float], rng: Rng) -> float:
    """Return the sum of values, clipped at their 90 % quantile."""
    bound = float(np.quantile(values, 0.9))
    return float(np.clip(values, 0, bound).sum()) + rng.laplace(scale=bound)  # here
