"""Distances of a few outputs: gross differences are large, and chance is small."""

import numpy as np
import pytest

from auditdp.betting.pairs.distances import Usual, distance, spread_of

N = 4


def usual(outputs):
    """The usual outputs of sixteen inputs with the same law."""
    return Usual.of(np.split(outputs, 16))


def normal(rng, width=1):
    return rng.normal(size=(N, width))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def noise(rng):
    return usual(rng.normal(size=(512, 1)))


def far(one, zero, like):
    return distance(one, zero, like, like.spread)[0]


def test_chance_alone_is_near(rng, noise):
    assert (
        np.quantile([far(normal(rng), normal(rng), noise) for _ in range(300)], 0.99)
        < 3
    )


def test_gross_differences_are_far(rng, noise):
    few = normal(rng)
    assert far(few + 50, few, noise) > 20
    assert far(few, 0 * few, noise) == np.inf  # no noise on one side
    assert far(0 * few, 0 * few + 1, noise) == np.inf  # nor on the other
    assert far(few, 1e-3 * few, noise) > 10
    assert far(np.full((N, 1), np.nan), few, noise) == np.inf
    assert far(few, few, noise) == 0


def test_outputs_that_repeat_may_be_equal_by_chance(rng):
    bits = usual(rng.integers(0, 2, (512, 1)))
    assert far(np.ones((N, 1)), np.zeros((N, 1)), bits) < 5
    assert far(np.ones((N, 1)), np.ones((N, 1)), bits) == 0


def test_with_the_same_randomness_the_largest_change_of_a_query_has_the_largest_distance(
    rng,
):
    """Each of six columns has chance deviations of its own, which all inputs share."""
    like, same = usual(rng.laplace(size=(2048, 6))), rng.laplace(size=(N, 6))
    spread = spread_of([same, same + 3])
    changes = [
        distance(same + shift * np.eye(6)[k], same, like, spread)
        for k in range(6)
        for shift in (1.0, 1.4)
    ]
    assert [where for _, where in changes] == [k for k in range(6) for _ in range(2)]
    assert max(d for d, _ in changes[::2]) < min(d for d, _ in changes[1::2])


def test_less_noise_makes_a_larger_distance(rng, noise):
    same = normal(rng)
    spread = spread_of([same])
    full, half = (
        distance(scale * same + 1, scale * same, noise, spread)[0]
        for scale in (1.0, 0.5)
    )
    assert half > 1.2 * full


def test_changes_of_all_columns_add_up(rng):
    like, same = usual(rng.laplace(size=(512, 4))), rng.laplace(size=(N, 4))
    one, alternating = np.eye(4)[0], np.array([1, -1, 1, -1])
    assert far(same + alternating, same, like) > 1.5 * far(same + one, same, like)


def test_no_numbers_are_no_distance():
    empty = Usual.of([np.zeros((4, 0))])
    assert distance(np.zeros((4, 0)), np.zeros((4, 0)), empty, empty.spread)[0] == 0
