"""Rows that are members or not as they are: exact law, calibration at the worst mechanism, and what cannot be used."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from auditdp.bounds import from_guesses, from_observed
from auditdp.bounds.one_run import from_given_propensities as answer
from auditdp.errors import ConfigurationError


def recorded(seed, rows, epsilon):
    """Randomised response on each membership, which is the worst: the score is the log odds after what is released."""
    rng = np.random.default_rng(seed)
    propensities = rng.uniform(0.2, 0.8, rows)
    members = rng.random(rows) < propensities
    released = np.where(rng.random(rows) < expit(epsilon), members, ~members)
    return (
        logit(propensities) + epsilon * np.where(released, 1, -1),
        members,
        propensities,
    )


def test_the_law_of_right_guesses_is_exact():
    """All outcomes of five guesses, one by one."""
    propensities, guessed_in = (
        np.array([0.3, 0.5, 0.6, 0.8, 0.9]),
        np.array([True, True, False, True, False]),
    )
    chances = expit(0.7 + np.where(guessed_in, 1, -1) * logit(propensities))
    exact = sum(
        np.prod(np.where(rights, chances, 1 - chances))
        for rights in map(np.array, product([0, 1], repeat=5))
        if sum(rights) >= 4
    )
    assert answer(guessed_in, 4, propensities, 0.05, 0.7).p_value == pytest.approx(
        exact, rel=1e-12
    )


def test_fair_coins_are_the_binomial_test():
    found = answer(np.arange(100) < 50, 90, np.full(100, 0.5), 0.05, 1.0)
    assert found.lower == pytest.approx(
        from_guesses(90, 100, method="binomial").lower, abs=1e-8
    )


def test_the_worst_mechanism_is_refuted_at_its_level_no_more_than_it_may_be(repeats):
    """Above the truth at most 5 % of the time; the limit is 1e-6 of that."""
    times = repeats(2_000, least=40)
    bounds = []
    for seed in range(times):
        try:
            bounds.append(from_observed(*recorded(seed, 200, 1.0)).lower)
        except ConfigurationError:  # one in a hundred
            bounds.append(0.0)
    assert sum(bound > 1 for bound in bounds) <= binom.ppf(1 - 1e-6, times, 0.05)
    assert np.median(bounds) > 0.4


def test_without_a_training_nothing_is_seen_that_propensities_tell():
    """Scores that are the propensities: by fair coins a large bound, by the propensities none."""
    _, members, propensities = recorded(5, 2_000, 0.0)
    assert (
        from_guesses(int(np.sum((propensities > 0.5) == members)), 2_000).lower > 0.45
    )
    assert from_observed(propensities, members, propensities).lower == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, b, e: (s, b, 1 - e), "fit the propensities"),
        (lambda s, b, e: (s, b, e[:-1]), r"expected 2000 numbers in \(0, 1\)"),
        (lambda s, b, e: (s, b, np.where(e > 0.7, 1.0, e)), "leave it out"),
    ],
)
def test_what_cannot_be_used_is_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        from_observed(*change(*recorded(6, 2_000, 1.0)))
