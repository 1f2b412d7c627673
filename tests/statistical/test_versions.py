"""Bets on which of two versions ran: of the same law they are told apart in at most a share α of all comparisons.

The versions run in this process, since a pipe changes no law; what is compared is what a comparison plays.
"""

from __future__ import annotations

import numpy as np
import pytest

from auditdp import Audit, PureDP
from auditdp.adjacency import Pair
from auditdp.auditing.gathering import Settings
from auditdp.record.budget import Budget
from auditdp.record.versions import LawChange, VersionsResult
from auditdp.runner.version_comparison import bets
from auditdp.tracing import PairTrace, Trace, VersionsTrace, compare

pytestmark = [pytest.mark.dear, pytest.mark.statistical]
ALPHA, CALLS = 0.05, 400
SAME = {
    "Laplace by two exponential draws": (
        lambda v, rng: v + rng.laplace(),
        lambda v, rng: v + rng.exponential() - rng.exponential(),
    ),
    "a coin": (
        lambda v, rng: int(rng.random() < 0.3),
        lambda v, rng: int(rng.random() > 0.7),
    ),
    "a dictionary": (
        lambda v, rng: {"a": round(v + rng.normal(), 1), "b": int(rng.integers(3))},
        lambda v, rng: {"a": round(v - rng.normal(), 1), "b": int(rng.choice(3))},
    ),
    "an order": (
        lambda v, rng: list(rng.permutation(3)),
        lambda v, rng: list(np.argsort(rng.random(3))),
    ),
}


class Here:
    """The other version, in this process."""

    def __init__(self, function):
        self.function = function

    def output(self, data, seed):
        return self.function(data, np.random.default_rng(seed))


class Seen:
    """A pair with the traces of both versions."""

    def __init__(self, old, new):
        self.pair = Pair(0.0, 1.0)
        traces: list[PairTrace] = []
        for function in (old, new):
            with Trace(function) as trace:
                traces.append(
                    compare(
                        trace, 0.0, 1.0, np.random.default_rng(1), claim=PureDP(1.0)
                    )
                )
        self.versions = VersionsTrace.of(*traces)


def told(old, new, seed, calls=CALLS):
    built = Audit(new, PureDP(1.0), [(0.0, 1.0)])
    read = VersionsResult("main", LawChange.UNSEEN)
    settings = Settings(ALPHA, Budget(calls, is_limit=True), seed, "versions")
    return (
        bets(read, built, [Seen(old, new)], Here(old), settings).change
        is LawChange.CHANGED
    )


@pytest.mark.full
def test_versions_of_the_same_law_are_seldom_told_apart(repeats):
    number = repeats(500, least=24)
    false = sum(
        told(*SAME[name], seed) for name in SAME for seed in range(number // len(SAME))
    )
    most = repeats.most(number, ALPHA)
    assert false <= most, (
        f"{false} of {number} comparisons of the same law told it apart; at α = {ALPHA} at most {most} (1e-6)"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda v, rng: v + rng.laplace(), lambda v, rng: v + rng.laplace(scale=0.5)),
        (
            lambda v, rng: int(rng.random() < 0.3),
            lambda v, rng: int(rng.random() < 0.5),
        ),
        (lambda v, rng: v + rng.normal(), lambda v, rng: v + rng.uniform(-2, 2)),
    ],
    ids=["half the noise", "another coin", "another family"],
)
def test_versions_of_other_laws_are_told_apart_by_two_thousand_calls(old, new, repeats):
    number = repeats(200, least=12)
    found = sum(told(old, new, seed, 2_000) for seed in range(number))
    assert found >= repeats.fewest(number, 0.9), (
        f"{found} of {number} were told apart, expected nine in ten (1e-6)"
    )
