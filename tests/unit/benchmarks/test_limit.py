"""The ten false claims have limits, twins, and a view that counts them."""

import math

import numpy as np
import pytest

from auditdp.betting.wealth.regions import growth
from benchmarks import limit
from benchmarks.calls import gaussian_epsilon

CHEAP = ("Laplace", "randomised response", "histogram in 20 dimensions")


def test_a_response_gains_its_divergence_from_the_cap(monkeypatch):
    monkeypatch.setattr(limit, "DRAWS", 10)
    gained = float(growth(1 / (1 + math.exp(-1.5)), 1.0))
    assert limit.growth(limit.look("randomised response")) == pytest.approx(gained)


def test_numbers_that_do_not_change_tell_nothing(monkeypatch):
    monkeypatch.setattr(limit, "DRAWS", 1 << 12)
    alone, of_twenty = (
        limit.growth(limit.look(name))
        for name in ("Laplace", "histogram in 20 dimensions")
    )
    assert alone == pytest.approx(of_twenty, rel=0.05)


def test_a_sum_of_gradients_has_its_law():
    """P(ratio > e^ε) at the ε of δ is within six standard errors of δ."""
    mechanism, delta, draws = limit.SampledSum(), 0.01, 20_000
    outputs = mechanism(1, draws, rng=np.random.default_rng(0))
    odds = mechanism.log_prob(outputs, 1) - mechanism.log_prob(outputs, 0)
    excess = np.maximum(-np.expm1(mechanism.epsilon_at(delta) - odds), 0.0)
    assert abs(excess.mean() - delta) < 6 * excess.std() / math.sqrt(draws)


def test_twins_meet_what_they_are_said_to():
    for name in CHEAP:
        look = limit.look(name)
        outputs = look.twin(look.pair.data, 2_000, rng=np.random.default_rng(0))
        odds = look.twin.distribution(look.pair.data).log_prob(
            outputs
        ) - look.twin.distribution(look.pair.neighbour).log_prob(outputs)
        assert np.abs(odds).max() == pytest.approx(look.met.epsilon)
    look = limit.look("Gaussian, σ ÷ 1.5")
    assert gaussian_epsilon(1 / look.twin.sigma, look.met.delta) == pytest.approx(
        look.met.epsilon
    )


def test_what_is_counted():
    unit = {"claim": "1-DP", "limit": 100.0}
    results = {
        "Laplace/black box": {**unit, "way": limit.BLACK, "calls": [150, 200, None]},
        "Laplace/twin 0": {**unit, "way": limit.TWIN, "calls": [None, 80, None, None]},
    }
    view = limit.view(results)
    assert view.tables[0].rows == [
        ["Laplace", "1-DP", "100", "–", "2.00, > 10", "–", "–", "–", "–", "1 of 4"]
    ]
    assert [bar.met for bar in view.bars] == [None, False]
