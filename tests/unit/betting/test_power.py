"""The violation that a clean game would have found: simulated, and monotone."""

from math import exp, inf

import numpy as np
import pytest
from scipy.stats import binom

from auditdp import ApproxDP, GaussianDP, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.power import (
    HIGHEST_LEVEL,
    POWER,
    _response_power,
    detectable_level,
    detectable_rarely,
)
from auditdp.betting.wealth.regions import log_cap
from auditdp.testing import GaussianMechanism, Response
from tests.unit.betting.toys import new_game

pytestmark = pytest.mark.dear

GAMES = 150
ALONE = 1.0
SHARED = 16 / 18.03
"""The stake of the likelihood ratio alone, and beside others.

It is 16 beside leaders and a watcher of 1 each, and repeats of .03.
"""


def level_of(claim, calls, alpha=0.05, share=ALONE, *, white_box=True):
    return detectable_level(
        claim, calls=calls, alpha=alpha, share=share, white_box=white_box
    )


def refutations(mechanism, claim, calls, alpha, games, share=ALONE):
    """Return the number of refuted games, as `auditdp run` would judge them."""
    forecasters = [LikelihoodRatio()] if share == ALONE else None
    refuted = 0
    for seed in range(games):
        game = new_game(mechanism, claim, forecasters, seed=seed)
        stakes = game.wealth.shares
        own = stakes[0] / (sum(stakes) + game.wealth.leader)
        assert own == pytest.approx(share)
        game.play(calls, alpha=alpha, stop_when_refuted=True)
        refuted += game.wealth.refuted(alpha)
    return refuted


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("claim", "calls", "alpha", "share", "power"),
    [
        (PureDP(1.0), 150, 0.05, ALONE, POWER),
        (PureDP(1.0), 150, 1e-3, SHARED, POWER),
        (PureDP(0.2), 200, 0.05, ALONE, POWER),
        (ApproxDP(0.5, 0.01), 150, 0.05, ALONE, POWER),
        # This level is computed by a normal approximation.
        (GaussianDP(1.0), 150, 0.05, ALONE, 0.85),
    ],
)
def test_the_stated_level_is_refuted_nine_times_in_ten_and_a_smaller_one_is_not(
    claim, calls, alpha, share, power, repeats
):
    games = repeats(GAMES, least=40)
    level, alternative = level_of(claim, calls, alpha, share)
    is_gaussian = "Gaussian" in alternative
    assert is_gaussian == (claim.delta is None)
    assert claim.level < level < HIGHEST_LEVEL

    def found(level):
        mechanism = GaussianMechanism(1 / level) if is_gaussian else Response(level)
        return refutations(mechanism, claim, calls, alpha, games, share)

    assert found(level) >= repeats.fewest(games, power)
    assert found(claim.level + 0.6 * (level - claim.level)) < POWER * games


@pytest.mark.parametrize(
    "claim",
    [
        ApproxDP(1.0, 0.01),
        PureDP(1.0),
        GaussianDP(1.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("white_box", [True, False])
def test_more_calls_and_more_alpha_find_smaller_violations(claim, white_box):
    def level(calls=1000, alpha=0.05, share=1 / 3):
        return level_of(claim, calls, alpha, share, white_box=white_box)[0]

    known = level_of(claim, 1000, share=1 / 3)[0]
    assert level() == known if white_box else level() > known
    by_calls = [level(calls) for calls in (1, 20, 100, 1000, 20_000)]
    assert by_calls == sorted(by_calls, reverse=True)
    assert by_calls[-1] > claim.level
    by_alpha = [level(alpha=alpha) for alpha in (1e-9, 1e-6, 1e-3, 0.05, 0.5)]
    assert by_alpha == sorted(set(by_alpha), reverse=True)
    by_share = [level(share=share) for share in (1.0, 0.3, 1e-3)]
    assert by_share == sorted(by_share)
    assert by_share[0] < by_share[-1]


def rare(share, *, alone):
    """Return normal noise with rare outputs that are far off, or of one input alone."""
    # Twice the claim of 1, or beyond any.
    ratio = 0.0 if alone else exp(-2)

    def mechanism(data, size, *, rng):
        outputs = rng.normal(size=size)
        rarely = rng.random(size) < share * (1.0 if data else ratio)
        return np.where(rarely, 7.25 if alone else 40 + outputs, outputs)

    return mechanism


@pytest.mark.statistical
@pytest.mark.full
@pytest.mark.parametrize("alone", [True, False])
def test_stated_rare_outputs_are_found_nine_times_in_ten(alone, repeats):
    """By a black box; a third as rare ones are not."""

    def played(share, seed):
        mechanism = rare(share, alone=alone)
        game = new_game(mechanism, forecasters=[ViewExperts()], seed=seed)
        game.play(5_000, alpha=0.05, stop_when_refuted=True)
        return game

    def found(share, games):
        return sum(played(share, k).refuted_at is not None for k in range(games))

    wealth = played(0.5, 0).wealth
    part = float(np.median(wealth.shares)) / (sum(wealth.shares) + wealth.leader)
    rates = detectable_rarely(PureDP(1.0), calls=5_000, alpha=0.05, share=part)
    share = rates[alone]
    assert 0 < share < 0.5
    games = repeats(400, least=30)
    fewer = repeats(400, least=10)
    assert found(share, games) >= repeats.fewest(games, POWER)
    assert found(share / 3, fewer) < POWER * fewer


@pytest.mark.parametrize("epsilon", [1e-6, 20.0, 1e3, 1e308])
@pytest.mark.parametrize("calls", [1, 100, 10**7])
def test_the_rarity_of_an_output_is_a_probability_for_any_claim(epsilon, calls):
    rates = detectable_rarely(PureDP(epsilon), calls=calls, alpha=0.05, share=1e-3)
    assert all(0 < share <= 1 for share in rates)


def test_a_budget_that_can_refute_nothing_has_an_infinite_level():
    """Nine calls without noise do not reach 20 = 1/alpha against 1-DP; ten do."""
    level, alternative = level_of(PureDP(1.0), 9)
    assert level == inf
    assert "randomised response" in alternative
    assert level_of(PureDP(1.0), 10)[0] < 64
    assert level_of(PureDP(100.0), 1000)[0] == inf


@pytest.mark.parametrize("calls", [50, 1, 10_000])
@pytest.mark.parametrize("needed", [3.0, 0.1, -100.0])
def test_the_power_against_randomised_response_is_a_binomial_tail(calls, needed):
    (log_q, log_p), (log_1q, log_1p) = log_cap(np.array([1.0, 1.3]))
    right = np.arange(calls + 1)
    wealth = right * (log_p - log_q) + (calls - right) * (log_1p - log_1q)
    tail = binom.pmf(right, calls, exp(log_p))[wealth >= needed].sum()
    found = _response_power(PureDP(1.0), 1.3, calls, needed)
    assert found == pytest.approx(tail, abs=1e-9)
