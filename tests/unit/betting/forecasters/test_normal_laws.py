"""The log-odds of two normal laws that are estimated."""

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp.betting.forecasters.normal_laws import NormalRatio, by_change, by_threshold

MIX = np.array([[1.0, 0.0], [0.9, 0.2]])


def normal(*shape, seed=0):
    return default_rng(seed).normal(size=shape)


def learned(change, noise):
    """Return the forecaster of noise and a change under coin 1, outputs and coins."""
    labels = (np.arange(len(noise)) % 2).astype(np.int8)
    outputs = noise + labels[:, None] * change
    return NormalRatio().fit(outputs, labels), outputs, labels


def direction_of(change):
    """Return the direction along which the log-odds of mixed noise grow."""
    return np.linalg.inv(MIX @ MIX.T) @ change


def test_log_odds_are_those_of_the_laws():
    change = np.array([0.4, 0.1])
    forecaster, *_ = learned(change, normal(4_000, 2) @ MIX.T)
    outputs = normal(500, 2, seed=6) @ MIX.T
    truth = (outputs - change / 2) @ direction_of(change)
    error = np.abs(forecaster.log_odds(outputs) - truth)
    assert error.max() < 0.25 * np.abs(truth).max()


def test_noise_that_is_used_twice_leaves_a_direction_without_any():
    noise = normal(40, 2, seed=1)[:, [0, 0, 1]]
    forecaster, outputs, labels = learned([0.01, 0.0, 0.0], noise)
    right = forecaster.log_odds(outputs) * (2 * labels - 1)
    assert right.min() > 100


@pytest.mark.parametrize("width", [1, 300])
def test_equal_laws_have_small_odds(width):
    forecaster, *_ = learned(0.0, normal(80, width, seed=2))
    odds = forecaster.log_odds(normal(200, width, seed=7))
    assert np.abs(odds).mean() < 0.6


def test_it_abstains_with_few_outputs_and_takes_infinite_ones():
    forecaster, *_ = learned(0.0, np.zeros((4, 2)))
    assert forecaster.log_odds(np.array([[np.nan, np.inf]])).tolist() == [0.0]
    noise = np.repeat([np.nan, np.inf], 40).reshape(40, 2)
    forecaster, outputs, _ = learned(0.0, noise)
    assert np.isfinite(forecaster.log_odds(outputs)).all()


def distance_of(law):
    """Return the distance of two normal laws with the mean log-odds of a stated law."""
    return np.sqrt(2 * law.log_odds[: len(law.log_odds) // 2].mean())


def test_few_runs_with_the_same_draws_determine_two_laws():
    change = np.array([0.3, 0.0])
    noise = normal(40, 2, seed=3) @ MIX.T
    missing = np.full((40, 1), np.nan)  # other outputs have more numbers
    ones, zeros = (np.hstack([each, missing]) for each in (noise + change, noise))
    ratio, law = by_change(ones, zeros)
    mu = np.sqrt(change @ direction_of(change))
    assert 0.7 * mu < distance_of(law) < mu
    fresh = normal(2_000, 2, seed=8) @ MIX.T
    gap = ratio(fresh + change).mean() - ratio(fresh).mean()
    assert gap == pytest.approx(distance_of(law) ** 2, rel=0.05)


def test_the_distance_of_laws_by_few_runs_is_rarely_too_large():
    change = np.array([1.0, 0.0, 0.0])
    distances = []
    for noise in normal(200, 16, 3, seed=5):
        _, law = by_change(noise + change, noise)
        distances.append(distance_of(law))
    assert np.mean(np.array(distances) > 1.0) < 0.25
    assert np.median(distances) > 0.63


@pytest.mark.parametrize(
    ("ones", "zeros"),
    [
        (normal(40, 2, seed=4) + 0.5, normal(40, 2, seed=9)),
        (np.ones((40, 2)), np.ones((40, 2))),
        (np.full((40, 2), np.nan), np.ones((40, 2))),
    ],
    ids=["other draws", "no noise", "no numbers"],
)
def test_runs_with_other_draws_determine_no_laws(ones, zeros):
    assert by_change(ones, zeros) is None


STEPS = np.linspace(0.0, 1.0, 8)[:, None]


def test_a_threshold_has_the_odds_of_the_rule_of_succession():
    zeros = np.hstack([STEPS, np.exp(STEPS)])
    ratio, law = by_threshold(np.add(zeros, [0, 2]), zeros, max_errors=2)
    odds = np.log(17)
    outputs = np.array([[0.5, 4.5], [0.5, 1.0]])
    assert ratio(outputs).tolist() == pytest.approx([odds, -odds])
    assert sorted(law.log_odds.tolist()) == pytest.approx([-odds, odds])


@pytest.mark.parametrize(
    ("shift", "errors", "found"),
    [
        (0.1, 2, False),
        (0.75, 2, True),
        (0.75, 1, False),
    ],
)
def test_a_threshold_has_few_errors(shift, errors, found):
    threshold = by_threshold(STEPS, STEPS + shift, max_errors=errors)
    assert (threshold is not None) == found
