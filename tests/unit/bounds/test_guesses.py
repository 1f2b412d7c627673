"""Bounds from guesses in one run.

Known values, the worst of all mechanisms, and rows with propensities.
"""

import itertools
from math import exp, log

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.optimize import linprog
from scipy.special import expit, logit
from scipy.stats import norm

from auditdp import GaussianDP
from auditdp.bounds import from_guesses, from_observed
from auditdp.bounds.one_run import (
    curve_refuted,
    from_given_propensities,
    one_run_curve_p_value,
    one_run_p_value,
)
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.errors import ConfigurationError


@pytest.mark.parametrize("guesses", [10, 1000])
@pytest.mark.parametrize("method", ["binomial", "one-run-curve"])
def test_perfect_guessing(guesses, method):
    """q^m = alpha, so epsilon = -ln(alpha^(-1/m) - 1)."""
    exact = -log(0.05 ** (-1 / guesses) - 1)
    found = from_guesses(guesses, guesses, method=method).lower
    assert exact - 2e-5 <= found <= exact


def largest_probability(canaries, guesses, correct, statements):
    """The largest P(V >= v) of all mechanisms that keep some (epsilon, delta).

    It is found by a linear programme. Averaged over permutations and flips of the coins,
    a mechanism keeps its claim and its V, so that the law of V determines it. In a
    neighbour one coin differs, which is guessed with probability guesses/canaries, and
    then one guess more is right or wrong.
    """
    share = np.linspace(0, 1, guesses + 1)
    # The probabilities that V is h and a given guess is right, or is wrong.
    right = np.diag(share)[1:]
    wrong = np.diag(1 - share)[:-1]
    losses = []
    for epsilon, _ in statements:
        losses += [*(right - exp(epsilon) * wrong), *(wrong - exp(epsilon) * right)]
    # Further variables are the excess of every loss, whose sums are at most delta.
    none = np.zeros(len(losses))
    sums = np.kron(np.eye(len(statements)), np.ones(2 * guesses))
    most = [delta * canaries / guesses for _, delta in statements]
    found = linprog(
        -np.append(share * guesses > correct - 0.5, none),
        A_ub=np.block(
            [[np.array(losses), -np.diag(none + 1)], [0 * sums[:, : len(share)], sums]]
        ),
        b_ub=np.append(none, most),
        A_eq=[np.append(0 * share + 1, none)],
        b_eq=[1.0],
    )
    return -found.fun


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "epsilon", "delta"),
    [
        (2, 2, 1, 1.0, 0.05),  # .9447, and Theorem 5.2 of arXiv:2305.08846v1 has .9421
        (2, 1, 1, 0.5, 0.1),
        (3, 3, 3, 0.3, 0.15),
        (3, 2, 2, 0.7, 0.03),
        (40, 40, 36, 1.0, 0.02),
        (1000, 100, 90, 1.0, 1e-5),
    ],
)
def test_the_one_run_p_value_is_that_of_the_worst_of_all_mechanisms(
    canaries, guesses, correct, epsilon, delta
):
    worst = largest_probability(canaries, guesses, correct, [(epsilon, delta)])
    found = one_run_p_value(correct, guesses, canaries, epsilon, delta)
    assert found == pytest.approx(worst, abs=1e-7)
    curve = EpsilonDelta(delta)
    above = one_run_curve_p_value(correct, guesses, canaries, curve, epsilon)
    assert above >= worst - 1e-7


@pytest.mark.parametrize(
    ("canaries", "correct", "mu"),
    [(2, 1, 1.0), (2, 2, 0.3), (30, 24, 0.5), (30, 27, 2.0)],
)
def test_the_recursion_allows_the_worst_of_all_mechanisms_under_a_curve(
    canaries, correct, mu
):
    """A programme of some statements allows a little more than the whole curve."""
    statements = GaussianDP(mu).statements()[::4]
    worst = largest_probability(canaries, canaries, correct, statements)
    found = one_run_curve_p_value(correct, canaries, canaries, Gaussian(), mu)
    assert found >= worst - 1e-3


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("correct", [60, 50, 31])
def test_the_one_run_p_value_grows_with_epsilon(delta, correct):
    levels = np.linspace(0, 6, 100)
    values = [one_run_p_value(correct, 60, 100, level, delta) for level in levels]
    assert np.all(np.diff(values) >= -1e-12)


@pytest.mark.parametrize(("factor", "refuted"), [(1 - 1e-6, False), (1 + 1e-6, True)])
def test_the_recursion_is_exact_for_one_canary(factor, refuted):
    """P(right) <= Φ(mu/2), which is attained for one guess."""
    limit = norm.cdf(0.5) * factor
    assert curve_refuted(1, 1, 1, Gaussian(), 1.0, limit)[0] == refuted


@pytest.mark.parametrize(("correct", "guesses"), [(80, 100), (730, 1000)])
def test_the_recursion_is_hardly_below_the_binomial_bound(correct, guesses):
    exact = from_guesses(correct, guesses).lower
    found = from_guesses(correct, guesses, method="one-run-curve").lower
    assert 0.97 * exact < found <= exact


# Rows that are members or not, with given propensities.


def recorded(seed, rows, epsilon):
    """Randomised response on each membership, which is the worst.

    The score is the log odds after the release.
    """
    rng = default_rng(seed)
    propensities = rng.uniform(0.2, 0.8, rows)
    members = rng.random(rows) < propensities
    released = np.where(rng.random(rows) < expit(epsilon), members, ~members)
    scores = logit(propensities) + epsilon * np.where(released, 1, -1)
    return scores, members, propensities


def test_the_law_of_right_guesses_is_exact():
    """All outcomes of five guesses, one by one."""
    propensities = np.array([0.3, 0.5, 0.6, 0.8, 0.9])
    guessed_in = np.array([True, True, False, True, False])
    chances = expit(0.7 + np.where(guessed_in, 1, -1) * logit(propensities))
    outcomes = np.array(list(itertools.product((0, 1), repeat=5)))
    laws = np.prod(np.where(outcomes, chances, 1 - chances), axis=1)
    exact = laws[outcomes.sum(axis=1) >= 4].sum()
    found = from_given_propensities(guessed_in, 4, propensities, 0.05, 0.7)
    assert found.p_value == pytest.approx(exact, rel=1e-12)


def test_fair_coins_are_the_binomial_test():
    coins = np.full(100, 0.5)
    found = from_given_propensities(np.arange(100) < 50, 90, coins, 0.05, 1.0)
    binomial = from_guesses(90, 100, method="binomial").lower
    assert found.lower == pytest.approx(binomial, abs=1e-8)


def test_the_bound_of_the_worst_mechanism_is_above_the_truth_at_most_alpha_of_the_time(
    repeats,
):
    """Fails by chance with probability 1e-6; one record in a hundred is refused."""
    times = repeats(2_000, least=40)
    bounds = []
    for seed in range(times):
        try:
            bounds.append(from_observed(*recorded(seed, 100, 1.0)).lower)
        except ConfigurationError:
            bounds.append(0.0)
    assert sum(bound > 1 for bound in bounds) <= repeats.most(times, 0.05)
    assert np.median(bounds) > 0.25


def test_scores_that_are_the_propensities_have_no_information():
    _, members, propensities = recorded(5, 1_000, 0.0)
    right = int(np.sum((propensities > 0.5) == members))
    assert from_guesses(right, 1_000).lower > 0.4
    assert from_observed(propensities, members, propensities).lower == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, b, e: (s, b, 1 - e), "fit the propensities"),
        (lambda s, b, e: (s, b, e[:-1]), r"expected 1000 numbers in \(0, 1\)"),
        (lambda s, b, e: (s, b, np.where(e > 0.7, 1.0, e)), "leave out rows"),
    ],
)
def test_propensities_that_cannot_be_used_are_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        from_observed(*change(*recorded(6, 1_000, 1.0)))
