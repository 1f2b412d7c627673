"""How often does an audit refute a claim that is true and tight? At most alpha, for every forecaster and every null.

Each case repeats one whole game 2,000 times (500 times for Gaussian DP) at the least favourable true claim: randomised
response and Laplace noise at exactly the claimed epsilon, and for a claim with delta > 0 the pair that reveals its
input with probability delta. The count of refutations is compared with alpha itself, not with alpha plus a tolerance: a
game is conservative by its overshoot.
"""

import numpy as np
import pytest

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters import Categorical, Classifier, LikelihoodRatio, Scored
from auditdp.betting.game import Game
from auditdp.betting.wealth import level_grid
from auditdp.randomness import stream
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

ALPHA = 0.05
REPEATS = 2_000
CALLS = 200
PAIR = Pair(1, 0)

pytestmark = pytest.mark.statistical


class Overconfident:
    """Plays the law of a mechanism that leaks more than the one that is audited: wrong on purpose, and sure of it."""

    name = "overconfident"

    def __init__(self, believed):
        self.believed = believed

    def bind(self, mechanism, pair):
        return LikelihoodRatio().bind(self.believed, pair)


class WithScore:
    """A mechanism with a score, and its law hidden."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __call__(self, data, size, *, rng):
        return self.mechanism(data, size, rng=rng)

    def score(self, outputs, pair):
        return np.round(np.asarray(outputs, float), 0)


NULLS = {
    "randomised response": (Response(1.0), PureDP(1.0), Response(1.4)),
    "Laplace": (LaplaceMechanism(1.0), PureDP(1.0), LaplaceMechanism(0.7)),
    "(epsilon, delta)": (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05), LeakyResponse(1.4, 0.1)),
    "Gaussian": (GaussianMechanism(1.0), GaussianDP(1.0), GaussianMechanism(0.7)),
}


def forecasters(believed):
    return {
        "likelihood ratio": [LikelihoodRatio()],
        "overconfident": [Overconfident(believed)],
        "categorical": [Categorical()],
        "score": [Scored()],
        "logistic regression": [Classifier()],
        "mixture": [Overconfident(believed), Categorical(), Classifier()],
    }


CASES = [(null, kind) for null in NULLS for kind in forecasters(None)]


@pytest.mark.parametrize(("null", "kind"), CASES, ids=[f"{null}-{kind}" for null, kind in CASES])
def test_a_tight_true_claim_is_refuted_at_most_alpha_of_the_time(null, kind):
    mechanism, claim, believed = NULLS[null]
    refuted, repeats = 0, REPEATS if null != "Gaussian" else REPEATS // 4
    for repeat in range(repeats):
        game = Game(
            WithScore(mechanism) if kind == "score" else mechanism,
            claim,
            [PAIR],
            forecasters(believed)[kind],
            lambda purpose, batch, repeat=repeat: stream(repeat, null, kind, purpose, batch),
        )
        game.play(CALLS, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.wealth.refuted(ALPHA)
    assert refuted <= ALPHA * repeats, f"{null}, {kind}: refuted {refuted} of {repeats} true claims at alpha = {ALPHA}"


@pytest.mark.parametrize("null", NULLS)
def test_the_lower_bound_exceeds_the_truth_at_most_alpha_of_the_time(null):
    """The claim is far below or above the truth, so the bound has to be right at levels that are not the claim's."""
    mechanism, truth, believed = NULLS[null]
    too_high = {0.5: 0, 2.0: 0}
    repeats = 200
    for factor in too_high:
        claim = truth.at(factor * truth.level)
        levels = level_grid(claim)
        # The true level must not fall between two levels in the bound's favour: it is compared as it is.
        for repeat in range(repeats):
            game = Game(
                mechanism,
                claim,
                [PAIR],
                [Overconfident(believed), Categorical()],
                lambda purpose, batch, repeat=repeat: stream(repeat, null, "bound", purpose, batch),
                levels=levels,
            )
            game.play(CALLS, alpha=ALPHA)
            too_high[factor] += game.wealth.lower_bound(ALPHA) > truth.level * (1 + 1e-12)
    assert all(count <= ALPHA * repeats for count in too_high.values()), f"{null}: {too_high} of {repeats}"


def test_adaptive_choice_of_pairs_keeps_alpha():
    """Thompson sampling over ten tight pairs, with forecasters that learn: still at most alpha."""
    pairs = [Pair(1, 0, str(k)) for k in range(10)]
    refuted = 0
    for repeat in range(500):
        game = Game(
            Response(1.0),
            PureDP(1.0),
            pairs,
            [Overconfident(Response(1.4)), Categorical()],
            lambda purpose, batch, repeat=repeat: stream(repeat, "pairs", purpose, batch),
        )
        game.play(600, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.wealth.refuted(ALPHA)
    assert refuted <= ALPHA * 500, f"refuted {refuted} of 500 true claims at alpha = {ALPHA}"


def test_without_the_price_of_delta_the_test_would_be_invalid():
    """Guards the guard: the same bets against the same pair, read as a pure claim, do refute."""
    refuted = 0
    for repeat in range(200):
        game = Game(
            LeakyResponse(1.0, 0.05),
            PureDP(1.0),
            [PAIR],
            [LikelihoodRatio()],
            lambda purpose, batch, repeat=repeat: stream(repeat, "price", purpose, batch),
        )
        game.play(2_000, alpha=ALPHA, stop_when_refuted=True)
        refuted += game.wealth.refuted(ALPHA)
    assert refuted > 190
