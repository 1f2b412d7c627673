"""The game's lower bound on random selections.

It is never above the exact ε of the pair that is played.

What is random: 2 to 5 scores, 1 to 3 of which are selected with Gumbel noise, how far a
neighbour moves each, the noise, and whether the order is shown. What is exact: the
pair's ε, by the law of Plackett and Luce or of sets, in ball arithmetic.

The bound is read at a grid of levels of which one is that ε, rounded up, and four lie
above it, so that "at or above it" is seen as soon as it happens. At confidence 1 − α it
may happen with probability α in each game. "Never" is tested by the same games at α =
1e-9, where 1,000 of them, as many as are played in full, have it happen once with
probability 1e-6 at most.
"""

import numpy as np
import pytest

from auditdp import Pair, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from benchmarks.alarms import Overconfident
from mechanisms.pagerank import DPApprEM, GivenRows

pytestmark = pytest.mark.statistical
INSTANCES, CALLS, ALPHA, NEVER = 1_000, 200, 0.05, 1e-9
GRID = 2.0 ** (np.arange(-12, 5) / 4)
"""Levels as multiples of the exact ε; the last five are at or above it."""


def instance(rng):
    """A selection and its believed version with a third of the noise, a pair of scores in [0, 1], and the pair's exact ε."""
    n = int(rng.integers(2, 6))
    k = int(rng.integers(1, min(n, 4)))
    epsilon, ordered = float(10 ** rng.uniform(-0.5, 0.7)), bool(rng.integers(2))
    mechanism, believed = (
        DPApprEM(e, k, GivenRows(n), clip=1.0, ordered=ordered)
        for e in (epsilon, 3 * epsilon)
    )
    scores = rng.random(n)
    pair = Pair(scores, np.clip(scores + rng.choice([-1, 1], n) * rng.random(n), 0, 1))
    return (
        mechanism,
        believed,
        pair,
        pair_loss(*map(mechanism.distribution, (pair.data, pair.neighbour))).upper,
    )


def bounds(number, calls=CALLS, *, watching=False, factor=1.0):
    """Lower bounds at both levels of confidence after one game on one instance, in units of ``factor`` times its exact ε."""
    rng = stream(20240229, "top-k bounds", number)
    mechanism, believed, pair, exact = instance(rng)
    unit = factor * exact
    forecasters = [
        LikelihoodRatio(),
        Overconfident(believed),
        *([ViewExperts()] if watching else []),
    ]
    game = Game(
        as_mechanism(mechanism),
        PureDP(unit),
        [pair],
        forecasters,
        lambda *_: rng,
        levels=unit * GRID,
    )
    game.play(calls, alpha=ALPHA)
    return [game.wealth.lower_bound(alpha) / unit for alpha in (ALPHA, NEVER)]


def test_the_bound_is_never_above_the_exact_epsilon(repeats):
    instances = repeats(INSTANCES)
    found = np.array([bounds(number) for number in range(instances)])
    alarms, most = int((found[:, 0] >= 1).sum()), repeats.most(instances, ALPHA)
    assert alarms <= most, (
        f"{alarms} of {instances} at alpha={ALPHA:g}; more than {most} with probability 1e-6"
    )
    assert (found[:, 1] < 1).all(), (
        f"alpha={NEVER:g} each, {instances * NEVER:g} in all"
    )


@pytest.mark.full
def test_the_bound_holds_with_learning_forecasters(repeats):
    """A tenth as many with the automatic forecaster beside.

    Alpha = 1e-7 in all at most.
    """
    assert all(
        bounds(number, watching=True)[1] < 1
        for number in range(repeats(INSTANCES // 10))
    )


def test_the_bound_is_no_empty_one(repeats):
    """Power: with 5,000 calls the mean bound of 20 instances (40 in full) is near half of the exact ε; the seed is fixed."""
    assert (
        np.mean([bounds(number, 5_000)[0] for number in range(repeats(40, least=10))])
        > 0.4
    )


def test_a_bound_above_a_third_of_the_exact_epsilon_is_detected(repeats):
    """Guards the guard: measured against a third of the exact ε, most bounds at 5 % are above it, and near half at 1e-9."""
    found = np.array(
        [bounds(number, 5_000, factor=1 / 3) for number in range(repeats(40, least=10))]
    )
    assert ((found >= 1).mean(axis=0) > (0.7, 0.3)).all()
