"""One training with many canaries, or many trainings on two worlds: which certifies more for as many trainings?

The trainer releases the noised sums of DP-SGD on all records, exactly μ-Gaussian DP for each canary. Either all canaries
have coins of their own and are scored by the inner product of the sums with their gradients, or one of them has, and bets
are made on it. Canaries are orthogonal, which is the best case for one run: a score is the coin plus noise of 1/μ.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from auditdp import Canaries, GaussianDP, Pair
from auditdp.betting.forecasting.forecasters import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.evidence.one_run import one_run_evidence
from auditdp.mechanism.protocol import Array, PerCall
from auditdp.numerics.randomness import stream
from benchmarks.parts import ALPHA, Options, Part, Result, Results, Table, View, grouped, median, spread

LEVELS = (0.5, 1.0, 2.0)
CANARIES = 1_000
ONE_RUN, RERUNS = "one run", "reruns"
TRAININGS = {ONE_RUN: (1, 3, 10), RERUNS: (1, 10, 100, 1_000, 10_000)}
REPEATS = 9


@dataclass(frozen=True)
class Scored:
    """The score of each canary, its coin plus noise; for one canary also its law."""

    mu: float

    def __call__(self, included: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` scores of every canary, shape (size, canaries)."""
        return np.asarray(included) + rng.standard_normal((size, len(included))) / self.mu

    def log_prob(self, outputs: Array, included: Any) -> Array:
        """Return the log density of each output, up to a constant, shape (size,)."""
        return np.asarray(-(self.mu**2) / 2 * ((outputs - np.asarray(included)) ** 2).sum(axis=1))


def certified(way: str, mu: float, trainings: int, seed: int) -> Result:
    """Return the part of μ that is certified by so many trainings, and the CPU seconds that it took."""
    started, claim, mechanism = time.process_time(), GaussianDP(mu), Scored(mu)
    if way == ONE_RUN:
        evidence = one_run_evidence(
            PerCall(lambda included, rng: mechanism(included, 1, rng=rng)[0]),
            claim,
            Canaries(CANARIES),
            alpha=ALPHA,
            trainings=trainings,
            streams=partial(stream, seed, way, str(mu)),
        )
        bound = evidence.epsilon_lower or 0.0
    else:
        pair = Pair(np.array([True]), np.array([False]))
        streams = partial(stream, seed, way, str(mu))
        game = Game(mechanism, claim, [pair], [LikelihoodRatio()], streams, levels=level_grid(claim))
        game.play(trainings, alpha=ALPHA)
        bound = game.wealth.lower_bound(ALPHA)
    return {"part": bound / mu, "cpu_seconds": time.process_time() - started}


def _row(way: str, mu: float, trainings: int) -> str:
    return f"{way}, μ = {mu:g}, {trainings:,} trainings"


def units(options: Options) -> Mapping[str, partial[Result]]:
    """One unit for each way, level, number of trainings and repeat."""
    repeats = options.repeats or (1 if options.quick else REPEATS)
    return {
        f"{_row(way, mu, trainings)}/{k}": partial(certified, way, mu, trainings, options.seed + k)
        for way, numbers in TRAININGS.items()
        for mu in LEVELS
        for trainings in (numbers[:1] if options.quick else numbers)
        for k in range(repeats)
    }


def view(results: Results) -> View:
    """Set both ways beside each other."""
    groups = grouped(results)
    lines = []
    for way, numbers in TRAININGS.items():
        for trainings in numbers:
            runs = [groups.get(_row(way, mu, trainings), []) for mu in LEVELS]
            if any(runs):
                parts = [spread([run["part"] for run in of], "{:.2f}".format) if of else "–" for of in runs]
                seconds = median([run["cpu_seconds"] for of in runs for run in of])
                lines.append([way, f"{trainings:,}", *parts, f"{seconds:.1f}", str(max(map(len, runs)))])
    table = Table(
        f"Certified level over the true one, of tight Gaussian DP at α = {ALPHA:g}",
        ["Way", "Trainings", *(f"μ = {mu:g}" for mu in LEVELS), "CPU s", "Repeats"],
        lines,
        note=f"One run: {CANARIES:,} canaries a training, each with its own coin. Reruns: one canary, whose law is known.",
    )
    return View([], [table] if lines else [])


PART = Part("one-run", "One run or many", units, view)
