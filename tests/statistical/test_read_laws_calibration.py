"""Bets by laws that are read off a trainer's code refute tight claims at most α often.

The claims are those of the pairs that are played, so that any bet that is too large
shows: of steps that follow earlier noise, of Poisson batches, and of models of which
runs with the same draws show two normal laws or a threshold. A thousand games find a
rate of .1 at .05 with probability 9 in 10.
"""

from functools import partial
from math import exp, sqrt, tanh

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
LEVELS = (0.05, 0.25)
STEPS = 3


def following(data, rng):
    released = [0.0]
    for _ in range(STEPS):
        released.append(data.sum() + 0.3 * tanh(released[-1]) + rng.normal())
    return released[1:]


def sampled(data, rng):
    released = []
    for _ in range(STEPS):
        batch = data[rng.random(len(data)) < 0.5]
        released.append(batch.sum() + rng.normal(scale=0.8))
    return released


def summed(data, rng):
    return sum(data.sum() + rng.normal() for _ in range(STEPS))


def bent(data, rng):
    return exp(3 * summed(data, rng))


POISSON = AccountedDP(PLDUpper(0.8, 0.5, STEPS), quoted=1e-5)
ONE, NONE = np.ones(1), np.zeros(1)
TIGHT = [
    (following, GaussianDP(sqrt(STEPS)), Pair(ONE, NONE)),
    (sampled, POISSON, Pair(np.array([0.0, 1.0]), NONE)),
    (summed, GaussianDP(sqrt(STEPS)), Pair(ONE, NONE)),
    (bent, GaussianDP(2 * sqrt(STEPS)), Pair(2 * ONE, NONE)),
]


def test_bets_by_read_laws_refute_a_tight_claim_at_most_alpha_of_the_time(repeats):
    found = []
    for train, claim, pair in TIGHT:
        mechanism = as_mechanism(train)
        calls = Calls(mechanism)
        calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
        budget = RunBudget(10_000, 1_000)
        forecaster = ReplayedRatio(
            Trace(mechanism), claim, seed=1, ways=EXPENSIVE_RUN_WAYS, budget=budget
        )
        assert forecaster.reads_one_of([pair], calls.form)
        for seed in range(repeats(250)):
            streams = partial(stream, seed, train.__name__)
            game = Game(mechanism, claim, [pair], [forecaster], streams)
            game.play(60, alpha=min(LEVELS), stop_when_refuted=True)
            found.append([game.wealth.refuted(level) for level in LEVELS])
    for level, refuted in zip(LEVELS, np.sum(found, axis=0), strict=True):
        most = repeats.most(len(found), level)
        assert refuted <= most, f"{refuted} of {len(found)} at {level=}"
