"""Median calls of a refutation, against the limit that no auditor can beat.

The limit is the expected number of calls of the best sequential test at level and power
.95 (Wald 1945): 2,783 for randomised response at 1.1 against a claim of 1, 128 at 1.5,
and ln 20 / ln(1 + 1/e) = 9.6 without noise. Medians are lower than means, but the
wealth is compared between batches only, and a late batch has a fifth of all calls.

The bars are a fifth (white box) to a half (black box, fewer repeats) above the measured
medians, which are deterministic but for versions of scikit-learn and numpy. The short
form has a median of fewer games, and bars half as high again.
"""

from functools import partial
from math import inf

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Audit, GaussianDP, Pair, PureDP, Verdict
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, default_forecasters
from auditdp.betting.game import Game
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from tests.unit.betting.toys import StatedLeaky

ALPHA = 0.05
CLAIM = PureDP(1.0)
PAIR = Pair(1, 0)

pytestmark = pytest.mark.statistical


def full(*row):
    return pytest.param(*row, marks=pytest.mark.full)


def median_calls(mechanism, claim, forecasters, *, most, games, pairs=(PAIR,)):
    if forecasters is None:
        forecasters = default_forecasters(mechanism)
    calls = []
    for repeat in range(games):
        streams = partial(stream, repeat, "power", str(claim))
        game = Game(mechanism, claim, pairs, forecasters, streams)
        game.play(most, alpha=ALPHA, stop_when_refuted=True)
        calls.append(game.refuted_at or inf)
    return float(np.median(calls))


def bar(most_calls, repeats):
    return most_calls * (1 if repeats.full else 1.5)


def rarely_exact(rate):
    """Return Laplace noise, and the exact value with a rate."""

    def mechanism(data, size, *, rng):
        exact = rng.random(size) < rate
        return np.where(exact, data, data + rng.laplace(size=size))

    return mechanism


def parity(data, size, *, rng):
    """Return two parity bits of a hidden bit: neither of them alone tells anything."""
    first = rng.integers(0, 2, size, dtype=np.int8)
    return np.stack([first, first ^ Response(2.0)(data, size, rng=rng)], axis=1)


def one_of_many(data, size, *, rng):
    """Return two hundred fair bits, of which one is a randomised response at 2."""
    bits = rng.integers(0, 2, (size, 200), dtype=np.int8)
    bits[:, 137] = Response(2.0)(data, size, rng=rng)
    return bits


def every_bit(data, size, *, rng):
    """Return randomised responses of two hundred bits at 1.5 each.

    The inputs show the bit that differs, which takes as many calls as one bit alone.
    """
    kept = Response(1.5)(1, (size, len(data)), rng=rng)
    return np.where(kept == 1, data, 1 - data).astype(np.int8)


def hidden(mechanism):
    """Return a mechanism without its law."""
    return lambda data, size, *, rng: mechanism(data, size, rng=rng)


POSTERIOR, BLACK_BOX = [LikelihoodRatio()], [ViewExperts()]
# Playing all of them in turn would need 50 times 128 calls with the posterior.
ONE_OF_FIFTY = StatedLeaky(1.5, lambda data: data // 2 == 37)
FIFTY = [Pair(2 * k + 1, 2 * k, f"pair {k}") for k in range(50)]
BITS = [Pair(np.zeros(200, np.int8), np.eye(200, dtype=np.int8)[137])]


@pytest.mark.parametrize(
    ("mechanism", "forecasters", "pairs", "most_calls", "games", "least"),
    [
        (Response(1.5), POSTERIOR, [PAIR], 150, 201, 25),
        (Response(2.0), POSTERIOR, [PAIR], 50, 201, 25),
        (Response(inf), POSTERIOR, [PAIR], 16, 51, 25),
        full(Response(1.1), POSTERIOR, [PAIR], 3_500, 101, 25),
        # The limit for a known value is ln 20 / (rate ln(1 + 1/e)), 4,800 at 1/500.
        (rarely_exact(1 / 500), BLACK_BOX, [Pair(1.0, 0.0)], 45_000, 11, 3),
        full(rarely_exact(1 / 2_000), BLACK_BOX, [Pair(1.0, 0.0)], 150_000, 11, 3),
        (parity, None, [PAIR], 300, 11, 3),
        full(one_of_many, None, [PAIR], 300, 11, 3),
        (every_bit, BLACK_BOX, BITS, 700, 31, 3),
        (ONE_OF_FIFTY, POSTERIOR, FIFTY, 500, 21, 5),
        full(ONE_OF_FIFTY, None, FIFTY, 550, 7, 2),
        full(ONE_OF_FIFTY, BLACK_BOX, FIFTY, 9_000, 3, 1),
    ],
)
def test_violations_of_1_dp_are_found_within_the_bar(
    mechanism, forecasters, pairs, most_calls, games, least, repeats
):
    games, most = repeats(games, least=least), 2 * bar(most_calls, repeats)
    median = median_calls(
        mechanism, CLAIM, forecasters, most=most, games=games, pairs=pairs
    )
    assert median <= bar(most_calls, repeats)


@pytest.mark.parametrize(
    ("mechanism", "claim", "white", "black"),
    [
        (Response(1.5), CLAIM, 165, 420),
        full(Response(inf), CLAIM, 16, 30),
        full(LaplaceMechanism(1 / 1.5), CLAIM, 260, 950),
        full(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01), 430, 2_000),
        full(LeakyResponse(1.5, 0.01), ApproxDP(1.0, 0.01), 175, 400),
        full(GaussianMechanism(1 / 1.5), GaussianDP(1.0), 320, 700),
    ],
)
def test_planted_violations_are_found_with_and_without_their_law(
    mechanism, claim, white, black, repeats
):
    """Learning takes at most five times the calls of the true posterior alone."""

    def median(forecasters, most_calls, games):
        most = 10 * most_calls
        return median_calls(mechanism, claim, forecasters, most=most, games=games)

    games = repeats(61, least=7)
    assert median(None, white, games) <= bar(white, repeats)
    learned = median(BLACK_BOX, black, repeats(31, least=3))
    assert learned <= bar(black, repeats)
    assert learned <= 5 * median(POSTERIOR, white, games)


@pytest.mark.parametrize(
    ("mechanism", "truth", "lowest", "forecasters"),
    [
        (Response(2.0), 2.0, 1.85, None),
        (hidden(Response(2.0)), 2.0, 1.85, None),
        (Response(0.5), 0.5, 0.42, None),
        full(LaplaceMechanism(0.5), 2.0, 1.85, None),
        full(Response(2.0), 2.0, 1.85, POSTERIOR),
        full(LaplaceMechanism(0.5), 2.0, 1.85, POSTERIOR),
        full(Response(0.5), 0.5, 0.42, POSTERIOR),
    ],
)
def test_the_lower_bound_approaches_the_truth(mechanism, truth, lowest, forecasters):
    """Also if the claim holds."""
    pairs = AnyValues((0, 1))
    audit = Audit(mechanism, CLAIM, pairs, evidence=["game"], forecasters=forecasters)
    result = run_audit(audit, Settings(ALPHA, Budget(50_000), 0, "tightness"))
    is_violated = result.verdict is Verdict.VIOLATED
    assert is_violated == (truth > CLAIM.level)
    assert lowest <= result.epsilon_lower <= truth
