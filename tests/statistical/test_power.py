"""How many calls does a refutation take? Medians over repeated games, against the limit that no auditor can beat.

The limit is the expected number of calls of the best sequential test at level and power .95 (Wald 1945): 2,783 for
randomised response at 1.1 against a claim of 1, 128 at 1.5, and ln 20 / ln(1 + 1/e) = 9.6 without noise. Medians lie
lower than means, but wealth is looked at between batches only, and a late batch has a fifth of all calls. The bars lie a
fifth (white box) to a half (black box, fewer repeats) above what was measured: the medians are deterministic, but differ
where scikit-learn's or numpy's results do. The short form has a median of fewer games, and bars half as high again.
"""

import math

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

ALPHA = 0.05

pytestmark = [pytest.mark.dear, pytest.mark.statistical]


PAIR = Pair(1, 0)


def median_calls(mechanism, claim, forecasters, *, most, games, pairs=(PAIR,)):
    calls = []
    for repeat in range(games):
        game = Game(
            mechanism,
            claim,
            pairs,
            forecasters,
            lambda purpose, batch, repeat=repeat: stream(
                repeat, "power", str(claim), purpose, batch
            ),
        )
        game.play(most, alpha=ALPHA, stop_when_refuted=True)
        calls.append(game.refuted_at or math.inf)
    return float(np.median(calls))


def bar(most_calls, repeats):
    return most_calls * (1 if repeats.full else 1.5)


@pytest.mark.parametrize(
    ("rate", "most_calls"), [(1 / 500, 45_000), (1 / 2_000, 150_000)]
)
def test_an_exact_value_that_is_rarely_released_among_noise_is_found(
    rate, most_calls, repeats
):
    """The limit is ln 20 / (rate ln(1 + 1/e)), 4,800 calls at 1/500, for whoever knows the values beforehand."""

    def rarely_exact(data, size, *, rng):
        return np.where(rng.random(size) < rate, data, data + rng.laplace(size=size))

    median = median_calls(
        rarely_exact,
        PureDP(1.0),
        [ViewExperts()],
        most=2 * most_calls,
        games=repeats(11, least=3),
        pairs=[Pair(1.0, 0.0)],
    )
    assert median <= bar(most_calls, repeats)


@pytest.mark.parametrize(
    ("epsilon", "most_calls", "games"),
    [(1.1, 3_500, 101), (1.5, 150, 201), (2.0, 50, 201), (math.inf, 16, 51)],
)
def test_calls_with_the_true_posterior(epsilon, most_calls, games, repeats):
    median = median_calls(
        Response(epsilon),
        PureDP(1.0),
        [LikelihoodRatio()],
        most=30_000,
        games=repeats(games),
    )
    assert median <= bar(most_calls, repeats), (
        f"median {median} calls for randomised response {epsilon} against a claim of 1"
    )


class Secret:
    """Two parity bits of a hidden bit: neither coordinate tells anything, both together do (randomised response 2)."""

    def __call__(self, data, size, *, rng):
        first = rng.integers(0, 2, size, dtype=np.int8)
        return np.stack([first, first ^ Response(2.0)(data, size, rng=rng)], axis=1)


class OneOfMany:
    """One bit in two hundred moves, by randomised response at 2; the others are fair coins."""

    def __call__(self, data, size, *, rng):
        bits = rng.integers(0, 2, (size, 200), dtype=np.int8)
        bits[:, 137] = Response(2.0)(data, size, rng=rng)
        return bits


PLANTED = {
    "response 1.5": (Response(1.5), PureDP(1.0), 165, 420),
    "no noise": (Response(math.inf), PureDP(1.0), 16, 30),
    "Laplace 1.5": (LaplaceMechanism(1 / 1.5), PureDP(1.0), 260, 950),
    "delta 5 times": (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01), 430, 2_000),
    "epsilon 1.5 times": (LeakyResponse(1.5, 0.01), ApproxDP(1.0, 0.01), 175, 400),
    "Gaussian 1.5": (GaussianMechanism(1 / 1.5), GaussianDP(1.0), 320, 700),
}
"""A mechanism, the claim that it breaks, and the most calls that the median game may take with and without its law."""


@pytest.mark.parametrize(
    ("mechanism", "claim", "white", "black"), PLANTED.values(), ids=PLANTED
)
def test_planted_violations_are_found(mechanism, claim, white, black, repeats):
    games = repeats(61, least=15)
    median = median_calls(
        mechanism, claim, default_forecasters(mechanism), most=10 * white, games=games
    )
    assert median <= bar(white, repeats), (
        f"median {median} calls for {mechanism.name} against {claim}"
    )
    median = median_calls(
        mechanism, claim, [ViewExperts()], most=10 * black, games=repeats(31, least=3)
    )
    assert median <= bar(black, repeats), (
        f"median {median} calls for {mechanism.name}, law hidden, against {claim}"
    )
    # What learning costs: a black box takes at most five times the calls of the true posterior alone.
    posterior = median_calls(
        mechanism, claim, [LikelihoodRatio()], most=10 * white, games=games
    )
    assert median <= 5 * posterior, (
        f"median {median} calls for {mechanism.name}, {posterior} with the true posterior"
    )


@pytest.mark.parametrize(
    ("mechanism", "most_calls"),
    [(Secret(), 300), (OneOfMany(), 300)],
    ids=["parity", "one of 200"],
)
def test_what_no_single_coordinate_or_only_one_shows_is_found(
    mechanism, most_calls, repeats
):
    median = median_calls(
        mechanism,
        PureDP(1.0),
        default_forecasters(mechanism),
        most=5_000,
        games=repeats(11, least=5),
    )
    assert median <= bar(most_calls, repeats), f"median {median} calls"


class EveryBit:
    """Randomised response of two hundred bits at 1.5 each."""

    def __call__(self, data, size, *, rng):
        kept = Response(1.5)(1, (size, len(data)), rng=rng)
        return np.where(kept == 1, data, 1 - data).astype(np.int8)


def test_the_bit_that_differs_among_noisy_ones_is_looked_at(repeats):
    """Nothing is to be learned: the inputs say where to look. One bit alone takes a black box as many calls."""
    data = np.zeros(200, np.int8)
    neighbour = data.copy()
    neighbour[137] = 1
    pair = Pair(data, neighbour)
    median = median_calls(
        EveryBit(),
        PureDP(1.0),
        [ViewExperts()],
        most=5_000,
        games=repeats(31, least=5),
        pairs=[pair],
    )
    assert median <= bar(700, repeats), f"median {median} calls"


class Fifty:
    """Randomised response that leaks more for one of fifty pairs."""

    def respond(self, data):
        which, bit = divmod(data, 2)
        return Response(1.5 if which == 37 else 1.0), bit

    def __call__(self, data, size, *, rng):
        response, bit = self.respond(data)
        return response(bit, size, rng=rng)

    def distribution(self, data):
        response, bit = self.respond(data)
        return response.distribution(bit)


FIFTY = [Pair(2 * k + 1, 2 * k, f"pair {k}") for k in range(50)]


@pytest.mark.parametrize(
    ("forecasters", "most_calls", "games"),
    [
        pytest.param([LikelihoodRatio()], 500, 21, id="posterior"),
        pytest.param(default_forecasters(Fifty()), 550, 7, id="default"),
        pytest.param([ViewExperts()], 9_000, 3, id="black box", marks=pytest.mark.full),
    ],
)
def test_the_pair_that_leaks_is_found_among_fifty(
    forecasters, most_calls, games, repeats
):
    """One pair at 1.5 against a claim of 1; playing all of them in turn would need 50 times 128 calls with the posterior."""
    games = repeats(games, least=max(games // 3, 1))
    median = median_calls(
        Fifty(), PureDP(1.0), forecasters, most=15_000, games=games, pairs=FIFTY
    )
    assert median <= bar(most_calls, repeats), f"median {median} calls"


class Hidden:
    """A mechanism whose law is hidden."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __call__(self, data, size, *, rng):
        return self.mechanism(data, size, rng=rng)


@pytest.mark.parametrize(
    "forecasters", [None, [LikelihoodRatio()]], ids=["default", "posterior alone"]
)
def test_the_lower_bound_approaches_the_truth(forecasters):
    hidden = [Hidden(Response(2.0))] if forecasters is None else []
    for mechanism in (Response(2.0), LaplaceMechanism(0.5), *hidden):
        audit = Audit(
            mechanism,
            PureDP(1.0),
            AnyValues((0, 1)),
            evidence=["game"],
            forecasters=forecasters,
        )
        result = run_audit(audit, Settings(ALPHA, Budget(50_000), 0, "tightness"))
        assert result.verdict is Verdict.VIOLATED
        assert 1.85 <= result.epsilon_lower <= 2.0


def test_a_claim_that_holds_is_bounded_from_below_too():
    for forecasters in (None, [LikelihoodRatio()]):
        audit = Audit(
            Response(0.5),
            PureDP(1.0),
            AnyValues((0, 1)),
            evidence=["game"],
            forecasters=forecasters,
        )
        result = run_audit(audit, Settings(ALPHA, Budget(50_000), 0, "below"))
        assert result.verdict is Verdict.NOT_REFUTED
        assert 0.42 <= result.epsilon_lower <= 0.5
