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

from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth import levels as levels_module
from auditdp.betting.wealth import mixture as module
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.mixture import Wealth
from auditdp.betting.wealth.plans import Planner
from auditdp.betting.wealth.regions import Region
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP

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
    keep, lose = (1 - delta) * expit(epsilon), (1 - delta) * expit(-epsilon)
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
    claim, truth = ApproxDP(epsilon, delta), outcomes(epsilon, delta)
    assert np.max(expected_factors(claim, truth, forecasts, law)) <= 1 + 1e-9


def test_a_price_that_is_a_thousandth_too_small_is_found(monkeypatch):
    """Guards the guard: the bets of a true claim are fair to less than that."""
    price = Region.price
    monkeypatch.setattr(Region, "price", lambda self, pair: price(self, pair) - 1e-3)
    forecasts = [0.25, -0.25, inf, -inf]
    law = Law(np.array([-inf, -0.2, 0.2, inf]), np.array([2.0, 1.0, 1.0, 2.0]))
    expected = expected_factors(ApproxDP(0.2, 0.4), outcomes(0.2, 0.4), forecasts, law)
    assert expected.max() > 1 + 5e-4


def expected_wealth(claim, truth, seed, grid, calls, pairs):
    """Return the expected wealth against every level after whole games, which begin at 1.

    Three forecasters forecast and expect anything, differently after every history.
    Leaders follow the one that has gained most, as in the game. The pair depends on the
    past as well.
    """
    total = 0.0
    for path in itertools.product(truth, repeat=calls):
        wealth = Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid)
        leaders, gained, history = None, 0.0, []
        for _, coin, output in path:
            random = default_rng([seed, *history])
            table = random.normal(size=(3, 4)) * 3
            table[:, random.random(4) < 0.2] *= inf
            law, pair = some_law(random), int(random.integers(pairs))
            forecasts = table[:, [output]]
            new = bet(wealth, forecasts, [coin], leaders, law=law, pair=pair)
            gained = new + 0.5 * np.maximum(gained, -1e3)
            leaders = np.argmax(gained.max(axis=2), axis=0)
            history += [coin, output]
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
    computed, init = {}, Planner.__init__

    def init_once(self, claim, grid):
        init(self, claim, grid)
        key = str(claim), tuple(grid.values)
        self._level_plans, self._fixed_regions = computed.setdefault(key, ({}, {}))

    monkeypatch.setattr(Planner, "__init__", init_once)


GAMES = {
    "a claim with delta": (ApproxDP(0.2, 0.4), 0.2, outcomes(0.2, 0.4), 2),
    "a pure claim": (PureDP(0.5), 0.5, outcomes(0.5), 3),
    "below a claim with delta": (ApproxDP(2.0, 0.2), 0.5, outcomes(0.5, 0.2), 2),
    "below a pure claim": (PureDP(2.0), 0.5, outcomes(0.5), 3),
    "a Gaussian claim": (GaussianDP(0.8), 0.8, gaussian_outcomes(0.8), 2),
}


@pytest.mark.usefixtures("_early_leaders")
@pytest.mark.parametrize(("seed", "pairs"), [(1, 2), pytest.param(0, 1, marks=full)])
@pytest.mark.parametrize(
    "name", [*[*GAMES][:4], *(pytest.param(name, marks=full) for name in [*GAMES][4:])]
)
def test_whole_games_with_leaders_gain_nothing_at_any_true_level(name, seed, pairs):
    """Every coin and output of all calls, against every level from the truth on."""
    claim, true_level, truth, calls = GAMES[name]
    grid = claim.level * np.array([0.05, 0.25, 0.5, 0.8, 1.0, 1.2, 2.0])
    expected = expected_wealth(claim, truth, seed, grid, calls, pairs)
    assert (expected[grid >= true_level] <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (ApproxDP(0.2, 0.4), outcomes(0.2, 0.4)),
        (GaussianDP(0.8), gaussian_outcomes(0.8)),
    ],
    ids=["delta", "Gaussian"],
)
def test_whole_games_in_batches_of_several_calls_gain_nothing(claim, truth):
    """After a first call, forecasts of two calls depend on both outputs."""
    grid, total = claim.level * np.array([0.7, 1.0, 1.3]), 0.0
    law = Law(np.array([-3.0, 1.0, inf]), np.ones(3))
    for (p, one, v), (q, other, w) in itertools.product(truth, repeat=2):
        wealth = Wealth(claim, shares=(1, 1), leader=1.0, levels=grid)
        gained = bet(wealth, [[-3.0], [inf]], [0], law=law)
        before = np.exp(wealth.log_by_level)
        table = default_rng([v, w]).normal(size=(2, 2)) * 3
        leaders = np.argmax(gained.max(axis=2), axis=0)
        bet(wealth, table, [one, other], leaders, law=law)
        total = total + p * q * np.exp(wealth.log_by_level)
    true = grid >= claim.level
    assert (total[true] <= before[true] * (1 + 1e-9)).all()
