"""Forecasters: known posteriors, abstaining, and classifiers of scikit-learn."""

from fractions import Fraction
from math import inf, log, nan

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit
from scipy.stats import entropy
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from auditdp import FiniteLaw, Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import ESTIMATORS
from auditdp.betting.forecasters.forecaster import (
    Classifier,
    LikelihoodRatio,
    Scored,
    Single,
    default_forecasters,
    player,
)
from auditdp.betting.wealth.forecasts import ForecastLine
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from tests.unit.betting.toys import PAIR, Constant


def batch(ones, zeros):
    return Batch(np.asarray(ones), np.asarray(zeros), default_rng(0))


def shifted(size, shift=2.0):
    """Return noise around ``shift`` times the coin, and the coins."""
    random = default_rng(0)
    labels = random.integers(0, 2, size, dtype=np.int8)
    return random.normal(size=size) + shift * labels, labels


class Support:
    """A law that gives the input, or 7."""

    def distribution(self, data):
        return FiniteLaw(np.array([data, 7]), [Fraction(1, 2), Fraction(1, 2)])


@pytest.mark.parametrize(
    ("mechanism", "pair", "outputs", "log_odds"),
    [
        (Response(1.3), PAIR, [1, 0], [1.3, -1.3]),
        (GaussianMechanism(1.0), Pair(1.0, 0.0), [0.5, 2.5], [0.0, 2.0]),
        (LeakyResponse(1.0, 0.1), PAIR, [0, 1, 2, 3], [-1, 1, -inf, inf]),
        # An impossible output is certain on one side and tells nothing on both.
        (Support(), PAIR, [1, 0, 7, 5], [inf, -inf, 0.0, 0.0]),
    ],
)
def test_the_likelihood_ratio_is_the_true_posterior(mechanism, pair, outputs, log_odds):
    found = LikelihoodRatio().bind(mechanism, pair).log_odds(np.array(outputs))
    assert found.tolist() == pytest.approx(log_odds, abs=1e-12)


class Summed:
    """Fifty noisy numbers whose sum tells everything."""

    def __call__(self, data, size, *, rng):
        return rng.normal(size=(size, 50)) + data

    def score(self, outputs, pair):
        return np.round(outputs.sum(axis=1) * (pair.data - pair.neighbour))


def test_a_scored_forecaster_bets_on_the_score_alone():
    scored = player(Scored(), Summed(), PAIR)
    zeros = np.zeros((8, 50))
    scored.open(zeros, [PAIR], [])
    views = {name.split(" in ")[0] for name in scored.names}
    assert views == {"score: value", "score: fingerprint"}
    memory = Memory()
    memory.add(zeros + 0.06, zeros)
    scored.learn(memory, stalled=True)
    new = 1.0 * (np.arange(50) // 3 == 10)  # another vector with the sum 3
    (forecast, *_) = scored.forecast(batch(new[None], zeros[:1]))
    plain = [estimator.name for estimator in ESTIMATORS].index("cells")
    odds = forecast.log_odds[plain]
    # Eight calls of one coin and half a call of either: ln(8.5/0.5).
    assert odds @ (forecast.ones - forecast.zeros) == pytest.approx(2 * log(17))


class Recording:
    """A classifier that records the outputs it is fitted on."""

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
    forecaster.fit(outputs, np.ones_like(labels))  # it needs both coins
    for n in range(1, 301):
        forecaster.fit(outputs[:n], labels[:n])
        odds = forecaster.log_odds(outputs[:1])[0]
        assert odds == pytest.approx(0.0 if n < 32 else log(4))
    sizes = [shape for shape, _ in recording.fits]
    assert sizes == [(32, 1), (64, 1), (128, 1), (256, 1)]


def test_a_classifier_is_fitted_on_every_third_flattened_output_of_too_many():
    _, labels = shifted(100)
    recording = Recording()
    Classifier(recording, max_calls=40).fit(np.zeros((100, 2, 3)), labels)
    assert recording.fits == [((34, 6), labels[::3].sum())]


def test_a_classifier_takes_infinite_outputs_and_nan():
    outputs, labels = shifted(200)
    outputs[::7], outputs[::11], outputs[::13] = inf, -inf, nan
    forecaster = Classifier(LogisticRegression()).fit(outputs, labels)
    assert not np.isnan(forecaster.log_odds(outputs)).any()


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5, random_state=0),
        Recording(),
    ],
)
def test_a_classifier_is_copied_for_every_pair(estimator):
    one, two = (player(estimator, Response(1.0), PAIR).forecaster for _ in "ab")
    outputs, labels = shifted(400)
    one.fit(outputs, labels)
    assert np.isfinite(one.log_odds(outputs)).all()
    assert one.log_odds(np.array([5.0])) > 0.5
    assert two.log_odds(outputs[:2]).tolist() == [0.0, 0.0]
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize(
    ("mechanism", "first"),
    [
        (Response(1.0), ["likelihood ratio"]),
        (Summed(), ["score"]),
        (lambda: 0, []),
    ],
)
def test_the_default_forecasters(mechanism, first):
    names = [forecaster.name for forecaster in default_forecasters(mechanism)]
    assert names == [*first, "views", "repeats"]


@pytest.mark.parametrize(
    ("value", "odds"),
    [
        (nan, 0.0),
        (inf, inf),
        (0.3, 0.3),
    ],
)
def test_odds_that_are_nan_count_as_abstaining(value, odds):
    (forecast,) = Single(Constant(value)).forecast(batch(np.zeros(2), np.zeros(1)))
    assert forecast.log_odds.tolist() == [[odds] * 3]
    assert forecast.ones.sum() == 2
    assert forecast.zeros.sum() == 1


@pytest.mark.parametrize(
    ("calibrated", "fits"),
    [
        (False, 1),
        (True, 0),
    ],
)
def test_a_forecaster_learns_unless_it_knows_the_law(calibrated, fits):
    memory = Memory()
    forecaster = Constant(0.0)
    memory.add(np.ones(3), np.zeros(2))
    forecaster.calibrated = calibrated
    Single(forecaster).learn(memory, stalled=True)
    assert forecaster.fits == fits


def test_the_plausible_growth_of_a_known_law_is_its_divergence():
    """That of randomised response at 2 against the same at 1."""
    rng = default_rng(0)
    single = player(LikelihoodRatio(), Response(2.0), PAIR)
    assert single.plausible_growth(1.0, rng, None) == inf
    single.forecast(batch([1, 1, 0, 1], [0, 1, 0, 0]))
    growth = entropy(expit([2.0, -2.0]), expit([1.0, -1.0]))
    assert single.plausible_growth(1.0, rng, None) == pytest.approx(growth)
    assert single.plausible_growth(2.0 + 1e-9, rng, None) == 0.0


def test_a_finite_law_states_the_law_of_its_log_odds():
    stated = LikelihoodRatio().bind(LeakyResponse(1.0, 0.05), PAIR).stated
    zeros, ones = stated.cells()
    keep, lose = 0.95 * expit([1.0, -1.0])
    assert zeros == pytest.approx([0.05, keep, lose, 0.0], abs=1e-9)
    assert ones == pytest.approx(zeros[::-1], abs=1e-9)
    assert LikelihoodRatio().bind(LaplaceMechanism(1.0), PAIR).stated is None


def test_observed_outputs_outweigh_a_wrong_stated_law():
    """A thousand calls count as much as the statement."""
    single = player(LikelihoodRatio(), LeakyResponse(1.0, 0.05), PAIR)
    outputs = np.zeros(2_000, np.int8)
    for _ in range(2):
        forecasts = single.forecast(batch(outputs, outputs[:0]))
    law = ForecastLine(forecasts).law(0)
    observed = law.weights[law.log_odds < -0.9]
    assert observed.sum() > 0.75 * law.weights.sum()
