"""The violation that a clean game would have found: simulated, and monotone in the budget."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, default_forecasters
from auditdp.betting.game import Game
from auditdp.betting.power import (
    HIGHEST_LEVEL,
    POWER,
    _response_power,
    detectable_level,
    detectable_rarely,
)
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.regions import log_cap
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.numerics.streams import stream
from auditdp.testing import GaussianMechanism, Response

pytestmark = pytest.mark.dear

GAMES = 150
CASES = {
    "pure": (PureDP(1.0), 150, 0.05, False),
    "pure, shared with a watcher": (PureDP(1.0), 150, 1e-3, True),
    "small epsilon": (PureDP(0.2), 200, 0.05, False),
    "approximate": (ApproxDP(0.5, 0.01), 150, 0.05, False),
}
SHARE, SHARED = 1.0, 16 / 18.03
"""What the likelihood ratio begins with: everything alone; 16 beside leaders and a watcher of 1 each, and repeats of .03."""


def refutations(mechanism, claim, calls, alpha, key, games, *, watched=False):
    """How many of so many whole games refute, with the verdict that ``auditdp run`` would give."""
    refuted = 0
    for k in range(games):
        game = Game(
            mechanism,
            claim,
            [Pair(1, 0)],
            default_forecasters(mechanism) if watched else [LikelihoodRatio()],
            lambda purpose, batch, k=k: stream(k, key, purpose, batch),
            levels=level_grid(claim, ratio=3.0),
        )
        wealth = game.wealth
        assert wealth.shares[0] / (sum(wealth.shares) + wealth.leader) == pytest.approx(
            SHARED if watched else SHARE
        )
        game.play(calls, alpha=alpha, stop_when_refuted=True)
        refuted += game.wealth.refuted(alpha)
    return refuted


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("claim", "calls", "alpha", "watched"), CASES.values(), ids=CASES
)
def test_the_stated_level_is_refuted_nine_times_in_ten_and_a_smaller_one_is_not(
    claim, calls, alpha, watched, repeats
):
    games, share = repeats(GAMES, least=40), SHARED if watched else SHARE
    level, _ = detectable_level(
        claim, calls=calls, alpha=alpha, share=share, white_box=True
    )
    assert claim.level < level < HIGHEST_LEVEL
    found = refutations(
        Response(level), claim, calls, alpha, "power", games, watched=watched
    )
    least = repeats.fewest(games, POWER)
    assert found >= least, (
        f"{found} of {games} refuted at level {level:.4g}, expected >= {least} at alpha = 1e-6"
    )
    smaller = claim.level + 0.6 * (level - claim.level)
    found = refutations(
        Response(smaller), claim, calls, alpha, "less power", games, watched=watched
    )
    assert found < POWER * games, (
        f"{found} of {games} refuted at {smaller:.4g}: the stated level is not the smallest"
    )


@pytest.mark.statistical
@pytest.mark.full
def test_the_gaussian_level_is_about_right(repeats):
    """A normal approximation, so an estimate: at the stated mu most games refute, at the claim's own mu next to none."""
    claim, calls, alpha, games = GaussianDP(1.0), 150, 0.05, repeats(GAMES, least=40)
    level, alternative = detectable_level(
        claim, calls=calls, alpha=alpha, share=SHARE, white_box=True
    )
    assert "Gaussian" in alternative
    found = refutations(
        GaussianMechanism(1 / level), claim, calls, alpha, "gaussian", games
    )
    least = repeats.fewest(games, 0.85)
    assert found >= least, (
        f"{found} of {games} refuted at mu = {level:.4g}, expected >= {least} at alpha = 1e-6"
    )


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0)], ids=str
)
@pytest.mark.parametrize("white_box", [True, False])
def test_more_calls_and_more_alpha_see_smaller_violations(claim, white_box):
    def level(calls, alpha=0.05, share=1 / 3):
        return detectable_level(
            claim, calls=calls, alpha=alpha, share=share, white_box=white_box
        )[0]

    by_calls = [level(calls) for calls in (1, 20, 100, 1000, 20_000)]
    assert by_calls == sorted(by_calls, reverse=True)
    assert by_calls[-1] > claim.level
    by_alpha = [level(1000, alpha) for alpha in (1e-9, 1e-6, 1e-3, 0.05, 0.5)]
    assert by_alpha == sorted(by_alpha, reverse=True)
    assert len(set(by_alpha)) == len(by_alpha)
    by_mixture = [level(1000, share=share) for share in (1.0, 0.3, 1e-3)]
    assert by_mixture == sorted(by_mixture)
    assert by_mixture[0] < by_mixture[-1]


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01)], ids=str)
def test_what_has_to_learn_sees_less(claim):
    def levels(white_box):
        return detectable_level(
            claim, calls=500, alpha=0.05, share=1 / 3, white_box=white_box
        )[0]

    assert levels(True) < levels(False)


def rare(claim, share, *, alone):
    """Normal noise whatever the input, and rare outputs that tell: far off, or of one input alone."""

    def mechanism(data, size, *, rng):
        outputs = rng.normal(size=size)
        rate = share if data else 0.0 if alone else share * math.exp(-2 * claim.level)
        return np.where(
            rng.random(size) < rate, 7.25 if alone else 40 + outputs, outputs
        )

    return mechanism


@pytest.mark.statistical
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("epsilon", "calls"), [(1.0, 5_000)])
@pytest.mark.full
def test_rare_outputs_that_are_stated_are_found_nine_times_in_ten(
    epsilon, calls, alone, repeats
):
    """By a black box; a third as rare ones are not. α = 1e-6 for each assertion."""
    claim, games = PureDP(epsilon), repeats(400, least=30)

    def game(mechanism, k):
        made = Game(
            mechanism,
            claim,
            [Pair(1, 0)],
            [ViewExperts()],
            lambda *key: stream(k, "rare", *key),
        )
        made.play(calls, alpha=0.05, stop_when_refuted=True)
        return made

    wealth = game(rare(claim, 0.5, alone=alone), 0).wealth
    part = float(np.median(wealth.shares)) / (sum(wealth.shares) + wealth.leader)
    share = detectable_rarely(claim, calls=calls, alpha=0.05, share=part)[alone]
    assert 0 < share < 0.5
    found = sum(
        game(rare(claim, share, alone=alone), k).refuted_at is not None
        for k in range(games)
    )
    assert found >= repeats.fewest(games, POWER)
    fewer = repeats(400, least=10)
    rarer = sum(
        game(rare(claim, share / 3, alone=alone), k).refuted_at is not None
        for k in range(fewer)
    )
    assert rarer < POWER * fewer


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 20.0, 40.0, 1e3, 1e308])
@pytest.mark.parametrize("calls", [1, 100, 10**7])
def test_how_rare_an_output_may_be_is_a_probability_whatever_the_claim(epsilon, calls):
    assert all(
        0 < share <= 1
        for share in detectable_rarely(
            PureDP(epsilon), calls=calls, alpha=0.05, share=1e-3
        )
    )


def test_a_budget_that_can_refute_nothing_says_infinite():
    # Nine calls of a mechanism without noise do not reach 20 = 1/alpha against epsilon = 1; ten do.
    message, alternative = detectable_level(
        PureDP(1.0), calls=9, alpha=0.05, share=1.0, white_box=True
    )
    assert message == math.inf
    assert "randomised response" in alternative
    assert (
        detectable_level(PureDP(1.0), calls=10, alpha=0.05, share=1.0, white_box=True)[
            0
        ]
        < 64
    )


def test_a_claim_beyond_what_is_considered_is_infinite():
    assert (
        detectable_level(
            PureDP(100.0), calls=1000, alpha=0.05, share=1.0, white_box=True
        )[0]
        == math.inf
    )


@pytest.mark.parametrize(
    ("calls", "needed"),
    [(1, 0.1), (50, 3.0), (10_000, 12.0), (50, -100.0), (50, 100.0)],
)
def test_the_power_against_randomised_response_is_a_binomial_tail(calls, needed):
    (log_q, log_1q), (log_p, log_1p) = log_cap(1.0), log_cap(1.3)
    enough = math.ceil(
        (needed - calls * (log_1p - log_1q)) / (log_p - log_q - log_1p + log_1q)
    )
    assert _response_power(PureDP(1.0), 1.3, calls, needed) == binom.sf(
        enough - 1, calls, math.exp(log_p)
    )
