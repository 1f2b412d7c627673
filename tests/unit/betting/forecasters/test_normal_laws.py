"""The log-odds of two normal laws that are estimated."""

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp.betting.forecasters.normal_laws import NormalRatio, by_change, by_threshold


def learned(calls, change, noise):
    """Return the forecaster of noise and a change under coin 1, outputs and coins."""
    labels = (np.arange(calls) % 2).astype(np.int8)
    outputs = noise + labels[:, None] * change
    return NormalRatio().fit(outputs, labels), outputs, labels


def test_log_odds_are_those_of_the_laws():
    rng, mix = default_rng(0), np.array([[1.0, 0.0], [0.9, 0.2]])
    change = np.array([0.4, 0.1])
    forecaster, *_ = learned(4_000, change, rng.normal(size=(4_000, 2)) @ mix.T)
    outputs = rng.normal(size=(500, 2)) @ mix.T
    truth = (outputs - change / 2) @ np.linalg.inv(mix @ mix.T) @ change
    error = np.abs(forecaster.log_odds(outputs) - truth)
    assert error.max() < 0.25 * np.abs(truth).max()


def test_noise_that_is_used_twice_leaves_a_direction_without_any():
    rng = default_rng(1)
    noise = rng.normal(size=(40, 2))[:, [0, 0, 1]]
    forecaster, outputs, labels = learned(40, np.array([0.01, 0.0, 0.0]), noise)
    assert (forecaster.log_odds(outputs) * (2 * labels - 1)).min() > 100


@pytest.mark.parametrize("width", [1, 300])
def test_equal_laws_have_small_odds(width):
    rng = default_rng(2)
    forecaster, *_ = learned(80, 0.0, rng.normal(size=(80, width)))
    assert np.abs(forecaster.log_odds(rng.normal(size=(200, width)))).mean() < 0.6


def test_it_abstains_with_few_outputs_and_takes_infinite_ones():
    forecaster, *_ = learned(4, 0.0, np.zeros((4, 2)))
    assert forecaster.log_odds(np.array([[np.nan, np.inf]])).tolist() == [0.0]
    noise = np.tile([[np.nan] * 2, [np.inf] * 2], (20, 1))
    forecaster, outputs, _ = learned(40, 0.0, noise)
    assert np.isfinite(forecaster.log_odds(outputs)).all()


def distance_of(law):
    """Return the distance of two normal laws with the mean log-odds of a stated law."""
    return np.sqrt(2 * law.log_odds[: len(law.log_odds) // 2].mean())


def test_few_runs_with_the_same_draws_determine_two_laws():
    rng, change = default_rng(3), np.array([0.3, 0.0, 0.0])
    mix = np.array([[1.0, 0.0, 0.0], [0.9, 0.2, 0.0], [0.5, 0.5, 1.0]])
    noise = rng.normal(size=(40, 3)) @ mix.T
    missing = np.full((40, 1), np.nan)  # other outputs have more numbers
    ratio, law = by_change(
        np.hstack([noise + change, missing]), np.hstack([noise, missing])
    )
    mu = np.sqrt(change @ np.linalg.inv(mix @ mix.T) @ change)
    assert 0.7 * mu < distance_of(law) < mu
    fresh = rng.normal(size=(2_000, 3)) @ mix.T
    gap = ratio(fresh + change).mean() - ratio(fresh).mean()
    assert gap == pytest.approx(distance_of(law) ** 2, rel=0.05)


def test_the_distance_of_laws_by_few_runs_is_rarely_too_large():
    rng, change = default_rng(5), np.array([1.0, 0.0, 0.0])
    squares = []
    for _ in range(200):
        noise = rng.normal(size=(16, 3))
        _, law = by_change(noise + change, noise)
        squares.append(distance_of(law) ** 2)
    assert np.mean(np.array(squares) > 1.0) < 0.25
    assert np.median(squares) > 0.4


@pytest.mark.parametrize("ones", ["other draws", 1.0, np.nan])
def test_runs_with_other_draws_determine_no_laws(ones):
    rng = default_rng(4)
    zeros = np.ones((40, 2))
    if ones == "other draws":
        ones, zeros = rng.normal(size=(40, 2)) + 0.5, rng.normal(size=(40, 2))
    assert by_change(np.broadcast_to(ones, (40, 2)), zeros) is None


def test_a_threshold_has_the_odds_of_the_rule_of_succession():
    noise = np.linspace(0.0, 1.0, 8)[:, None]
    ones = np.hstack([noise, np.exp(noise) + 2])
    zeros = np.hstack([noise, np.exp(noise)])
    ratio, law = by_threshold(ones, zeros, max_errors=2)
    odds = np.log(17)
    outputs = np.array([[0.5, 4.5], [0.5, 1.0]])
    assert ratio(outputs).tolist() == pytest.approx([odds, -odds])
    assert sorted(law.log_odds.tolist()) == pytest.approx([-odds, odds])


@pytest.mark.parametrize(
    ("shift", "errors", "found"), [(0.1, 2, False), (0.75, 2, True), (0.75, 1, False)]
)
def test_a_threshold_has_few_errors(shift, errors, found):
    noise = np.linspace(0.0, 1.0, 8)[:, None]
    threshold = by_threshold(noise, noise + shift, max_errors=errors)
    assert (threshold is not None) == found
