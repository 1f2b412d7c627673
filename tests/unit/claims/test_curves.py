"""Claims of a whole curve: their points, their levels, and the verdicts about them."""

import math
import re

import numpy as np
import pytest
from scipy.stats import norm

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.accountants import PLDUpper
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.power import detectable_level
from auditdp.betting.wealth.levels import level_grid
from auditdp.errors import ClaimError
from auditdp.record.results import SYMBOLS
from auditdp.report import numbers
from auditdp.report.guesses import guessing
from auditdp.testing import GaussianMechanism
from tests.unit.betting.toys import new_game
from tests.unit.evidence.toys import NOT_REFUTED, VIOLATED, audited


def family(factor):
    """The curve of N(0, 1) against N(1, 1) with that many times the noise."""
    return GaussianDP(1 / factor).delta_at


GDP = GaussianDP(1.0)
CURVE = AccountedDP(family(1.0), quoted=1e-3, family=family)
ZCDP = ZeroConcentratedDP(0.5)
RENYI = RenyiDP(4.0, 2.0)


@pytest.mark.parametrize("curve", [GDP.delta_at, GDP, PLDUpper(1.0, 1.0, 1)])
def test_the_points_of_a_curve_are_on_it_and_its_level_is_epsilon_at_the_quoted_delta(
    curve,
):
    claim = AccountedDP(curve, quoted=1e-3)
    exact = getattr(curve, "delta_at", curve)
    for epsilon, delta in claim.statements()[::20]:
        assert delta == pytest.approx(exact(epsilon), rel=1e-9)

    assert exact(claim.level) == pytest.approx(1e-3, rel=0.02)
    # Points promise no more than the curve.
    for epsilon in np.linspace(0, 6, 25):
        assert claim.delta_at(epsilon) >= exact(epsilon) * (1 - 1e-9)


def test_a_privacy_loss_distribution_of_dp_accounting_is_a_curve():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    curve = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    claim = AccountedDP(curve, quoted=1e-3)
    assert claim.level == pytest.approx(CURVE.level, rel=0.01)


def test_levels_are_those_of_the_family():
    levels = level_grid(CURVE)
    assert (np.diff(levels) > 0).all()
    assert CURVE.level in levels

    lower = CURVE.at(float(levels[3]))
    assert lower.level == levels[3]
    assert lower.delta_at(lower.level) == pytest.approx(1e-3, rel=1e-6)

    with pytest.raises(ClaimError, match="no member of the family"):
        CURVE.at(0.123)
    alone = AccountedDP(family(1.0), quoted=1e-3)
    assert level_grid(alone).tolist() == [alone.level]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AccountedDP(3.0), "expected a curve with delta_at"),
        (lambda: AccountedDP("abc"), "expected points .* got 'abc'"),
        (lambda: AccountedDP([], quoted="2"), r"quoted in \(0, 1\), got quoted='2'"),
        (lambda: AccountedDP([], quoted=2.0), r"quoted in \(0, 1\), got quoted=2.0"),
        (
            lambda: AccountedDP([(0.0, 0.4)], quoted=1e-3),
            "does not fall to the quoted delta 0.001",
        ),
        (lambda: AccountedDP(lambda epsilon: 1.0), "promises nothing"),
        (lambda: AccountedDP(lambda epsilon: math.nan), "expected delta >= 0"),
        (lambda: ZeroConcentratedDP(-1.0), "expected finite rho > 0, got rho=-1.0"),
        (lambda: RenyiDP(1.0, 1.0), "expected a finite order > 1, got order=1.0"),
        (lambda: RenyiDP("2", 1.0), "expected a finite order > 1, got order='2'"),
        (lambda: RenyiDP(2.0, 0.0), "expected finite epsilon > 0"),
    ],
)
def test_numbers_that_are_no_curve_are_refused(make, message):
    with pytest.raises(ClaimError, match=message):
        make()


@pytest.mark.parametrize("rho", [0.01, 0.5, 4.0])
def test_concentrated_dp_implies_hardly_less_than_the_gaussian_that_it_describes(rho):
    """N(0, 1) against N(√(2ρ), 1) is ρ-zCDP, so its curve lies below the implied one.

    At δ = 1e-6 it is not far below.
    """
    mu = math.sqrt(2 * rho)
    claim = ZeroConcentratedDP(rho)
    exact = GaussianDP(mu)
    for epsilon in np.linspace(0.0, rho + 6 * mu, 40):
        assert claim.delta_at(epsilon) >= exact.delta_at(epsilon)
    near = next(e for e, d in claim.statements() if d < 1e-6)

    assert exact.delta_at(0.8 * near) > 1e-6


def test_the_statements_of_one_order_have_a_closed_form():
    for epsilon, delta in RenyiDP(4.0, 1.0).statements():
        closed = math.exp(3 * (1 - epsilon)) * (3 / 4) ** 4 / 3
        assert delta == pytest.approx(closed, rel=1e-9)


# Games.


def curve_game(scale, claim, calls):
    mechanism = GaussianMechanism(scale)
    game = new_game(mechanism, claim, [LikelihoodRatio()], levels=True)
    game.play(calls, alpha=0.05)
    return game.wealth


def test_a_curve_is_refuted_or_bounded():
    assert curve_game(1 / 1.5, CURVE, 600).refuted(0.05)
    true = curve_game(1.0, CURVE, 1_000)
    assert not true.refuted(0.05)
    assert true.lower_bound(0.05) >= 0.5 * CURVE.level


@pytest.mark.dear
@pytest.mark.parametrize(
    ("claim", "parameter"), [(CURVE, "epsilon"), (ZCDP, "rho"), (RENYI, "epsilon")]
)
def test_an_audit_of_a_curve_is_a_game_alone(claim, parameter):
    for scale, verdict in ((1.0, NOT_REFUTED), (0.25, VIOLATED)):
        result = audited(GaussianMechanism(scale), claim, [(1, 0)], budget=400)
        assert result.verdict is verdict
        assert {each.kind for each in result.evidence} <= {"game", "sensitivity"}
        assert result.claim.parameter == parameter
        assert (result.epsilon_lower is None) is (claim is CURVE)


KEPT = 1 / (1 + math.exp(-1.0))


def response(data, rng):
    """Randomised response with ε = 1: the loss is 1 at every small δ."""
    return data if rng.random() < KEPT else 1 - data


SMALL_CURVE = AccountedDP(
    family(1 / 0.3), quoted=1e-5, family=lambda factor: family(factor / 0.3)
)
RENYI_LOSS = math.log((math.exp(2.0) + math.exp(-1.0)) / (1 + math.exp(1.0)))


@pytest.mark.dear
@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (SMALL_CURVE, None),
        (PureDP(0.5), 1.0),
        (ApproxDP(0.5, 1e-5), 1.0),
        (GaussianDP(0.5), 2 * norm.ppf(KEPT)),
        # At most, as ε-DP is ε²/2-zCDP.
        (ZeroConcentratedDP(0.05), 0.5),
        (RenyiDP(2.0, 0.1), RENYI_LOSS),
    ],
    ids=str,
)
def test_no_number_called_epsilon_mu_or_rho_is_above_the_truth(claim, truth):
    """The curve is exceeded near ε = 0, and far from it where its ε is quoted.

    Its level says nothing there.
    """
    result = audited(response, claim, [(1, 0)], alpha=1e-4, budget=2_000)
    assert result.verdict is VIOLATED

    text = " ".join([result.summary, guessing(result), numbers.bounds(result)])
    letter = f"[{SYMBOLS[claim.parameter]}ε]"
    found = re.findall(f"{letter} [≥=] ([0-9.]+)|([0-9.]+) ≤ {letter}", text)
    printed = [float(one or other) for one, other in found]
    if truth is None:
        assert not printed
        assert "refute the claim (up to the curve through (" in result.summary
        assert result.evidence[0].details.bound_path == []
    else:
        assert claim.level <= result.epsilon_lower <= truth
        assert 0 < max(printed) <= truth, text


@pytest.mark.parametrize("claim", [CURVE, ZCDP, RENYI])
def test_a_clean_game_states_the_level_that_it_would_have_refuted(claim):
    options = {"calls": 2_000, "alpha": 0.05, "share": 0.5, "white_box": True}
    level, alternative = detectable_level(claim, **options)
    assert claim.level < level < 3 * claim.level
    assert alternative == claim.alternative
