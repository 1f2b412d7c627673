"""The benchmark's rows: the oracle recomputed from exact laws is the one that was measured with the peers."""

import math

import numpy as np
import pytest

from auditdp import Pair, PureDP
from benchmarks.oracle import best_event, clopper_pearson, masses
from benchmarks.rows import FALSE_CLAIMS, ROWS

approx = pytest.approx

pytestmark = pytest.mark.dear

TRUE = {
    "Laplace": 0.1,
    "NoisyHist1": 0.1,
    "NoisyHist2": 10,
    "NoisyMax1": 0.0946,
    "NoisyMax3": 0.25,
    "NoisyMax4": math.inf,
    "OneTimeRAPPOR": 0.6005,
    "SVT1": 0.0885,
    "SVT4": 0.1725,
    "SVT5": math.inf,
    "SVT6": 0.420,
    "PrefixSum": 1.0,
}
"""As printed with the peers' figures; for these pairs."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_oracle_and_true_epsilon_are_those_that_were_published(row):
    event = row.best_event
    digits = 5e-3 if row.oracle > 10 else 5e-4 if row.oracle > 1 else 5.1e-5
    assert event.bound == approx(row.oracle, abs=digits)
    assert row.true_epsilon == approx(
        TRUE[row.name], abs=5.1e-5 if TRUE[row.name] < 0.4 else 5e-4
    )
    assert event.bound < row.true_epsilon
    assert (
        math.log(event.p / event.q) <= row.true_epsilon * (1 + 1e-9)
        if event.q
        else row.true_epsilon == math.inf
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_masses_are_two_laws_within_the_true_epsilon(row):
    for pair in row.pairs:
        p, q = masses(row.mechanism, pair)
        assert p.sum() == approx(1, abs=1e-9)
        assert q.sum() == approx(1, abs=1e-9)
        both = (p > 1e-12) & (q > 1e-12)
        losses = np.abs(np.log(p[both] / q[both]))
        assert losses.max() <= row.true_epsilon + 1e-3


@pytest.mark.parametrize("claim", FALSE_CLAIMS, ids=lambda claim: claim.name)
def test_false_claims_are_false(claim):
    assert claim.true_epsilon > claim.claim.level * 1.1
    if isinstance(claim.claim, PureDP):
        for pair in claim.pairs:
            claim.adjacency.check(pair)


def test_peers_ratios_are_to_the_oracle():
    for row in ROWS:
        for name in ("DP-Sniper", "StatDP"):
            peer = row.peers.get(name)
            if peer is not None:
                assert peer.bound / row.oracle == approx(peer.ratio, abs=0.0051)


def test_clopper_pearson_on_an_event_that_never_happens():
    """With 0 of n the upper bound is 1 − (α/2)^(1/n)."""
    bound = clopper_pearson(np.array([0.5]), np.array([0.0]), draws=1000)
    high = 1 - 0.025 ** (1 / 1000)
    assert bound[0] == approx(math.log(0.469 / high), abs=2e-3)


def test_the_best_event_beats_every_single_output():
    row = next(row for row in ROWS if row.name == "SVT1")
    for pair in row.pairs:
        for here in (pair, pair.swapped()):
            p, q = masses(row.mechanism, here)
            assert (
                clopper_pearson(p, q).max()
                <= best_event(row.mechanism, [pair]).bound + 1e-12
            )
            assert isinstance(here, Pair)
