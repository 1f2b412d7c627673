"""One-run evidence: canaries that are guessed from what one training releases."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from auditdp import (
    AccountedDP,
    ApproxDP,
    Audit,
    Canaries,
    GaussianDP,
    NeighbourList,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.bounds.privacy_curves import (
    EpsilonDelta,
    Gaussian,
    OfClaim,
    curve_of_claim,
)
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear


def gaussian(mu):
    """The noised sum of one-hot gradients: each canary is a Gaussian mechanism of its own."""
    return lambda included, rng: included + rng.standard_normal(len(included)) / mu


def randomised_response(epsilon):
    def release(included, rng):
        return np.where(
            rng.random(len(included)) < 1 / (1 + math.exp(-epsilon)),
            included,
            ~included,
        ).astype(float)

    return release


def audited(release, claim, *, canaries=400, **options):
    built = Audit(release, claim, Canaries(canaries), evidence=["one_run"], **options)
    return run_audit(built, Settings(alpha=0.05, budget=Budget(50_000), root_seed=1))


def gaussian_curve(mu=1.0):
    return AccountedDP(
        GaussianDP(mu).delta_at, family=lambda factor: GaussianDP(mu / factor).delta_at
    )


CLAIMS = [
    PureDP(1.0),
    ApproxDP(1.0, 1e-6),
    GaussianDP(1.0),
    gaussian_curve(),
    ZeroConcentratedDP(0.5),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_true_claim_is_kept_and_one_that_is_far_from_true_is_refuted(claim):
    release = randomised_response if isinstance(claim, PureDP | ApproxDP) else gaussian
    kept, broken = audited(release(1.0), claim), audited(release(3.0), claim)
    assert (kept.verdict, broken.verdict) == (Verdict.NOT_REFUTED, Verdict.VIOLATED)
    if isinstance(claim, AccountedDP):  # a level of its family is no bound on ε
        assert kept.epsilon_lower is broken.epsilon_lower is None
        assert "ε ≥" not in broken.summary
    else:
        assert 0 < kept.epsilon_lower < claim.level <= broken.epsilon_lower
    assert kept.evidence[0].calls == broken.evidence[0].calls == 1
    assert "one of 400 canaries" in broken.counterexample.pair
    assert "with probability at most" in broken.counterexample.explanation


def test_what_would_follow_of_gaussian_scores_is_said_and_decides_nothing():
    """Far more than is certified, and above a false claim: the verdict is what it is without."""
    found = audited(gaussian(1.2), GaussianDP(1.0), canaries=2_000)
    details = found.evidence[0].details
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.epsilon_lower < 0.8 < 1 < details.assumed_lower < 1.2
    assert (
        f"ASSUMING independent Gaussian scores of one variance, μ ≥ {details.assumed_lower:.4}"[
            :58
        ]
        in found.summary
    )
    assert (details.assumption_p_value > 0.01, details.assumption_power > 0.5) == (
        True,
        True,
    )
    assert (
        audited(randomised_response(1.0), ApproxDP(1.0, 1e-6))
        .evidence[0]
        .details.assumed_lower
        is None
    )


def test_several_trainings_throw_their_own_coins_and_certify_more():
    one, ten = (
        audited(gaussian(1.0), GaussianDP(1.0), canaries=100, calls=n) for n in (1, 10)
    )
    assert one.epsilon_lower < ten.epsilon_lower < 1
    assert "from 10 trainings" in ten.summary


def test_the_same_seed_gives_the_same_bound_and_another_another():
    built = Audit(gaussian(1.0), GaussianDP(1.0), Canaries(200), evidence=["one_run"])
    found = [
        run_audit(built, Settings(alpha=0.05, budget=Budget(1), root_seed=seed))
        .evidence[0]
        .statement
        for seed in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]


def test_coins_are_fair_and_differ_from_training_to_training():
    seen = []

    def release(included, rng):
        seen.append(included.copy())
        return rng.random(len(included))

    audited(release, PureDP(1.0), canaries=1_000, calls=3)
    assert len(seen) == 3
    assert all(abs(coins.mean() - 0.5) < 0.1 for coins in seen)
    assert len({coins.tobytes() for coins in seen}) == 3


def test_a_broken_control_has_to_be_refuted():
    weak = audited(gaussian(1.0), GaussianDP(1.0), controls=[gaussian(1.0)])
    strong = audited(gaussian(1.0), GaussianDP(1.0), controls=[gaussian(4.0)])
    assert (weak.verdict, strong.verdict) == (Verdict.INCONCLUSIVE, Verdict.NOT_REFUTED)


@pytest.mark.parametrize(
    ("release", "shown"),
    [
        (lambda included, rng: rng.random(3), "shape"),
        (lambda included, rng: rng.random(), "shape"),
        (lambda included, rng: np.full(len(included), np.nan), "nan"),
        (lambda included, rng: "many", "numbers"),
        (lambda included, rng: 1 // 0, r"ZeroDivisionError.*of 4 canaries"),
    ],
)
def test_scores_that_are_none_are_refused(release, shown):
    with pytest.raises(MechanismError, match=shown):
        audited(release, PureDP(1.0), canaries=4)


def test_it_needs_canaries():
    built = Audit(
        gaussian(1.0), PureDP(1.0), NeighbourList(nodes=4), evidence=["one_run"]
    )
    with pytest.raises(AdjacencyError, match=r"pairs=Canaries\(count\)"):
        run_audit(built, Settings(alpha=0.05, budget=Budget(1), root_seed=0))
    with pytest.raises(AdjacencyError, match="two canaries"):
        audited(gaussian(1.0), PureDP(1.0), canaries=1)


def test_claims_have_the_curves_that_bounds_know():
    assert curve_of_claim(PureDP(1.0)) == EpsilonDelta()
    assert curve_of_claim(ApproxDP(1.0, 0.1)) == EpsilonDelta(0.1)
    assert curve_of_claim(GaussianDP(1.0)) == Gaussian()


POINTS = np.array([0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0])


def test_the_curve_of_points_of_a_gaussian_is_just_above_the_gaussian():
    """It is made of some of the (ε, δ) statements of μ = 1, so it allows a little more, and nothing less."""
    claim = gaussian_curve()
    curve = OfClaim(claim)
    most = curve.largest_p(POINTS, claim.level)
    exact = ndtr(1.0 + np.array([-np.inf, *map(_quantile, POINTS[1:-1]), np.inf]))
    assert np.all(most >= exact - 1e-12)
    assert np.all(most <= exact + 1e-4)


def _quantile(probability):
    from scipy.special import ndtri

    return ndtri(probability)


@pytest.mark.parametrize(
    "claim", [gaussian_curve(), ZeroConcentratedDP(0.5), RenyiDP(8.0, 1.0)], ids=str
)
def test_a_curve_of_a_claim_is_concave_grows_with_the_level_and_has_its_inverse(claim):
    curve, grid = OfClaim(claim), np.linspace(0, 1, 201)
    low, at, high = (
        curve.largest_p(grid, level)
        for level in (claim.level / 2, claim.level, 2 * claim.level)
    )
    assert np.all(low <= at + 1e-12)
    assert np.all(at <= high + 1e-12)
    assert np.all(np.diff(at) >= -1e-12)
    assert np.all(np.diff(at, 2) <= 1e-9)
    assert np.all(at >= grid - 1e-12)
    back = curve.smallest_q(at, claim.level)
    assert np.all(back <= grid + 1e-9)  # the smallest with as much
    assert np.allclose(curve.largest_p(back, claim.level), at, atol=1e-9)


def test_a_level_between_two_members_of_a_family_stands_for_the_upper_one():
    claim = gaussian_curve()
    curve, members = OfClaim(claim), [*claim.members]
    between = (members[3] + members[4]) / 2
    assert np.array_equal(
        curve.largest_p(POINTS, between), curve.largest_p(POINTS, members[4])
    )
    assert np.all(curve.largest_p(POINTS[1:], members[-1] + 1) == 1)
    assert curve.level(0.5, 0.5) == 0
    assert (
        members[3] - 1e-9
        <= float(curve.level(*_just_allowed(curve, members[4])))
        <= members[4] + 1e-9
    )


def _just_allowed(curve, level):
    return float(curve.largest_p(0.2, level)), 0.2
