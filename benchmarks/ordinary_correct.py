"""Ordinary code that is exactly as private as it claims.

Proofs are about the law that numpy's samplers approximate, to some 1e-16. None returns a continuous number with all its
bits.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp import AnyValues, ApproxDP, GaussianDP, Neighbours, PureDP, QueryAnswers
from benchmarks.ordinary_case import Cases, Rng, geometric_noise, one_row_more

CORRECT = Cases()
THREE = math.log(3)
CITIES = ("Oslo", "Rome")
COLOURS = ("red", "green", "blue", "black")
ANSWERS = AnyValues(("yes", "no"))
DELTA = 0.05


@CORRECT.add(
    PureDP(THREE),
    ANSWERS,
    level=THREE,
    why="The truth has probability 3/4, the other answer 1/4.",
)
def randomised_answer(answer: str, rng: Rng) -> str:
    """Return the answer, turned round with probability 1/4."""
    if rng.random() < 0.75:
        return answer
    return "no" if answer == "yes" else "yes"


@CORRECT.add(
    PureDP(THREE),
    ANSWERS,
    level=THREE,
    why="Half of the people are not asked, whoever they are; the others answer as above.",
)
def perhaps_asked(answer: str, rng: Rng) -> str | None:
    """Return a randomised answer, or None."""
    return None if rng.random() < 0.5 else randomised_answer(answer, rng)


@CORRECT.add(
    PureDP(THREE),
    ANSWERS,
    level=THREE,
    why="A tenth of the calls time out on either input; the others answer as above.",
)
def unreliable_answer(answer: str, rng: Rng) -> str:
    """Return a randomised answer, if the line is free."""
    if rng.random() < 0.1:
        raise TimeoutError("the line is busy")
    return randomised_answer(answer, rng)


@CORRECT.add(
    PureDP(THREE),
    AnyValues((1, 0)),
    level=THREE,
    why="The first entry is a randomised response; the others are zeros, of a number that does not depend on it.",
)
def padded_trace(bit: int, rng: Rng) -> list[int]:
    """Return a randomised bit, and zeros that hide how long the trace was."""
    kept = bit if rng.random() < 0.75 else 1 - bit
    return [kept] + [0] * int(rng.geometric(0.5))


@CORRECT.add(
    PureDP(THREE),
    [([1, 1, 1], [0, 1, 1])],
    level=THREE,
    why="Sorting is post-processing of randomised bits; three ones have probability 27/64 against 9/64.",
)
def sorted_bits(bits: list[int], rng: Rng) -> list[int]:
    """Return the randomised bits of three people, in no order of theirs."""
    return sorted(bit if rng.random() < 0.75 else 1 - bit for bit in bits)


@CORRECT.add(
    PureDP(THREE),
    Neighbours([(["Oslo", "Rome"], ["Rome"])], one_row_more, "one city more or less"),
    level=THREE,
    why="Whether a city is in the set is a randomised bit of its own, and neighbours differ in one city.",
)
def randomised_set(cities: list[str], rng: Rng) -> set[str]:
    """Return the visited cities, where each may be there for chance or missing for chance."""
    return {city for city in CITIES if (city in cities) == (rng.random() < 0.75)}


@CORRECT.add(
    PureDP(1.0),
    Neighbours([(["Oslo", "Rome"], ["Oslo"])], one_row_more, "one visit more or less"),
    level=1.0,
    why="A row more or less changes one count by one, and the keys are always the same.",
)
def city_counts(rows: list[str], rng: Rng) -> dict[str, int]:
    """Return a noisy count of each city."""
    return {city: rows.count(city) + geometric_noise(1.0, rng) for city in CITIES}


@CORRECT.add(
    PureDP(1.0),
    [(["Oslo", "Rome"], ["Oslo", "Oslo"])],
    level=1.0,
    why="A row that is replaced changes two counts by one, each with the noise of ε/2.",
)
def replaced_counts(rows: list[str], rng: Rng) -> list[int]:
    """Return a noisy count of each city, where neighbours have equally many rows."""
    return [rows.count(city) + geometric_noise(0.5, rng) for city in CITIES]


@CORRECT.add(
    PureDP(1.0),
    QueryAnswers(1, largest=10),
    level=1.0,
    why="Clamping is post-processing; 0 has probability 1/(1 + e⁻¹) given 0 and e⁻¹ times that given 1.",
)
def clamped_count(count: NDArray[Any], rng: Rng) -> int:
    """Return a noisy count in 0..10."""
    return min(max(int(count[0]) + geometric_noise(1.0, rng), 0), 10)


@CORRECT.add(
    PureDP(1.0),
    [(41, 42)],
    level=1.0,
    why="The text says a noisy count, and nothing else.",
)
def report_text(count: int, rng: Rng) -> str:
    """Return a sentence with a noisy count."""
    return f"about {count + geometric_noise(1.0, rng)} people answered"


@CORRECT.add(
    PureDP(1.0),
    [(250, 251)],
    level=1.0,
    why="The noise is of the unit, a cent, in which amounts differ.",
)
def noisy_amount(cents: int, rng: Rng) -> Decimal:
    """Return a noisy amount, which changes by a cent."""
    return Decimal(cents + geometric_noise(1.0, rng)) / 100


@CORRECT.add(
    PureDP(1.0),
    [(41, 42)],
    level=1.0,
    why="The number is the noisy count plus a constant, so it tells the noisy count.",
)
def ticket_number(count: int, rng: Rng) -> dict[str, int]:
    """Return a noisy count under a number beyond 2⁵³."""
    return {"ticket": 2**60 + count + geometric_noise(1.0, rng)}


@dataclass(frozen=True)
class Survey:
    """The return type of ``survey``."""

    answers: int
    plausible: bool


@CORRECT.add(
    PureDP(1.0),
    [(2, 3)],
    level=1.0,
    why="The second field is computed from the first, which is a noisy count.",
)
def survey(count: int, rng: Rng) -> Survey:
    """Return a noisy count, and whether it can be one."""
    noisy = count + geometric_noise(1.0, rng)
    return Survey(noisy, plausible=noisy >= 0)


def published_with(count: int) -> float:
    """Return the largest probability of publishing a query of ``count`` people.

    Source: Desfontaines, Voss, Gipson & Mandayam (2022), "Differentially Private Partition Selection", PoPETs
    (arXiv:2006.03684), recurrence of Theorem 1.
    """
    p = 0.0
    for _ in range(count):
        p = min(math.e * p + DELTA, 1 - (1 - p - DELTA) / math.e, 1.0)
    return p


@CORRECT.add(
    ApproxDP(1.0, DELTA),
    Neighbours(
        [(["a", "a"], ["a"]), (["a", "b"], ["a"])],
        one_row_more,
        "one query more or less",
    ),
    level=1.0,
    why="For the probability p(n), p(n+1) ≤ e p(n) + δ and 1 − p(n) ≤ e (1 − p(n+1)) + δ; p(1) = δ, and p(2) = e δ + δ.",
)
def published_queries(queries: list[str], rng: Rng) -> dict[str, bool]:
    """Return some of the queries; which keys there are depends on the data, privately."""
    return {
        query: True
        for query, count in Counter(queries).items()
        if rng.random() < published_with(count)
    }


@CORRECT.add(
    PureDP(math.log(17 / 9)),
    QueryAnswers(3, largest=3),
    level=math.log(17 / 9),
    why="Weights are 2 to the votes; a name's first vote, with three for each of the others, takes it from 1/17 to 2/18.",
)
def winner(votes: NDArray[Any], rng: Rng) -> str:
    """Return a name with probability proportional to 2 to its votes (the exponential mechanism)."""
    weights = [2 ** int(count) for count in votes]
    ticket = int(rng.integers(sum(weights)))
    return COLOURS[int(np.searchsorted(np.cumsum(weights), ticket, side="right"))]


@CORRECT.add(
    PureDP(THREE),
    AnyValues(COLOURS),
    level=THREE,
    why="The truth has probability 3/6, the others 1/6; the table that the first call leaves behind is the same for all.",
)
class FourColours:
    """Randomised response with four answers; its table is made when it is first needed."""

    def __init__(self) -> None:
        self._weights: list[float] | None = None

    def __call__(self, colour: str, rng: Rng) -> str:
        """Return the colour, or each other one with a third of its probability."""
        if self._weights is None:
            self._weights = [3 / 6, 1 / 6, 1 / 6, 1 / 6]
        step = int(rng.choice(4, p=self._weights))
        return COLOURS[(COLOURS.index(colour) + step) % 4]


@CORRECT.add(
    GaussianDP(1.0),
    QueryAnswers(1),
    level=1.0,
    why="Noise of one sensitivity is 1-GDP (Dong, Roth & Su 2022, Theorem 1), and rounding to cents is post-processing.",
)
def rounded_answer(answer: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return an answer with Gaussian noise, in cents."""
    return np.round(answer[0] + rng.normal(size=size), 2)


@CORRECT.add(
    ApproxDP(1.0, 0.002),
    [(41, 42)],
    level=1.0,
    why="The exact count is released with probability δ; otherwise the noise is that of ε, and rounding is post-processing.",
)
def count_within_delta(count: int, rng: Rng) -> float:
    """Return a noisy count to three digits, or the count itself with the probability that δ allows."""
    if rng.random() < 0.002:
        return float(count)
    return round(count + rng.laplace(scale=1.0), 3)


@CORRECT.add(
    PureDP(1.0),
    QueryAnswers(2, largest=100),
    level=1.0,
    why="Each part is a whole count with noise of its own, and one of them changes.",
)
def complex_counts(counts: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return two noisy counts as complex numbers."""
    p = 1 - math.exp(-1.0)
    real, imaginary = (
        count + rng.geometric(p, size) - rng.geometric(p, size) for count in counts
    )
    return real + 1j * imaginary


@CORRECT.add(
    PureDP(1.0),
    QueryAnswers(1, largest=1000),
    level=1.0,
    why="The noisy count is taken modulo 256 after the noise, which is post-processing; it loses less than 1e-100 of ε.",
)
def wrapped_count(count: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return the last eight bits of a noisy count."""
    p = 1 - math.exp(-1.0)
    return (
        (int(count[0]) + rng.geometric(p, size) - rng.geometric(p, size)) % 256
    ).astype(np.uint8)
