"""How many calls does a refutation take? Medians over repeated games, against the limit that no auditor can beat.

The limit is the expected number of calls of the best sequential test at level and power .95 (Wald 1945): 2,783 for
randomised response at 1.1 against a claim of 1, 128 at 1.5, and ln 20 / ln(1 + 1/e) = 9.6 without noise. Medians lie
lower than means.
"""

import math

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Audit, GaussianDP, Pair, PureDP, Verdict
from auditdp.betting.forecasters import LikelihoodRatio, default_forecasters
from auditdp.betting.game import Game
from auditdp.judgement import Settings, run_audit
from auditdp.randomness import stream
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

ALPHA = 0.05

pytestmark = pytest.mark.statistical


PAIR = Pair(1, 0)


def median_calls(mechanism, claim, forecasters, *, most, repeats, pairs=(PAIR,)):
    calls = []
    for repeat in range(repeats):
        game = Game(
            mechanism,
            claim,
            pairs,
            forecasters,
            lambda purpose, batch, repeat=repeat: stream(repeat, "power", str(claim), purpose, batch),
        )
        game.play(most, alpha=ALPHA, stop_when_refuted=True)
        calls.append(game.refuted_at or math.inf)
    return float(np.median(calls))


class Hidden:
    """A mechanism whose law is hidden."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __call__(self, data, size, *, rng):
        return self.mechanism(data, size, rng=rng)


@pytest.mark.parametrize(
    ("epsilon", "most_calls", "repeats"),
    [(1.1, 2_800, 401), (1.5, 150, 401), (2.0, 45, 401), (math.inf, 14, 101)],
)
def test_calls_with_the_true_posterior(epsilon, most_calls, repeats):
    median = median_calls(Response(epsilon), PureDP(1.0), [LikelihoodRatio()], most=30_000, repeats=repeats)
    assert median <= most_calls, f"median {median} calls for randomised response {epsilon} against a claim of 1"


def test_calls_of_a_black_box():
    mechanism = Hidden(Response(1.5))
    median = median_calls(mechanism, PureDP(1.0), default_forecasters(mechanism), most=5_000, repeats=201)
    assert median <= 400, f"median {median} calls for randomised response 1.5 against a claim of 1, law hidden"


@pytest.mark.parametrize(
    ("mechanism", "claim", "most_calls"),
    [
        (LaplaceMechanism(1 / 1.5), PureDP(1.0), 250),
        (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01), 1_500),
        (LeakyResponse(1.5, 0.01), ApproxDP(1.0, 0.01), 400),
        (GaussianMechanism(1 / 1.5), GaussianDP(1.0), 600),
    ],
    ids=str,
)
def test_planted_violations_are_found(mechanism, claim, most_calls):
    median = median_calls(mechanism, claim, [LikelihoodRatio()], most=10 * most_calls, repeats=101)
    assert median <= most_calls, f"median {median} calls for {mechanism.name} against {claim}"


def test_the_pair_that_leaks_is_found_among_fifty():
    """Fifty pairs, one of them at 1.5 against a claim of 1; playing them in turn would need 50 times 128 calls."""

    class Fifty:
        """Randomised response that leaks more for one of the pairs."""

        def respond(self, data):
            which, bit = divmod(data, 2)
            return Response(1.5 if which == 37 else 1.0), bit

        def __call__(self, data, size, *, rng):
            response, bit = self.respond(data)
            return response(bit, size, rng=rng)

        def distribution(self, data):
            response, bit = self.respond(data)
            return response.distribution(bit)

    pairs = [Pair(2 * k + 1, 2 * k, f"pair {k}") for k in range(50)]
    median = median_calls(Fifty(), PureDP(1.0), [LikelihoodRatio()], most=20_000, repeats=51, pairs=pairs)
    assert median <= 2_000, f"median {median} calls"


def test_the_lower_bound_approaches_the_truth():
    for mechanism in (Response(2.0), LaplaceMechanism(0.5), Hidden(Response(2.0))):
        audit = Audit(mechanism, PureDP(1.0), AnyValues((0, 1)), evidence=["game"])
        result = run_audit(audit, Settings(ALPHA, 50_000, 0, "tightness"))
        assert result.verdict is Verdict.VIOLATED
        assert 1.85 <= result.epsilon_lower <= 2.0
