"""Wealth: the counting arithmetic against a slow and obvious reference, call by call and level by level.

What is written out here holds for every claim; the reference of single bets is that of pure claims, whose factors are known
in closed form (for others, `test_curves.py` takes the regions and prices of the plan that was made).
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit

from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.betting.wealth import mixture as module
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.mixture import CLAIM_SHARE, Wealth
from auditdp.betting.wealth.regions import log_cap
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP

PURE = [PureDP(1.0), PureDP(0.05), PureDP(9.0), ApproxDP(2.0, 0.0)]
CLAIMS = [
    *PURE,
    ApproxDP(1.0, 0.01),
    ApproxDP(0.3, 0.2),
    GaussianDP(1.0),
    GaussianDP(0.2),
    GaussianDP(3.0),
]
ALPHAS = np.exp(-np.linspace(0.05, 30, 120))
STARTS = {0: 0.5, 10: 0.3, 45: 0.2}


def is_pure(claim):
    return claim.delta == 0


def scale_of(claim):
    """Log-odds at which a claim is about to be exceeded."""
    return claim.level if claim.delta is not None else 1.5 * claim.level


def soft(log_odds, coin, epsilon):
    """Return f of one call, with r₀ written out for the three cases of the clip."""
    r, not_r, q, not_q = (
        expit(log_odds),
        expit(-log_odds),
        expit(epsilon),
        expit(-epsilon),
    )
    if log_odds > epsilon:
        return r / q if coin else not_r / not_q
    if log_odds < -epsilon:
        return r / not_q if coin else not_r / q
    return 1.0


class Slow:
    """The wealth against a pure claim as its module's text defines it: every bet of every call is a product of its own.

    ``leads`` says who leads at a level (by its position in the grid), or is None for nobody.
    """

    def __init__(self, claim, shares, leader, levels):
        self.claim, self.levels = claim, list(levels)
        total = sum(shares) + leader
        self.shares, self.leader = [share / total for share in shares], leader / total
        self.own = np.ones(len(shares))
        self.led = np.ones((len(STARTS), len(self.levels)))
        self.calls, self.highest = 0, np.ones(len(self.levels))

    def bet(self, log_odds, coins, leads=None):
        started = [self.calls >= start for start in STARTS]
        for message, coin in zip(log_odds.T, coins, strict=True):
            for k, one in enumerate(message):
                self.own[k] *= soft(one, coin, self.claim.level)
            for position, level in enumerate(self.levels):
                if leads is not None:
                    self.led[started, position] *= soft(
                        message[leads(position)], coin, level
                    )
        self.calls += len(coins)
        self.highest = np.maximum(self.highest, self.now())

    def now(self):
        led = np.array(list(STARTS.values())) @ self.led
        at_claim = (
            float(self.shares @ self.own)
            + self.leader * led[self.levels.index(self.claim.level)]
        )
        return np.array(
            [
                at_claim
                if level == self.claim.level
                else (1 - CLAIM_SHARE) * own + CLAIM_SHARE * at_claim
                if level < self.claim.level
                else own
                for level, own in zip(self.levels, led, strict=True)
            ]
        )

    def bound(self, alpha):
        """The largest level such that it and all below it have crossed."""
        crossed = itertools.takewhile(
            lambda w: math.log(w) >= math.log(1 / alpha) + NEGLIGIBLE, self.highest
        )
        count = len(list(crossed))
        return self.levels[count - 1] if count else 0.0


def some_forecasts(claim, forecasters, calls, seed, *, right=0.8):
    """Log-odds around the claim's cap, mostly leaning the right way; a few of them certain."""
    random = np.random.default_rng(seed)
    coins = random.integers(0, 2, calls, dtype=np.int8)
    sides = np.where(random.random((forecasters, calls)) < right, 1, -1) * np.where(
        coins == 1, 1, -1
    )
    return sides * random.exponential(
        1.5 * scale_of(claim), (forecasters, calls)
    ), coins


def expected(claim):
    """The law of log-odds that forecasters here expect: three times what the claim allows."""
    return Law(np.array([-3.0, 3.0]) * scale_of(claim), np.ones(2))


def bet(wealth, log_odds, coins, leaders=None):
    message = [
        Forecasts.of_calls(odds[None], coins, expected(wealth.claim))
        for odds in np.atleast_2d(log_odds)
    ]
    return wealth.bet(message, len(coins), leaders)


def first_leads(wealth):
    """The first forecaster leads everywhere."""
    return np.zeros(len(wealth.anchors), int)


def anchors_of(levels, claim):
    """Every eighth level, the claim's among them."""
    position = int(np.flatnonzero(levels == claim.level)[0])
    return [
        i for i in range(len(levels)) if (i - position) % LIMITS.anchor_spacing == 0
    ]


@pytest.fixture
def _early_starts(monkeypatch):
    monkeypatch.setattr(module, "STARTS", STARTS)


@pytest.mark.usefixtures("_early_starts")
@pytest.mark.parametrize("claim", PURE, ids=str)
def test_counting_is_the_products_call_by_call(claim):
    """Forecasters, leaders from their start on, and every level of the grid; the chain at 120 alphas."""
    levels, shares, leader = level_grid(claim, ratio=1.5), (3.0, 1.0, 1.0), 2.0
    fast, slow = (
        Wealth(claim, shares=shares, leader=leader, levels=levels),
        Slow(claim, shares, leader, levels),
    )
    anchors = anchors_of(levels, claim)
    assert fast.anchors.tolist() == anchors
    random = np.random.default_rng(7)
    for batch, size in enumerate((4, 1, 9, 30, 20)):
        odds, coins = some_forecasts(claim, 3, size, seed=batch, right=0.995)
        leaders = random.integers(0, 3, len(anchors)) if batch else None

        def leads(position, leaders=leaders):
            below = sum(anchor <= position for anchor in anchors) - 1
            return leaders[max(below, 0)]

        bet(fast, odds, coins, leaders)
        slow.bet(odds, coins, leads if batch else None)
        assert fast.calls == slow.calls
        with np.errstate(divide="ignore"):
            assert fast.log_by_forecaster == pytest.approx(np.log(slow.own), abs=1e-8)
        assert fast.log_wealth == pytest.approx(
            math.log(slow.now()[slow.levels.index(claim.level)]), abs=1e-8
        )
    bounds = [slow.bound(alpha) for alpha in ALPHAS]
    assert [fast.lower_bound(alpha) for alpha in ALPHAS] == bounds
    assert [fast.refuted(alpha) for alpha in ALPHAS] == [
        bound >= claim.level for bound in bounds
    ]
    assert len(set(bounds)) > 1, "the example must distinguish levels"


@pytest.mark.parametrize("claim", PURE, ids=str)
def test_what_leaders_are_chosen_from_is_what_one_would_have_won_at_the_anchors(claim):
    levels = level_grid(claim, ratio=1.5)
    wealth = Wealth(claim, shares=(1.0, 1.0), leader=1.0, levels=levels)
    odds, coins = some_forecasts(claim, 2, 25, seed=3, right=0.9)
    won = bet(wealth, odds, coins)
    assert won.shape == (2, len(wealth.anchors), 1)
    for k in range(2):
        by_anchor = [
            sum(
                math.log(soft(message, coin, levels[i]))
                for message, coin in zip(odds[k], coins, strict=True)
            )
            for i in anchors_of(levels, claim)
        ]
        assert won[k, :, 0] == pytest.approx(by_anchor, abs=1e-8)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_equal_forecasts_may_be_counted_and_forecasters_grouped(claim):
    odds, coins = some_forecasts(claim, 3, 40, seed=5)
    odds = np.round(odds, 1)
    listed, counted = (
        Wealth(claim, shares=(1, 1, 1), leader=1.0, levels=level_grid(claim, ratio=1.5))
        for _ in "ab"
    )
    leaders = np.arange(len(listed.anchors)) % 3
    law = expected(claim)
    groups = []
    for rows in (odds[:2], odds[2:]):
        distinct, cell = np.unique(rows, axis=1, return_inverse=True)
        counts = [
            np.bincount(cell.ravel()[coins == c], minlength=distinct.shape[1]).astype(
                float
            )
            for c in (1, 0)
        ]
        groups.append(
            Forecasts(
                distinct, *counts, (np.tile(law.log_odds, (len(rows), 1)), law.weights)
            )
        )
    for _ in range(2):
        won = bet(listed, odds, coins, leaders)
        assert counted.bet(groups, 40, leaders) == pytest.approx(won, abs=1e-9)
    assert counted.log_by_forecaster == pytest.approx(
        listed.log_by_forecaster, abs=1e-9
    )
    assert [counted.lower_bound(a) for a in ALPHAS] == [
        listed.lower_bound(a) for a in ALPHAS
    ]


@pytest.mark.parametrize("claim", PURE, ids=str)
def test_how_calls_are_batched_does_not_matter_without_leaders(claim):
    """For pure claims; for others it does, since what is bet is renewed between batches."""
    odds, coins = some_forecasts(claim, 2, 60, seed=2)
    whole, parts = Wealth(claim, shares=(1, 2)), Wealth(claim, shares=(1, 2))
    won = bet(whole, odds, coins)
    pieces = [
        bet(parts, odds[:, a:b], coins[a:b])
        for a, b in itertools.pairwise([0, 1, 2, 9, 30, 60])
    ]
    assert np.sum(pieces, axis=0) == pytest.approx(won, abs=1e-9)
    assert parts.log_wealth == pytest.approx(whole.log_wealth, abs=1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_calls_that_are_left_out_are_not_bet_on_and_not_paid_for_but_are_calls(claim):
    wealth = Wealth(claim, shares=(1.0, 1.0))
    odds, coins = some_forecasts(claim, 1, 10, seed=1)
    wealth.bet(
        [Forecasts.of_calls(odds, coins, expected(claim)), Forecasts.abstaining(1)], 50
    )
    alone = Wealth(claim)
    bet(alone, odds, coins)
    assert wealth.log_by_forecaster == pytest.approx([alone.log_wealth, 0.0], abs=1e-12)
    assert wealth.calls == 50
    wealth.bet([Forecasts.abstaining(2)], 30)
    assert wealth.calls == 80


def test_leaders_start_when_their_calls_have_been_made(monkeypatch):
    """Losses before a start do not weigh on whoever starts later, and the batch that reaches a start is not yet his."""
    monkeypatch.setattr(module, "STARTS", {0: 0.5, 20: 0.5})
    wealth = Wealth(PureDP(1.0), shares=(1.0, 1.0), leader=2.0)
    nobody = np.zeros((1, 10))
    wrong, right = np.full((1, 10), math.inf), np.full((1, 10), math.inf)
    zeros, ones = np.zeros(10, np.int8), np.ones(10, np.int8)
    for odds, coins in ((wrong, zeros), (wrong, zeros), (right, ones)):
        wealth.bet(
            [Forecasts.of_calls(odds, coins), Forecasts.of_calls(nobody, coins)],
            10,
            np.array([0]),
        )
    # Half of the wealth leads; its second half started with the third batch. The second forecaster still has a quarter.
    gain = 10 * -log_cap(1.0)[0]
    assert wealth.log_wealth == pytest.approx(math.log(0.25 * math.exp(gain) + 0.25))


def test_nobody_starts_before_the_game_or_with_more_than_everything():
    assert min(module.STARTS) == 0
    assert sum(module.STARTS.values()) == pytest.approx(1.0, abs=1e-15)
    assert min(module.STARTS.values()) > 0


def test_shares_are_what_forecasters_begin_with():
    wealth = Wealth(PureDP(1.0), shares=(6.0, 1.0), leader=1.0)
    odds = np.array([[math.inf], [0.0]])
    bet(wealth, odds, np.array([0], np.int8))  # the first is ruined
    assert math.exp(wealth.log_wealth) == pytest.approx(1 / 8 + 1 / 8)  # nobody led


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_fresh_wealth_makes_the_same_bets_against_the_claim_alone(claim):
    wealth = Wealth(
        claim, shares=(2.0, 1.0), leader=1.0, levels=level_grid(claim, ratio=1.3)
    )
    batch = some_forecasts(claim, 2, 30, seed=4)
    bet(wealth, *batch)
    fresh = wealth.fresh()
    assert (fresh.log_wealth, fresh.calls, fresh.levels.tolist()) == (
        0.0,
        0,
        [claim.level],
    )
    bet(fresh, *batch)
    # What is found together with the regions of other levels differs in its last digits.
    assert fresh.log_by_forecaster == pytest.approx(wealth.log_by_forecaster, abs=1e-8)
    assert fresh.log_wealth == pytest.approx(wealth.log_wealth, abs=1e-8)


def sure(wealth, calls, coin=1):
    """Bet on calls that were forecast with certainty, and led by whoever said so."""
    coins = np.full(calls, coin, np.int8)
    bet(wealth, np.full((1, calls), np.inf), coins, first_leads(wealth))


def test_the_bound_is_a_chain_and_not_the_largest_level_crossed():
    """Forecasts between two caps cross the lower level alone; forecasts far out must not skip a level in between."""
    levels = np.array([0.5, 1.0, 2.0])
    wealth = Wealth(PureDP(1.0), leader=1.0, levels=levels)
    lead = np.zeros(1, int)
    bet(wealth, np.full((1, 200), 1.5), np.ones(200, np.int8), lead)
    assert wealth.lower_bound(0.05) == 1.0
    wealth = Wealth(PureDP(2.0), leader=1.0, levels=levels)
    # Right 8 times in 10 at log-odds of 3: a gain at level 2 would need 88 % right, at level 0.5 62 %.
    bet(
        wealth,
        np.full((1, 100), 3.0),
        np.tile(np.array([1] * 8 + [0] * 2, np.int8), 10),
        lead,
    )
    assert wealth.lower_bound(0.05) < 2.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_bound_grows_with_alpha_and_stays_on_the_grid(claim):
    levels = level_grid(claim, ratio=1.3)
    wealth = Wealth(claim, leader=1.0, levels=levels)
    assert wealth.lower_bound(0.05) == 0.0
    sure(wealth, 60)
    bounds = [wealth.lower_bound(alpha) for alpha in ALPHAS]
    assert bounds == sorted(bounds, reverse=True)
    assert all(bound == 0.0 or bound in levels for bound in bounds)
    assert bounds[0] > 0.0
    assert max(bounds) <= levels[-1]


def test_endless_certainty_stops_at_the_last_level():
    wealth = Wealth(PureDP(1.0), leader=1.0, levels=np.array([0.5, 1.0, 2.0]))
    sure(wealth, 1000)
    assert wealth.lower_bound(0.05) == wealth.lower_bound(1e-6) == 2.0


def test_the_bound_never_falls_when_more_is_seen():
    claim = ApproxDP(1.0, 0.01)
    wealth = Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=1.2))
    leaders, bounds = first_leads(wealth), []
    for seed in range(30):
        bet(
            wealth,
            *some_forecasts(claim, 1, 20, seed=seed, right=0.95 if seed < 10 else 0.2),
            leaders,
        )
        bounds.append(wealth.lower_bound(0.05))
    assert bounds == sorted(bounds)
    assert bounds[-1] >= 1.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_certain_and_right_earns_the_most_certain_and_wrong_loses_what_was_staked(
    claim,
):
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        right, wrong = (
            Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=2.0)) for _ in "ab"
        )
        for wealth, coins in ((right, [1, 0]), (wrong, [0, 1])):
            bet(
                wealth,
                np.array([[np.inf, -np.inf]]),
                np.array(coins, np.int8),
                first_leads(wealth),
            )
            bet(
                wealth,
                np.array([[np.inf]]),
                np.array(coins[:1], np.int8),
                first_leads(wealth),
            )
    assert right.log_by_forecaster[0] > max(0.0, wrong.log_by_forecaster[0])
    assert not np.isnan(wrong.lower_bound(0.05))
    if is_pure(claim):
        assert right.log_by_forecaster[0] == pytest.approx(3 * -log_cap(claim.level)[0])
        assert wrong.log_by_forecaster[0] == -np.inf
    else:
        assert wrong.log_by_forecaster[0] > -np.inf, (
            "what is averaged over is never lost altogether"
        )


def test_who_is_ruined_stays_ruined():
    wealth = Wealth(PureDP(1.0), leader=1.0, levels=level_grid(PureDP(1.0), ratio=2.0))
    sure(wealth, 1, coin=0)
    ruined = math.exp(wealth.log_wealth)
    sure(wealth, 900)
    assert wealth.log_by_forecaster.tolist() == [-math.inf]
    assert math.exp(wealth.log_wealth) == pytest.approx(ruined), (
        "leaders lost too, but for those that come later"
    )
    assert wealth.lower_bound(0.999) == 0.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_abstaining_earns_nothing_and_pays_the_price_of_its_regions(claim):
    wealth, path = Wealth(claim, levels=level_grid(claim, ratio=1.5), leader=1.0), []
    for _ in range(10):
        bet(
            wealth,
            np.zeros((1, 6)),
            np.array([0, 1, 0, 1, 1, 0], np.int8),
            first_leads(wealth),
        )
        path.append(wealth.log_wealth)
    if is_pure(claim):
        assert path == pytest.approx([0.0] * 10, abs=1e-15)
    else:
        assert max(path) <= 1e-6
        assert path[-1] < -1e-3
    assert wealth.lower_bound(0.5) == 0.0


def test_a_forecast_at_the_cap_is_no_bet():
    wealth, coins = Wealth(PureDP(1.0)), np.array([1, 0], np.int8)
    bet(wealth, np.array([[1.0, -1.0]]), coins)
    assert wealth.log_wealth == 0.0
    bet(wealth, np.array([[np.nextafter(1.0, 2.0)] * 2]), coins)
    assert wealth.log_wealth == pytest.approx(0.0, abs=1e-15)


def test_known_factors():
    # r = 1 against q = 3/4: right gains 1/q = 4/3, wrong gains nothing. r = 9/10: 0.9/0.75 and 0.1/0.25.
    for log_odds, right, wrong in ((math.inf, 4 / 3, 0.0), (math.log(9), 1.2, 0.4)):
        for sign in (1, -1):
            for coin, factor in ((sign > 0, right), (sign < 0, wrong)):
                wealth = Wealth(PureDP(math.log(3)))
                bet(wealth, np.array([[sign * log_odds]]), np.array([coin], np.int8))
                assert math.exp(wealth.log_wealth) == pytest.approx(factor)


def test_the_cap_does_not_cancel_for_large_epsilon():
    for epsilon in (1e-3, 1.0, 40.0, 700.0, 2000.0):
        log_q, log_1q = log_cap(epsilon)
        assert log_1q == pytest.approx(-epsilon + log_q, rel=1e-15)
        assert log_q == pytest.approx(-math.log1p(math.exp(-epsilon)), rel=1e-12)


def test_no_noise_is_refuted_after_the_calls_that_theory_asks_for():
    """It takes ln 20 / ln(1/q) = 9.6 calls for epsilon = 1 at alpha = .05."""
    wealth = Wealth(PureDP(1.0))
    sure(wealth, 9)
    assert not wealth.refuted(0.05)
    sure(wealth, 1)
    assert wealth.refuted(0.05)


def test_rounding_never_refutes():
    """Wealth that reaches 1/alpha only within rounding does not count; a hair more does."""
    wealth = Wealth(PureDP(1.0))
    sure(wealth, 10)
    for excess, refuted in ((-1e-9, False), (0.0, False), (5e-10, False), (2e-9, True)):
        alpha = math.exp(-(wealth.log_wealth - excess))
        assert wealth.refuted(alpha) is refuted, excess


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_refutation_is_a_bound_that_reached_the_claim(claim):
    for right in (0.4, 0.7, 0.9, 1.0):
        batch = some_forecasts(claim, 1, 150, seed=5, right=right)
        wealth = Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=1.1))
        leaders = first_leads(wealth)
        bet(wealth, *batch, leaders)
        alone = Wealth(claim, leader=1.0)
        bet(alone, *batch, first_leads(alone))
        for alpha in (0.5, 0.05, 1e-6):
            assert wealth.refuted(alpha) == (wealth.lower_bound(alpha) >= claim.level)
            assert alone.refuted(alpha) or not wealth.refuted(alpha), (
                "the grid must not refute what the wealth does not"
            )
