"""The benchmark's table of false alarms in short: all audits of a kind together alarm no more often than alpha allows.

A true and tight claim is refuted with probability alpha at most, whatever the case, so the alarms of a kind are at most
binomial: more than are allowed have probability 1e-6. Pooled, 800 games find a rate of .105 nine times in ten; 25 games of
one case find one of .51. The table by case is `python -m benchmarks alarms`.
"""

import numpy as np
import pytest

from auditdp import PureDP
from auditdp.betting.forecasting.forecasters import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.numerics.randomness import stream
from auditdp.testing import LeakyResponse
from benchmarks.alarms import ALPHA, Overconfident, cases, view
from benchmarks.alarms import _game as play
from benchmarks.tight_nulls import BIT, NULLS

pytestmark = pytest.mark.statistical

REPEATS = {
    "game": 2_000,
    "lower bound": 800,
    "estimation": 1_000,
    "order and dependence": 100,
    "whole audits": 100,
    "verdict": 1_000,
    "accounting": 1_000,
    "counting": 2_000,
    "exact": 1_000,
}
"""Repeats of every case in full; in short a hundredth, so that all cases together are some 800 games."""
LEARNED = ("watcher", "score", "classifier", "mixture", "thinned views")
"""Forecasters that learn abstain for most of so short a game, which takes three times as long: a third of the repeats."""
ELSEWHERE = ("recorded data", "one run")
"""Kinds whose cases have a test of their own: `test_bounds_calibration.py` and `test_one_run_calibration.py`."""


@pytest.mark.parametrize("kind", REPEATS)
def test_tight_true_claims_are_refuted_at_most_alpha_of_the_time(kind, repeats):
    alarms, audits, where = 0, 0, []
    for name, check in cases()[kind].items():
        count = repeats(REPEATS[kind] // (3 if name.endswith(LEARNED) else 1), least=1)
        if found := check(count, stream(1, kind, name)):
            alarms, where = alarms + found, [*where, f"{name}: {found} of {count}"]
        audits += count
    assert kind != "exact" or alarms == 0, f"wrong verdicts of exact evidence, which has no error probability: {where}"
    assert alarms <= repeats.most(audits, ALPHA), f"{alarms} of {audits} at {ALPHA=}: {where}"


def test_an_auditor_without_a_cap_would_be_caught(monkeypatch, repeats):
    """Guards the guard: the same overconfident bets against a claim that the mechanism breaks do refute."""
    null = NULLS["randomised response"]
    monkeypatch.setitem(NULLS, "false", type(null)(null.believed, null.claim, null.believed))
    games = repeats(200, least=200)
    assert play("false", "overconfident", games, np.random.default_rng(1)) > repeats.most(games, ALPHA)


def test_without_the_price_of_delta_the_test_would_be_invalid(repeats):
    """Guards the guard: the same bets against the same pair, read as a pure claim, do refute.

    A call reveals its input with probability .05 and then multiplies the stake by 1/q, ln(1/q) = .31: 2,000 calls give
    about 31 nats where ln 20 = 3 refute; fewer than nine of ten have a probability far below 1e-6.
    """
    games = repeats(200)
    refuted = 0
    for repeat in range(games):
        coins = stream(repeat, "price")
        game = Game(LeakyResponse(1.0, 0.05), PureDP(1.0), BIT, [LikelihoodRatio()], lambda *_, rng=coins: rng)
        game.play(2_000, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.refuted_at is not None
    assert refuted > 0.9 * games


def test_every_kind_of_statistical_evidence_is_there():
    assert set(cases()) == {*REPEATS, *ELSEWHERE}
    assert Overconfident.name in {name.rpartition(", ")[2] for name in cases()["game"]}
    assert view({}).bars[0].met is None
