"""How often does an audit refute a claim that is true and tight? At most alpha, for every forecaster and every null.

Each case repeats whole games at the least favourable true claim: randomised response and Laplace noise at exactly the
claimed epsilon, and for a claim with delta > 0 the pair that reveals its input with probability delta. In full the count
of refutations is compared with alpha itself, not with alpha plus a tolerance: a game is conservative by its overshoot, and
where forecasters learn, by what learning costs. Repeats are as many as time allows: 2,000 for what bets most. The short
form has so few that chance is allowed for: more than its limit have probability 1e-6 where the rate is alpha.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.stats import laplace, norm
from sklearn.linear_model import LogisticRegression

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasting.experts import ViewExperts
from auditdp.betting.forecasting.forecasters import Classifier, LikelihoodRatio, Scored
from auditdp.betting.forecasting.schedule import Schedule
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.numerics.randomness import stream
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

ALPHA = 0.05
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
        return np.round(np.asarray(outputs, float).reshape(len(outputs), -1).sum(axis=1), 1)


@dataclass(frozen=True)
class ParallelLaplace:
    """Five coordinates that all move by 1, each with Laplace noise of scale 5/epsilon: together tight for epsilon."""

    epsilon: float

    def __call__(self, data, size, *, rng):
        return data + rng.laplace(scale=5 / self.epsilon, size=(size, 5))

    def log_prob(self, outputs, data):
        return laplace.logpdf(outputs, loc=data, scale=5 / self.epsilon).sum(axis=1)


@dataclass(frozen=True)
class Bits:
    """Four bits, of which the pair differs in the second, with randomised response on each: tight for epsilon."""

    epsilon: float

    def __call__(self, data, size, *, rng):
        truth = np.array([1, data, 0, 1], np.int8)
        return truth ^ (rng.random((size, 4)) > Response(self.epsilon).keep)

    def log_prob(self, outputs, data):
        return np.where(outputs[:, 1] == data, 0.0, -self.epsilon)  # but for what is the same for both inputs


@dataclass(frozen=True)
class MostlyNew:
    """Seven times in ten a vector that never comes again, else the extreme pair of delta/0.3: tight as a whole.

    Whoever bets on the outputs that come again, and pays the price of delta for those alone, gets rich.
    """

    epsilon: float
    delta: float

    @property
    def told(self):
        return LeakyResponse(self.epsilon, self.delta / 0.3)

    def __call__(self, data, size, *, rng):
        told, new = self.told(data, size, rng=rng), rng.random(size) < 0.7
        return np.stack([np.where(new, 9 + rng.random(size), told), new], axis=1)

    def log_prob(self, outputs, data):
        told = self.told.distribution(data).log_prob(outputs[:, 0].astype(np.int8))
        return np.where(outputs[:, 1] == 1, 0.0, told)  # but for what is the same for both inputs


@dataclass(frozen=True)
class Mixture:
    """One of several tight mechanisms, chosen at random and revealed beside its output: as a whole what each of them is."""

    parts: tuple

    def __call__(self, data, size, *, rng):
        chosen = rng.integers(len(self.parts), size=size)
        drawn = [np.asarray(part(data, size, rng=rng), float).reshape(size) for part in self.parts]
        return np.stack([chosen, np.choose(chosen, drawn)], axis=1)

    def log_prob(self, outputs, data):
        chosen, total = outputs[:, 0].astype(int), np.zeros(len(outputs))
        for k, part in enumerate(self.parts):
            values = outputs[chosen == k, 1]
            if not len(values):
                continue
            if isinstance(part, LeakyResponse | Response):
                total[chosen == k] = part.distribution(data).log_prob(values.astype(np.int8))
            else:
                total[chosen == k] = part.log_prob(values, data)
        return total


@dataclass(frozen=True)
class Coarse:
    """Normal noise of which only the sign of y - 1/2 is told, or only whether it is far out: within the curve of 1/sigma."""

    sigma: float
    edges: tuple

    def __call__(self, data, size, *, rng):
        return np.searchsorted(self.edges, data + self.sigma * rng.standard_normal(size)).astype(float)

    def log_prob(self, outputs, data):
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return np.log(np.diff(norm.cdf((ends - data) / self.sigma)))[np.asarray(outputs).astype(int)]


class Threefold:
    """Is told the true posterior, and says three times its log-odds."""

    name = "threefold"

    def bind(self, mechanism, pair):
        self.known = LikelihoodRatio().bind(mechanism, pair)
        return self

    def fit(self, outputs, labels):
        """Learn nothing."""

    def log_odds(self, outputs):
        return 3 * self.known.log_odds(outputs)


NULLS = {
    "randomised response": (Response(1.0), PureDP(1.0), Response(1.4)),
    "Laplace": (LaplaceMechanism(1.0), PureDP(1.0), LaplaceMechanism(0.7)),
    "five Laplace": (ParallelLaplace(1.0), PureDP(1.0), ParallelLaplace(1.4)),
    "bits": (Bits(1.0), PureDP(1.0), Bits(1.4)),
    "small epsilon": (Response(0.1), PureDP(0.1), Response(0.3)),
    "(epsilon, delta)": (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05), LeakyResponse(1.4, 0.1)),
    "(0, delta)": (LeakyResponse(0.0, 0.1), ApproxDP(0.0, 0.1), LeakyResponse(0.4, 0.2)),
    "no loss": (Response(0.0), PureDP(0.0), Response(0.4)),
    "mostly new": (MostlyNew(0.2, 0.25), ApproxDP(0.2, 0.25), MostlyNew(1.0, 0.29)),
    "Gaussian": (GaussianMechanism(1.0), GaussianDP(1.0), GaussianMechanism(0.7)),
    "mixture of (epsilon, delta)": (
        Mixture((LeakyResponse(1.0, 0.05), LeakyResponse(1.0, 0.02), LaplaceMechanism(1.0), Response(1.0))),
        ApproxDP(1.0, 0.05),
        Mixture((LeakyResponse(1.4, 0.1), LeakyResponse(1.5, 0.1), LaplaceMechanism(0.7), Response(1.5))),
    ),
    "mixture of Gaussian": (
        Mixture((GaussianMechanism(1.0), Coarse(1.0, (0.5,)), Coarse(1.0, (-0.5, 1.5)))),
        GaussianDP(1.0),
        Mixture((GaussianMechanism(0.7), Coarse(0.7, (0.5,)), Coarse(0.7, (-0.5, 1.5)))),
    ),
}
"""Mechanism, its tight true claim, and the mechanism that the overconfident forecaster takes it for."""


def forecasters(believed):
    return {
        "likelihood ratio": [LikelihoodRatio()],
        "overconfident": [Overconfident(believed)],
        "black box": [ViewExperts()],
        "score": [Scored()],
        "classifier": [Classifier(LogisticRegression())],
        "mixture": [Overconfident(believed), ViewExperts()],
        "threefold": [Threefold()],
        "thinned mixture": [Overconfident(believed), ViewExperts(schedule=partial(Schedule, whole=1, thinning=3))],
    }


CASES = {
    **{(null, "overconfident"): 2_000 for null in ("randomised response", "(epsilon, delta)")},
    **{(null, "overconfident"): 500 for null in ("Laplace", "small epsilon")},
    **{(null, "overconfident"): 200 for null in ("five Laplace", "bits", "mostly new", "Gaussian")},
    **{(null, "black box"): 500 for null in ("randomised response", "(epsilon, delta)")},
    **{(null, "black box"): 200 for null in ("Laplace", "small epsilon", "Gaussian")},
    **{(null, "black box"): 100 for null in ("bits", "mostly new", "five Laplace")},
    **{(null, "likelihood ratio"): 200 for null in ("(epsilon, delta)", "Gaussian")},
    **{(null, "score"): 200 for null in ("Laplace", "(epsilon, delta)")},
    **{(null, "classifier"): 200 for null in ("randomised response", "(epsilon, delta)")},
    **{(null, "mixture"): 200 for null in ("randomised response", "(epsilon, delta)", "(0, delta)")},
    **{(null, "overconfident"): 500 for null in ("(0, delta)", "no loss")},
    **{(null, "black box"): 100 for null in ("(0, delta)", "no loss")},
    **{("(0, delta)", kind): 200 for kind in ("likelihood ratio", "threefold")},
    ("five Laplace", "mixture"): 60,
    **{(null, "threefold"): 300 for null in ("(epsilon, delta)", "Gaussian")},
    **{
        (f"mixture of {null}", kind): repeats
        for null in ("(epsilon, delta)", "Gaussian")
        for kind, repeats in {"overconfident": 200, "threefold": 200, "likelihood ratio": 100, "black box": 60}.items()
    },
}
"""How many games of each null and kind of forecaster are played in full; at least 20: one refutation is within alpha."""


def allowed(repeats, games):
    """How many of so many games may refute a true claim."""
    return ALPHA * games if repeats.full else repeats.most(games, ALPHA)


def play(mechanism, claim, chosen, key, *, calls=CALLS, pairs=(PAIR,), levels=None, stop=True, ranked=None):
    game = Game(mechanism, claim, pairs, chosen, lambda purpose, batch: stream(*key, purpose, batch), levels=levels)
    for table in game.tables:
        table.next_ranking = ranked or table.next_ranking
    game.play(calls, alpha=ALPHA, stop_when_refuted=stop)
    return game


def refutations(null, kind, games, **options):
    """How many of so many games refute the tight true claim."""
    mechanism, claim, believed = NULLS[null]
    played = WithScore(mechanism) if kind == "score" else mechanism
    return sum(
        play(played, claim, forecasters(believed)[kind], (repeat, null, kind), **options).wealth.refuted(ALPHA)
        for repeat in range(games)
    )


@pytest.mark.parametrize(("null", "kind"), CASES, ids=[f"{null}-{kind}" for null, kind in CASES])
def test_a_tight_true_claim_is_refuted_at_most_alpha_of_the_time(null, kind, repeats):
    games = repeats(CASES[null, kind])
    refuted = refutations(null, kind, games)
    assert refuted <= allowed(repeats, games), f"{null}, {kind}: refuted {refuted} of {games} true claims, {ALPHA=}"


@pytest.mark.parametrize("null", ["randomised response", "(epsilon, delta)"])
def test_views_that_see_a_part_of_the_batches_keep_alpha(null, repeats):
    """As if many calls had been made: all views but one are thinned from the 40th call on."""
    games = repeats(200)
    refuted = refutations(null, "thinned mixture", games, ranked=40)
    assert refuted <= allowed(repeats, games), f"{null}: refuted {refuted} of {games} true claims, {ALPHA=}"


@pytest.mark.parametrize("null", ["randomised response", "(epsilon, delta)", "Gaussian"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_lower_bound_exceeds_the_truth_at_most_alpha_of_the_time(null, factor, repeats):
    """The claim is far below or above the truth, so the bound has to be right at levels that are not the claim's."""
    mechanism, truth, believed = NULLS[null]
    claim, games = truth.at(factor * truth.level), repeats(100)
    levels, too_high = level_grid(claim, ratio=1.05), 0
    for repeat in range(games):
        chosen = forecasters(believed)["mixture"]
        game = play(mechanism, claim, chosen, (repeat, null, factor, "bound"), levels=levels, stop=False)
        # The true level may lie between two levels: the bound is compared with it as it is.
        too_high += game.wealth.lower_bound(ALPHA) > truth.level * (1 + 1e-12)
    assert too_high <= allowed(repeats, games), f"{null}: above the truth in {too_high} of {games} games, {ALPHA=}"


def test_adaptive_choice_of_pairs_keeps_alpha(repeats):
    """Thompson sampling over ten tight pairs, with forecasters that learn: still at most alpha."""
    pairs = [Pair(1, 0, str(k)) for k in range(10)]
    refuted, games = 0, repeats(100)
    for repeat in range(games):
        chosen = [Overconfident(Response(1.4)), ViewExperts()]
        game = play(Response(1.0), PureDP(1.0), chosen, (repeat, "pairs"), calls=600, pairs=pairs)
        refuted += game.wealth.refuted(ALPHA)
    assert refuted <= allowed(repeats, games), f"refuted {refuted} of {games} true claims, {ALPHA=}"


def test_without_the_price_of_delta_the_test_would_be_invalid(repeats):
    """Guards the guard: the same bets against the same pair, read as a pure claim, do refute.

    A call reveals its input with probability .05 and then earns ln(1/q) = .31 nats: 2,000 calls give about 31 nats where
    ln 20 = 3 are asked for; that fewer than nine of ten refute has a probability far below 1e-6.
    """
    games = repeats(200)
    refuted = sum(
        play(LeakyResponse(1.0, 0.05), PureDP(1.0), [LikelihoodRatio()], (repeat, "price"), calls=2_000).wealth.refuted(
            ALPHA
        )
        for repeat in range(games)
    )
    assert refuted > 0.9 * games
