"""Wealth: the counting arithmetic against a slow and obvious reference, call by call and level by level."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit
from scipy.stats import norm

from auditdp.betting.wealth import FRACTIONS, GRID_LIMITS, ROUNDING_SLACK, Wealth, level_grid, log_cap, log_factors
from auditdp.claims import ApproxDP, GaussianDP, PureDP

CLAIMS = [
    PureDP(1.0),
    PureDP(0.05),
    PureDP(9.0),
    ApproxDP(1.0, 0.01),
    ApproxDP(0.3, 0.2),
    ApproxDP(2.0, 0.0),
    GaussianDP(1.0),
    GaussianDP(0.2),
    GaussianDP(3.0),
]
ALPHAS = np.exp(-np.linspace(0.05, 30, 120))


def factor(log_odds, coin, epsilon):
    """Return f of one call, with r₀ written out for the three cases of the clip."""
    r, not_r, q, not_q = expit(log_odds), expit(-log_odds), expit(epsilon), expit(-epsilon)
    if log_odds > epsilon:
        return r / q if coin else not_r / not_q
    if log_odds < -epsilon:
        return r / not_q if coin else not_r / q
    return 1.0


def guess(log_odds, coin, epsilon):
    """The same with everything staked as soon as the forecast leaves the cap."""
    if abs(log_odds) <= epsilon:
        return 1.0
    return 1 + math.exp(-epsilon) if (log_odds > 0) == (coin == 1) else 0.0


def bets_against(epsilon, delta, log_odds, coin, *, kinds):
    """The factors of all bets of one forecaster against one statement, in the order soft, hard; by λ."""
    made = []
    for kind in kinds:
        f = kind(log_odds, coin, epsilon)
        made += [(1 + c * (f - 1)) / (1 + c * delta * math.exp(-epsilon)) for c in FRACTIONS]
    return made


def slow_path(claim, forecasts, coins):
    """Wealth after every call: one product per forecaster, tangent, kind and λ, averaged."""
    pure = claim.tangents() == ((claim.level, 0.0),)
    wealths, path = None, []
    for call, coin in enumerate(coins):
        now = []
        for k in range(len(forecasts)):
            for epsilon, delta in claim.tangents():
                if pure:
                    now.append(factor(forecasts[k][call], coin, epsilon))
                else:
                    now += bets_against(epsilon, delta, forecasts[k][call], coin, kinds=(factor, guess))
        wealths = np.array(now) if wealths is None else wealths * now
        path.append(wealths.mean())
    return np.array(path)


def slow_levels(claim, levels, batches):
    """The largest wealth ever seen against every level, level by level and call by call."""
    highest, claim_path, start = np.ones(len(levels)), [], 0
    forecasts = np.concatenate([b[0] for b in batches], axis=1)
    coins = np.concatenate([b[1] for b in batches])
    claim_path = slow_path(claim, forecasts, coins)
    pure = claim.tangents() == ((claim.level, 0.0),)
    products = None
    for batch_forecasts, batch_coins in batches:
        for call, coin in enumerate(batch_coins):
            now = []
            for level in levels:
                row = []
                for k in range(len(batch_forecasts)):
                    for epsilon, delta in claim.at(float(level)).tangents():
                        if pure:
                            row.append(factor(batch_forecasts[k][call], coin, epsilon))
                        else:
                            row += bets_against(epsilon, delta, batch_forecasts[k][call], coin, kinds=(guess,))
                now.append(row)
            products = np.array(now) if products is None else products * now
        start += len(batch_coins)
        own = products.mean(axis=1)
        at_claim, so_far = claim_path[start - 1], claim_path[:start].max()
        for i, level in enumerate(levels):
            if level == claim.level:
                highest[i] = max(highest[i], so_far)
            elif level < claim.level:
                # The average of both bets; half of the claim's best is a lower bound on that average's best.
                highest[i] = max(highest[i], (own[i] + at_claim) / 2, so_far / 2)
            else:
                highest[i] = max(highest[i], own[i])
    return highest


def some_forecasts(claim, forecasters, calls, seed, *, right=0.8):
    """Log-odds around the claim's cap, mostly leaning the right way."""
    random = np.random.default_rng(seed)
    coins = random.integers(0, 2, calls, dtype=np.int8)
    sides = np.where(random.random((forecasters, calls)) < right, 1, -1) * np.where(coins == 1, 1, -1)
    scale = max(epsilon for epsilon, _ in claim.tangents())
    return sides * random.exponential(1.5 * scale, (forecasters, calls)), coins


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("forecasters", [1, 3])
def test_the_wealth_after_every_call_is_the_average_of_the_products(claim, forecasters):
    forecasts, coins = some_forecasts(claim, forecasters, 40, seed=1)
    wealth = Wealth(claim, forecasters=forecasters)
    path = wealth.bet(forecasts, coins)
    assert path == pytest.approx(np.log(slow_path(claim, forecasts, coins)), abs=1e-8)
    assert wealth.log_wealth == pytest.approx(path[-1])
    assert wealth.highest == pytest.approx(max(0.0, path.max()))
    assert wealth.calls == 40
    each = [slow_path(claim, forecasts[k : k + 1], coins)[-1] for k in range(forecasters)]
    assert wealth.log_by_forecaster == pytest.approx(np.log(each), abs=1e-8)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_how_calls_are_batched_does_not_matter(claim):
    forecasts, coins = some_forecasts(claim, 2, 60, seed=2)
    whole, parts = Wealth(claim, forecasters=2), Wealth(claim, forecasters=2)
    path = whole.bet(forecasts, coins)
    cuts = [0, 1, 2, 9, 30, 60]
    pieces = [parts.bet(forecasts[:, a:b], coins[a:b]) for a, b in itertools.pairwise(cuts)]
    assert np.concatenate(pieces) == pytest.approx(path, abs=1e-10)
    assert parts.log_wealth == pytest.approx(whole.log_wealth, abs=1e-10)
    assert parts.highest == pytest.approx(whole.highest, abs=1e-10)


def chain(levels, highest, alpha):
    """The largest level such that it and all below it have crossed."""
    bound = 0.0
    for level, wealth in zip(levels, highest, strict=True):
        if math.log(wealth) < math.log(1 / alpha) + ROUNDING_SLACK:
            return bound
        bound = float(level)
    return bound


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("right", [0.95, 0.75])
def test_the_lower_bound_is_the_chain_of_levels_that_were_crossed(claim, right):
    levels = level_grid(claim, ratio=1.7)
    batches = [some_forecasts(claim, 2, n, seed=n, right=right) for n in (1, 5, 30, 12)]
    wealth = Wealth(claim, forecasters=2, levels=levels)
    for batch in batches:
        wealth.bet(*batch)
    highest = slow_levels(claim, levels, batches)
    expected = [chain(levels, highest, alpha) for alpha in ALPHAS]
    assert [wealth.lower_bound(alpha) for alpha in ALPHAS] == expected
    assert [wealth.refuted(alpha) for alpha in ALPHAS] == [bound >= claim.level for bound in expected]
    assert len(set(expected)) > 1, "the example must distinguish levels"


def test_the_bound_is_a_chain_and_not_the_largest_level_crossed():
    """Forecasts between two caps cross the lower level alone; forecasts far out must not skip a level in between."""
    levels = np.array([0.5, 1.0, 2.0])
    wealth = Wealth(PureDP(1.0), forecasters=1, levels=levels)
    wealth.bet(np.full((1, 200), 1.5), np.ones(200, np.int8))
    assert wealth.lower_bound(0.05) == 1.0
    wealth = Wealth(PureDP(2.0), forecasters=1, levels=levels)
    # Right 8 times in 10 at log-odds of 3: a gain at level 2 would need 88 % right, at level 0.5 62 %.
    coins = np.tile(np.array([1] * 8 + [0] * 2, np.int8), 10)
    wealth.bet(np.full((1, 100), 3.0), coins)
    assert wealth.lower_bound(0.05) < 2.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_bound_grows_with_alpha_and_stays_on_the_grid(claim):
    levels = level_grid(claim, ratio=1.3)
    wealth = Wealth(claim, forecasters=1, levels=levels)
    assert wealth.lower_bound(0.05) == 0.0
    forecasts, coins = some_forecasts(claim, 1, 300, seed=3, right=1.0)
    wealth.bet(forecasts, coins)
    bounds = [wealth.lower_bound(alpha) for alpha in ALPHAS]
    assert bounds == sorted(bounds, reverse=True)
    assert all(bound == 0.0 or bound in levels for bound in bounds)
    assert bounds[0] > 0.0
    assert max(bounds) <= levels[-1]


def test_endless_certainty_stops_at_the_last_level():
    levels = np.array([0.5, 1.0, 2.0])
    wealth = Wealth(PureDP(1.0), forecasters=1, levels=levels)
    wealth.bet(np.full((1, 1000), np.inf), np.ones(1000, np.int8))
    assert wealth.lower_bound(0.05) == wealth.lower_bound(1e-6) == 2.0


def test_the_bound_never_falls_when_more_is_seen():
    claim = ApproxDP(1.0, 0.01)
    wealth = Wealth(claim, forecasters=1, levels=level_grid(claim, ratio=1.2))
    bounds = []
    for seed in range(30):
        wealth.bet(*some_forecasts(claim, 1, 20, seed=seed, right=0.95 if seed < 10 else 0.2))
        bounds.append(wealth.lower_bound(0.05))
    assert bounds == sorted(bounds)
    assert bounds[-1] >= 1.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_certain_and_right_earns_the_most_certain_and_wrong_loses_what_was_staked(claim):
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        wealth = Wealth(claim, forecasters=2, levels=level_grid(claim, ratio=2.0))
        path = wealth.bet(np.array([[np.inf, -np.inf], [0.0, 0.0]]), np.array([1, 0], np.int8))
        slow = slow_path(claim, [[800.0, -800.0], [0.0, 0.0]], [1, 0])
        assert path == pytest.approx(np.log(slow))
        path = wealth.bet(np.array([[np.inf], [0.0]]), np.array([0], np.int8))
    slow = slow_path(claim, [[800.0, -800.0, 800.0], [0.0, 0.0, 0.0]], [1, 0, 0])
    assert path[-1] == pytest.approx(np.log(slow[-1]))
    assert not np.isnan(wealth.lower_bound(0.05))
    if claim.tangents()[0][1] == 0:
        assert wealth.log_by_forecaster[0] == -np.inf
        assert wealth.log_wealth == pytest.approx(math.log(0.5))


def test_who_is_ruined_stays_ruined():
    wealth = Wealth(PureDP(1.0), forecasters=1, levels=level_grid(PureDP(1.0), ratio=2.0))
    wealth.bet(np.array([[np.inf]]), np.array([0], np.int8))
    wealth.bet(np.full((1, 1000), np.inf), np.ones(1000, np.int8))
    assert wealth.log_wealth == -np.inf
    assert wealth.lower_bound(0.999) == 0.0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_abstaining_earns_nothing_and_pays_the_price_of_delta(claim):
    wealth = Wealth(claim, forecasters=1, levels=level_grid(claim, ratio=1.5))
    path = wealth.bet(np.zeros((1, 50)), np.tile(np.array([0, 1], np.int8), 25))
    if all(delta == 0 for _, delta in claim.tangents()):
        assert (path == 0).all()
    else:
        assert (np.diff(path) < 0).all()
    assert wealth.lower_bound(0.5) == 0.0


def test_a_forecast_at_the_cap_is_no_bet():
    claim, coins = PureDP(1.0), np.array([1, 0], np.int8)
    assert log_factors(np.array([[1.0, -1.0]]), coins, claim.epsilon).tolist() == [[0.0, 0.0]]
    assert log_factors(np.array([[np.nextafter(1.0, 2.0)] * 2]), coins, 1.0) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("claim", [ApproxDP(1.0, 0.01), ApproxDP(0.3, 0.2)], ids=str)
def test_a_forecast_beyond_the_cap_by_rounding_alone_is_no_hard_bet(claim):
    """Computed log-ratios of a tight law differ from ε in the last bit, one way or the other."""
    coins = np.array([1, 0], np.int8)
    paths = [
        Wealth(claim, forecasters=1).bet(np.full((1, 2), odds), coins)
        for odds in (0.0, claim.epsilon, np.nextafter(claim.epsilon, 9), claim.epsilon * (1 + 1e-14))
    ]
    for path in paths[1:]:
        assert path == pytest.approx(paths[0], abs=1e-9)


def test_known_factors():
    # r = 1 against q = 3/4: right earns 1/q = 4/3, wrong earns nothing.
    level = math.log(3)
    factors = log_factors(np.array([[np.inf, np.inf]]), np.array([1, 0], np.int8), level)
    assert factors[0].tolist() == pytest.approx([math.log(4 / 3), -np.inf])
    # r = 9/10: 0.9/0.75 and 0.1/0.25
    factors = log_factors(np.full((1, 2), math.log(9)), np.array([1, 0], np.int8), level)
    assert np.exp(factors[0]).tolist() == pytest.approx([1.2, 0.4])


def test_the_cap_does_not_cancel_for_large_epsilon():
    for epsilon in (1e-3, 1.0, 40.0, 700.0, 2000.0):
        log_q, log_1q = log_cap(epsilon)
        assert log_1q == pytest.approx(-epsilon + log_q, rel=1e-15)
        assert log_q == pytest.approx(-math.log1p(math.exp(-epsilon)), rel=1e-12)


def test_no_noise_is_refuted_after_the_calls_that_theory_asks_for():
    """It takes ln 20 / ln(1/q) = 9.6 calls for epsilon = 1 at alpha = .05."""
    wealth = Wealth(PureDP(1.0), forecasters=1)
    path = wealth.bet(np.full((1, 20), np.inf), np.ones(20, np.int8))
    assert int(np.argmax(path >= math.log(20))) + 1 == 10


def reach(claim, target, levels=None):
    """A wealth whose highest log is the target, by one bet of the right size."""
    wealth = Wealth(claim, forecasters=1, levels=levels)
    wealth.bet(np.full((1, 400), np.inf), np.ones(400, np.int8))
    wealth.highest = target
    return wealth


def test_rounding_never_refutes():
    """Wealth that reaches 1/alpha only within rounding does not count; a hair more does."""
    threshold = math.log(20)
    for excess, refuted in ((-1e-9, False), (0.0, False), (5e-10, False), (2e-9, True)):
        assert reach(PureDP(1.0), threshold + excess).refuted(0.05) is refuted, excess


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_refutation_is_a_bound_that_reached_the_claim(claim):
    for right in (0.4, 0.7, 0.9, 1.0):
        batch = some_forecasts(claim, 1, 150, seed=5, right=right)
        wealth = Wealth(claim, forecasters=1, levels=level_grid(claim))
        wealth.bet(*batch)
        alone = Wealth(claim, forecasters=1)
        alone.bet(*batch)
        for alpha in (0.5, 0.05, 1e-6):
            assert wealth.refuted(alpha) == (wealth.lower_bound(alpha) >= claim.level)
            assert alone.refuted(alpha) or not wealth.refuted(alpha), (
                "the grid must not refute what the wealth does not"
            )


def test_without_a_grid_there_is_no_bound():
    with pytest.raises(ValueError, match="no grid"):
        Wealth(PureDP(1.0), forecasters=1).lower_bound(0.05)


@pytest.mark.parametrize("level", [1e-5, 1e-3, 0.1, 1.0, 7.3, 64.0, 200.0])
@pytest.mark.parametrize("kind", [PureDP, lambda v: ApproxDP(v, 0.1), GaussianDP], ids=["pure", "approx", "gaussian"])
def test_the_grid_holds_the_claim_and_covers_its_range(kind, level):
    claim = kind(level)
    levels = level_grid(claim)
    assert (levels == claim.level).sum() == 1
    assert (np.diff(levels) > 0).all()
    assert levels[1:] / levels[:-1] == pytest.approx(1.01, rel=1e-9)
    assert levels[0] <= max(GRID_LIMITS[0], level)
    assert levels[-1] >= min(GRID_LIMITS[1], level)
    assert levels[-1] >= level


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("slope", [0.5, 1.0, 3.0, 1e6])
def test_no_threshold_forecast_profits_from_a_true_gaussian_claim(mu, slope):
    """The expectation of one call's wealth under N(0, 1) and N(mu, 1), by quadrature, for honest to reckless forecasts."""

    def expected(y):
        odds = np.array([[slope * mu * (y - mu / 2)]])
        total = 0.0
        for coin, centre in ((1, mu), (0, 0.0)):
            path = Wealth(GaussianDP(mu), forecasters=1).bet(odds, np.array([coin], np.int8))
            total += 0.5 * norm.pdf(y - centre) * math.exp(path[0])
        return total

    epsilons = [epsilon for epsilon, _ in GaussianDP(mu).tangents()]
    kinks = sorted({mu / 2 + sign * epsilon / (slope * mu) for epsilon in epsilons for sign in (-1, 1)})
    edges = [-9.0, *[k for k in kinks if -9 < k < 9 + mu], 9.0 + mu]
    pieces = [integrate.quad(expected, a, b, epsabs=1e-9, limit=60)[0] for a, b in itertools.pairwise(edges) if b > a]
    assert sum(pieces) <= 1 + 1e-7
