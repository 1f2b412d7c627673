"""The nearest law: known growth limits, a general solver on small problems, and laws that are hardly laws."""

import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import laplace, norm

from auditdp.betting.wealth import nearest_region as module
from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.nearest_region import excess, nearest_regions
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP

CELLS = 80


def gaussian(mu, cells=CELLS):
    """N(-mu/2, 1) and N(mu/2, 1) in cells that are equally wide but for the tails."""
    edges = np.concatenate(
        [[-np.inf], np.linspace(-mu / 2 - 3.3, mu / 2 + 3.3, cells - 1), [np.inf]]
    )
    # Each law is summed from its own side, so that nothing is lost in the tails.
    zeros = np.diff(norm.cdf(edges + mu / 2))
    return zeros, zeros[::-1].copy()


def leaky(epsilon, delta, floor=1e-11):
    """The extreme pair of (epsilon, delta), with a trace of everything everywhere."""
    keep, lose = ((1 - delta) / (1 + math.exp(sign * epsilon)) for sign in (-1, 1))
    zeros = np.array([delta, keep, lose, floor]) if delta else np.array([keep, lose])
    return zeros / zeros.sum(), zeros[::-1] / zeros.sum()


def growth(claim, zeros, ones):
    """What a call is expected to win, in nats, by the region of the nearest law after its price; and ln S."""
    statements = claim.statements()
    (region,) = nearest_regions(zeros[None], ones[None], lines(statements)[None])
    price = region.price(DominatingPair.of(statements))
    with np.errstate(divide="ignore"):
        on_zeros, on_ones = region.choose(np.log(ones) - np.log(zeros))
    return float(zeros @ on_zeros + ones @ on_ones) / 2 - price, price


LIMITS = {
    "GDP 1 against .8": (GaussianDP(0.8), gaussian(1.0), 676),
    "GDP 1 against .9": (GaussianDP(0.9), gaussian(1.0), 2_706),
    "GDP .5 against .4": (GaussianDP(0.4), gaussian(0.5), 2_484),
    "GDP 2 against 1.6": (GaussianDP(1.6), gaussian(2.0), 232),
    "GDP 2 against 1.8": (GaussianDP(1.8), gaussian(2.0), 934),
    "(1.5, .01) against (1, .01)": (ApproxDP(1.0, 0.01), leaky(1.5, 0.01), 147),
    "(1, .05) against (1, .01)": (ApproxDP(1.0, 0.01), leaky(1.0, 0.05), 250),
    "(1, .02) against (1, .01)": (ApproxDP(1.0, 0.01), leaky(1.0, 0.02), 1_155),
    "(1.2, 0) against (1, .01)": (ApproxDP(1.0, 0.01), leaky(1.2, 0.0), 940),
    "(1.1, 1e-5) against (1, 1e-5)": (ApproxDP(1.0, 1e-5), leaky(1.1, 1e-5), 3_146),
    "(2, .001) against (1, .001)": (ApproxDP(1.0, 0.001), leaky(2.0, 0.001), 45),
}
"""Claim, law, and calls to refute at alpha = .05, ln 20/growth, at the limit for any sequential test (BFGS, 40 cells)."""


@pytest.mark.parametrize(("claim", "law", "calls"), LIMITS.values(), ids=LIMITS)
def test_the_growth_is_the_known_limit(claim, law, calls):
    gained, price = growth(claim, *law)
    assert math.log(20) / gained == pytest.approx(calls, rel=0.015)
    assert abs(price) < 0.01 * gained


@pytest.mark.parametrize(
    ("epsilon", "truth", "calls"), [(1.0, 1.1, 2_295), (1.0, 1.5, 117), (0.5, 1.0, 93)]
)
def test_against_pure_claims_the_growth_is_the_divergence_from_the_cap(
    epsilon, truth, calls
):
    gained, _ = growth(PureDP(epsilon), *leaky(truth, 0.0))
    p, q = 1 / (1 + math.exp(-truth)), 1 / (1 + math.exp(-epsilon))
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert gained == pytest.approx(divergence, rel=2e-3)
    assert divergence * calls == pytest.approx(math.log(20), rel=0.35), (
        "the order of the known medians"
    )


@pytest.mark.parametrize(
    ("epsilon", "mu", "gain"),
    [(1.994, 1.0, 6.5e-4), (2.342, 1.1547, 6.5e-4), (1.994, 1.118, 1.5e-3)],
)
def test_rare_cells_do_not_set_the_price_of_what_an_accountant_prints(
    epsilon, mu, gain
):
    pair = DominatingPair.of(GaussianDP(mu).statements())
    gained, price = growth(
        ApproxDP(epsilon, 1e-5), *Law(pair.log_odds, pair.p + pair.q).cells()
    )
    assert gained == pytest.approx(gain, rel=0.02), (
        "with 256 cells and a tolerance of 1e-12 it is 15 % more"
    )
    assert abs(price) < 0.05 * gained


def by_slsqp(claim, zeros, ones):
    """The largest Σ P ln P₀ + Q ln Q₀ by a general solver, over the probabilities of the tails."""
    bounds, cells = lines(claim.statements()), len(zeros)

    def laws(x):
        return (
            -np.diff(np.concatenate([[1.0], tails, [0.0]]))
            for tails in (x[: cells - 1], x[cells - 1 :])
        )

    def loss(x):
        p, q = (np.maximum(law, 1e-14) for law in laws(x))
        return -float(zeros @ np.log(p) + ones @ np.log(q))

    middle = np.cumsum(((zeros + ones) / 2)[::-1])[:-1][::-1]
    rows = []
    for k in range(cells - 1):
        row = np.zeros((len(bounds), 2 * (cells - 1)))
        row[:, k], row[:, cells - 1 + k] = bounds[:, 1], -bounds[:, 0]
        rows.append(row)
    limits = np.tile(bounds[:, 2], cells - 1)
    solved = minimize(
        loss,
        np.concatenate([middle, middle]),
        method="SLSQP",
        constraints=LinearConstraint(np.concatenate(rows), -limits, np.inf),
        bounds=[(1e-9, 1 - 1e-9)] * (2 * (cells - 1)),
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return -solved.fun


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "claim", [PureDP(0.7), ApproxDP(0.5, 0.05), ApproxDP(0.1, 0.3)], ids=str
)
def test_a_general_solver_finds_nothing_nearer(claim, seed):
    random = np.random.default_rng(seed)
    zeros, ones = random.dirichlet(np.full(5, 2.0), size=2)
    order = np.argsort(np.log(ones / zeros))
    zeros, ones = zeros[order], ones[order]
    p, q = (
        law[0]
        for law in module.nearest_laws(
            zeros[None], ones[None], lines(claim.statements())[None]
        )
    )
    assert (p > 0).all()
    assert (q > 0).all()
    assert [p.sum(), q.sum()] == pytest.approx([1.0, 1.0], abs=1e-12)
    assert excess(p, q, lines(claim.statements())) <= 1e-12, (
        "the law found is one that the claim allows"
    )
    assert zeros @ np.log(p) + ones @ np.log(q) == pytest.approx(
        by_slsqp(claim, zeros, ones), abs=2e-5
    )


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str
)
def test_of_what_the_claim_allows_nothing_is_bet(claim):
    bounds = lines(claim.statements())
    for zeros, ones in (leaky(0.3, 0.0), gaussian(0.3, 9), leaky(1e-9, 0.0)):
        if excess(zeros, ones, bounds) < 0:
            p, q = (
                law[0]
                for law in module.nearest_laws(zeros[None], ones[None], bounds[None])
            )
            common = zeros + ones > 1e-2
            assert p[common] == pytest.approx(zeros[common], rel=1e-3)
            assert q[common] == pytest.approx(ones[common], rel=1e-3)
        else:
            assert claim.delta == 0, "normal laws are within no pure claim"


@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_what_was_counted_gives_bets_that_win_more_than_they_cost(mu):
    """Laws as they are learned from calls, with cells that were hit a few times among thousands."""
    claim, bad = GaussianDP(mu), 0
    truth = DominatingPair.of(GaussianDP(1.3 * mu).statements())
    random = np.random.default_rng(0)
    for calls in np.logspace(3, 5.5, 12):
        weights = random.poisson(calls * (truth.p + truth.q) / 2).astype(float)
        zeros, ones = Law(np.clip(truth.log_odds, -9, 9), weights).cells()
        bad += growth(claim, zeros, ones)[0] <= 0
    assert bad <= 1


def test_the_excess_is_what_the_telling_event_has_too_much():
    bounds = lines(np.array([[math.log(3), 0.0]]))  # (1/4) b <= (3/4) a
    assert excess(np.array([0.9, 0.1]), np.array([0.5, 0.5]), bounds) == pytest.approx(
        0.5 / 4 - 0.1 * 3 / 4
    )
    assert excess(np.ones(1), np.ones(1), bounds) == -math.inf, "one cell tells nothing"


def test_laplace_noise_exceeds_a_half_gaussian_claim():
    """Laplace noise of scale 2 is 0.5-DP but not 0.5-GDP: its total variation is 1 - e^(-1/4), over 2 Φ(1/4) - 1."""
    claim = GaussianDP(0.5)
    edges = np.array(
        [-np.inf, 0.0, 0.3, 0.5, 0.7, 1.0, np.inf]
    )  # odds are constant beyond both centres
    zeros, ones = (
        np.diff(laplace.cdf(edges, loc=centre, scale=2.0)) for centre in (0.0, 1.0)
    )
    over = (1 - math.exp(-0.25)) - (2 * norm.cdf(0.25) - 1)
    assert excess(zeros, ones, lines(claim.statements()[:1])) == pytest.approx(
        over / 2, abs=1e-12
    )
    gained, price = growth(claim, zeros, ones)
    limit = (
        zeros @ np.log(zeros) + ones @ np.log(ones) - by_slsqp(claim, zeros, ones)
    ) / 2
    assert gained == pytest.approx(limit, rel=0.02)
    assert 1e-4 < gained < 1e-2
    assert abs(price) < 0.02 * gained


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(1e-3),
        PureDP(64.0),
        ApproxDP(1.0, 1e-12),
        ApproxDP(1.0, 0.9),
        ApproxDP(1e-3, 1e-12),
        ApproxDP(700.0, 0.01),
        GaussianDP(1e-3),
        GaussianDP(0.01),
        GaussianDP(16.0),
        GaussianDP(30.0),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "law",
    {
        "one cell": (np.ones(1), np.ones(1)),
        "traces": (
            np.array([1.5e-12, 0.5, 0.5, 2e-23]),
            np.array([2e-23, 0.5, 0.5, 1.5e-12]),
        ),
        "certain": (np.array([1 - 1e-11, 1e-11]), np.array([1e-11, 1 - 1e-11])),
        "equal": (np.full(9, 1 / 9), np.full(9, 1 / 9)),
        "rare": (np.array([0.5, 0.5 - 1e-8, 1e-8]), np.array([0.5 - 1e-5, 0.5, 1e-5])),
        "one side": (np.array([0.999, 1e-3]), np.array([1e-11, 1.0])),
    }.items(),
    ids=lambda law: law[0],
)
def test_extreme_claims_and_laws_give_finite_bets_at_a_finite_price(claim, law):
    zeros, ones = law[1]
    statements = claim.statements()
    with np.errstate(all="raise", under="ignore"):
        (region,) = nearest_regions(zeros[None], ones[None], lines(statements)[None])
        price = region.price(DominatingPair.of(statements))
    assert np.isfinite(region.logs).all()
    assert np.isfinite(price)


def test_several_problems_are_solved_as_each_alone():
    claims = [GaussianDP(0.5), GaussianDP(0.8), GaussianDP(0.99)]
    zeros, ones = gaussian(1.0, 20)
    stacks = [lines(claim.statements()) for claim in claims]
    most = max(map(len, stacks))
    bounds = np.stack(
        [np.pad(at, ((0, most - len(at)), (0, 0)), mode="edge") for at in stacks]
    )
    together = nearest_regions(np.stack([zeros] * 3), np.stack([ones] * 3), bounds)
    for region, at in zip(together, stacks, strict=True):
        (alone,) = nearest_regions(zeros[None], ones[None], at[None])
        odds = np.log(ones) - np.log(zeros)
        assert region.choose(odds) == pytest.approx(alone.choose(odds), abs=1e-3)
