"""Distances of outputs: gross differences are large, and chance is small."""

import numpy as np
import pytest

from auditdp import Pair
from auditdp.betting.pairs.distances import (
    Usual,
    distance,
    farthest_pair,
    output_distance,
    spread_of,
)
from auditdp.tracing import Trace

N = 4
INF = np.inf


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def usual(outputs):
    """Return the usual outputs of sixteen inputs with the same law."""
    return Usual.of(np.split(outputs, 16))


@pytest.fixture
def noise(rng):
    return usual(rng.normal(size=(512, 1)))


def far(one, zero, like, spread=None):
    return distance(one, zero, like, like.spread if spread is None else spread)[0]


def test_chance_alone_is_near(rng, noise):
    outputs = rng.normal(size=(300, 2, N, 1))
    found = [far(one, other, noise) for one, other in outputs]
    assert np.quantile(found, 0.99) < 3


def test_gross_differences_are_far(rng, noise):
    few = rng.normal(size=(N, 1))
    assert far(few + 50, few, noise) > 20
    assert far(few, 0 * few, noise) == INF  # no noise on one side
    assert far(0 * few, 0 * few + 1, noise) == INF  # nor on the other
    assert far(few, 1e-3 * few, noise) > 10
    assert far(np.full((N, 1), np.nan), few, noise) == INF
    assert far(few, few, noise) == 0


def test_repeated_outputs_may_be_equal_by_chance(rng):
    bits = usual(rng.integers(0, 2, (512, 1)))
    ones = np.ones((N, 1))
    assert far(ones, 0 * ones, bits) < 5
    assert far(ones, ones, bits) == 0


def test_with_the_same_randomness_the_largest_change_is_the_farthest(rng):
    """Each of six columns has chance deviations of its own, which inputs share."""
    like = usual(rng.laplace(size=(2048, 6)))
    same = rng.laplace(size=(N, 6))
    spread = spread_of([same, same + 3])
    found = []
    for shift in (1.0, 1.4):
        for k, change in enumerate(shift * np.eye(6)):
            value, where = distance(same + change, same, like, spread)
            assert where == k
            found.append(value)
    assert max(found[:6]) < min(found[6:])


def test_less_noise_makes_a_larger_distance(rng, noise):
    same = rng.normal(size=(N, 1))
    spread = spread_of([same])
    full = far(same + 1, same, noise, spread)
    half = far(0.5 * same + 1, 0.5 * same, noise, spread)
    assert half > 1.2 * full


def test_changes_of_all_columns_add_up(rng):
    like = usual(rng.laplace(size=(512, 4)))
    same = rng.laplace(size=(N, 4))
    alone = far(same + np.eye(4)[0], same, like)
    assert far(same + np.array([1, -1, 1, -1]), same, like) > 1.5 * alone


def test_no_numbers_have_no_distance():
    empty = np.zeros((4, 0))
    assert far(empty, empty, Usual.of([empty])) == 0


def forgetful(data, rng):
    """Return two steps; the second one divides the first change by the records."""
    first = data[0] + rng.normal()
    return 1e12, first / len(data) ** 2 + rng.normal()


def distance_of(trace, pair):
    return output_distance(trace, pair, [], [], 0, 6)


ALONE = Pair([3.0], [0.0])
AMONG = Pair([3.0] + [1.0] * 9, [0.0] + [1.0] * 9)


def test_pairs_are_ordered_by_the_distance_of_their_outputs():
    trace = Trace(forgetful)
    assert farthest_pair(trace, [AMONG, ALONE], seed=0, runs=6, rounds=2) is ALONE
    assert 1.0 < distance_of(trace, ALONE) < 9.0
    assert distance_of(trace, AMONG) < 0.1


def test_pairs_with_equal_outputs_count_once():
    trace = Trace(forgetful)
    alike = [Pair(list(AMONG.data), list(AMONG.neighbour)) for _ in range(9)]
    assert farthest_pair(trace, [*alike, ALONE], seed=0, runs=6, rounds=2) is ALONE
    assert trace.runs == 2 * (2 * 12 + 8 * 2)


def test_noise_of_another_size_counts_and_outputs_without_numbers_do_not():
    loud = Pair(10.0, 1.0)
    scaled = Trace(lambda scale, rng: scale * rng.normal())
    assert distance_of(scaled, loud) > 1.5
    for other in (lambda scale, rng: "text", lambda scale, rng: [1.0] * int(scale)):
        assert distance_of(Trace(other), loud) == 0.0
