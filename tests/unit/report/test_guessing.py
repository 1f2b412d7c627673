from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from scipy.stats import norm

from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Verdict,
)
from auditdp.report.guesses import allowed, guessing, statements


def extreme_pair(epsilon, delta):
    """The two laws on four outputs that are as far apart as (epsilon, delta) allows (Kairouz, Oh & Viswanath 2015)."""
    likely, rare = (
        math.exp(epsilon) / (1 + math.exp(epsilon)),
        1 / (1 + math.exp(epsilon)),
    )
    return [
        (delta, 0),
        ((1 - delta) * likely, (1 - delta) * rare),
        ((1 - delta) * rare, (1 - delta) * likely),
        (0, delta),
    ]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_no_way_of_guessing_on_the_extreme_pair_is_right_more_often_than_allowed_and_one_is_as_often(
    epsilon, delta
):
    laws, best = extreme_pair(epsilon, delta), {}
    for guess in itertools.product(("first", "second", "pass"), repeat=4):
        right = sum(
            (p if message == "first" else q) / 2
            for (p, q), message in zip(laws, guess, strict=True)
            if message != "pass"
        )
        rate = sum(
            (p + q) / 2
            for (p, q), message in zip(laws, guess, strict=True)
            if message != "pass"
        )
        if rate:
            assert right / rate <= allowed([(epsilon, delta)], rate) + 1e-12
            best[round(rate, 9)] = max(best.get(round(rate, 9), 0.0), right / rate)
    assert best[1.0] == pytest.approx(
        (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)), abs=1e-12
    )
    assert best[1.0] == pytest.approx(allowed([(epsilon, delta)]), abs=1e-12)


def test_a_pure_claim_allows_the_same_however_seldom_somebody_guesses():
    assert {round(allowed([(1.0, 0.0)], rate), 12) for rate in (1.0, 0.1, 1e-6)} == {
        round(1 / (1 + math.exp(-1)), 12)
    }


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_a_gaussian_claim_allows_what_the_best_guess_at_two_normals_gets(mu):
    claim = ClaimRecord("GaussianDP", "", "", parameter="mu", mu=mu)
    assert allowed(statements(claim)) == pytest.approx(norm.cdf(mu / 2), abs=1e-9)
    for threshold in (mu / 2 + 0.5, mu / 2 + 2):  # guesses on either tail alone
        rate = (norm.sf(threshold) + norm.sf(threshold - mu)) / 2 * 2
        right = norm.sf(threshold - mu)
        assert right / rate <= allowed(statements(claim), rate) + 1e-9


def test_huge_levels_are_no_overflow():
    assert allowed([(1e6, 0.0)]) == 1.0
    assert allowed([]) == 1.0


def found(claim, evidence, counterexample=None):
    record = ClaimRecord(
        type(claim).__name__,
        str(claim),
        "",
        parameter=claim.parameter,
        epsilon=getattr(claim, "epsilon", None),
        delta=claim.delta,
        mu=getattr(claim, "mu", None),
    )
    return AuditResult(
        "a",
        Verdict.VIOLATED,
        "",
        claim=record,
        evidence=[evidence],
        counterexample=counterexample,
    )


def game(right, bets, calls, **more):
    played = {
        "right": right,
        "bets": bets,
        "calls": calls,
        "confirmed": True,
        "log_e_value": 9.3,
        "alpha": 0.01,
    }
    return Evidence(
        "game", Verdict.VIOLATED, "", details={"confirmation": played}, **more
    )


def test_an_output_with_both_probabilities():
    exact = Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=4.4)
    shown = guessing(
        found(PureDP(1.0), exact, Counterexample("", "", probabilities=(0.04, 0.01)))
    )
    assert shown == (
        "Whoever sees this output guesses rightly 80 times of 100 which of the two inputs was used; the claim allows 73."
    )
    only = guessing(
        found(PureDP(1.0), exact, Counterexample("", "", probabilities=(0.2, 0.0)))
    )
    assert "100 times of 100" in only


def test_guesses_on_fresh_calls():
    assert guessing(found(PureDP(1.0), game(166, 198, 385))) == (
        "Whoever sees one of the most telling outputs (51% of all) guesses rightly 84 times of 100 which of "
        "the two inputs was used (166 of 198 guesses on fresh calls); the claim allows 73."
    )
    assert guessing(found(PureDP(1.0), game(36, 36, 36))).startswith(
        "Whoever sees an output guesses rightly"
    )
    # With δ = 0.1 on 144 of 394 calls: (e + 0.1·394/144)/(1 + e) = 80.5 %.
    assert "the claim allows 80." in guessing(
        found(ApproxDP(1.0, 0.1), game(125, 144, 394))
    )


def test_guesses_do_not_stand_beside_a_bound_that_implies_more_of_them():
    """Rare outputs may tell almost all, and guesses over all outputs little: e^7.766 to 1 is 99.96 of 100."""
    shown = guessing(found(PureDP(1.0), game(84, 100, 100, epsilon_lower=7.766)))
    assert "rightly at least 99 times of 100" in shown
    assert "84" not in shown
    assert "84 times of 100" in guessing(
        found(PureDP(1.0), game(84, 100, 100, epsilon_lower=1.6))
    )
    both = guessing(found(ApproxDP(1.0, 1e-5), game(84, 100, 100, epsilon_lower=7.766)))
    assert "84 times of 100" in both
    assert "over all of them together" in both


@pytest.mark.parametrize(
    ("lower", "claimed"), [(8.0001, 8.0), (12.00003, 12.0), (20.0, 19.999999)]
)
def test_how_seldom_a_guess_is_wrong_and_may_be_are_never_the_same_text(lower, claimed):
    shown = guessing(
        found(
            PureDP(claimed),
            Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=lower),
        )
    )
    least, most = (
        float(each.replace(",", ""))
        for each in re.findall(r"once in ([\d.,e]+) times", shown)
    )
    assert least > most


@pytest.mark.parametrize("counts", [(0, 0, 385), (0, 0, 0), (100, 198, 385), (5, 4, 9)])
def test_guesses_that_show_nothing_are_not_spoken_of(counts):
    shown = guessing(found(PureDP(1.0), game(*counts, epsilon_lower=1.9)))
    assert shown == (
        "There are outputs after which whoever sees them guesses rightly at least 86 times of 100 which of the two "
        "inputs was used; the claim allows 73 after any output (a certified bound)."
    )
    assert guessing(found(PureDP(1.0), game(*counts))) == ""


def test_the_delta_that_is_needed():
    curve = [[0.0, 0.3], [1.0, 0.1], [2.0, 0.02]]
    exact = Evidence(
        "exact", Verdict.VIOLATED, "", epsilon_lower=3.0, details={"curve": curve}
    )
    assert "ε = 1 needs δ ≥ 0.1; the claim states δ = 0.01" in guessing(
        found(ApproxDP(1.0, 0.01), exact)
    )
    assert (
        guessing(found(ApproxDP(2.5, 0.01), exact))
        == "The loss is ε ≥ 3 at δ = 0.01 (proved); the claim allows 2.5."
    )


def test_close_shares_have_digits_that_set_them_apart():
    exact = Evidence("exact", Verdict.VIOLATED, "")
    p = np.exp(1.00003)
    shown = guessing(
        found(
            PureDP(1.0), exact, Counterexample("", "", probabilities=(0.01 * p, 0.01))
        )
    )
    assert (
        "73.1064 times of 100 which of the two inputs was used; the claim allows 73.1059"
        in shown
    )


def test_gaussian_findings_have_guesses_or_the_bound():
    assert "the claim allows 60" in guessing(found(GaussianDP(0.5), game(90, 100, 100)))
    assert guessing(found(GaussianDP(0.5), game(0, 0, 100, epsilon_lower=0.7))) == (
        "The loss is μ ≥ 0.7 (a certified bound); the claim allows 0.5."
    )


def test_what_is_not_violated_or_not_about_privacy_has_no_sentence(record):
    for result in record.results:
        message = guessing(result)
        assert not message or result.verdict is Verdict.VIOLATED
        assert not message or result.claim is not None


def test_where_a_guess_is_nearly_always_right_what_counts_is_how_seldom_it_is_wrong():
    exact = Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=12.0)
    shown = guessing(
        found(PureDP(8.0), exact, Counterexample("", "", probabilities=(0.4, 4e-5)))
    )
    # Wrong with probability 4e-5/0.40004 = 1/10001; e^8 + 1 = 2982.
    assert (
        "wrongly only once in 10,001 times which of the two inputs was used; the claim makes that once in 2,982"
        in shown
    )
    never = guessing(
        found(PureDP(8.0), exact, Counterexample("", "", probabilities=(0.4, 0.0)))
    )
    assert (
        "without ever being wrong which of the two inputs was used; the claim makes that once in"
        in never
    )
    far = guessing(
        found(PureDP(8.0), Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=50.0))
    )
    assert "wrongly only once in 5.184e21 times" in far
    infinite = guessing(
        found(
            PureDP(8.0), Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=math.inf)
        )
    )
    assert "without ever being wrong" in infinite
