"""The same kinds of code, exactly as private as it says."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditdp import AnyValues, ApproxDP, GaussianDP, PureDP, Rows, ZeroConcentratedDP
from benchmarks.ordinary_case import Rng, geometric_noise
from benchmarks.traced_case import TracedCases
from benchmarks.traced_models import EXAMPLES, PEOPLE, POINTS, UPDATES
from benchmarks.traced_streams import FRAME, VISITS, WEEK, without

CORRECT = TracedCases("correct")
CITIES = ("Bonn", "Oslo", "Rome")


@CORRECT.correct(
    PureDP(1.0),
    [(VISITS, without(VISITS, "ann"))],
    why="Two days of a user count, each for ε/2.",
)
def bounded_days(events: list[tuple[str, int]], rng: Rng) -> list[float]:
    """Return how many users there are on each day, of the first two days of each."""
    days = defaultdict(set)
    for user, day in events:
        if len(days[user] | {day}) <= 2:
            days[user].add(day)
    return [
        sum(day in own for own in days.values()) + rng.laplace(scale=2.0)
        for day in WEEK
    ]


@CORRECT.correct(
    PureDP(1.0),
    [([0, 0, 0, 0], [0, 0, 1, 0])],
    why="An event is in three dyadic sums, each for ε/3.",
)
def dyadic(bits: list[int], rng: Rng) -> dict[tuple[int, int], int]:
    """Return noisy dyadic sums."""
    return {
        (level, start): sum(bits[start : start + 2**level])
        + geometric_noise(1 / 3, rng)
        for level in range(3)
        for start in range(0, 4, 2**level)
    }


@CORRECT.correct(
    PureDP(1.0),
    [([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])],
    why="The state is the noisy one, so a value is used once.",
)
def noisy_state(values: list[float], rng: Rng) -> list[float]:
    """Return an exponential average of values in 0..1 at each step."""
    state, shown = 0.0, []
    for value in values:
        state = 0.9 * state + value + rng.laplace()
        shown.append(state)
    return shown


@CORRECT.correct(
    PureDP(1.0),
    Rows(st.sampled_from(CITIES), "add/remove", most=5),
    why="Keys are public, and a row is in one group.",
)
def fixed_cities(rows: list[str], rng: Rng) -> dict[str, float]:
    """Return a noisy count of each city."""
    counts = Counter(rows)
    return {city: max(0.0, round(counts[city] + rng.laplace(), 1)) for city in CITIES}


@CORRECT.correct(
    PureDP(1.0),
    [(FRAME, FRAME.drop(index=1).reset_index(drop=True))],
    why="Sum and count each have noise for ε/2, and groups are disjoint.",
)
def mean_by_department(frame: pd.DataFrame, rng: Rng) -> pd.Series:
    """Return the mean wage, at most 50, of each department."""
    grouped = (
        frame.assign(wage=frame.wage.clip(0, 50))
        .groupby("dept")
        .wage.agg(["sum", "count"])
    )
    grouped = grouped.reindex(["a", "b"], fill_value=0)
    total = grouped["sum"] + rng.laplace(scale=100.0, size=2)
    count = grouped["count"] + rng.laplace(scale=2.0, size=2)
    return total / np.maximum(count, 1.0)


@CORRECT.correct(
    ApproxDP(1.0, 0.01),
    [(["a"] * 5 + ["b"], ["a"] * 5)],
    why="A query of one person passes 1 + ln(1/2δ) with probability δ.",
)
def selected_partitions(queries: list[str], rng: Rng) -> dict[str, float]:
    """Return the noisy counts that reach a threshold, one query a person."""
    noisy = {
        query: count + rng.laplace(scale=1.0)
        for query, count in Counter(queries).items()
    }
    return {
        query: count
        for query, count in noisy.items()
        if count >= 1 + math.log(1 / 0.02)
    }


@CORRECT.correct(
    PureDP(1.0),
    [([3, 5, 9], [3, 5, 9, 9])],
    why="The rank error moves by 1/2, so that the loss is 1/2.",
)
def median_of_grid(values: list[int], rng: Rng) -> int:
    """Return a number of 0..10 near the median (the exponential mechanism)."""
    errors = [abs(sum(v < g for v in values) - len(values) / 2) for g in range(11)]
    weights = np.exp(-0.5 * np.array(errors))
    return int(rng.choice(11, p=weights / weights.sum()))


@CORRECT.correct(
    PureDP(1.0), [(POINTS, POINTS[:3])], why="Each of two levels has half of ε."
)
def budgeted_quadtree(points: NDArray[Any], rng: Rng) -> list[Any]:
    """Return noisy counts of the cells of a quadtree of two levels."""
    tree = []
    for level in range(2):
        counts, *_ = np.histogram2d(
            points[:, 0], points[:, 1], bins=2**level, range=[[0, 1], [0, 1]]
        )
        tree.append(counts + rng.laplace(scale=2.0, size=counts.shape))
    return tree


@CORRECT.correct(
    PureDP(1.0),
    [([(0, 1, 1), (1, 0, 1), (0, 0, 0)], [(0, 1, 1), (0, 0, 0)])],
    why="The split is drawn without the data.",
)
def random_stump(
    rows: list[tuple[int, int, int]], rng: Rng
) -> tuple[int, float, float]:
    """Return a feature drawn at random, and noisy counts of both leaves."""
    chosen = int(rng.integers(2))
    leaves = Counter(row[chosen] for row in rows)
    return chosen, leaves[0] + rng.laplace(), leaves[1] + rng.laplace()


@CORRECT.correct(
    PureDP(1.0),
    [([4, 2], [4, 3])],
    why="Root and leaves have half of ε each, and the rest is computed from them.",
)
def consistent_tree(leaves: list[int], rng: Rng) -> list[float]:
    """Return noisy leaves that add up to a noisy root."""
    noisy = np.array(leaves) + rng.laplace(scale=2.0, size=len(leaves))
    root = sum(leaves) + rng.laplace(scale=2.0)
    return list(noisy + (root - noisy.sum()) / len(leaves))


@CORRECT.correct(
    PureDP(1.0), [(PEOPLE, PEOPLE[1:])], why="Rows are drawn from a noisy table."
)
def table_synthesizer(
    rows: list[tuple[str, str, int]], rng: Rng
) -> list[tuple[str, str]]:
    """Return five synthetic rows of two columns."""
    cells = [(sex, country) for sex in "fm" for country in ("no", "se")]
    counts = Counter(row[:2] for row in rows)
    noisy = (
        np.array([max(counts[cell] + rng.laplace(scale=1.0), 0.0) for cell in cells])
        + 1e-6
    )
    return [cells[k] for k in rng.choice(4, size=5, p=noisy / noisy.sum())]


@CORRECT.correct(
    PureDP(1.0),
    [(PEOPLE, PEOPLE[:3])],
    why="Two tables, each for ε/2; conditional ones are computed from them.",
)
def noisy_chain(
    rows: list[tuple[str, str, int]], rng: Rng
) -> list[tuple[str, str, int]]:
    """Return four synthetic rows: sex and country from one table, the number given the country from another."""
    first = Counter(row[:2] for row in rows)
    second = Counter(row[1:] for row in rows)
    pairs = [(a, b) for a in "fm" for b in ("no", "se")]
    start = [max(0.1, first[pair] + geometric_noise(0.5, rng)) for pair in pairs]
    step = {
        (b, c): max(0.1, second[b, c] + geometric_noise(0.5, rng))
        for b in ("no", "se")
        for c in (1, 2, 3)
    }
    made = []
    for _ in range(4):
        sex, country = pairs[int(rng.choice(4, p=np.array(start) / sum(start)))]
        weights = np.array([step[country, c] for c in (1, 2, 3)])
        made.append(
            (sex, country, int(rng.choice([1, 2, 3], p=weights / weights.sum())))
        )
    return made


@CORRECT.correct(
    GaussianDP(1.0),
    [(UPDATES, UPDATES[1:])],
    why="Updates have norm 1 at most, and the noise is for that.",
)
def clipped_by_norm(updates: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the noisy sum of clipped updates."""
    norms = np.linalg.norm(updates, axis=1, keepdims=True)
    return (updates / np.maximum(norms, 1.0)).sum(axis=0) + rng.standard_normal(4)


@CORRECT.correct(
    ZeroConcentratedDP(0.5),
    [(UPDATES / 2, UPDATES[1:] / 2)],
    why="Four rounds of ρ = 1/8 each; momentum is of noisy sums.",
)
def noisy_momentum(updates: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the model after four rounds with momentum."""
    model, velocity = np.zeros(4), np.zeros(4)
    for _ in range(4):
        velocity = 0.5 * velocity + updates.sum(axis=0) + rng.normal(scale=2.0, size=4)
        model = model + velocity
    return model


@CORRECT.correct(
    GaussianDP(1.0),
    [(torch.tensor(EXAMPLES), torch.tensor(EXAMPLES[:2]))],
    why="Two steps with the noise of √2 clipping norms.",
)
def dp_sgd(examples: Any) -> Any:
    """Return the weights after two steps on clipped gradients of least squares."""
    weights = torch.zeros(2, dtype=torch.float64)
    for _ in range(2):
        gradients = 2 * (examples @ weights - 1.0)[:, None] * examples
        clipped = gradients / gradients.norm(dim=1, keepdim=True).clamp(min=1.0)
        noisy = clipped.sum(dim=0) + math.sqrt(2.0) * (1 + 1e-12) * torch.randn(
            2, dtype=torch.float64
        )
        weights = weights - 0.1 * noisy
    return weights


@CORRECT.correct(
    GaussianDP(1.0),
    [(EXAMPLES / 5, EXAMPLES[:2] / 5)],
    why="Each step samples rows, which only hides more.",
)
def sampled_sgd(examples: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the weights after two steps on sampled examples."""
    weights = np.zeros(2)
    for _ in range(2):
        batch = examples[rng.random(len(examples)) < 0.5]
        weights = weights - 0.1 * (batch.sum(axis=0) + rng.normal(scale=1.5, size=2))
    return weights


@CORRECT.correct(
    PureDP(1.0),
    AnyValues((0, 1, 2, 3)),
    why="Two bits differ between two values, each for ε/2.",
)
def unary_halved(value: int, rng: Rng) -> list[int]:
    """Return the bits of a value in unary coding, each turned round for ε/2."""
    keep = 1 / (1 + math.exp(-0.5))
    return [int((k == value) == (rng.random() < keep)) for k in range(4)]


@CORRECT.correct(
    PureDP(1.0),
    AnyValues(("a", "b", "c")),
    why="The truth has e times the probability of each lie.",
)
def one_of_three(value: str) -> str:
    """Return the value, or one of the others."""
    others = [other for other in "abc" if other != value]
    return value if random.random() < math.e / (math.e + 2) else random.choice(others)


@CORRECT.correct(
    PureDP(1.0),
    [([5, 4, 2], [5, 5, 2])],
    why="A noisy maximum of counts that grow is for 1/scale.",
)
def noisy_winner(counts: list[int], rng: Rng) -> int:
    """Return which count is largest, with noise."""
    noisy = [count + rng.laplace(scale=1.0) for count in counts]
    return max(range(len(noisy)), key=noisy.__getitem__)


@CORRECT.correct(
    PureDP(1.0),
    [([1, 2, 6], [2, 3, 7])],
    why="The threshold has half of ε, the one answer above it the other.",
)
def first_above(counts: list[int], rng: Rng) -> int | None:
    """Return the first count above a noisy threshold (the sparse vector technique)."""
    threshold = 4 + rng.laplace(scale=2.0)
    for place, count in enumerate(counts):
        if count + rng.laplace(scale=4.0) >= threshold:
            return place
    return None
