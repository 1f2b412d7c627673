"""The benchmark's table of false alarms, with fewer repeats: no case alarms more often than alpha allows.

More alarms than are allowed have probability below 1e-6 for a test of size alpha.
"""

import numpy as np
import pytest

from auditdp.numerics.randomness import stream
from benchmarks.alarms import ALPHA, NULLS, Overconfident, cases, view
from benchmarks.alarms import _game as play

pytestmark = pytest.mark.statistical

REPEATS = {
    "game": 250,
    "lower bound": 100,
    "estimation": 40,
    "order and dependence": 2,
    "whole audits": 1,
    "verdict": 20,
    "accounting": 20,
    "counting": 100,
    "exact": 20,
}
ELSEWHERE = ("recorded data", "one run")
"""Kinds all of whose cases have a test of their own: `test_bounds_calibration.py` and `test_one_run_calibration.py`."""
SLOW = ("watcher", "score", "classifier", "mixture")
SLOW_REPEATS = 40
"""Of games whose forecasters learn: they abstain for most of so short a game."""


def audits_of(kind, name):
    return SLOW_REPEATS if kind == "game" and name.endswith(SLOW) else REPEATS[kind]


CASES = [(kind, name) for kind, checks in cases().items() for name in checks if kind not in ELSEWHERE]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}: {name}" for kind, name in CASES])
def test_tight_true_claims_are_refuted_at_most_alpha_of_the_time(kind, name, repeats):
    audits = repeats(audits_of(kind, name))
    alarms = cases()[kind][name](audits, stream(1, kind, name))
    assert kind != "exact" or alarms == 0, f"{alarms} wrong verdicts of exact evidence, which has no error probability"
    assert alarms <= repeats.most(audits, ALPHA), f"{alarms} of {audits} at {ALPHA=}"


def test_an_auditor_without_a_cap_would_be_caught(monkeypatch, repeats):
    """Guards the guard: the same overconfident bets against a claim that the mechanism breaks do refute."""
    null = NULLS["randomised response"]
    monkeypatch.setitem(NULLS, "false", type(null)(null.believed, null.claim, null.believed))
    games = repeats(200, least=200)
    assert play("false", "overconfident", games, np.random.default_rng(1)) > repeats.most(games, ALPHA)


def test_every_kind_of_statistical_evidence_is_there():
    assert set(cases()) == {*REPEATS, *ELSEWHERE}
    assert Overconfident.name in {name.rpartition(", ")[2] for name in cases()["game"]}
    assert view({}).bars[0].met is None
