"""Permute-and-flip: its law against its definition, its range over many scores, and the constant that it has not."""

import math
from itertools import permutations

import numpy as np
import pytest
from flint import arb

from auditdp.accountants.description import within
from auditdp.accountants.permute_and_flip import PermuteAndFlip, PermuteAndFlipLower, PermuteAndFlipUpper
from auditdp.accountants.zcdp import ZCDP

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def law(scores, epsilon):
    """By the integral of the docstring, exact for up to 32 scores; a neighbour moves scores by at most 1."""
    weights = np.exp(epsilon / 2 * (scores - np.max(scores)))
    u = (NODES + 1) / 2
    others = [np.prod(1 - np.outer(np.delete(weights, r), u), axis=0) for r in range(len(weights))]
    return np.array([w * np.dot(WEIGHTS, other) / 2 for w, other in zip(weights, others, strict=True)])


def test_the_law_is_that_of_flips_in_random_order():
    """Each is taken with probability w_i, in a random order; the largest of all has w = 1."""
    scores, epsilon = np.array([0.0, -1.0, 0.5, -2.0]), 1.3
    weights, exact = np.exp(epsilon / 2 * (scores - scores.max())), np.zeros(4)
    for order in permutations(range(4)):
        left = 1.0
        for place in order:
            exact[place] += left * weights[place] / 24
            left *= 1 - weights[place]
    assert law(scores, epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.0])
def test_the_range_holds_for_many_scores_and_is_nearly_attained_by_two(epsilon):
    rng, eta = np.random.default_rng(1), PermuteAndFlip(epsilon).eta
    for count in (2, 3, 6):
        for _ in range(60):
            scores = rng.uniform(-3, 3, count) * rng.choice([0.1, 1.0])
            losses = np.log(law(scores, epsilon) / law(scores + rng.choice([-1, 1], count), epsilon))
            assert np.ptp(losses) <= eta
            assert np.abs(losses).max() <= epsilon + 1e-12
    first, second = law(np.array([0.5, -0.5]), epsilon), law(np.array([-0.5, 0.5]), epsilon)
    assert np.log(first[0] / second[0]) == pytest.approx(PermuteAndFlip(epsilon).response, rel=1e-9)
    assert 0.85 * eta < np.ptp(np.log(first / second)) <= eta


def test_it_is_not_as_concentrated_as_the_exponential_mechanism():
    """Its divergence of order 1 is above ε²/8, and near ε²/2 for small ε."""
    low, high = (float(each.mid()) for each in PermuteAndFlip(0.1).concentrated(None))
    assert 3.7 * 0.1**2 / 8 < low <= high <= 0.1**2 / 2 * (1 + 1e-12)
    assert within(PermuteAndFlip(3.0), ZCDP(PermuteAndFlip(3.0).eta ** 2 / 8 * (1 + 1e-12)))
    assert float(PermuteAndFlip(3.0).concentrated(None)[1].mid()) < 3 * math.tanh(1.5)
    assert not within(PermuteAndFlip(0.1), ZCDP(0.1**2 / 8))
    assert isinstance(PermuteAndFlip(0.1).concentrated(2.0)[0], arb)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_bounds_are_in_order(epsilon):
    upper, lower = PermuteAndFlipUpper(epsilon, 20), PermuteAndFlipLower(epsilon, 20)
    assert 0.5 * upper.epsilon_at(1e-6) < lower.epsilon_at(1e-6) <= upper.epsilon_at(1e-6)
    assert lower.delta_at(lower.epsilon_at(1e-6)) > 1e-6
