"""The replayed ratio: exact where the output shows the noisy values, silent where it does not."""

import math

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.replayed import ReplayedRatio
from auditdp.claims.statements import PureDP
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.representation import SeenAs
from auditdp.mechanism.protocol import as_mechanism
from auditdp.tracing import Trace


def bound(function, pair):
    mechanism = as_mechanism(function)
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    return ReplayedRatio(Trace(mechanism), PureDP(1.0), seed=1).bind(SeenAs(mechanism, calls.form), pair), calls


def noisy(x, rng):
    return x + rng.laplace(scale=2.0)


def together(x, size, *, rng):
    return x + rng.laplace(scale=2.0, size=size)


def mean_and_more(x, rng):
    return {"other": rng.normal(), "mean": (x + rng.laplace(scale=2.0)) / 4}


@pytest.mark.parametrize(("function", "column", "factor"), [(noisy, 0, 1), (together, 0, 1), (mean_and_more, 2, 4)])
def test_it_is_the_likelihood_ratio_of_the_noise(function, column, factor):
    forecaster, calls = bound(function, Pair(1.0, 0.0))
    rows = calls(1.0, 50, np.random.default_rng(3))
    released = rows.reshape(len(rows), -1)[:, column] * factor
    expected = (np.abs(released) - np.abs(released - 1)) / 2
    assert forecaster.log_odds(rows) == pytest.approx(expected, abs=1e-9)


def test_the_probabilities_of_what_chance_decides_are_known():
    forecaster, calls = bound(lambda x, rng: x if rng.random() < 0.75 else 1 - x, Pair(1, 0))
    rows = calls(1, 50, np.random.default_rng(3))
    assert np.abs(forecaster.log_odds(rows)) == pytest.approx(np.full(50, math.log(3)))


def test_a_value_that_got_round_the_noise_is_certain():
    def raw(x, rng):
        return x if rng.random() < 0.5 else x + rng.laplace()

    forecaster, _ = bound(raw, Pair(0.25, 0.75))
    odds = forecaster.log_odds(np.array([0.25, 0.75, 0.5]))
    assert odds.tolist() == [math.inf, -math.inf, 0.0]


def hidden(x, rng):
    return round(x + rng.laplace(), 1)


def adaptive(x, rng):
    first = x + rng.laplace()
    return first, x * first + rng.laplace()


@pytest.mark.parametrize("function", [hidden, adaptive, lambda x, rng: rng.laplace()])
def test_it_abstains_where_noisy_values_cannot_be_read(function):
    forecaster, calls = bound(function, Pair(1.0, 0.0))
    assert not forecaster.log_odds(calls(1.0, 20, np.random.default_rng(3))).any()


def test_an_output_of_another_form_is_none_that_it_knows():
    def sometimes(x, rng):
        released = x + rng.laplace()
        return [released] if released < 9 else [released, released]

    forecaster, calls = bound(sometimes, Pair(1.0, 0.0))
    odds = forecaster.log_odds(calls.form.rows([[0.25], [9.5, 9.5]]))
    assert odds[0] != 0
    assert odds[1] == 0
    assert forecaster.abstained == 1


def test_the_odds_of_an_output_depend_on_no_other_output():
    forecaster, calls = bound(mean_and_more, Pair(1.0, 0.0))
    rows = calls(1.0, 20, np.random.default_rng(3))
    alone = np.concatenate([forecaster.log_odds(rows[[k]]) for k in range(20)])
    assert alone == pytest.approx(forecaster.log_odds(rows))
