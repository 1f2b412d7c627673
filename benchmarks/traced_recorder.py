"""Six kinds of faults that dp-recorder found in libraries, as ordinary code without annotations.

Source: Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), arXiv:2602.17454; the functions are written anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditdp import PureDP, Rows
from benchmarks.ordinary_case import Rng
from benchmarks.traced_case import LOSS, NUMBER, ROUND, SCALE, TracedCases

RECORDER = TracedCases("dp-recorder's kinds")
SHARES = Rows(st.floats(0.0, 1.0), "add/remove", least=1, most=5)


@RECORDER.broken(
    PureDP(1.0),
    SHARES,
    LOSS,
    SCALE,
    why="A value moves the mean by up to 1/2 where there are two, and the noise is for one row more, of the data's size.",
)
def buggy_mean(values: list[float], rng: Rng) -> float:
    """Return the mean of values in 0..1."""
    return float(
        np.mean(np.clip(values, 0, 1)) + rng.laplace(scale=1 / (len(values) + 1))
    )  # here


@RECORDER.broken(
    PureDP(1.0),
    [([2.0, 3.0], [2.0, 3.0, 8.0])],
    ROUND,
    why="The edges of the bins are those of the data.",
)
def inferred_domain(values: list[float], rng: Rng) -> tuple[list[float], list[float]]:
    """Return edges and noisy counts of a histogram."""
    counts, edges = np.histogram(values, bins=3)
    return edges.tolist(), (counts + rng.laplace(scale=1.0, size=3)).tolist()


class Budget:
    """What is left of ε."""

    def __init__(self, total: float) -> None:
        self.left = total

    def spend(self, epsilon: float) -> float:
        """Take ε from what is left, and return the scale of noise for it."""
        assert epsilon <= self.left + 1e-9
        self.left -= epsilon
        return 1 / epsilon


@RECORDER.broken(
    PureDP(1.0),
    SHARES,
    LOSS,
    why="The budget is asked once, and the scale is used for two answers.",
)
def spent_twice(values: list[float], rng: Rng) -> tuple[float, float]:
    """Return noisy sum and count of values in 0..1."""
    scale = Budget(1.0).spend(1.0)
    answers = (sum(values), len(values))
    return tuple(answer + rng.laplace(scale=scale) for answer in answers)  # type: ignore[return-value]  # here


@RECORDER.broken(
    PureDP(1.0),
    [([0.2, 0.7], [0.2, float("nan")])],
    NUMBER,
    ROUND,
    LOSS,
    why="Clipping keeps NaN, and NaN has no noise.",
)
def injected_nan(values: list[float], rng: Rng) -> float:
    """Return the noisy sum of values that are clipped to 0..1."""
    return float(np.clip(values, 0, 1).sum()) + rng.laplace(scale=1.0)  # here


@RECORDER.broken(
    PureDP(0.5),
    [(np.array([3, 4]), np.array([3, 5]))],
    LOSS,
    why="The scale is ε, not 1/ε.",
)
def miscalibrated_noise(counts: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return noisy counts."""
    return counts + rng.laplace(loc=0.0, scale=0.5, size=2)  # here


@RECORDER.broken(
    PureDP(1.0),
    Rows(st.integers(-10, 10), "add/remove", most=5),
    LOSS,
    SCALE,
    why="The sensitivity of a sum in −10..10 is 10, not half of the range of what was squared.",
)
def miscalibrated_sensitivity(values: list[int], rng: Rng) -> float:
    """Return the noisy sum of squares of values in −10..10."""
    low, high = -10, 10
    return sum(min(max(value, low), high) ** 2 for value in values) + rng.laplace(
        scale=(high - low) / 2
    )  # here
