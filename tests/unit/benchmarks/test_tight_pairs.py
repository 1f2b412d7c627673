"""The mechanism of the benchmark's false alarms that attains a claim on several pairs."""

import numpy as np
import pytest
from scipy.stats import chisquare

from auditdp.claims.dominating import DominatingPair
from benchmarks.tight_nulls import NULLS
from benchmarks.tight_pairs import PAIRS, TightPairs

CHANNELS = [null for name, null in NULLS.items() if name.startswith("tight channels")]


def excess(p, q, statements):
    """The largest of what any statement is exceeded by, in either order."""
    return max(
        np.maximum(b - np.exp(e) * a, 0).sum() - d
        for e, d in statements
        for a, b in ((p, q), (q, p))
    )


@pytest.mark.parametrize("null", CHANNELS, ids=lambda null: str(null.claim))
def test_every_pair_satisfies_the_claim_and_the_first_two_attain_it(null):
    statements = null.claim.statements()
    for k, (p, q) in enumerate(null.mechanism.laws):
        assert p.sum() == pytest.approx(1.0)
        assert q.sum() == pytest.approx(1.0)
        assert excess(p, q, statements) <= 1e-9
        if k < 2:
            assert excess(p, q, statements) >= -1e-3
    pair = DominatingPair.of(statements)
    assert null.mechanism.laws[0][0] == pytest.approx(pair.p)


@pytest.mark.parametrize("null", CHANNELS, ids=lambda null: str(null.claim))
def test_what_an_overconfident_forecaster_believes_in_breaks_the_claim(null):
    p, q = null.believed.laws[0]
    assert excess(p, q, null.claim.statements()) > 1e-3


def test_outputs_follow_the_laws():
    mechanism = TightPairs(CHANNELS[1].claim)
    for pair in PAIRS:
        for data in (pair.data, pair.neighbour):
            law = mechanism.laws[data[0]][data[1]]
            outputs = mechanism(data, 20_000, rng=np.random.default_rng(3))
            seen = law > 0
            counts = np.bincount(outputs, minlength=len(law))
            assert (counts[~seen] == 0).all()
            assert (
                seen.sum() == 1
                or chisquare(counts[seen], 20_000 * law[seen]).pvalue > 1e-6
            )
            assert np.exp(
                mechanism.log_prob(np.arange(len(law)), data)
            ) == pytest.approx(law)
