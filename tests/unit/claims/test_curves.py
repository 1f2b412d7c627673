"""Claims of a whole curve: their points, their levels, and what the game makes of them."""

import math
import re
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from auditdp import (
    AccountedDP,
    ApproxDP,
    Audit,
    GaussianDP,
    Pair,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.accountants import PLDLower, PLDUpper
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.betting.power import detectable_level
from auditdp.betting.wealth.levels import level_grid
from auditdp.errors import ClaimError
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.results import SYMBOLS, Verdict
from auditdp.report import numbers
from auditdp.report.guesses import guessing
from auditdp.testing import GaussianMechanism

pytestmark = pytest.mark.dear


def family(factor):
    """The curve of N(0, 1) against N(1, 1) with that many times the noise."""
    return GaussianDP(1 / factor).delta_at


@pytest.mark.parametrize(
    "curve",
    [GaussianDP(1.0).delta_at, GaussianDP(1.0), PLDUpper(1.0, 1.0, 1)],
    ids=["f", "claim", "PLD"],
)
def test_the_points_of_a_curve_are_on_it_and_its_level_is_epsilon_at_the_quoted_delta(
    curve,
):
    claim = AccountedDP(curve, quoted=1e-3)
    exact = getattr(curve, "delta_at", curve)
    for epsilon, delta in claim.statements()[::20]:
        assert delta == pytest.approx(exact(epsilon), rel=1e-9)
    assert exact(claim.level) == pytest.approx(1e-3, rel=0.02)
    for epsilon in np.linspace(0, 6, 25):
        assert claim.delta_at(epsilon) >= exact(epsilon) * (1 - 1e-9), (
            "points promise no more than the curve"
        )


def test_points_are_taken_as_they_are():
    claim = AccountedDP([(0.5, 0.1), (2.0, 0.01)], quoted=0.05)
    assert claim.statements().tolist() == [[0.5, 0.1], [2.0, 0.01]]
    assert claim.delta_at(0.5) == pytest.approx(0.1)
    assert claim.delta_at(2.0) == pytest.approx(0.01)
    assert 0.5 < claim.level < 2.0


def test_a_privacy_loss_distribution_of_dp_accounting_is_a_curve():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    curve = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    assert AccountedDP(curve, quoted=1e-3).level == pytest.approx(
        AccountedDP(family(1.0), quoted=1e-3).level, rel=0.01
    )


def test_levels_are_the_familys_and_others_are_refused():
    claim = AccountedDP(family(1.0), quoted=1e-3, family=family)
    levels = level_grid(claim)
    assert (np.diff(levels) > 0).all()
    assert claim.level in levels
    lower = claim.at(float(levels[3]))
    assert lower.level == levels[3]
    assert lower.delta_at(lower.level) == pytest.approx(1e-3, rel=1e-6)
    with pytest.raises(ClaimError, match="no member of the family"):
        claim.at(0.123)
    assert level_grid(AccountedDP(family(1.0), quoted=1e-3)).tolist() == [claim.level]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AccountedDP(3.0), "expected a curve with delta_at"),
        (
            lambda: AccountedDP([(0.0, 0.4)], quoted=2.0),
            r"expected quoted in \(0, 1\), got quoted=2.0",
        ),
        (
            lambda: AccountedDP([(0.0, 0.4)], quoted=1e-3),
            "does not fall to the quoted delta 0.001",
        ),
        (lambda: AccountedDP([(-1.0, 0.4)]), "expected statements"),
        (lambda: AccountedDP(lambda epsilon: 1.0), "promises nothing"),
        (lambda: AccountedDP(lambda epsilon: math.nan), "expected delta >= 0"),
        (lambda: ZeroConcentratedDP(-1.0), "expected finite rho > 0, got rho=-1.0"),
        (lambda: RenyiDP(1.0, 1.0), "expected a finite order > 1, got order=1.0"),
        (lambda: RenyiDP(2.0, 0.0), "expected finite epsilon > 0"),
    ],
)
def test_what_is_no_curve_is_refused(make, message):
    with pytest.raises(ClaimError, match=message):
        make()


@pytest.mark.parametrize("rho", [0.01, 0.5, 4.0])
def test_concentrated_dp_implies_no_less_than_the_gaussian_that_it_describes(rho):
    """N(0, 1) against N(√(2ρ), 1) is ρ-zCDP, so its curve lies below the implied one; at δ = 1e-6 not far below."""
    claim, exact = ZeroConcentratedDP(rho), GaussianDP(math.sqrt(2 * rho))
    for epsilon in np.linspace(0.0, rho + 6 * math.sqrt(2 * rho), 40):
        assert claim.delta_at(epsilon) >= exact.delta_at(epsilon)
    near = next(e for e, d in claim.statements() if d < 1e-6)
    assert exact.delta_at(0.8 * near) > 1e-6


def test_one_order_implies_what_its_formula_says():
    claim = RenyiDP(4.0, 1.0)
    for epsilon, delta in claim.statements():
        assert delta == pytest.approx(
            math.exp(3 * (1 - epsilon)) * (3 / 4) ** 4 / 3, rel=1e-9
        )


def curve_game(scale, claim, seed=0):
    levels = level_grid(claim)
    return Game(
        GaussianMechanism(scale),
        claim,
        [Pair(1, 0)],
        [LikelihoodRatio()],
        partial(stream, seed),
        levels=levels,
    )


def test_a_curve_is_refuted_where_the_noise_is_too_small_and_bounded_where_it_is_not():
    claim = AccountedDP(family(1.0), quoted=1e-3, family=family)
    broken = curve_game(1 / 1.5, claim)
    broken.play(1_000, alpha=0.05)
    assert broken.wealth.refuted(0.05)
    kept = curve_game(1.0, claim)
    kept.play(2_000, alpha=0.05)
    assert not kept.wealth.refuted(0.05)
    assert kept.wealth.lower_bound(0.05) >= 0.6 * claim.level


@pytest.mark.full
def test_a_curve_tells_more_than_one_statement_of_it():
    """The same calls against the curve of DP-SGD and against the epsilon that is quoted from it at delta = 1e-5."""
    upper = PLDUpper(1.0, 1.0, 1)
    quoted = upper.epsilon_at(1e-5)
    claim = AccountedDP(upper, family=lambda factor: PLDUpper(factor, 1.0, 1))
    curve, single = curve_game(1.0, claim), curve_game(1.0, ApproxDP(quoted, 1e-5))
    for game in (curve, single):
        game.play(2_000, alpha=0.05)
    assert curve.wealth.lower_bound(0.05) > 1.3 * single.wealth.lower_bound(0.05)
    assert (
        curve.wealth.lower_bound(0.05) <= PLDLower(1.0, 1.0, 1).epsilon_at(1e-5) * 1.05
    )


@pytest.mark.parametrize(
    ("claim", "parameter"),
    [
        (AccountedDP(family(1.0), quoted=1e-3, family=family), "epsilon"),
        (ZeroConcentratedDP(0.5), "rho"),
        (RenyiDP(4.0, 2.0), "epsilon"),
    ],
    ids=str,
)
def test_an_audit_of_a_curve_is_played_and_has_no_other_evidence_of_the_claim(
    claim, parameter
):
    for scale, verdict in ((1.0, Verdict.NOT_REFUTED), (0.25, Verdict.VIOLATED)):
        result = run_audit(
            Audit(GaussianMechanism(scale), claim, [(1, 0)]),
            Settings(alpha=0.01, budget=Budget(800), root_seed=1),
        )
        assert result.verdict is verdict
        assert {evidence.kind for evidence in result.evidence} <= {
            "game",
            "sensitivity",
        }
        assert result.claim.parameter == parameter
        assert (result.epsilon_lower is None) is isinstance(claim, AccountedDP)


def response(epsilon):
    """Randomised response, of which everything is known: the loss is epsilon at every small δ."""
    return lambda data, rng: (
        data if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - data
    )


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (PureDP(0.5), 1.0),
        (ApproxDP(0.5, 1e-5), 1.0),
        (GaussianDP(0.5), 2 * norm.ppf(1 / (1 + math.exp(-1.0)))),
        (ZeroConcentratedDP(0.05), 0.5),  # at most, as ε-DP is ε²/2-zCDP
        (
            RenyiDP(2.0, 0.1),
            math.log((math.exp(2.0) + math.exp(-1.0)) / (1 + math.exp(1.0))),
        ),
        (
            AccountedDP(
                GaussianDP(0.3).delta_at,
                quoted=1e-5,
                family=lambda f: GaussianDP(0.3 / f).delta_at,
            ),
            1.0,
        ),
    ],
    ids=str,
)
def test_no_number_called_epsilon_mu_or_rho_is_above_the_truth(claim, truth):
    """The curve is exceeded near ε = 0, and far from it where its ε is quoted: its level says nothing there."""
    result = run_audit(
        Audit(response(1.0), claim, [(1, 0)]),
        Settings(alpha=1e-4, budget=Budget(4_000), root_seed=1),
    )
    assert result.verdict is Verdict.VIOLATED
    text = " ".join([result.summary, guessing(result), numbers.bounds(result)])
    letters = f"[{SYMBOLS[claim.parameter]}ε] [≥=] ([0-9.]+)|([0-9.]+) ≤ [{SYMBOLS[claim.parameter]}ε]"
    printed = [float(one or other) for one, other in re.findall(letters, text)]
    assert all(number <= truth for number in printed), text
    if isinstance(claim, AccountedDP):
        assert not printed
        assert "refute the claim (up to the curve through (" in result.summary
        assert result.evidence[0].details.bound_path == []
    else:
        assert claim.level <= result.epsilon_lower <= truth
        assert printed


def test_what_a_clean_game_would_have_found_is_stated_for_every_claim():
    for claim in (
        AccountedDP(family(1.0), quoted=1e-3, family=family),
        ZeroConcentratedDP(0.5),
        RenyiDP(4.0, 2.0),
    ):
        level, alternative = detectable_level(
            claim, calls=2_000, alpha=0.05, share=0.5, white_box=True
        )
        assert claim.level < level < 3 * claim.level
        assert alternative == claim.alternative


def test_normal_tails_are_as_exact_as_the_library():
    assert GaussianDP(2.0).statements()[0].tolist() == pytest.approx(
        [0.0, 2 * norm.cdf(1.0) - 1], rel=1e-12
    )
