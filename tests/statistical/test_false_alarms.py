"""The benchmark's table of false alarms in short: all audits of a kind together alarm no more often than alpha allows.

A true and tight claim is refuted with probability alpha at most, whatever the case, so the alarms of a kind are at most
binomial: more than are allowed have probability 1e-6. The table by case is `python -m benchmarks alarms`.

Games are looked at twice: wealth comes to 1/alpha with probability alpha at most at any level. In short, 211 games find a
rate of .17 at .05 nine times in ten, and one of .44 at .25; 24 lower bounds find .53 and .83. A level as high as .25 shows
with few games what makes all bets too large, and the low one what pays much and seldom.
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
    "estimation": 1_000,
    "verdict": 1_000,
    "accounting": 1_000,
    "counting": 2_000,
    "exact": 1_000,
}
"""Repeats of every case in full, a hundredth in short or as SHARES says."""
SHARES = {"estimation": 300, "verdict": 250}
LONG = {"order and dependence": 100, "whole audits": 100}
"""Kinds of six cases that take a second each, so that a few repeats of each could tell nothing: in full only."""
LEVELS = (ALPHA, 0.25)
LEARNED = ("watcher", "score", "classifier", "mixture", "thinned views")
"""Forecasters that learn abstain for most of so short a game, which takes three times as long: a third of the repeats."""
SLOW = (*LEARNED, "noise around a declared query")
ELSEWHERE = ("recorded data", "one run")
"""Kinds whose cases have a test of their own: `test_bounds_calibration.py` and `test_one_run_calibration.py`."""


def test_the_wealth_of_games_reaches_no_level_more_often_than_it_allows(repeats):
    cases = [(null, kind) for null, kinds in PLAYED for kind in kinds]
    many = [
        repeats(2_000 // (3 if kind in LEARNED else 1), least=1, share=400)
        for _, kind in cases
    ]
    found = [
        (f"{null}, {kind}", [game.wealth.refuted(level) for level in LEVELS])
        for (null, kind), count in zip(cases, many, strict=True)
        for game in games(null, kind, count, stream(1, "game", f"{null}, {kind}"))
    ]
    for k, level in enumerate(LEVELS):
        where = [name for name, refuted in found if refuted[k]]
        assert len(where) <= repeats.most(len(found), level), (
            f"{len(where)} of {len(found)} at {level=}: {where}"
        )


def test_lower_bounds_lie_above_the_truth_no_more_often_than_their_levels_allow(
    repeats,
):
    found = []
    for null, factor in product(BOUNDED, FACTORS):
        played = games_for_a_bound(
            null,
            factor,
            repeats(800, least=1, share=200),
            stream(1, "lower bound", null, factor),
        )
        found += [
            [
                game.wealth.lower_bound(level) >= NULLS[null].claim.level
                for level in LEVELS
            ]
            for game in played
        ]
    for level, above in zip(LEVELS, np.sum(found, axis=0), strict=True):
        assert above <= repeats.most(len(found), level), (
            f"{above} of {len(found)} at {level=}"
        )


@pytest.mark.parametrize(
    "kind", [*REPEATS, *(pytest.param(kind, marks=pytest.mark.full) for kind in LONG)]
)
def test_tight_true_claims_are_refuted_at_most_alpha_of_the_time(kind, repeats):
    alarms, audits, where = 0, 0, []
    for name, check in cases()[kind].items():
        count = repeats(
            {**REPEATS, **LONG}[kind] // (3 if name.endswith(SLOW) else 1),
            least=1,
            share=SHARES.get(kind, 100),
        )
        if found := check(count, stream(1, kind, name)):
            alarms, where = alarms + found, [*where, f"{name}: {found} of {count}"]
        audits += count
    assert kind != "exact" or alarms == 0, (
        f"wrong verdicts of exact evidence, which has no error probability: {where}"
    )
    assert alarms <= repeats.most(audits, ALPHA), (
        f"{alarms} of {audits} at {ALPHA=}: {where}"
    )


def test_an_auditor_without_a_cap_would_be_caught(monkeypatch, repeats):
    """Guards the guard: the same overconfident bets against a claim that the mechanism breaks do refute."""
    null = NULLS["randomised response"]
    monkeypatch.setitem(
        NULLS, "false", type(null)(null.believed, null.claim, null.believed)
    )
    many = repeats(200, least=100)
    refuted = sum(
        g.refuted_at is not None
        for g in games("false", "overconfident", many, np.random.default_rng(1))
    )
    assert refuted > repeats.most(many, ALPHA)


def test_without_the_price_of_delta_the_test_would_be_invalid(repeats):
    """Guards the guard: the same bets against the same pair, read as a pure claim, do refute.

    A call reveals its input with probability .05 and then multiplies the stake by 1/q, ln(1/q) = .31: 2,000 calls give
    about 31 nats where ln 20 = 3 refute; fewer than nine of ten have a probability far below 1e-6.
    """
    many = repeats(200)
    refuted = 0
    for repeat in range(many):
        coins = stream(repeat, "price")
        game = Game(
            LeakyResponse(1.0, 0.05),
            PureDP(1.0),
            BIT,
            [LikelihoodRatio()],
            lambda *_, rng=coins: rng,
        )
        game.play(2_000, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.refuted_at is not None
    assert refuted > 0.9 * many


def test_every_kind_of_statistical_evidence_is_there():
    assert set(cases()) == {"game", "lower bound", *REPEATS, *LONG, *ELSEWHERE}
    assert Overconfident.name in {name.rpartition(", ")[2] for name in cases()["game"]}
    assert view({}).bars[0].met is None
