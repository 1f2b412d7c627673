"""The log-odds of two normal laws that are estimated."""

import numpy as np
import pytest

from auditdp.betting.forecasters.normal_laws import NormalRatio, by_change, by_threshold


def learned(rng, calls, change, noise):
    labels = np.arange(calls) % 2
    outputs = noise(calls) + labels[:, None] * change
    return NormalRatio().fit(outputs, labels.astype(np.int8)), outputs, labels


def test_log_odds_are_those_of_the_laws():
    rng, mix = np.random.default_rng(0), np.array([[1.0, 0.0], [0.9, 0.2]])
    change = np.array([0.4, 0.1])
    forecaster, *_ = learned(
        rng, 4_000, change, lambda n: rng.normal(size=(n, 2)) @ mix.T
    )
    outputs = rng.normal(size=(500, 2)) @ mix.T
    inverse = np.linalg.inv(mix @ mix.T)
    truth = (outputs - change / 2) @ inverse @ change
    assert (
        np.abs(forecaster.log_odds(outputs) - truth).max() < 0.25 * np.abs(truth).max()
    )


def test_noise_that_is_used_twice_leaves_a_direction_without_any():
    rng = np.random.default_rng(1)

    def noise(calls):
        shared = rng.normal(size=(calls, 1))
        return np.hstack([shared, shared, rng.normal(size=(calls, 1))])

    forecaster, outputs, labels = learned(rng, 40, np.array([0.01, 0.0, 0.0]), noise)
    assert (forecaster.log_odds(outputs) * (2 * labels - 1)).min() > 100


@pytest.mark.parametrize("width", [1, 20, 300])
def test_it_is_not_sure_of_what_is_the_same(width):
    rng = np.random.default_rng(2)
    forecaster, *_ = learned(rng, 80, 0.0, lambda n: rng.normal(size=(n, width)))
    assert np.abs(forecaster.log_odds(rng.normal(size=(200, width)))).mean() < 0.6


def test_it_abstains_before_it_knows_anything_and_takes_what_is_no_number():
    forecaster = NormalRatio().fit(np.zeros((4, 2)), np.array([0, 1, 0, 1], np.int8))
    assert forecaster.log_odds(np.array([[np.nan, np.inf]])).tolist() == [0.0]
    labels = (np.arange(40) % 2).astype(np.int8)
    outputs = np.where(labels[:, None] == 1, np.inf, np.nan) * np.ones((40, 2))
    assert np.isfinite(NormalRatio().fit(outputs, labels).log_odds(outputs)).all()


def test_few_runs_with_the_same_draws_determine_two_laws():
    rng, mix = (
        np.random.default_rng(3),
        np.array([[1.0, 0.0, 0.0], [0.9, 0.2, 0.0], [0.5, 0.5, 1.0]]),
    )
    noise, change = rng.normal(size=(40, 3)) @ mix.T, np.array([0.3, 0.0, 0.0])
    padded = np.full((40, 1), np.nan)  # as of outputs of which others have more numbers
    ratio, law = by_change(
        np.hstack([noise + change, padded]), np.hstack([noise, padded])
    )
    mu = float(np.sqrt(change @ np.linalg.inv(mix @ mix.T) @ change))
    shown = float(np.sqrt(2 * law.log_odds[: len(law.log_odds) // 2].mean()))
    assert 0.7 * mu < shown < mu
    fresh = rng.normal(size=(2_000, 3)) @ mix.T
    gap = ratio(fresh + change).mean() - ratio(fresh).mean()
    assert gap == pytest.approx(shown**2, rel=0.05)


def test_the_distance_of_laws_by_few_runs_is_rarely_too_large():
    rng, change = np.random.default_rng(5), np.array([1.0, 0.0, 0.0])
    squares = []
    for _ in range(200):
        noise = rng.normal(size=(16, 3))
        _, law = by_change(noise + change, noise)
        squares.append(2 * law.log_odds[: len(law.log_odds) // 2].mean())
    assert np.mean(np.array(squares) > 1.0) < 0.25
    assert np.median(squares) > 0.4


def test_runs_with_other_draws_determine_no_laws():
    rng = np.random.default_rng(4)
    assert by_change(rng.normal(size=(40, 2)) + 0.5, rng.normal(size=(40, 2))) is None
    assert by_change(np.ones((40, 2)), np.ones((40, 2))) is None
    assert by_change(np.full((40, 2), np.nan), np.ones((40, 2))) is None


def test_a_threshold_has_the_odds_of_the_rule_of_succession():
    noise = np.linspace(0.0, 1.0, 8)[:, None]
    ratio, law = by_threshold(
        np.hstack([noise, np.exp(noise) + 2]),
        np.hstack([noise, np.exp(noise)]),
        max_errors=2,
    )
    assert ratio(np.array([[0.5, 4.5], [0.5, 1.0]])).tolist() == pytest.approx(
        [np.log(17), -np.log(17)]
    )
    assert sorted(law.log_odds.tolist()) == pytest.approx([-np.log(17), np.log(17)])
    assert by_threshold(noise, noise + 0.1, max_errors=2) is None
    assert by_threshold(noise, noise + 0.75, max_errors=2) is not None
    assert by_threshold(noise, noise + 0.75, max_errors=1) is None
