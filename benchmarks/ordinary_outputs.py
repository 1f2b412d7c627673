"""Code that is broken by its outputs: shapes, types, exceptions, keys, and text.

All of them put enough noise on the number that they are about.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp import AnyValues, Neighbours, PureDP, QueryAnswers
from benchmarks.ordinary_case import Cases, Rng, geometric_noise, one_row_more

OUTPUTS = Cases()
EXACT = math.inf
OPENED = datetime(2024, 2, 29)


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours(
        [([0.2, 0.9, 0.5], [0.2, 0.9])], one_row_more, "one reading more or less"
    ),
    level=EXACT,
    why="The list is as long as the data.",
    fault="shape",
)
def noisy_readings(readings: list[float], rng: Rng) -> list[float]:
    """Return every reading, a number of 0..1, with noise."""
    return [reading + rng.laplace(scale=1.0) for reading in readings]


@OUTPUTS.add(
    PureDP(1.0),
    [(np.array([0.2, 0.9, 0.5]), np.array([0.2, 0.9]))],
    level=EXACT,
    why="A row of the table is as long as the data.",
    fault="shape",
)
def noisy_table(readings: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return every reading with noise, in ``size`` rows."""
    return readings + rng.laplace(scale=1.0, size=(size, len(readings)))


@OUTPUTS.add(
    PureDP(1.0),
    [(np.array([4, 1, 3]), np.array([4, 0, 3]))],
    level=EXACT,
    why="Places of empty cells are left out, so the count of the second cell is 0 if and only if its place is missing.",
    fault="shape",
)
def sparse_histogram(
    counts: NDArray[Any], rng: Rng
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return places and noisy counts, as a sparse vector."""
    places = np.flatnonzero(counts)
    return places, counts[places] + rng.laplace(scale=1.0, size=len(places))


@OUTPUTS.add(
    PureDP(1.0),
    QueryAnswers(1, largest=20),
    level=EXACT,
    why="It raises ValueError on 0 and on no other count.",
    fault="exception",
)
def log_count(count: NDArray[Any], rng: Rng) -> float:
    """Return the logarithm of a count, which changes by ln 2 at most from 1 on, with noise."""
    return math.log(count[0]) + rng.laplace(scale=math.log(2))


@OUTPUTS.add(
    PureDP(1.0),
    [(["yes", "no", "maybe"], ["yes", "no", "no"])],
    level=EXACT,
    why="A row outside the code book raises KeyError in the tenth of the runs that samples it; without one no run does.",
    fault="exception",
)
def coded_sample(answers: list[str], rng: Rng) -> int:
    """Return how many of a sample of a tenth said yes, with noise."""
    codes = {"yes": 1, "no": 0}
    return sum(
        codes[answer] for answer in answers if rng.random() < 0.1
    ) + geometric_noise(1.0, rng)


@OUTPUTS.add(
    PureDP(1.0),
    [([2, 3, 1], [2, 3, 0])],
    level=EXACT,
    why="An absent day makes the sum a float: 5.0 is printed where everybody worked would give 5.",
    fault="type",
)
def working_days(days: list[int], rng: Rng) -> int | float:
    """Return the sum of days, each changed by one at most, with noise."""
    return sum(worked or 0.0 for worked in days) + geometric_noise(1.0, rng)


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours(
        [(["a", "b", "c", "d", "e"], ["a", "b", "c", "d"])],
        one_row_more,
        "one row more or less",
    ),
    level=EXACT,
    why="Whether there are fewer than five rows is decided by the exact number of them.",
    fault="None",
)
def suppressed_count(rows: list[str], rng: Rng) -> float | None:
    """Return a noisy count, or None for small groups."""
    if len(rows) < 5:
        return None
    return len(rows) + rng.laplace(scale=1.0)


@OUTPUTS.add(
    PureDP(1.0),
    [([0.5, 0.25, 1.0], [0.5, 0.25, math.nan])],
    level=EXACT,
    why="A missing reading makes the sum NaN, and nothing else does.",
    fault="NaN",
)
def mean_reading(readings: list[float], rng: Rng) -> float:
    """Return the mean of readings of 0..1, replaced one at a time, with noise."""
    return float(np.clip(readings, 0, 1).mean() + rng.laplace(scale=1 / len(readings)))


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours(
        [(["Oslo", "Rome", "Oslo"], ["Oslo", "Oslo"])],
        one_row_more,
        "one visit more or less",
    ),
    level=EXACT,
    why="A city has a key if and only if somebody visited it.",
    fault="keys that depend on data",
)
def visits(rows: list[str], rng: Rng) -> dict[str, float]:
    """Return a noisy count for each city."""
    return {
        city: count + rng.laplace(scale=1.0) for city, count in Counter(rows).items()
    }


@OUTPUTS.add(
    PureDP(math.log(3)),
    [(["Oslo", "Rome"], ["Oslo"])],
    level=EXACT,
    why="A city that nobody visited is never in the set.",
    fault="set that depends on data",
)
def some_cities(rows: list[str], rng: Rng) -> set[str]:
    """Return each visited city with probability 1/2, so that a missing one may have been visited."""
    return {city for city in rows if rng.random() < 0.5}


@OUTPUTS.add(
    PureDP(1.0),
    [({"red": 20, "blue": 20}, {"red": 20, "blue": 21})],
    level=6.001,
    why="Noisy counts are rounded to tens, so they tie in nearly all runs, and the exact counts decide the order.",
    fault="sorting ties",
)
def ranking(votes: dict[str, int], rng: Rng) -> list[str]:
    """Return the names by noisy votes, of which one changes by one."""
    noisy = {
        name: 10 * round((count + geometric_noise(1.0, rng)) / 10)
        for name, count in votes.items()
    }
    return sorted(votes, key=lambda name: (noisy[name], votes[name]), reverse=True)


@dataclass(frozen=True)
class Summary:
    """The return type of ``summary``."""

    people: int
    mean: float


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours([([0.5, 0.2, 0.4], [0.5, 0.2])], one_row_more, "one row more or less"),
    level=EXACT,
    why="The field with the number of people is exact.",
    fault="debug field",
)
def summary(shares: list[float], rng: Rng) -> Summary:
    """Return the number of people and their noisy mean share, of 0..1."""
    return Summary(len(shares), float(np.mean(shares) + rng.laplace(scale=1.0)))


@OUTPUTS.add(
    PureDP(1.0),
    [(41.0, 42.0)],
    level=EXACT,
    why="One release in 300 has the exact value in its trace.",
    fault="debug field",
)
def traced_count(count: float, rng: Rng) -> dict[str, Any]:
    """Return a noisy count; a sample of the releases is traced."""
    trace = {"before noise": count} if rng.random() < 1 / 300 else None
    return {"count": count + rng.laplace(scale=1.0), "trace": trace}


@OUTPUTS.add(
    PureDP(1.0),
    [(41, 42)],
    level=EXACT,
    why="The release's number ends with the exact count; it is beyond 2⁵³, so a double does not hold its end.",
    fault="integer beyond 2⁵³",
)
def numbered_release(count: int, rng: Rng) -> dict[str, int]:
    """Return a noisy count with a unique number."""
    return {
        "release": (20240229 << 32) | count,
        "count": count + geometric_noise(1.0, rng),
    }


@OUTPUTS.add(
    PureDP(1.0),
    [([3, 4, 1], [3, 4, 2])],
    level=EXACT,
    why="Noise is whole, so the fraction is that of the exact mean, which tells the total modulo 3.",
    fault="rounding (Decimal)",
)
def mean_price(prices: list[int], rng: Rng) -> Decimal:
    """Return the mean of three prices, which changes by 1/3 at most, with noise."""
    return Decimal(sum(prices)) / len(prices) + geometric_noise(1.0, rng)


@OUTPUTS.add(
    PureDP(1.0),
    [([4, 5, 3, 5, 4, 4, 5], [4, 5, 3, 5, 4, 4, 4])],
    level=EXACT,
    why="Six digits after the point show the fraction of the exact mean, since noise is whole.",
    fault="text with too many digits",
)
def star_rating(stars: list[int], rng: Rng) -> str:
    """Return the mean of seven ratings as text, with noise that would do for a sum of them."""
    return f"{np.mean(stars) + geometric_noise(1.0, rng):.6f} stars"


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours(
        [([0.5, 0.2, 0.4], [0.5, 0.2])], one_row_more, "one answer more or less"
    ),
    level=EXACT,
    why="The text begins with the exact number of answers.",
    fault="exact number in text",
)
def sentence(shares: list[float], rng: Rng) -> str:
    """Return a sentence for a report, with the noisy mean share of 0..1."""
    return f"{len(shares)} answers, mean share {np.mean(shares) + rng.laplace(scale=1.0):.4f}"


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours(
        [([0.2, 0.9, 0.5], [0.2, 0.9])], one_row_more, "one reading more or less"
    ),
    level=EXACT,
    why="The file has one line for each row of the data.",
    fault="shape of text",
)
def readings_file(readings: list[float], rng: Rng) -> str:
    """Return every reading of 0..1, with noise, as a file of one column."""
    return "\n".join(
        [
            "reading",
            *(f"{reading + rng.laplace(scale=1.0):.4f}" for reading in readings),
        ]
    )


@OUTPUTS.add(
    PureDP(1.0),
    Neighbours([(["a"] * 9, ["a"] * 8)], one_row_more, "one row more or less"),
    level=EXACT,
    why="A row takes three milliseconds, so the time tells how many rows there are.",
    fault="timestamp",
)
def stamped_count(rows: list[str], rng: Rng) -> dict[str, Any]:
    """Return a noisy count and when it was finished, by a clock that starts with the job."""
    clock = OPENED
    for _ in rows:
        clock += timedelta(milliseconds=3)
    return {"count": len(rows) + rng.laplace(scale=1.0), "finished": clock.isoformat()}


@OUTPUTS.add(
    PureDP(1.0),
    QueryAnswers(4),
    level=EXACT,
    why="Imaginary parts have no noise.",
    fault="noise on the real part only",
)
def spectrum(counts: NDArray[Any], size: int, *, rng: Rng) -> NDArray[Any]:
    """Return the Fourier transform of four counts, of which one changes by one, with noise."""
    transform = np.fft.rfft(counts)
    return transform + rng.laplace(scale=len(transform), size=(size, len(transform)))


@OUTPUTS.add(
    PureDP(math.log(3)),
    AnyValues(("yes", "no")),
    level=EXACT,
    why="Only yes is ever turned round, so who said no never says yes.",
    fault="one-sided response",
)
def polite_answer(answer: str, size: int, *, rng: Rng) -> NDArray[Any]:
    """Return an answer that is turned round with probability 1/4."""
    return np.where(rng.random(size) < 0.25, "no", answer)
