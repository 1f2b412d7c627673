"""Laws that are read off the code of a trainer: bets by them refute tight and true claims no more often than alpha allows.

The claims are those of the pairs that are played, so that any bet that is too large is seen: steps that follow earlier
noise, whose loss is that of all moves, Poisson batches, whose loss a numerical bound has to five digits, and models of which
runs with the same draws show two normal laws or a threshold. A thousand games find a rate of .1 at .05 nine times in ten.
"""

import math
from functools import partial

import numpy as np
import pytest

from auditdp import AccountedDP, GaussianDP, Pair
from auditdp.accountants import PLDUpper
from auditdp.betting.forecasters.traced import (
    EXPENSIVE_RUN_WAYS,
    ReplayedRatio,
    RunBudget,
)
from auditdp.betting.game import Game
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.tracing import Trace

pytestmark = [pytest.mark.statistical, pytest.mark.full]
LEVELS, CALLS, STEPS = (0.05, 0.25), 60, 3
RATE, NOISE = 0.5, 0.8


def following(data, rng):
    released = [0.0]
    for _ in range(STEPS):
        released.append(data.sum() + 0.3 * math.tanh(released[-1]) + rng.normal())
    return released[1:]


def sampled(data, rng):
    return [
        data[rng.random(len(data)) < RATE].sum() + rng.normal(scale=NOISE)
        for _ in range(STEPS)
    ]


def summed(data, rng):
    return sum(data.sum() + rng.normal() for _ in range(STEPS))


def bent(data, rng):
    return math.exp(3 * summed(data, rng))


POISSON = AccountedDP(PLDUpper(NOISE, RATE, STEPS), quoted=1e-5)
TIGHT = [
    (following, GaussianDP(math.sqrt(STEPS)), Pair(np.ones(1), np.zeros(1))),
    (sampled, POISSON, Pair(np.array([0.0, 1.0]), np.array([0.0]))),
    (summed, GaussianDP(math.sqrt(STEPS)), Pair(np.ones(1), np.zeros(1))),
    (bent, GaussianDP(2 * math.sqrt(STEPS)), Pair(np.full(1, 2.0), np.zeros(1))),
]


def test_bets_by_laws_that_were_read_refute_a_tight_claim_at_most_alpha_of_the_time(
    repeats,
):
    found = []
    for train, claim, pair in TIGHT:
        mechanism = as_mechanism(train)
        calls = Calls(mechanism)
        calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
        forecaster = ReplayedRatio(
            Trace(mechanism),
            claim,
            seed=1,
            ways=EXPENSIVE_RUN_WAYS,
            budget=RunBudget(10_000, 1_000),
        )
        assert forecaster.reads_one_of([pair], calls.form)
        for game in range(repeats(250)):
            streams = partial(stream, game, train.__name__)
            played = Game(mechanism, claim, [pair], [forecaster], streams)
            played.play(CALLS, alpha=min(LEVELS), stop_when_refuted=True)
            found.append([played.wealth.refuted(level) for level in LEVELS])
    for level, refuted in zip(LEVELS, np.sum(found, axis=0), strict=True):
        assert refuted <= repeats.most(len(found), level), (
            f"{refuted} of {len(found)} at {level=}"
        )
