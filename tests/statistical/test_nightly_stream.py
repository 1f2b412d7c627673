"""A thousand nights of fifty audits of true and tight claims; and a fault that begins on night 500."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auditdp.betting.power import growth, growths
from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.nearest import nearest_regions
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.history.nightly.control import after_night, alarm_at, nights_to_report, verdict_alpha
from auditdp.history.nightly.night_power import within
from auditdp.history.nightly.stream import Account, Stream
from auditdp.record.results import AuditResult, ClaimRecord, Evidence, Verdict

NIGHTS, AUDITS, ALPHA, CALLS = 1_000, 50, 0.05, 5_000
CLAIMED = 1.0
WATCHED = 1.1
"""The level at which the bets expect the truth."""


def e_values(rng, shape, truth):
    """Logarithms of a night's wealth: bets by the posterior at WATCHED on outputs at ``truth``; the claim is tight at 1."""
    believed, allowed = 1 / (1 + math.exp(-WATCHED)), 1 / (1 + math.exp(-CLAIMED))
    right = rng.binomial(CALLS, 1 / (1 + math.exp(-truth)), size=shape)
    return right * math.log(believed / allowed) + (CALLS - right) * math.log((1 - believed) / (1 - allowed))


def alarms(draw, repeats, *, changes=None):
    """Whether each of many streams ever reports anything, by its capital or by a verdict of a night."""
    log_capital = np.full((repeats, AUDITS), -math.inf)
    reported = np.zeros(repeats, dtype=bool)
    for night in range(1, NIGHTS + 1):
        same = True if changes is None else changes(night, (repeats, AUDITS))
        log_e = draw(night, np.where(same, log_capital, -math.inf))
        log_capital = after_night(log_capital, log_e, same=same, night=night, audits=AUDITS)
        by_verdict = log_e >= math.log(AUDITS / verdict_alpha(ALPHA, night))
        reported |= ((log_capital >= alarm_at(ALPHA)) | by_verdict).any(axis=1)
    return reported


@pytest.mark.statistical
@pytest.mark.parametrize("changing", [False, True])
def test_a_stream_of_true_and_tight_claims_reports_anything_with_probability_alpha_at_most(repeats, changing):
    """α = 1e-6 for this assertion."""
    rng, many = np.random.default_rng(20), repeats(1_000)
    reported = alarms(
        lambda night, capital: e_values(rng, capital.shape, CLAIMED),
        many,
        changes=(lambda night, shape: rng.random(shape) > 0.05) if changing else None,
    )
    assert reported.sum() <= repeats.most(many, ALPHA)


@pytest.mark.statistical
def test_the_bound_is_all_but_reached_by_bets_that_reach_the_alarm_or_lose_all(repeats):
    """Each night every audit bets on exactly what it needs; capital alone then errs nearly α/2. α = 1e-6 for each limit.

    The nights after the first 200 have less than a hundredth of the weight.
    """
    rng, many = np.random.default_rng(21), repeats(20_000, least=2_000)
    reported = np.zeros(many, dtype=bool)
    for night in range(1, 201):
        deposit = after_night(-math.inf, 0.0, same=True, night=night, audits=AUDITS)
        log_e = np.where(
            np.log(rng.random((many, AUDITS))) < deposit - alarm_at(ALPHA), alarm_at(ALPHA) - deposit, -math.inf
        )
        capital = after_night(-math.inf, log_e, same=True, night=night, audits=AUDITS)
        reported |= (capital >= alarm_at(ALPHA) - 1e-9).any(axis=1)
    assert reported.sum() <= repeats.most(many, ALPHA / 2)
    assert reported.sum() >= repeats.fewest(many, 0.95 * ALPHA / 2)


@pytest.mark.statistical
def test_a_fault_that_begins_on_night_500_is_reported_within_the_nights_of_the_power_line(repeats):
    """At least 9 in 10 of the streams; α = 1e-6 for this assertion."""
    rng, many, fault, begins = np.random.default_rng(22), repeats(1_000), 1.06, 500
    believed, allowed = 1 / (1 + math.exp(-WATCHED)), 1 / (1 + math.exp(-CLAIMED))
    truth = 1 / (1 + math.exp(-fault))
    gain, loss = math.log(believed / allowed), math.log((1 - believed) / (1 - allowed))
    growth = CALLS * (truth * gain + (1 - truth) * loss)
    deviation = math.sqrt(CALLS * truth * (1 - truth)) * (gain - loss)
    line = nights_to_report(growth=growth, deviation=deviation, alpha=ALPHA, night=begins, audits=AUDITS)
    assert 5 < line < 100  # one night alone would not do
    log_capital = np.full(many, -math.inf)
    for night in range(1, begins):
        log_capital = after_night(log_capital, e_values(rng, many, CLAIMED), same=True, night=night, audits=AUDITS)
    reported = np.zeros(many, dtype=bool)
    for night in range(begins, begins + int(line)):
        log_capital = after_night(log_capital, e_values(rng, many, fault), same=True, night=night, audits=AUDITS)
        reported |= log_capital >= alarm_at(ALPHA)
    assert reported.sum() >= repeats.fewest(many, 0.9)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("claim", "single"), [(PureDP(1.0), 1.15), (ApproxDP(1.0, 0.01), 1.3), (GaussianDP(1.0), 1.25)], ids=str
)
def test_a_fault_of_the_size_that_the_power_line_names_is_reported_within_a_week(repeats, claim, single):
    """Whatever the kind of the claim, at least 9 in 10 of the streams; the best bet is known. α = 1e-6."""
    rng, many, begins, week = np.random.default_rng(24), repeats(1_000), 500, 7
    stream = Stream(ALPHA, 1, night=begins - 1, accounts={str(k): Account("", None, 1) for k in range(AUDITS)})
    game = Evidence("game", Verdict.NOT_REFUTED, "", calls=CALLS, details={"growths": growths(claim, single)})
    found = AuditResult(
        "a",
        Verdict.NOT_REFUTED,
        "",
        claim=ClaimRecord(type(claim).__name__, str(claim), ""),
        evidence=[game],
        alpha=ALPHA,
    )
    ((_, one, level),) = within(found, stream, week)
    assert claim.level < level < one
    gains, weights = bets(claim, claim.at(level))
    log_capital, reported = np.full(many, -math.inf), np.zeros(many, dtype=bool)
    for night in range(begins, begins + week):
        log_e = rng.multinomial(CALLS, weights, size=many) @ gains
        log_capital = after_night(log_capital, log_e, same=True, night=night, audits=AUDITS)
        reported |= log_capital >= alarm_at(ALPHA)
    assert reported.sum() >= repeats.fewest(many, 0.9)


def bets(claim, truth):
    """The gain of the best bet at each (coin, cell), and its probability."""
    claimed, pair = claim.statements(), DominatingPair.of(truth.statements())
    laws = np.stack(Law(pair.log_odds, pair.p + pair.q).cells())
    (region,) = nearest_regions(laws[:1], laws[1:], lines(claimed)[None])
    gains = region.choose(np.log(laws[1]) - np.log(laws[0])) - region.price(DominatingPair.of(claimed))
    return gains.ravel(), laws.ravel() / laws.sum()


def test_the_simulated_bets_are_e_values_at_a_tight_claim_and_grow_under_a_fault():
    rng = np.random.default_rng(23)
    few = 20
    allowed, believed = 1 / (1 + math.exp(-CLAIMED)), 1 / (1 + math.exp(-WATCHED))
    right = np.arange(few + 1)
    weights = np.array([math.comb(few, k) for k in right]) * allowed**right * (1 - allowed) ** (few - right)
    wealth = (believed / allowed) ** right * ((1 - believed) / (1 - allowed)) ** (few - right)
    assert math.isclose(float(weights @ wealth), 1.0, rel_tol=1e-12)
    assert e_values(rng, 1_000, WATCHED).mean() == pytest.approx(
        CALLS * growth(PureDP(CLAIMED), PureDP(WATCHED))[0], rel=0.2
    )
