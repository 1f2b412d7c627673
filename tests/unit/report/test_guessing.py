import itertools
import math
import re

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
        right = rate = 0.0
        for (p, q), message in zip(laws, guess, strict=True):
            if message != "pass":
                right += (p if message == "first" else q) / 2
                rate += (p + q) / 2
        if rate:
            share = right / rate
            assert share <= allowed([(epsilon, delta)], rate) + 1e-12
            best[round(rate, 9)] = max(best.get(round(rate, 9), 0.0), share)
    of_all = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    assert best[1.0] == pytest.approx(of_all, abs=1e-12)
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


def found(claim, evidence, probabilities=None):
    record = ClaimRecord(
        type(claim).__name__,
        str(claim),
        "",
        parameter=claim.parameter,
        epsilon=getattr(claim, "epsilon", None),
        delta=claim.delta,
        mu=getattr(claim, "mu", None),
    )
    shown = probabilities and Counterexample("", "", probabilities=probabilities)
    return guessing(
        AuditResult(
            "a",
            Verdict.VIOLATED,
            "",
            claim=record,
            evidence=[evidence],
            counterexample=shown,
        )
    )


def game(right, bets, calls, **more):
    counts = {"right": right, "bets": bets, "calls": calls}
    outcome = {"confirmed": True, "log_e_value": 9.3, "alpha": 0.01}
    details = {"confirmation": counts | outcome}
    return Evidence("game", Verdict.VIOLATED, "", details=details, **more)


def exact(lower=None, **details):
    return Evidence("exact", Verdict.VIOLATED, "", epsilon_lower=lower, details=details)


ONE, EIGHT = PureDP(1.0), PureDP(8.0)
WHICH = "which of the two inputs was used"
NOTHING = (
    "After some outputs, one can guess rightly at least 86 times in 100 "
    f"{WHICH}; the claim allows 73 in 100 after any output (a certified bound)."
)
CURVE = [[0.0, 0.3], [1.0, 0.1], [2.0, 0.02]]
CLOSE = 0.01 * math.exp(1.00003)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            found(ONE, exact(4.4), (0.04, 0.01)),
            f"After this output, one can guess rightly 80 times in 100 {WHICH}; the claim allows 73 in 100.",
        ),
        (found(ONE, exact(4.4), (0.2, 0.0)), "100 times in 100"),
        (
            found(ONE, game(166, 198, 385)),
            "51% of the calls gave an output that tells much about the input. From these outputs, one can guess "
            f"rightly 84 times in 100 {WHICH} (166 of 198 guesses on fresh calls); the claim allows 73 in 100.",
        ),
        (found(ONE, game(99_999, 100_000, 100_000)), "rightly 99.999 times in 100"),
        (
            found(ONE, game(36, 36, 36)),
            "From the output, one can guess rightly 100 times in 100",
        ),
        # With δ = 0.1 on 144 of 394 calls: (e + 0.1·394/144)/(1 + e) = 80.5 %.
        (found(ApproxDP(1.0, 0.1), game(125, 144, 394)), "the claim allows 80 in 100."),
        # Rare outputs may tell almost all: e^7.766 to 1 is 99.96 of 100.
        (
            found(ONE, game(84, 100, 100, epsilon_lower=7.766)),
            "rightly at least 99 times in 100",
        ),
        (found(ONE, game(84, 100, 100, epsilon_lower=1.6)), "84 times in 100"),
        (
            found(ApproxDP(1.0, 1e-5), game(84, 100, 100, epsilon_lower=7.766)),
            "84 times in 100",
        ),
        (
            found(ApproxDP(1.0, 1e-5), game(84, 100, 100, epsilon_lower=7.766)),
            "all of these outputs together",
        ),
        (
            found(ApproxDP(1.0, 0.01), exact(3.0, curve=CURVE)),
            "ε = 1 needs δ ≥ 0.1; the claim states δ = 0.01",
        ),
        (
            found(ApproxDP(2.5, 0.01), exact(3.0, curve=CURVE)),
            "The loss is ε ≥ 3 at δ = 0.01 (proved); the claim allows 2.5.",
        ),
        # Close shares have the digits that set them apart.
        (
            found(ONE, exact(), (CLOSE, 0.01)),
            f"73.1064 times in 100 {WHICH}; the claim allows 73.1059",
        ),
        (found(GaussianDP(0.5), game(90, 100, 100)), "the claim allows 60"),
        (
            found(GaussianDP(0.5), game(0, 0, 100, epsilon_lower=0.7)),
            "The loss is μ ≥ 0.7 (a certified bound); the claim allows 0.5.",
        ),
        # Wrong with probability 4e-5/0.40004 = 1/10001; e^8 + 1 = 2982.
        (
            found(EIGHT, exact(12.0), (0.4, 4e-5)),
            f"one error in 10,001 guesses {WHICH}; if the claim were true, at least one guess in 2,982",
        ),
        (
            found(EIGHT, exact(12.0), (0.4, 0.0)),
            f"without ever being wrong {WHICH}; if the claim were true, at least one guess in",
        ),
        (found(EIGHT, exact(50.0)), "one error in 5.184e21 guesses"),
        (found(EIGHT, exact(math.inf)), "without ever being wrong"),
    ],
)
def test_a_finding_in_guesses(text, words):
    assert words in text


@pytest.mark.parametrize("counts", [(0, 0, 385), (0, 0, 0), (100, 198, 385), (5, 4, 9)])
def test_guesses_that_show_nothing_are_not_mentioned(counts):
    assert found(ONE, game(*counts, epsilon_lower=1.9)) == NOTHING
    assert found(ONE, game(*counts)) == ""
    assert "84" not in found(ONE, game(84, 100, 100, epsilon_lower=7.766))


@pytest.mark.parametrize(
    ("lower", "claimed"), [(8.0001, 8.0), (12.00003, 12.0), (20.0, 19.999999)]
)
def test_how_seldom_a_guess_is_wrong_and_may_be_are_never_the_same_text(lower, claimed):
    shown = found(PureDP(claimed), exact(lower))
    least, most = re.findall(r"one (?:error|guess) in ([\d.,e]+) ", shown)
    assert float(least.replace(",", "")) > float(most.replace(",", ""))


def test_only_violations_of_privacy_have_a_sentence(record):
    for result in record.results:
        if guessing(result):
            assert result.verdict is Verdict.VIOLATED
            assert result.claim is not None
