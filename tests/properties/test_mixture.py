"""The theorems that make a refutation valid: no bet gains if the claim is true.

Expectations are exact: over both coins and all outputs of the extreme pair, and for
whole games over everything that may happen.
"""

import itertools
from dataclasses import replace
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.special import expit
from scipy.stats import norm

from auditdp import ApproxDP, GaussianDP, PureDP
from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth import levels as levels_module
from auditdp.betting.wealth import mixture as module
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.mixture import Wealth
from auditdp.betting.wealth.plans import Planner
from auditdp.betting.wealth.regions import Region

full = pytest.mark.full
levels = st.floats(1e-3, 30.0)
odds = st.floats(-60.0, 60.0) | st.sampled_from([inf, -inf, 0.0])


def bet(wealth, log_odds, coins, leaders=None, *, law=None, pair=0):
    coins = np.asarray(coins, np.int8)
    forecasts = [Forecasts.of_calls(row, coins, law) for row in np.atleast_2d(log_odds)]
    return wealth.bet(forecasts, len(coins), leaders, pair=pair)


def outcomes(epsilon, delta=0.0):
    """Return (probability, coin, output) of all that a call of the extreme pair gives.

    Outputs are bit 1, bit 0, revealed 1 and revealed 0.
    """
    keep = (1 - delta) * expit(epsilon)
    lose = (1 - delta) * expit(-epsilon)
    laws = {1: [keep, lose, delta, 0.0], 0: [lose, keep, 0.0, delta]}
    found = []
    for coin, law in laws.items():
        found += [(p / 2, coin, output) for output, p in enumerate(law) if p > 0]
    return found


def gaussian_outcomes(mu):
    """Return the same for N(0, 1) and N(mu, 1), in four intervals."""
    edges = np.array([-inf, mu / 2 - 1, mu / 2, mu / 2 + 1, inf])
    found = []
    for coin in (1, 0):
        law = np.diff(norm.cdf(edges - mu * coin))
        found += [(p / 2, coin, output) for output, p in enumerate(law)]
    return found


def some_law(random):
    """Return a law that a forecaster may expect: anything, or nothing."""
    count = random.integers(0, 4)
    log_odds = np.full(count, np.inf)
    if random.random() < 0.7:
        log_odds = random.normal(size=count) * 3
    return Law(log_odds, random.random(count))


def expected_factors(claim, truth, forecasts, law):
    """Return the expected factor of one call, by every way of betting and of leaders."""
    expected = 0.0
    for p, coin, output in truth:
        wealth = Wealth(claim, leader=1.0)
        bet(wealth, [forecasts[output]], [coin], np.zeros(1, int), law=law)
        by_way = wealth.log_by_way[0] if claim.delta else [wealth.log_wealth]
        expected = expected + p * np.exp([*by_way, wealth.log_led[0, 0]])
    return expected


@given(
    levels,
    st.floats(0.0, 0.9),
    st.lists(odds, min_size=4, max_size=4),
    st.integers(0, 10**6),
)
def test_no_bet_gains_on_the_extreme_pair_of_an_approximate_claim(
    epsilon, delta, forecasts, seed
):
    law = some_law(default_rng(seed))
    claim = ApproxDP(epsilon, delta)
    truth = outcomes(epsilon, delta)
    assert np.max(expected_factors(claim, truth, forecasts, law)) <= 1 + 1e-9


def test_a_price_that_is_a_thousandth_too_small_is_found(monkeypatch):
    """Guards the guard: the bets of a true claim are fair to less than that."""
    price = Region.price
    monkeypatch.setattr(Region, "price", lambda self, pair: price(self, pair) - 1e-3)
    forecasts = [0.25, -0.25, inf, -inf]
    law = Law(np.array([-inf, -0.2, 0.2, inf]), np.array([2.0, 1.0, 1.0, 2.0]))
    expected = expected_factors(ApproxDP(0.2, 0.4), outcomes(0.2, 0.4), forecasts, law)
    assert expected.max() > 1 + 5e-4


def expected_wealth(claim, truth, seed, grid, sizes, pairs):
    """Return the expected wealth against every level after games, which begin at 1.

    Three forecasters forecast and expect anything, differently after every history, and
    a batch of several calls by all of its outputs. Leaders follow the one that has
    gained most, as in the game. The pair depends on the past as well.
    """
    total = 0.0
    for path in itertools.product(truth, repeat=sum(sizes)):
        wealth = Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid)
        leaders = None
        gained = 0.0
        history = [seed]
        for start, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
            _, coins, outputs = zip(*path[start : start + size], strict=True)
            random = default_rng(history)
            law = some_law(random)
            pair = int(random.integers(pairs))
            random = default_rng([*history, *outputs])
            forecasts = random.normal(size=(3, size)) * 3
            forecasts[random.random((3, size)) < 0.2] *= inf
            new = bet(wealth, forecasts, coins, leaders, law=law, pair=pair)
            gained = new + 0.5 * np.maximum(gained, -1e3)
            leaders = np.argmax(gained.max(axis=2), axis=0)
            history += [*coins, *outputs]
        probability = prod(p for p, _, _ in path)
        total = total + probability * np.exp(wealth.log_by_level)
    return total


@pytest.fixture
def _early_leaders(monkeypatch):
    """Let leaders start at the first calls, at every second level."""
    monkeypatch.setattr(module, "STARTS", {0: 0.5, 1: 0.3, 2: 0.2})
    monkeypatch.setattr(levels_module, "LIMITS", replace(LIMITS, anchor_spacing=2))


@pytest.fixture(autouse=True)
def _levels_computed_once(monkeypatch):
    """Compute the pair, lines and ready regions of a level once for all games."""
    computed = {}
    init = Planner.__init__

    def init_once(self, claim, grid):
        init(self, claim, grid)
        key = str(claim), tuple(grid.values)
        self._level_plans, self._fixed_regions = computed.setdefault(key, ({}, {}))

    monkeypatch.setattr(Planner, "__init__", init_once)


GAUSSIAN = gaussian_outcomes(0.8)
GAMES = {
    "a claim with delta": (ApproxDP(0.2, 0.4), 0.2, outcomes(0.2, 0.4), (1, 1)),
    "a pure claim": (PureDP(0.5), 0.5, outcomes(0.5), (1, 1, 1)),
    "below a claim with delta": (ApproxDP(2.0, 0.2), 0.5, outcomes(0.5, 0.2), (1, 1)),
    "below a pure claim": (PureDP(2.0), 0.5, outcomes(0.5), (1, 2)),
    "batches against delta": (ApproxDP(0.2, 0.4), 0.2, outcomes(0.2, 0.4), (1, 2)),
    "batches against a curve": (GaussianDP(0.8), 0.8, GAUSSIAN, (2,)),
    "a curve": (GaussianDP(0.8), 0.8, GAUSSIAN, (1, 1)),
}


@pytest.mark.usefixtures("_early_leaders")
@pytest.mark.parametrize(
    ("seed", "pairs"),
    [
        (1, 2),
        pytest.param(0, 1, marks=full),
    ],
)
@pytest.mark.parametrize("name", GAMES)
def test_whole_games_with_leaders_gain_nothing_at_any_true_level(name, seed, pairs):
    """Every coin and output of all calls, against every level from the truth on."""
    claim, true_level, truth, sizes = GAMES[name]
    grid = claim.level * np.array([0.05, 0.25, 0.5, 0.8, 1.0, 1.2, 2.0])
    expected = expected_wealth(claim, truth, seed, grid, sizes, pairs)
    assert (expected[grid >= true_level] <= 1 + 1e-9).all()
