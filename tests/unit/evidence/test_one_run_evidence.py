"""One-run evidence: canaries that are guessed from one training; curves of claims."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from auditdp import (
    AccountedDP,
    ApproxDP,
    Canaries,
    GaussianDP,
    NeighbourList,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.bounds.privacy_curves import (
    OfClaim,
)
from auditdp.errors import AdjacencyError, MechanismError
from tests.unit.evidence.toys import INCONCLUSIVE, NOT_REFUTED, VIOLATED, audited


def gaussian(mu):
    """The noised sum of one-hot gradients.

    Each canary is a Gaussian mechanism of its own.
    """
    return lambda included, rng: included + rng.standard_normal(len(included)) / mu


def response(epsilon):
    def release(included, rng):
        kept = rng.random(len(included)) < 1 / (1 + math.exp(-epsilon))
        return np.where(kept, included, ~included).astype(float)

    return release


def train(release, claim, *, canaries=400, **options):
    pairs = Canaries(canaries)
    return audited(release, claim, pairs, alpha=0.05, evidence=["one_run"], **options)


def family(factor):
    return GaussianDP(1.0 / factor).delta_at


GDP = GaussianDP(1.0)
CURVE = AccountedDP(GDP.delta_at, family=family)


@pytest.mark.parametrize(
    ("release", "claim"),
    [
        (gaussian, CURVE),
        (response, PureDP(1.0)),
        (response, ApproxDP(1.0, 1e-6)),
        (gaussian, GDP),
    ],
)
def test_a_true_claim_stands_and_one_that_is_far_from_true_is_refuted(release, claim):
    true, broken = train(release(1.0), claim), train(release(3.0), claim)
    assert (true.verdict, broken.verdict) == (NOT_REFUTED, VIOLATED)

    # A level of the family of an accountant is no bound on ε.
    if claim is CURVE:
        assert true.epsilon_lower is broken.epsilon_lower is None
        assert "ε ≥" not in broken.summary
    else:
        assert 0 < true.epsilon_lower < claim.level <= broken.epsilon_lower
    assert true.evidence[0].calls == broken.evidence[0].calls == 1
    assert "one of 400 canaries" in broken.counterexample.pair
    assert "with probability at most" in broken.counterexample.explanation


def test_a_bound_under_the_assumption_of_gaussian_scores_decides_nothing():
    """It is far above the certified one, and above a false claim."""
    found = train(gaussian(1.2), GDP, canaries=2_000)
    details = found.evidence[0].details
    assert found.verdict is NOT_REFUTED
    assert found.epsilon_lower < 0.8 < 1 < details.assumed_lower < 1.2
    assert "ASSUMING independent Gaussian scores of one variance, μ ≥" in found.summary
    assert details.assumption_p_value > 0.01
    assert details.assumption_power > 0.5

    discrete = train(response(1.0), ApproxDP(1.0, 1e-6))
    assert discrete.evidence[0].details.assumed_lower is None


def test_several_trainings_certify_more():
    one, ten = (train(gaussian(1.0), GDP, canaries=100, calls=n) for n in (1, 10))
    assert "from 10 trainings" not in one.summary
    assert one.epsilon_lower < ten.epsilon_lower < 1


def test_coins_are_fair_and_differ_from_training_to_training():
    coins = []

    def release(included, rng):
        coins.append(included.copy())
        return rng.random(len(included))

    train(release, PureDP(1.0), canaries=1_000, calls=3)
    assert len(coins) == 3
    assert all(abs(each.mean() - 0.5) < 0.1 for each in coins)
    assert len({each.tobytes() for each in coins}) == 3


@pytest.mark.parametrize(("mu", "verdict"), [(1.0, INCONCLUSIVE), (4.0, NOT_REFUTED)])
def test_a_broken_control_has_to_be_refuted(mu, verdict):
    assert train(gaussian(1.0), GDP, controls=[gaussian(mu)]).verdict is verdict


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (lambda included, rng: rng.random(3), "shape"),
        (lambda included, rng: np.full(len(included), np.nan), "nan"),
        (lambda included, rng: "many", "numbers"),
        (lambda included, rng: 1 // 0, r"ZeroDivisionError.*of 4 canaries"),
    ],
)
def test_a_release_without_scores_is_an_error(release, message):
    with pytest.raises(MechanismError, match=message):
        train(release, PureDP(1.0), canaries=4)


def test_it_needs_canaries():
    with pytest.raises(AdjacencyError, match=r"pairs=Canaries\(count\)"):
        audited(gaussian(1.0), PureDP(1.0), NeighbourList(4), evidence=["one_run"])
    with pytest.raises(AdjacencyError, match="two canaries"):
        train(gaussian(1.0), PureDP(1.0), canaries=1)


# Curves of claims.


POINTS = np.array([0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0])


def test_the_curve_of_some_statements_of_a_gaussian_is_just_above_it():
    most = OfClaim(CURVE).largest_p(POINTS, CURVE.level)
    exact = ndtr(1.0 + ndtri(POINTS))
    assert np.all(most >= exact - 1e-12)
    assert np.all(most <= exact + 1e-4)


@pytest.mark.parametrize(
    "claim", [CURVE, ZeroConcentratedDP(0.5), RenyiDP(8.0, 1.0)], ids=str
)
def test_a_curve_of_a_claim_is_concave_grows_with_the_level_and_has_its_inverse(claim):
    curve, grid = OfClaim(claim), np.linspace(0, 1, 201)
    low, at, high = (curve.largest_p(grid, f * claim.level) for f in (0.5, 1.0, 2.0))
    assert np.all(low <= at + 1e-12)
    assert np.all(at <= high + 1e-12)
    assert np.all(np.diff(at) >= -1e-12)
    assert np.all(np.diff(at, 2) <= 1e-9)
    assert np.all(at >= grid - 1e-12)

    # The inverse is the smallest q with that p.
    back = curve.smallest_q(at, claim.level)
    assert np.all(back <= grid + 1e-9)
    assert np.allclose(curve.largest_p(back, claim.level), at, atol=1e-9)


def test_a_level_between_two_members_of_a_family_stands_for_the_upper_one():
    curve, members = OfClaim(CURVE), [*CURVE.members]
    between = curve.largest_p(POINTS, (members[3] + members[4]) / 2)
    assert np.array_equal(between, curve.largest_p(POINTS, members[4]))
    assert np.all(curve.largest_p(POINTS[1:], members[-1] + 1) == 1)
    assert curve.level(0.5, 0.5) == 0

    allowed = float(curve.largest_p(0.2, members[4]))
    level = float(curve.level(allowed, 0.2))
    assert members[3] - 1e-9 <= level <= members[4] + 1e-9
