"""Wealth against a slow and obvious reference, call by call and level by level.

The reference of single bets is that of pure claims, whose factors are known in closed
form. For other claims `test_curve_regions.py` takes the regions and prices of the plan.
"""

from math import exp, inf, log, log1p

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit

from auditdp import ApproxDP, GaussianDP, PureDP
from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.betting.wealth import mixture as module
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.mixture import CLAIM_SHARE, Wealth
from auditdp.betting.wealth.regions import log_cap
from tests.properties import test_mixture as mixture

PURE = [PureDP(1.0), PureDP(0.05), PureDP(9.0), ApproxDP(2.0, 0.0)]
CLAIMS = [
    PureDP(1.0),
    PureDP(9.0),
    ApproxDP(1.0, 0.01),
    ApproxDP(0.3, 0.2),
    GaussianDP(0.2),
    GaussianDP(3.0),
]
ALPHAS = np.exp(-np.linspace(0.05, 30, 120))
STARTS = {0: 0.5, 10: 0.3, 45: 0.2}

each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def scale_of(claim):
    """Return log-odds at which a claim is about to be exceeded."""
    return claim.level if claim.delta is not None else 1.5 * claim.level


def factors_of(log_odds, coins, epsilon):
    """Return the factor of every bet, with the three cases of the clip written out."""
    right = (log_odds > 0) == coins
    r = expit(np.where(coins, log_odds, -log_odds))
    cap = expit(np.where(right, epsilon, -epsilon))
    return np.where(np.abs(log_odds) <= epsilon, 1.0, r / cap)


class Slow:
    """The wealth against a pure claim as its module's text defines it.

    Every bet of every call is a product of its own.
    """

    def __init__(self, claim, shares, leader, levels):
        self.levels = levels
        self.position = int(np.searchsorted(levels, claim.level))
        first = self.position % LIMITS.anchor_spacing
        self.anchors = np.arange(first, len(levels), LIMITS.anchor_spacing)
        stakes = np.array([*shares, leader])
        self.shares = stakes / stakes.sum()
        self.own = np.ones(len(shares))
        self.led = np.ones((len(STARTS), len(levels)))
        self.calls = 0
        self.highest = np.ones(len(levels))

    def bet(self, log_odds, coins, leaders):
        """Bet, and return the log factors at the anchors, shape (K, anchors)."""
        started = [self.calls >= start for start in STARTS]
        factors = np.ones((len(log_odds), len(self.levels)))
        for position, level in enumerate(self.levels):
            every = factors_of(log_odds, coins, level)
            factors[:, position] = every.prod(axis=1)
            if leaders is not None:
                below = np.searchsorted(self.anchors, position, side="right") - 1
                leader = leaders[max(below, 0)]
                self.led[started, position] *= factors[leader, position]
        self.own *= factors[:, self.position]
        self.calls += len(coins)
        self.highest = np.maximum(self.highest, self.now())
        return np.log(factors[:, self.anchors])

    def now(self):
        wealth = np.array(list(STARTS.values())) @ self.led
        at_claim = self.shares @ [*self.own, wealth[self.position]]
        wealth[: self.position] *= 1 - CLAIM_SHARE
        wealth[: self.position] += CLAIM_SHARE * at_claim
        wealth[self.position] = at_claim
        return wealth

    def bound(self, alpha):
        """Return the largest level such that it and all below it have crossed."""
        crossed = np.log(self.highest) >= log(1 / alpha) + NEGLIGIBLE
        chain = int(np.logical_and.accumulate(crossed).sum())
        return self.levels[chain - 1] if chain else 0.0


def some_forecasts(claim, forecasters, calls, seed, *, right=0.8):
    """Return log-odds around the claim's cap, mostly on the right side, and coins."""
    random = default_rng(seed)
    coins = random.integers(0, 2, calls, dtype=np.int8)
    leaning = np.where(random.random((forecasters, calls)) < right, 1, -1)
    size = random.exponential(1.5 * scale_of(claim), (forecasters, calls))
    return leaning * size * (2 * coins - 1), coins


def expected(claim):
    """Return the law that forecasters expect: three times what the claim allows."""
    return Law(np.array([-3.0, 3.0]) * scale_of(claim), np.ones(2))


def bet(wealth, log_odds, coins, leaders=None):
    return mixture.bet(wealth, log_odds, coins, leaders, law=expected(wealth.claim))


def led_wealth():
    """Return the wealth of one forecaster and of leaders who follow it."""
    claim = PureDP(1.0)
    return Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=2.0))


def bet_certain(wealth, calls, coin=1):
    """Bet on calls that are forecast with certainty, and led by the forecaster."""
    leaders = np.zeros(len(wealth.anchors), int)
    bet(wealth, np.full(calls, np.inf), np.full(calls, coin), leaders)


@pytest.mark.parametrize("claim", PURE, ids=str)
def test_counting_is_the_product_of_all_calls(claim, monkeypatch):
    """Of forecasters, of leaders from their start on, and at every level of the grid."""
    monkeypatch.setattr(module, "STARTS", STARTS)
    levels = level_grid(claim, ratio=1.5)
    shares = (3.0, 1.0, 1.0)
    leader = 2.0
    fast = Wealth(claim, shares=shares, leader=leader, levels=levels)
    slow = Slow(claim, shares, leader, levels)
    assert fast.anchors.tolist() == slow.anchors.tolist()
    random = default_rng(7)
    for batch, size in enumerate((4, 1, 9, 30, 20)):
        right = 0.2 if batch == 4 else 0.995
        odds, coins = some_forecasts(claim, 3, size, seed=batch, right=right)
        leaders = random.integers(0, 3, len(slow.anchors)) if batch else None
        gained = bet(fast, odds, coins, leaders)
        expected = slow.bet(odds, coins, leaders)
        assert gained[:, :, 0] == pytest.approx(expected, abs=1e-8)
        assert fast.calls == slow.calls
        assert fast.log_by_forecaster == pytest.approx(np.log(slow.own), abs=1e-8)
        now = slow.now()[slow.position]
        assert fast.log_wealth == pytest.approx(log(now), abs=1e-8)
    bounds = [slow.bound(alpha) for alpha in ALPHAS]
    assert [fast.lower_bound(alpha) for alpha in ALPHAS] == bounds
    refuted = [bound >= claim.level for bound in bounds]
    assert [fast.refuted(alpha) for alpha in ALPHAS] == refuted
    assert len(set(bounds)) > 1, "the example must distinguish levels"
    assert (slow.highest > slow.now()).any(), "and the highest wealth from the last"


@each_claim
def test_equal_forecasts_may_be_counted_and_forecasters_grouped(claim):
    odds = default_rng(5).normal(size=(3, 6)) * 2 * scale_of(claim)
    ones = np.arange(6.0)
    zeros = np.arange(6.0)[::-1]
    calls = np.repeat(odds, 5, axis=1)
    coins = np.tile(np.arange(5), 6) < np.repeat(ones, 5)
    levels = level_grid(claim, ratio=1.5)
    listed, counted = (
        Wealth(claim, shares=(1, 1, 1), leader=1.0, levels=levels) for _ in "ab"
    )
    leaders = np.arange(len(listed.anchors)) % 3
    law = expected(claim)
    groups = []
    for rows in (odds[:2], odds[2:]):
        laws = np.tile(law.log_odds, (len(rows), 1)), law.weights
        groups.append(Forecasts(rows, ones, zeros, laws))
    for _ in range(2):
        gained = bet(listed, calls, coins, leaders)
        assert counted.bet(groups, 30, leaders) == pytest.approx(gained, abs=1e-9)
    assert counted.log_by_level == pytest.approx(listed.log_by_level, abs=1e-9)


@each_claim
def test_abstained_calls_cost_nothing_and_are_counted(claim):
    """Also if leaders follow a forecaster that abstains."""
    wealth = Wealth(claim, shares=(1.0, 1.0), leader=1.0)
    odds, coins = some_forecasts(claim, 1, 10, seed=1)
    forecasts = Forecasts.of_calls(odds, coins, expected(claim))
    wealth.bet([forecasts, Forecasts.abstaining(1)], 50)
    alone = Wealth(claim)
    bet(alone, odds, coins)
    for calls in (50, 80):
        assert wealth.calls == calls
        own = wealth.log_by_forecaster
        assert own == pytest.approx([alone.log_wealth, 0.0], abs=1e-12)
        assert not wealth.log_led.any()
        wealth.bet([Forecasts.abstaining(2)], 30, np.array([1]))


def test_the_shares_of_leaders_add_up_to_one():
    assert min(module.STARTS) == 0
    assert min(module.STARTS.values()) > 0
    assert sum(module.STARTS.values()) == pytest.approx(1.0, abs=1e-15)


@each_claim
def test_a_fresh_wealth_makes_the_same_bets_against_the_claim_alone(claim):
    levels = level_grid(claim, ratio=1.5)
    wealth = Wealth(claim, shares=(2.0, 1.0), leader=1.0, levels=levels)
    batch = some_forecasts(claim, 2, 30, seed=4)
    bet(wealth, *batch)
    fresh = wealth.fresh()
    assert fresh.log_wealth == 0.0
    assert fresh.calls == 0
    assert fresh.levels.tolist() == [claim.level]
    bet(fresh, *batch)
    # Regions that are computed together differ in their last digits.
    assert fresh.log_by_forecaster == pytest.approx(wealth.log_by_forecaster, abs=1e-8)
    assert fresh.log_wealth == pytest.approx(wealth.log_wealth, abs=1e-8)


def test_ruin_is_final():
    wealth = led_wealth()
    bet_certain(wealth, 1, coin=0)
    ruined = wealth.log_wealth
    bet_certain(wealth, 900)
    assert wealth.log_by_forecaster.tolist() == [-inf]
    assert exp(wealth.log_wealth) == pytest.approx(exp(ruined))
    assert wealth.lower_bound(0.999) == 0.0


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 40.0, 2000.0])
def test_the_cap_does_not_cancel_for_large_epsilon(epsilon):
    log_q, log_1q = log_cap(epsilon)
    assert log_1q == pytest.approx(-epsilon + log_q, rel=1e-15)
    assert log_q == pytest.approx(-log1p(exp(-epsilon)), rel=1e-12)


def test_no_noise_is_refuted_after_ten_calls_and_rounding_never_refutes():
    """It takes ln 20 / ln(1/q) = 9.6 calls for epsilon = 1 at alpha = .05."""
    wealth = Wealth(PureDP(1.0))
    bet_certain(wealth, 9)
    assert not wealth.refuted(0.05)
    bet_certain(wealth, 1)
    assert wealth.refuted(0.05)
    for excess, refuted in ((-1e-9, False), (5e-10, False), (2e-9, True)):
        alpha = exp(excess - wealth.log_wealth)
        assert wealth.refuted(alpha) is refuted, excess
