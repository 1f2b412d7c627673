"""Forecasters: known estimates, when they abstain, and how anybody's classifier plugs in."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from auditdp.adjacency import Pair
from auditdp.betting.forecasters import (
    Categorical,
    Classifier,
    LikelihoodRatio,
    Scored,
    bind,
    default_forecasters,
    forecast,
    probabilities,
)
from auditdp.laws import FiniteLaw
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


def test_the_categorical_forecast_is_krichevsky_trofimov():
    forecaster = Categorical().fit(np.array([5, 5, 5, 7, 7]), coins(1, 1, 0, 0, 0))
    expected = [math.log(2.5 / 1.5), math.log(0.5 / 2.5), 0.0]
    assert forecaster.log_odds(np.array([5, 7, 9])).tolist() == pytest.approx(expected)
    assert forecaster.predict_proba(np.array([5]))[0].tolist() == pytest.approx([1.5 / 4, 2.5 / 4])


def test_the_categorical_forecast_counts_rows_of_vectors():
    outputs = np.array([[0, 1], [1, 0], [0, 1]])
    forecaster = Categorical().fit(outputs, coins(1, 0, 1))
    expected = [math.log(2.5 / 0.5), math.log(0.5 / 1.5), 0.0]
    assert forecaster.log_odds(np.array([[0, 1], [1, 0], [1, 1]])).tolist() == pytest.approx(expected)


def test_atoms_agree_whatever_the_type_and_the_sign_of_zero():
    forecaster = Categorical().fit(np.array([0.0, -0.0, 1.0]), coins(1, 1, 0))
    assert forecaster.log_odds(np.array([0, 1])).tolist() == forecaster.log_odds(np.array([False, True])).tolist()
    assert forecaster.log_odds(np.array([-0.0]))[0] == pytest.approx(math.log(2.5 / 0.5))
    rows = Categorical().fit(np.array([[0.0, 1.0], [-0.0, 1.0]]), coins(1, 1))
    assert rows.log_odds(np.array([[-0.0, 1.0]]))[0] == pytest.approx(math.log(2.5 / 0.5))


def test_before_anything_is_seen_everybody_abstains():
    outputs = np.arange(5.0)
    for forecaster in (Categorical(), Classifier()):
        assert forecaster.log_odds(outputs).tolist() == [0.0] * 5
        assert (forecaster.predict_proba(outputs) == 0.5).all()


def test_a_refit_forgets_the_previous_counts():
    forecaster = Categorical().fit(np.array([1, 1]), coins(1, 1))
    forecaster.fit(np.array([2, 2]), coins(0, 0))
    assert forecaster.log_odds(np.array([1]))[0] == 0.0


def test_many_distinct_numbers_are_cut_into_cells():
    outputs, labels = shifted(1000)
    forecaster = Categorical().fit(outputs, labels)
    grid = np.linspace(-6, 8, 2001)
    odds = forecaster.log_odds(grid)
    assert len(np.unique(odds)) <= 10  # the cube root of 1,000
    assert odds[0] < -1
    assert odds[-1] > 1
    # The forecast of a cell is the estimate from the coins in it.
    cell = forecaster.log_odds(outputs) == odds[-1]
    ones = labels[cell].sum()
    assert odds[-1] == pytest.approx(math.log((ones + 0.5) / (cell.sum() - ones + 0.5)))


def test_sixty_four_numbers_are_still_atoms_and_sixty_five_are_not():
    labels = np.ones(65, np.int8)
    assert len(np.unique(Categorical().fit(np.arange(64), labels[:64]).log_odds(np.arange(64) + 0.5))) == 1
    assert (Categorical().fit(np.arange(65), labels).log_odds(np.arange(65) + 0.5) > 0).any()


def test_many_distinct_vectors_are_left_to_others():
    outputs, labels = shifted(200, width=3)
    forecaster = Categorical().fit(outputs, labels)
    assert (forecaster.log_odds(outputs) == 0).all()


def test_infinite_outputs_do_not_break_the_forecasters_that_are_played_by_default():
    """The guard of every call lets infinities pass, so whoever learns from outputs must too."""
    outputs, labels = shifted(200)
    outputs[::7], outputs[::11] = math.inf, -math.inf
    for forecaster in (Categorical(), Classifier()):
        forecaster.fit(outputs, labels)
        assert not np.isnan(forecaster.log_odds(outputs)).any()


def test_the_likelihood_ratio_is_the_true_posterior():
    forecaster = LikelihoodRatio().bind(Response(1.3), PAIR)
    assert forecaster.log_odds(np.array([1, 0])).tolist() == pytest.approx([1.3, -1.3])
    noise = LikelihoodRatio().bind(LaplaceMechanism(2.0), Pair(1.0, 0.0))
    assert noise.log_odds(np.array([9.0, -9.0, 0.5])).tolist() == pytest.approx([0.5, -0.5, 0.0], abs=1e-12)
    normal = LikelihoodRatio().bind(GaussianMechanism(1.0), Pair(1.0, 0.0))
    assert normal.log_odds(np.array([0.5, 2.5])).tolist() == pytest.approx([0.0, 2.0])


def test_impossible_outputs_are_certain_on_one_side_and_nothing_on_both():
    class Support:
        def distribution(self, data):
            return FiniteLaw(np.array([data, 7]), [Fraction(1, 2), Fraction(1, 2)])

    forecaster = LikelihoodRatio().bind(Support(), PAIR)
    odds = forecaster.log_odds(np.array([1, 0, 7, 5]))
    assert odds.tolist() == [math.inf, -math.inf, 0.0, 0.0]
    assert forecaster.predict_proba(np.array([1, 0, 7])).tolist() == [[0, 1], [1, 0], [0.5, 0.5]]


def test_binding_leaves_the_template_alone():
    template = LikelihoodRatio()
    one, two = template.bind(Response(1.0), PAIR), template.bind(Response(2.0), PAIR.swapped())
    assert one.log_odds(coins(1))[0] == pytest.approx(1.0)
    assert two.log_odds(coins(1))[0] == pytest.approx(-2.0)
    template = Categorical()
    bind(template, Response(1.0), PAIR).fit(coins(1), coins(1))
    assert template.log_odds(coins(1))[0] == 0.0


def test_the_score_is_what_the_scored_forecaster_sees():
    class Summed:
        def __call__(self, data, size, *, rng):
            return rng.normal(size=(size, 50)) + data

        def score(self, outputs, pair):
            return np.round(outputs.sum(axis=1) * (pair.data - pair.neighbour))

    outputs = np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    template = Scored()
    forecaster = bind(template, Summed(), PAIR).fit(outputs, coins(1, 0, 1))
    assert forecaster.log_odds(np.array([[0.0, 2.0], [5.0, -5.0]])).tolist() == pytest.approx(
        [math.log(5), -math.log(3)]
    )
    other = bind(template, Summed(), PAIR.swapped())
    assert other.log_odds(outputs).tolist() == [0.0] * 3


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
        assert forecaster.log_odds(outputs[:1])[0] == pytest.approx(0.0 if n < 32 else math.log(4))
    assert [shape for shape, _ in recording.fits] == [(32, 1), (64, 1), (128, 1), (256, 1)]


def test_a_classifier_needs_both_coins():
    outputs, _ = shifted(100)
    recording = Recording()
    forecaster = Classifier(recording).fit(outputs, np.ones(100, np.int8))
    assert recording.fits == []
    assert forecaster.log_odds(outputs)[0] == 0.0


def test_a_classifier_is_fitted_on_the_latest_calls():
    outputs, labels = shifted(100, width=2)
    recording = Recording()
    Classifier(recording, most=40).fit(outputs, labels)
    assert recording.fits == [((40, 2), int(labels[-40:].sum()))]


def test_a_classifier_flattens_outputs():
    outputs, labels = shifted(64, width=6)
    recording = Recording()
    Classifier(recording).fit(outputs.reshape(64, 2, 3), labels)
    assert recording.fits[0][0] == (64, 6)


def test_logistic_regression_learns_which_side_is_which():
    outputs, labels = shifted(2000, shift=1.0)
    odds = Classifier().fit(outputs, labels).log_odds(np.array([-1.0, 0.5, 2.0]))
    assert odds == pytest.approx([-1.5, 0.0, 1.5], abs=0.35)  # the truth is y - 1/2


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(n_estimators=5, random_state=0), DecisionTreeClassifier(max_depth=2), GaussianNB()],
    ids=lambda e: type(e).__name__,
)
def test_classifiers_of_scikit_learn_plug_in_with_a_fresh_copy_for_every_pair(estimator):
    one, two = bind(estimator, Response(1.0), PAIR), bind(estimator, Response(1.0), PAIR)
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
        == ["likelihood ratio", "categorical", "logistic regression"]
    )
    assert names(Score()) == ["score", "categorical", "logistic regression"]
    assert names(lambda: 0) == ["categorical", "logistic regression"]


def test_probabilities_are_the_logistic_function_without_rounding_away_the_small_one():
    odds = np.array([-800.0, -40.0, -1.0, 0.0, 1.0, 40.0, np.inf, -np.inf])
    both = probabilities(odds)
    assert both[:, 1] == pytest.approx(expit(odds), rel=1e-14)
    assert both[:, 0] == pytest.approx(expit(-odds), rel=1e-14)


def test_forecast_stacks_and_takes_what_is_not_a_number_as_abstaining():
    class Says:
        def __init__(self, value):
            self.value = value

        def log_odds(self, outputs):
            return np.full(len(outputs), self.value)

    said = forecast([Says(math.nan), Says(math.inf), Says(-math.inf), Says(0.3)], np.zeros(2))
    assert said.tolist() == [[0.0] * 2, [math.inf] * 2, [-math.inf] * 2, [0.3] * 2]


def test_the_white_box_forecaster_of_a_leaky_law_is_sure_of_what_is_revealed():
    odds = LikelihoodRatio().bind(LeakyResponse(1.0, 0.1), PAIR).log_odds(np.array([0, 1, 2, 3]))
    assert odds.tolist() == pytest.approx([-1.0, 1.0, -math.inf, math.inf])
