"""False alarms of audits by the game, also if its assumptions fail.

Audits of 30,000 calls have everything in them that short games have not: leaders of every start, ranked and thinned views,
trained scores, the search for pairs, confirmation and shrinking. The other audits are of true claims whose calls depend on
each other, or with code of the user that would read the coins from the order of a batch: VIOLATED is wrong in all of them,
and an error is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from auditdp import ApproxDP, GaussianDP, NeighbourList, Pair, PureDP, QueryAnswers
from auditdp.adjacency import Adjacency, as_adjacency
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.claims.claim import Claim
from auditdp.errors import MechanismError
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import Array, as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse
from benchmarks.parts import ALPHA, BlackBox, Check, Rng
from mechanisms.classic import NoisyHistogram1
from mechanisms.edges.randomised_response import RandomisedResponse

LONG, SHORT, BATCHES = 30_000, 2_000, 400
BIT = as_adjacency(Pair(1.0, 0.0))


def shared_half(data: float, size: int, *, rng: Rng) -> Array:
    """Normal noise of deviation 1, half of whose variance all outputs of a call share: every single run is 1-GDP."""
    return np.asarray(data + math.sqrt(0.5) * (rng.normal(size=size) + rng.normal()))


def chain(data: float, size: int, *, rng: Rng) -> Array:
    """Consecutive states of a stationary chain with normal law of deviation 1: every single run is 1-GDP."""
    states = np.empty(size)
    state = rng.normal()
    for k in range(size):
        states[k] = state
        state = 0.9 * state + math.sqrt(1 - 0.9**2) * rng.normal()
    return data + states


@dataclass
class Remembering:
    """Laplace noise that is drawn once for every input and remembered: a single run is 1-DP."""

    answers: dict[float, float] = field(default_factory=dict)

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return the remembered answer."""
        if data not in self.answers:
            self.answers[data] = data + rng.laplace()
        return np.full(size, self.answers[data])


@dataclass
class Drifting:
    """Laplace noise with a part that moves slowly from call to call, in the instance: each run alone is 1-DP or better."""

    state: float = 0.0

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return one output, whatever the size is for."""
        outputs = np.empty(size)
        for k in range(size):
            self.state = 0.99 * self.state + 0.3 * rng.normal()
            outputs[k] = data + self.state + rng.laplace()
        return outputs


class OfTheLaw:
    """Forecasts that are computed from those of the true law, by a subclass."""

    law: Any = None

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair."""
        bound = type(self)()
        bound.law = LikelihoodRatio().bind(mechanism, pair)
        return bound

    def fit(self, outputs: Array, labels: Array) -> Self:
        """Do nothing, since the law is known."""
        return self


class Smoothing(OfTheLaw):
    """Forecasts with the true law, averaged over neighbouring rows: it reads the coins from batches sorted by them."""

    name = "smoothing"

    def log_odds(self, outputs: Array) -> Array:
        """Return the sum of the log-likelihood ratios of a row and its neighbours."""
        return np.convolve(self.law.log_odds(outputs), np.ones(9))[4 : len(outputs) + 4]


class Alternating:
    """A mechanism whose ``score`` alternates between 0 and 1, call by call."""

    def __init__(self) -> None:
        self.turn = 0.0

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return Laplace noise around the data."""
        return LaplaceMechanism(1.0)(data, size, rng=rng)

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the turn of this call for every output."""
        self.turn = 1 - self.turn
        return np.full(len(outputs), self.turn)


def _audits(
    make: Callable[[], Any],
    claim: Claim,
    adjacency: Adjacency,
    calls: int,
    repeats: int,
    rng: Rng,
    *,
    forecasters: Callable[[], list[Any]] | None = None,
) -> int:
    """Return the number of audits that refute a true claim."""
    alarms = 0
    for seed in rng.integers(2**62, size=repeats):
        own = None if forecasters is None else forecasters()
        streams = partial(stream, int(seed))
        try:
            found = play_game(
                as_mechanism(make()),
                claim,
                adjacency,
                GameOptions(alpha=ALPHA, budget=AuditBudget.of(calls), forecasters=own),
                streams=streams,
            )
        except MechanismError:
            continue
        alarms += found.verdict is Verdict.VIOLATED
    return alarms


TIGHT: dict[str, tuple[Callable[[], Any], Claim, Adjacency]] = {
    "Laplace, law stated": (lambda: LaplaceMechanism(1.0), PureDP(1.0), BIT),
    "Laplace, black box": (lambda: BlackBox(LaplaceMechanism(1.0)), PureDP(1.0), BIT),
    "5 noisy counts, pairs searched": (
        lambda: BlackBox(NoisyHistogram1(1.0)),
        PureDP(1.0),
        QueryAnswers(5),
    ),
    "randomised response on lists, pairs searched": (
        lambda: BlackBox(RandomisedResponse(1.0)),
        PureDP(1.0),
        NeighbourList(nodes=6),
    ),
    "(ε, δ), black box": (
        lambda: BlackBox(LeakyResponse(1.0, 0.05)),
        ApproxDP(1.0, 0.05),
        as_adjacency(Pair(1, 0)),
    ),
    "Gaussian, black box": (
        lambda: BlackBox(GaussianMechanism(1.0)),
        GaussianDP(1.0),
        BIT,
    ),
}
DEPENDENT: dict[str, tuple[Callable[[], Any], Claim, Adjacency]] = {
    "half of the noise shared in a call": (lambda: shared_half, GaussianDP(1.0), BIT),
    "consecutive states of a chain": (lambda: chain, GaussianDP(1.0), BIT),
    "answers remembered": (Remembering, PureDP(1.0), BIT),
    "noise that drifts from call to call": (Drifting, PureDP(1.0), BIT),
}
ORDERED: dict[str, tuple[Callable[[], Any], Callable[[], list[Any]] | None]] = {
    "a forecaster that smooths over rows": (
        lambda: LaplaceMechanism(1.0),
        lambda: [Smoothing()],
    ),
    "a score with a state": (Alternating, None),
}

LONG_FALSE_ALARMS: dict[str, Check] = {
    f"{name}, {LONG:,} calls": partial(_audits, make, claim, adjacency, LONG)
    for name, (make, claim, adjacency) in TIGHT.items()
}
FALSE_ALARMS: dict[str, Check] = {
    name: partial(_audits, make, claim, adjacency, SHORT)
    for name, (make, claim, adjacency) in DEPENDENT.items()
} | {
    name: partial(_audits, make, PureDP(1.0), BIT, BATCHES, forecasters=forecasters)
    for name, (make, forecasters) in ORDERED.items()
}
