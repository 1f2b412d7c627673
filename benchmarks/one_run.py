"""One training with many canaries, beside as many trainings on two data sets.

The trainer releases the noised sums of DP-SGD on all records, exactly μ-Gaussian DP for each canary. Either all canaries
have coins of their own and are scored by the inner product of the sums with their gradients, or one of them has, and bets
are made on it. Canaries are orthogonal, which is the best case for one run: a score is the coin plus noise of 1/μ.

Then what one run shows ASSUMING independent Gaussian scores, where they are and where they are not: how much of ε at
δ = 1e-5, how often more than the score of a canary gives away, and how often the assumption is seen to be wrong.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from auditdp import Canaries, GaussianDP, Pair
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.bounds.api import in_one_run
from auditdp.bounds.privacy_curves import EpsilonDelta
from auditdp.bounds.result import Question
from auditdp.bounds.stated_assumptions import assuming_gaussian
from auditdp.evidence.one_run_evidence import one_run_evidence
from auditdp.mechanism.protocol import Array, PerCall
from auditdp.numerics.streams import stream
from benchmarks.parts import (
    ALPHA,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    grouped,
    median,
    spread,
)

LEVELS = (0.5, 1.0, 2.0)
CANARIES = 1_000
ONE_RUN, RERUNS = "one run", "reruns"
TRAININGS = {ONE_RUN: (1, 3, 10), RERUNS: (1, 10, 100, 1_000, 10_000)}
REPEATS = 9
ASSUMING = "assuming"
MANY_REPEATS = 400
"""Number of repeats of assumed bounds, which are fast; certified bounds use the first
nine."""
NUMBERS = (1_000, 5_000)
TRUE_EPSILON, DELTA = 6.9, 1e-5
SEPARATION = 1.473
"""μ of that ε."""
SCORES: Mapping[str, Callable[[np.random.Generator, int], Array]] = {
    "Gaussian": lambda rng, n: rng.standard_normal(n),
    "Student's t, 10 degrees": lambda rng, n: rng.standard_t(10, n) * math.sqrt(0.8),
    "Student's t, 4 degrees": lambda rng, n: rng.standard_t(4, n) * math.sqrt(0.5),
    "ten beside each other share half": lambda rng, n: _shared(rng, n, np.arange(n)),
    "ten anywhere share half": lambda rng, n: _shared(rng, n, rng.permutation(n)),
}
"""Noise of variance 1."""


@dataclass(frozen=True)
class Scored:
    """The score of each canary, its coin plus noise; for one canary also its law."""

    mu: float

    def __call__(self, included: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` scores of every canary, shape (size, canaries)."""
        return (
            np.asarray(included) + rng.standard_normal((size, len(included))) / self.mu
        )

    def log_prob(self, outputs: Array, included: Any) -> Array:
        """Return the log density of each output, up to a constant, shape (size,)."""
        return np.asarray(
            -(self.mu**2) / 2 * ((outputs - np.asarray(included)) ** 2).sum(axis=1)
        )


def certified(way: str, mu: float, trainings: int, seed: int) -> Result:
    """Return the certified share of μ, and the CPU seconds for it."""
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
        game = Game(
            mechanism,
            claim,
            [pair],
            [LikelihoodRatio()],
            streams,
            levels=level_grid(claim),
        )
        game.play(trainings, alpha=ALPHA)
        bound = game.wealth.lower_bound(ALPHA)
    return {"part": bound / mu, "cpu_seconds": time.process_time() - started}


def _shared(rng: np.random.Generator, canaries: int, place: Array) -> Array:
    """Gaussian noise, half of whose variance each has in common with nine others."""
    common = np.repeat(rng.standard_normal(-(-canaries // 10)), 10)[:canaries]
    return np.asarray((common[place] + rng.standard_normal(canaries)) * math.sqrt(0.5))


def assumed(kind: str, canaries: int, seed: int, certify: bool) -> Result:
    """Return the bound of one training under the assumption, and the certified one."""
    rng = stream(seed, ASSUMING, kind, canaries)
    labels = (rng.random(canaries) < 0.5).astype(np.int8)
    scores = SEPARATION * labels + SCORES[kind](rng, canaries)
    question = Question(EpsilonDelta(DELTA), ALPHA, None)
    found = assuming_gaussian(scores, labels, question)
    assert found is not None  # there are canaries enough
    lower = in_one_run(scores, labels, question, rng=rng).lower if certify else None
    return {"assumed": found.lower, "certified": lower}


def _row(way: str, mu: float, trainings: int) -> str:
    return f"{way}, μ = {mu:g}, {trainings:,} trainings"


def units(options: Options) -> Mapping[str, partial[Result]]:
    """One unit for each way, level, number of trainings and repeat."""
    repeats = options.repeats or (1 if options.quick else REPEATS)
    many = options.repeats or (REPEATS if options.quick else MANY_REPEATS)
    under_assumptions = {
        f"{ASSUMING}, {kind}, {canaries:,}/{k}": partial(
            assumed, kind, canaries, options.seed + k, k < repeats
        )
        for kind in SCORES
        for canaries in NUMBERS
        for k in range(many)
    }
    return under_assumptions | {
        f"{_row(way, mu, trainings)}/{k}": partial(
            certified, way, mu, trainings, options.seed + k
        )
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
                parts = [
                    spread([run["part"] for run in of], "{:.2f}".format) if of else "–"
                    for of in runs
                ]
                seconds = median([run["cpu_seconds"] for of in runs for run in of])
                lines.append(
                    [
                        way,
                        f"{trainings:,}",
                        *parts,
                        f"{seconds:.1f}",
                        str(max(map(len, runs))),
                    ]
                )
    table = Table(
        f"Certified level over the true one, of tight Gaussian DP at α = {ALPHA:g}",
        ["Way", "Trainings", *(f"μ = {mu:g}" for mu in LEVELS), "CPU s", "Repeats"],
        lines,
        note=f"One run: {CANARIES:,} canaries a training, each with its own coin. Reruns: one canary, whose law is known.",
    )
    return View([], [each for each in (table, _assuming(groups)) if each.rows])


def _assuming(groups: Mapping[str, Sequence[Result]]) -> Table:
    """Compare certified bounds with assumed ones."""
    lines = []
    for kind in SCORES:
        for canaries in NUMBERS:
            runs = groups.get(f"{ASSUMING}, {kind}, {canaries:,}", [])
            certified = [
                run["certified"] for run in runs if run["certified"] is not None
            ]
            shown = [run["assumed"] for run in runs if run["assumed"] is not None]
            if runs:
                above = sum(bound > TRUE_EPSILON for bound in shown)
                middle = spread(shown, "{:.2f}".format) if shown else "–"
                lines.append(
                    [
                        kind,
                        f"{canaries:,}",
                        f"{median(certified):.2f}" if certified else "–",
                        middle,
                        f"{above} of {len(shown)}",
                        f"{len(runs) - len(shown)} of {len(runs)}",
                    ]
                )
    return Table(
        f"One training: ε of {TRUE_EPSILON:g} at δ = {DELTA:g}, certified and ASSUMING independent Gaussian scores",
        [
            "Noise of the scores",
            "Canaries",
            "Certified",
            "Assuming",
            "Above the Gaussian ε",
            "Seen to be wrong",
        ],
        lines,
        note=f"α = {ALPHA:g}. The assumption is taken to be wrong where p < .01; a bound is only given where it is not.",
    )


PART = Part("one-run", "One run or many", units, view)
