"""The cost of the harness in addition to the mechanism.

A mechanism that adds Laplace noise is made to cost a given CPU time a call, by waiting on the thread's CPU clock, and its
tight claim is played as a black box. What is not spent inside the mechanism is the harness's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from auditdp import PureDP
from auditdp.adjacency import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.mechanism.protocol import Array
from auditdp.numerics.streams import stream
from benchmarks import figures
from benchmarks.parts import (
    ALPHA,
    Bar,
    BlackBox,
    Options,
    Part,
    Plot,
    Result,
    Results,
    Table,
    View,
)
from mechanisms.classic import NoisyHistogram1

COSTS = (1, 5, 20)
"""Microseconds a call."""
DIMENSIONS = (1, 10)
CALLS = (100_000, 1_000_000, 10_000_000)
BAR = 0.5


@dataclass(frozen=True)
class Busy:
    """Laplace noise that takes its time.

    Args:
        microseconds: CPU time of one call, the noise included.
    """

    microseconds: float

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` noisy vectors, shape (size, k), after a minimal time for each."""
        until = time.thread_time() + size * self.microseconds * 1e-6
        outputs = NoisyHistogram1(1.0)(data, size, rng=rng)
        while time.thread_time() < until:
            pass
        return outputs


def measure(
    microseconds: float, dimension: int, calls: Sequence[int], seed: int
) -> Result:
    """Play one game and read both clocks at each number of calls.

    Returns:
        For every number of calls the CPU seconds in all and inside the mechanism.
    """
    mechanism, claim, started = (
        BlackBox(Busy(microseconds)),
        PureDP(1.0),
        time.process_time(),
    )
    neighbour = np.zeros(dimension)
    pair = Pair(neighbour + (np.arange(dimension) == 0), neighbour)
    game = Game(
        mechanism,
        claim,
        [pair],
        [ViewExperts()],
        partial(stream, seed),
        levels=level_grid(claim),
    )
    clocks = []
    for count in calls:
        game.play(count, alpha=ALPHA)
        total = time.process_time() - started
        clocks.append(
            {
                "calls": count,
                "cpu_seconds": total,
                "mechanism_seconds": mechanism.cpu_seconds,
            }
        )
    return {"microseconds": microseconds, "dimension": dimension, "clocks": clocks}


def units(options: Options) -> dict[str, partial[Result]]:
    """One game for each cost and dimension."""
    calls = CALLS[:2] if options.quick else CALLS
    return {
        f"{cost} µs, d = {dimension}": partial(
            measure, cost, dimension, calls, options.seed
        )
        for cost in COSTS
        for dimension in DIMENSIONS
    }


def overhead(clock: Result) -> float:
    """Return the CPU time outside the mechanism over that inside."""
    return float(
        (clock["cpu_seconds"] - clock["mechanism_seconds"]) / clock["mechanism_seconds"]
    )


def view(results: Results) -> View:
    """Return the overhead of every game at every number of calls."""
    found = {
        f"{name}, {clock['calls']:,} calls": overhead(clock)
        for name, result in results.items()
        for clock in result["clocks"]
    }
    slow = [name for name, value in found.items() if value > BAR]
    complete = len(found) == len(COSTS) * len(DIMENSIONS) * len(CALLS)
    bar = Bar(
        f"Harness ≤ {BAR:g} times the CPU time of a mechanism that costs {COSTS[0]} µs a call or more",
        not slow if complete else None,
        f"{len(found) - len(slow)} of {len(found)} measured"
        + (f"; not: {'; '.join(slow)}" if slow else ""),
    )
    table = Table(
        "CPU time in the harness over CPU time in the mechanism",
        [
            "Mechanism",
            *(f"{count:,} calls" for count in CALLS),
            "µs a call in the harness",
        ],
        [_line(name, result) for name, result in results.items()],
        note="A black box on one pair at a tight claim, with the lower bound's grid; the last column at the most calls.",
    )
    plot = Plot(
        lambda: figures.overheads(
            {
                name: [(c["calls"], overhead(c)) for c in result["clocks"]]
                for name, result in results.items()
            },
            BAR,
        ),
        "The same figures, logarithmic; the dashed line is the bar.",
    )
    return View([bar], [table], [plot] if results else [])


def _line(name: str, result: Result) -> list[str]:
    found = {clock["calls"]: f"{overhead(clock):.2f}" for clock in result["clocks"]}
    last = result["clocks"][-1]
    each = (last["cpu_seconds"] - last["mechanism_seconds"]) / last["calls"]
    return [name, *(found.get(count, "–") for count in CALLS), f"{1e6 * each:.2f}"]


PART = Part("speed", "Speed", units, view, alone=True)
