"""Bets on which of two versions ran: versions of one law differ at a rate of at most α.

The versions run in this process, since a pipe changes no law.
"""

import numpy as np
import pytest

from auditdp import Audit, PureDP
from auditdp.adjacency import Pair
from auditdp.auditing.gathering import Settings
from auditdp.record.budget import Budget
from auditdp.record.versions import LawChange, VersionsResult
from auditdp.runner.version_comparison import bets
from auditdp.tracing import Trace, VersionsTrace, compare

pytestmark = [pytest.mark.dear, pytest.mark.statistical]
ALPHA = 0.05
CLAIM = PureDP(1.0)


def laplace(v, rng):
    return v + rng.laplace()


def two_exponentials(v, rng):
    return v + rng.exponential() - rng.exponential()


def coin(v, rng):
    return int(rng.random() < 0.3)


def reversed_coin(v, rng):
    return int(rng.random() > 0.7)


def dictionary(v, rng):
    return {"a": round(v + rng.normal(), 1), "b": int(rng.integers(3))}


def reworded_dictionary(v, rng):
    return {"a": round(v - rng.normal(), 1), "b": int(rng.choice(3))}


def order(v, rng):
    return list(rng.permutation(3))


def order_of_draws(v, rng):
    return list(np.argsort(rng.random(3)))


class Here:
    """The other version, in this process."""

    def __init__(self, function):
        self.function = function

    def output(self, data, seed):
        return self.function(data, np.random.default_rng(seed))


class TracedPair:
    """A pair with the traces of both versions."""

    def __init__(self, old, new):
        self.pair, traces = Pair(0.0, 1.0), []
        for function in (old, new):
            with Trace(function) as trace:
                rng = np.random.default_rng(1)
                traces.append(compare(trace, 0.0, 1.0, rng, claim=CLAIM))
        self.versions = VersionsTrace.of(*traces)


def is_changed(old, new, seed, calls):
    built = Audit(new, CLAIM, [(0.0, 1.0)])
    result = VersionsResult("main", LawChange.UNSEEN)
    settings = Settings(ALPHA, Budget(calls, is_limit=True), seed, "versions")
    found = bets(result, built, [TracedPair(old, new)], Here(old), settings)
    return found.change is LawChange.CHANGED


@pytest.mark.full
def test_versions_of_one_law_seldom_differ(repeats):
    same = [
        (laplace, two_exponentials),
        (coin, reversed_coin),
        (dictionary, reworded_dictionary),
        (order, order_of_draws),
    ]
    number = repeats(500, least=24)
    false = 0
    for seed in range(number):
        false += is_changed(*same[seed % len(same)], seed, calls=400)
    limit = repeats.most(number, ALPHA)
    assert false <= limit, f"{false} of {number}, at α = {ALPHA} at most {limit} (1e-6)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (laplace, lambda v, rng: v + rng.laplace(scale=0.5)),
        (coin, lambda v, rng: int(rng.random() < 0.5)),
        (lambda v, rng: v + rng.normal(), lambda v, rng: v + rng.uniform(-2, 2)),
    ],
    ids=["half the noise", "another coin", "another family"],
)
def test_two_thousand_calls_distinguish_versions_of_other_laws(old, new, repeats):
    number = repeats(200, least=8)
    found = sum(is_changed(old, new, seed, calls=2_000) for seed in range(number))
    limit = repeats.fewest(number, 0.9)
    assert found >= limit, f"{found} of {number}, expected nine in ten (1e-6)"
