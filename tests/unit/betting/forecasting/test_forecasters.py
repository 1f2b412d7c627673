"""Forecasters: known estimates, when they abstain, and how anybody's classifier plugs in."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import ESTIMATORS
from auditdp.betting.forecasters.experts import ViewExperts, ViewPlayer
from auditdp.betting.forecasters.forecaster import (
    Classifier,
    LikelihoodRatio,
    Scored,
    Single,
    default_forecasters,
    player,
)
from auditdp.betting.wealth.forecasts import ForecastLine
from auditdp.mechanism.laws import FiniteLaw
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

PAIR = Pair(1, 0)


def rng(seed=0):
    return np.random.default_rng(seed)


def coins(*values):
    return np.array(values, np.int8)


def shifted(size, shift=2.0, width=None, seed=0):
    """Coins and noise around ``shift`` times the coin."""
    random = rng(seed)
    labels = random.integers(0, 2, size, dtype=np.int8)
    if width is None:
        return random.normal(size=size) + shift * labels, labels
    return random.normal(size=(size, width)) + shift * labels[:, None], labels


def test_before_anything_is_seen_a_classifier_abstains():
    outputs = np.arange(5.0)
    forecaster = Classifier(LogisticRegression())
    assert forecaster.log_odds(outputs).tolist() == [0.0] * 5


def test_outputs_that_are_infinite_or_no_number_do_not_break_a_classifier():
    """The guard of every call lets them pass, so whoever learns from outputs must take them."""
    outputs, labels = shifted(200)
    outputs[::7], outputs[::11], outputs[::13] = math.inf, -math.inf, math.nan
    forecaster = Classifier(LogisticRegression()).fit(outputs, labels)
    assert not np.isnan(forecaster.log_odds(outputs)).any()


def test_the_likelihood_ratio_is_the_true_posterior():
    forecaster = LikelihoodRatio().bind(Response(1.3), PAIR)
    assert forecaster.log_odds(np.array([1, 0])).tolist() == pytest.approx([1.3, -1.3])
    noise = LikelihoodRatio().bind(LaplaceMechanism(2.0), Pair(1.0, 0.0))
    assert noise.log_odds(np.array([9.0, -9.0, 0.5])).tolist() == pytest.approx(
        [0.5, -0.5, 0.0], abs=1e-12
    )
    normal = LikelihoodRatio().bind(GaussianMechanism(1.0), Pair(1.0, 0.0))
    assert normal.log_odds(np.array([0.5, 2.5])).tolist() == pytest.approx([0.0, 2.0])


def test_impossible_outputs_are_certain_on_one_side_and_nothing_on_both():
    class Support:
        def distribution(self, data):
            return FiniteLaw(np.array([data, 7]), [Fraction(1, 2), Fraction(1, 2)])

    forecaster = LikelihoodRatio().bind(Support(), PAIR)
    odds = forecaster.log_odds(np.array([1, 0, 7, 5]))
    assert odds.tolist() == [math.inf, -math.inf, 0.0, 0.0]


def test_binding_leaves_the_template_alone():
    template = LikelihoodRatio()
    one, two = (
        template.bind(Response(1.0), PAIR),
        template.bind(Response(2.0), PAIR.swapped()),
    )
    assert one.log_odds(coins(1))[0] == pytest.approx(1.0)
    assert two.log_odds(coins(1))[0] == pytest.approx(-2.0)


def test_a_player_is_made_afresh_for_every_pair():
    for template in (
        LikelihoodRatio(),
        ViewExperts(),
        LogisticRegression(),
        Classifier(GaussianNB()),
    ):
        one, two = (
            player(template, Response(1.0), PAIR),
            player(template, Response(1.0), PAIR.swapped()),
        )
        assert one is not two
        assert isinstance(
            one, ViewPlayer if isinstance(template, ViewExperts) else Single
        )
    assert one.forecaster.estimator is not two.forecaster.estimator


class Summed:
    """Fifty noisy numbers whose sum is all that tells."""

    def __call__(self, data, size, *, rng):
        return rng.normal(size=(size, 50)) + data

    def score(self, outputs, pair):
        return np.round(outputs.sum(axis=1) * (pair.data - pair.neighbour))


def test_the_score_is_all_that_the_scored_forecaster_sees():
    scored = player(Scored(), Summed(), PAIR)
    scored.open(np.zeros((8, 50)), [PAIR], [])
    assert {name.split(" in ")[0] for name in scored.names} == {
        "score: value",
        "score: fingerprint",
    }
    memory = Memory()
    ones, zeros = np.zeros((8, 50)), np.zeros((8, 50))
    ones[:, 0], zeros[:, 7] = 3.0, -2.0
    memory.add(ones, zeros)
    scored.learn(memory, stalled=True)
    new = np.zeros((1, 50))
    new[0, 30:33] = 1.0  # another vector with the sum 3
    message = scored.forecast(Batch(new, zeros[:1], rng()))
    fine = [estimator.name for estimator in ESTIMATORS].index("cells")
    counted = sorted(
        zip(message[0].log_odds[fine], message[0].ones, message[0].zeros, strict=True)
    )
    assert counted == [
        (pytest.approx(-math.log(17)), 0, 1),
        (pytest.approx(math.log(17)), 1, 0),
    ]  # ln(8.5/0.5)


class Recording:
    """A classifier that remembers on what it was fitted."""

    def __init__(self):
        self.fits = []

    def fit(self, outputs, labels):
        self.fits.append((outputs.shape, int(labels.sum())))
        return self

    def predict_proba(self, outputs):
        return np.tile([0.2, 0.8], (len(outputs), 1))


def test_a_classifier_waits_for_32_calls_and_refits_when_they_have_doubled():
    outputs, labels = shifted(300)
    recording = Recording()
    forecaster = Classifier(recording)
    for n in range(1, 301):
        forecaster.fit(outputs[:n], labels[:n])
        assert forecaster.log_odds(outputs[:1])[0] == pytest.approx(
            0.0 if n < 32 else math.log(4)
        )
    assert [shape for shape, _ in recording.fits] == [
        (32, 1),
        (64, 1),
        (128, 1),
        (256, 1),
    ]


def test_a_classifier_needs_both_coins():
    outputs, _ = shifted(100)
    recording = Recording()
    forecaster = Classifier(recording).fit(outputs, np.ones(100, np.int8))
    assert recording.fits == []
    assert forecaster.log_odds(outputs)[0] == 0.0


def test_a_classifier_is_fitted_on_every_third_call_where_there_are_three_times_as_many_as_it_takes():
    outputs, labels = shifted(100, width=2)
    recording = Recording()
    Classifier(recording, max_calls=40).fit(outputs, labels)
    assert recording.fits == [((34, 2), int(labels[::3].sum()))]


def test_a_classifier_flattens_outputs():
    outputs, labels = shifted(64, width=6)
    recording = Recording()
    Classifier(recording).fit(outputs.reshape(64, 2, 3), labels)
    assert recording.fits[0][0] == (64, 6)


def test_logistic_regression_learns_which_side_is_which():
    outputs, labels = shifted(2000, shift=1.0)
    odds = (
        Classifier(LogisticRegression())
        .fit(outputs, labels)
        .log_odds(np.array([-1.0, 0.5, 2.0]))
    )
    assert odds == pytest.approx([-1.5, 0.0, 1.5], abs=0.35)  # the truth is y - 1/2


def test_a_classifier_is_called_by_its_last_step():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert Classifier(LogisticRegression()).name == "logistic regression"
    assert (
        Classifier(make_pipeline(StandardScaler(), LogisticRegression())).name
        == "logistic regression"
    )


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(n_estimators=5, random_state=0),
        DecisionTreeClassifier(max_depth=2),
        GaussianNB(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_classifiers_of_scikit_learn_plug_in_with_a_fresh_copy_for_every_pair(
    estimator,
):
    one, two = (player(estimator, Response(1.0), PAIR).forecaster for _ in range(2))
    outputs, labels = shifted(400)
    one.fit(outputs, labels)
    assert (one.log_odds(np.array([-3.0, 5.0])) * [-1, 1] > 0.5).all()
    assert np.isfinite(one.log_odds(outputs)).all()
    assert two.log_odds(outputs[:2]).tolist() == [0.0, 0.0]
    assert not hasattr(estimator, "classes_")


def test_what_is_played_unless_an_audit_says_otherwise():
    def names(mechanism):
        return [forecaster.name for forecaster in default_forecasters(mechanism)]

    class Score:
        def score(self, outputs, pair):
            return outputs

    assert (
        names(Response(1.0))
        == names(LaplaceMechanism(1.0))
        == ["likelihood ratio", "views", "repeats"]
    )
    assert names(Score()) == ["score", "views", "repeats"]
    assert names(lambda: 0) == ["views", "repeats"]


class Says:
    """Says one thing of everything."""

    def __init__(self, value):
        self.value = value
        self.fitted = 0

    def fit(self, outputs, labels):
        self.fitted += 1

    def log_odds(self, outputs):
        return np.full(len(outputs), self.value)


@pytest.mark.parametrize(
    ("value", "taken"),
    [(math.nan, 0.0), (math.inf, math.inf), (-math.inf, -math.inf), (0.3, 0.3)],
)
def test_what_is_not_a_number_counts_as_abstaining(value, taken):
    (message,) = Single(Says(value)).forecast(Batch(np.zeros(2), np.zeros(1), rng()))
    assert message.log_odds.tolist() == [[taken] * 3]
    assert (sum(message.ones), sum(message.zeros)) == (2, 1)


def test_one_forecaster_learns_from_all_that_is_kept_unless_it_knows_the_law():
    memory, says = Memory(), Says(0.0)
    memory.add(np.ones(3), np.zeros(2))
    Single(says).learn(memory, stalled=True)
    assert says.fitted == 1
    says.calibrated = True
    Single(says).learn(memory, stalled=True)
    assert says.fitted == 1


def test_who_knows_the_law_says_what_a_call_earns():
    """Randomised response at 2 gains p ln(p/q) + (1-p) ln((1-p)/(1-q)) a call against 1, and nothing against 2."""
    single = player(LikelihoodRatio(), Response(2.0), PAIR)
    assert single.plausible_growth(1.0, rng(), None) == math.inf
    single.forecast(Batch(coins(1, 1, 0, 1), coins(0, 1, 0, 0), rng()))
    p, q = expit(2.0), expit(1.0)
    growth = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert single.plausible_growth(1.0, rng(), None) == pytest.approx(growth)
    assert single.plausible_growth(2.0 + 1e-9, rng(), None) == 0.0


def test_the_white_box_forecaster_of_a_leaky_law_is_sure_of_what_is_revealed():
    odds = (
        LikelihoodRatio()
        .bind(LeakyResponse(1.0, 0.1), PAIR)
        .log_odds(np.array([0, 1, 2, 3]))
    )
    assert odds.tolist() == pytest.approx([-1.0, 1.0, -math.inf, math.inf])


def test_a_finite_law_says_before_the_first_call_how_often_which_log_odds_come():
    mechanism = LeakyResponse(1.0, 0.05)
    stated = LikelihoodRatio().bind(mechanism, Pair(1, 0)).stated
    zeros, ones = stated.cells()
    assert zeros == pytest.approx(
        [0.05, 0.95 * mechanism_keeps(1.0), 0.95 * (1 - mechanism_keeps(1.0)), 0.0],
        abs=1e-9,
    )
    assert ones == pytest.approx(zeros[::-1], abs=1e-9)
    assert LikelihoodRatio().bind(LaplaceMechanism(1.0), Pair(1, 0)).stated is None


def mechanism_keeps(epsilon):
    return 1 / (1 + math.exp(-epsilon))


def test_what_comes_outweighs_a_law_that_is_stated_and_wrong():
    """A thousand calls count as much as the statement."""
    player = Single(LikelihoodRatio().bind(LeakyResponse(1.0, 0.05), Pair(1, 0)))
    outputs = np.zeros(2_000, np.int8)
    for _ in range(2):
        message = player.forecast(Batch(outputs, outputs[:0], np.random.default_rng(0)))
    law = ForecastLine(message).law(0)
    assert law.weights[law.log_odds < -0.9].sum() > 0.75 * law.weights.sum()
