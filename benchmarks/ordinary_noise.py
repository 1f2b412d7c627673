"""Broken by how they make noise: too little, shared, remembered, left out at times, or calibrated to other neighbours."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp import ApproxDP, GaussianDP, Neighbours, PureDP, QueryAnswers, Records
from auditdp.adjacency import Edges
from benchmarks.ordinary_case import Cases, Rng, geometric_noise, one_row_more

NOISE = Cases()
EXACT = math.inf


@NOISE.add(
    PureDP(1.0),
    [({"men": 3, "women": 4}, {"men": 3, "women": 5})],
    level=EXACT,
    why="Both counts have the same noise, so their difference is exact.",
    fault="reused noise",
)
def both_counts(counts: dict[str, int], rng: Rng) -> dict[str, float]:
    """Return both counts with noise."""
    noise = rng.laplace(scale=1.0)
    return {who: count + noise for who, count in counts.items()}


@NOISE.add(
    PureDP(1.0),
    [([3, 3], [3, 4])],
    level=EXACT,
    why="Equal counts get equal noise, so two outputs are equal if and only if the counts are.",
    fault="cache within a call",
)
def remembered_noise(counts: list[int], rng: Rng) -> list[float]:
    """Return counts with noise; the noise of a count is drawn once, so that asking twice tells no more."""
    noise: dict[int, float] = {}
    for count in counts:
        if count not in noise:
            noise[count] = rng.laplace(scale=1.0)
    return [count + noise[count] for count in counts]


@NOISE.add(
    PureDP(1.0),
    [(41, 42)],
    level=EXACT,
    why="Two answers are equal if the count has not changed between them, and differ if it has.",
    fault="cache between calls",
    refusal="remembers its answers",
)
class Dashboard:
    """A noisy count, computed once for each count."""

    def __init__(self) -> None:
        self._answers: dict[int, float] = {}

    def __call__(self, count: int, rng: Rng) -> float:
        """Return the count with noise."""
        if count not in self._answers:
            self._answers[count] = count + rng.laplace(scale=1.0)
        return self._answers[count]


@NOISE.add(
    PureDP(1.0),
    [(41.0, 42.0)],
    level=EXACT,
    why="Every thousandth call returns the exact count.",
    fault="counter",
    refusal="state between calls",
)
class Heartbeat:
    """A noisy count, with a check of the connection now and then."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, count: float, rng: Rng) -> float:
        """Return the count with noise."""
        self._calls += 1
        return count if self._calls % 1000 == 0 else count + rng.laplace(scale=1.0)


@NOISE.add(
    PureDP(1.0),
    Records(4, (0, 1, 2, 3, 4, 5)),
    level=5.0,
    why="A record changes the total by up to 5, and the noise is that of a count.",
    fault="wrong sensitivity",
)
def total(values: NDArray[Any], rng: Rng) -> float:
    """Return the sum of a column of 0..5 with noise."""
    return float(values.sum() + rng.laplace(scale=1.0))


@NOISE.add(
    PureDP(1.0),
    [(["red", "red"], ["red", "blue"])],
    level=2.0,
    why="Replacing a row changes two counts, each of which has the noise for one row more or less.",
    fault="wrong neighbours",
)
def favourite_colours(rows: list[str], rng: Rng) -> dict[str, int]:
    """Return a noisy count of each colour."""
    return {
        colour: rows.count(colour) + geometric_noise(1.0, rng)
        for colour in ("red", "blue")
    }


@NOISE.add(
    PureDP(1.0),
    Edges(5),
    level=2.0,
    why="An edge changes two degrees, and the noise is for one.",
    fault="wrong sensitivity",
)
def degrees(graph: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return the noisy degree of every node."""
    degree = graph.sum(axis=1)
    return degree + rng.laplace(scale=1.0, size=(size, len(degree)))


@NOISE.add(
    GaussianDP(1.0),
    QueryAnswers(4, "all"),
    level=2.0,
    why="Four answers change by 1 each, by 2 in the Euclidean norm, and the noise is for the largest change of one.",
    fault="wrong norm",
)
def four_answers(answers: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return four answers with Gaussian noise."""
    return answers + rng.normal(scale=1.0, size=(size, 4))


@NOISE.add(
    ApproxDP(1.0, 0.01),
    Neighbours(
        [(["a"] * 5 + ["b"], ["a"] * 5)], one_row_more, "one query more or less"
    ),
    level=EXACT,
    why="The query of one person is published with probability .027 and not .01: the threshold forgets that its count is 1.",
    fault="off by one in a threshold",
)
def frequent_queries(queries: list[str], rng: Rng) -> dict[str, float]:
    """Return the noisy counts that reach ln(1/(2δ))/ε, so that what one person asked has probability δ."""
    noisy = {
        query: count + rng.laplace(scale=1.0)
        for query, count in Counter(queries).items()
    }
    return {
        query: count for query, count in noisy.items() if count >= math.log(1 / 0.02)
    }


@NOISE.add(
    PureDP(1.0),
    [([20.0, 30.0, 25.0], [20.0, 30.0, 425.0])],
    level=4.0,
    why="Noise is for incomes up to 100, and only the noisy total is clipped: this income moves it by 400.",
    fault="clipping after noise",
)
def clipped_total(incomes: list[float], rng: Rng) -> float:
    """Return the total of incomes, in 0..1000, with noise."""
    return float(np.clip(sum(incomes) + rng.laplace(scale=100.0), 0, 1000))


@NOISE.add(
    PureDP(1.0),
    [([50.0, 20.0], [50.0, -980.0])],
    level=10.0,
    why="Balances are clipped from above only, and a debt of 980 moves the total by 1,000.",
    fault="unbounded sum",
)
def total_balance(balances: list[float], rng: Rng) -> float:
    """Return the total of balances up to 100 with noise."""
    return sum(min(balance, 100.0) for balance in balances) + rng.laplace(scale=100.0)


@NOISE.add(
    PureDP(1.0),
    [([1.0, 2.0, 1.0, 9.0], [1.0, 2.0, 1.0, 2.0])],
    level=EXACT,
    why="The scale of the noise is the largest value of the data: far from the total, 9 is more likely without bound.",
    fault="sensitivity from the data",
)
def scaled_total(values: list[float], rng: Rng) -> float:
    """Return the total of positive values with noise for the largest."""
    return sum(values) + rng.laplace(scale=max(values))


@NOISE.add(
    PureDP(1.0),
    [([3, 4, 1], [3, 4, 2])],
    level=EXACT,
    why="The seed is computed from the data, so each input has one output, and these differ.",
    fault="seed from the data",
)
def repeatable_total(values: list[int], rng: Rng) -> float:
    """Return the total with noise that is the same whenever the job is repeated."""
    return sum(values) + np.random.default_rng(values).laplace(scale=1.0)


@NOISE.add(
    PureDP(1.0),
    QueryAnswers(1, largest=1000),
    level=255.0,
    why="255 and 256 are 255 and 0 in eight bits, in which the count is stored before the noise.",
    fault="integer overflow",
)
def stored_count(count: NDArray[Any], rng: Rng) -> int:
    """Return a count of up to 1,000 with noise."""
    return int(count.astype(int).astype(np.uint8)[0]) + geometric_noise(1.0, rng)


@NOISE.add(
    PureDP(1.0),
    QueryAnswers(1, largest=100),
    level=10.0,
    why="5 is rounded to 0 and 6 to 10, so one person moves what the noise is added to by 10.",
    fault="rounding before noise",
)
def rounded_count(count: NDArray[Any], rng: Rng) -> int:
    """Return a count, rounded to tens, with noise."""
    return int(round(count[0], -1)) + geometric_noise(1.0, rng)


@NOISE.add(
    PureDP(1.0),
    [(0.1, 0.7)],
    level=EXACT,
    why="Noise has 24 bits: the output minus a reading is such a number for the reading that was used, and for no other.",
    fault="low bits of floats",
)
def precise_reading(reading: float, rng: Rng) -> float:
    """Return a reading of 0..1 with noise, which is kept in single precision."""
    return reading + float(np.float32(rng.laplace(scale=1.0)))


@NOISE.add(
    PureDP(1.0),
    [(41.0, 42.0)],
    level=EXACT,
    why="One release in 500 is the exact count, which continuous noise never gives.",
    fault="exact value, once in 500",
)
def sampled_check(count: float, size: int, *, rng: Rng) -> NDArray[Any]:
    """Return a noisy count; some are released for comparison."""
    return np.where(
        rng.random(size) < 1 / 500, count, count + rng.laplace(scale=1.0, size=size)
    )


@NOISE.add(
    PureDP(0.2),
    [([3.0, 1.0, 2.0], [3.0, 1.0, 3.0])],
    level=EXACT,
    why="One release in 2,000 has the exact numbers, which continuous noise never gives.",
    fault="exact value, once in 2,000",
)
def sensor_values(values: list[float], rng: Rng) -> list[float]:
    """Return the values of three sensors with noise; a device in service mode gives them as they are."""
    service = rng.random() < 1 / 2000
    return values if service else [value + rng.laplace(scale=5.0) for value in values]


@NOISE.add(
    PureDP(1.0),
    QueryAnswers(3, largest=5),
    level=EXACT,
    why="An empty cell stays exactly 0, and no other does.",
    fault="no noise on zero",
)
def tidy_histogram(counts: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return three noisy counts, without counts that are none."""
    return np.where(counts == 0, 0, counts + rng.laplace(scale=1.0, size=(size, 3)))
