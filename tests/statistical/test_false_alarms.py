"""The benchmark's table of false alarms in short.

A true and tight claim is refuted with probability alpha at most, whatever the case, so
the alarms of all audits of a kind are at most binomial: more than are allowed have
probability 1e-6. The table by case is `python -m benchmarks alarms`.

Games are compared with two levels: wealth reaches 1/alpha with probability alpha at
most at any level. In short, 211 games find a rate of .17 at .05 with probability 9 in 10, and
one of .44 at .25; 24 lower bounds find .53 and .83. A level as high as .25 shows with
few games that all bets are too large, and the low one that some pay much and seldom.
"""

from itertools import product

import numpy as np
import pytest

from auditdp import PureDP
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.numerics.streams import stream
from auditdp.testing import LeakyResponse
from benchmarks.alarms import (
    ALPHA,
    BOUNDED,
    FACTORS,
    PLAYED,
    Overconfident,
    cases,
    games,
    games_for_a_bound,
    view,
)
from benchmarks.tight_nulls import BIT, NULLS

pytestmark = pytest.mark.statistical

REPEATS = {
    "estimation": (1_000, 300),
    "verdict": (1_000, 250),
    "accounting": (1_000, 100),
    "counting": (2_000, 100),
    "exact": (1_000, 100),
}
"""Repeats of every case in full, and the divisor of their number in short."""
LONG = {"order and dependence": (100, 100), "whole audits": (100, 100)}
"""Kinds of six cases that take a second each, so that few repeats tell nothing."""
LEVELS = (ALPHA, 0.25)
LEARNED = ("watcher", "score", "classifier", "mixture", "thinned views")
"""Forecasters that abstain in most of so short a game, which takes three times as long.

They have a third of the repeats.
"""
SLOW = (*LEARNED, "noise around a declared query")
ELSEWHERE = ("recorded data", "one run")
"""Kinds of `test_bounds_calibration.py` and `test_one_run_calibration.py`."""


def assert_rare(alarms, level, repeats):
    """Assert that alarms are rare in one list with the cases that alarmed or not."""
    where = [name for name, alarm in alarms if alarm]
    most = repeats.most(len(alarms), level)
    assert len(where) <= most, f"{len(where)} of {len(alarms)} at {level=}: {where}"


def test_the_wealth_of_games_reaches_no_level_more_often_than_it_allows(repeats):
    alarms = {level: [] for level in LEVELS}
    for null, kinds in PLAYED:
        for kind in kinds:
            name = f"{null}, {kind}"
            in_full = 2_000 // (3 if kind in LEARNED else 1)
            count = repeats(in_full, least=1, share=400)
            for game in games(null, kind, count, stream(1, "game", name)):
                for level in LEVELS:
                    alarms[level].append((name, game.wealth.refuted(level)))
    for level in LEVELS:
        assert_rare(alarms[level], level, repeats)


def test_lower_bounds_are_above_the_truth_no_more_often_than_their_levels(repeats):
    alarms = {level: [] for level in LEVELS}
    count = repeats(800, least=1, share=200)
    for null, factor in product(BOUNDED, FACTORS):
        truth = NULLS[null].claim.level
        rng = stream(1, "lower bound", null, factor)
        for game in games_for_a_bound(null, factor, count, rng):
            for level in LEVELS:
                is_above = game.wealth.lower_bound(level) >= truth
                alarms[level].append((null, is_above))
    for level in LEVELS:
        assert_rare(alarms[level], level, repeats)


@pytest.mark.parametrize(
    "kind", [*REPEATS, *(pytest.param(kind, marks=pytest.mark.full) for kind in LONG)]
)
def test_tight_true_claims_are_refuted_at_most_alpha_of_the_time(kind, repeats):
    in_full, share = (REPEATS | LONG)[kind]
    audits, where = 0, {}
    for name, check in cases()[kind].items():
        most = in_full // (3 if name.endswith(SLOW) else 1)
        count = repeats(most, least=1, share=share)
        audits += count
        if found := check(count, stream(1, kind, name)):
            where[name] = found
    alarms = sum(where.values())
    # Exact evidence has no error probability.
    most = 0 if kind == "exact" else repeats.most(audits, ALPHA)
    assert alarms <= most, f"{alarms} of {audits} at {ALPHA=}: {where}"


def test_an_auditor_without_a_cap_would_be_found(monkeypatch, repeats):
    """Guards the guard: overconfident bets refute a claim that is broken."""
    null = NULLS["randomised response"]
    broken = type(null)(null.believed, null.claim, null.believed)
    monkeypatch.setitem(NULLS, "false", broken)
    many, rng = repeats(200, least=100), np.random.default_rng(1)
    played = games("false", "overconfident", many, rng)
    refuted = sum(game.refuted_at is not None for game in played)
    assert refuted > repeats.most(many, ALPHA)


def test_without_the_price_of_delta_the_bets_would_refute_a_true_claim(repeats):
    """Guards the guard: the same bets, as against a pure claim, do refute.

    A call reveals its input with probability .05 and then multiplies the stake by 1/q,
    ln(1/q) = .31: 2,000 calls give about 31 nats, and ln 20 = 3 refute. Fewer than nine
    of ten have a probability far below 1e-6.
    """
    refuted, many = 0, repeats(200)
    for repeat in range(many):
        rng = stream(repeat, "price")
        game = Game(
            LeakyResponse(1.0, 0.05),
            PureDP(1.0),
            BIT,
            [LikelihoodRatio()],
            lambda *_, rng=rng: rng,
        )
        game.play(2_000, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.refuted_at is not None
    assert refuted > 0.9 * many


def test_every_kind_of_statistical_evidence_is_there():
    assert set(cases()) == {"game", "lower bound", *REPEATS, *LONG, *ELSEWHERE}
    assert Overconfident.name in {name.rpartition(", ")[2] for name in cases()["game"]}
    assert view({}).bars[0].met is None
