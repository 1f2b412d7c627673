"""Gaussian noise that releases or entries share loses by its matrix."""

import math

import numpy as np
import pytest

from auditdp import GaussianDP, Pair, PureDP
from auditdp.betting.pairs.traced_search import looked_by_trace
from tests.unit.tracing.toys import kinds, pair_of

STEPS = 5
MOVED = np.zeros((STEPS, 2))
MOVED[1], MOVED[2] = (3.0, 4.0), (-1.0, 2.0)
BAND = np.eye(STEPS) + 0.5 * np.eye(STEPS, k=-1) + 0.25 * np.eye(STEPS, k=-2)


def released_by(matrix, moved=MOVED):
    """Compare releases whose noise is 2·matrix·z, on zeros and on the moves."""

    def code(data, rng):
        noise = [rng.normal(scale=2.0, size=2) for _ in matrix]
        released = []
        for value, row in zip(data, matrix, strict=True):
            used = [factor * z for factor, z in zip(row, noise, strict=False) if factor]
            released.append(value + sum(used))
        return released

    return pair_of(code, 0 * moved, moved, GaussianDP(1.0))


@pytest.mark.parametrize("matrix", [BAND, np.tri(STEPS) + np.eye(STEPS)])
def test_releases_lose_the_norm_of_the_moves_under_the_inverse_matrix(matrix):
    pair = released_by(matrix)
    expected = np.linalg.norm(np.linalg.solve(2 * matrix, MOVED))
    assert pair.level == pytest.approx(expected)
    assert kinds(pair) == ["loss"]


def test_a_singular_matrix_is_reuse_if_the_moves_lie_outside_its_range():
    twice = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    inside = np.array([[1.0, 0.0], [0.0, 3.0], [1.0, 3.0]])
    outside = np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 3.0]])
    assert released_by(twice, inside).level < math.inf
    assert kinds(released_by(twice, outside)).count("reuse") == 1


def test_releases_that_share_draws_through_a_third_are_counted_together():
    # The first two releases together reveal the noise of the third one.
    chain = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    moved = np.array([[0.0, 1.0], [0.0, 0.5], [0.0, 0.5]])
    expected = np.linalg.norm(np.linalg.solve(2 * chain[:2], moved[:2]))
    assert released_by(chain, moved).level == pytest.approx(expected)
    moved = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert "reuse" in kinds(released_by(chain, moved))


def by_tree(data, rng):
    """Return prefix sums with the noise of a tree, which is added to zeros."""
    nodes = {}
    released = []
    for t in range(1, 5):
        noise = np.zeros(2)
        start = 0
        for level in (4, 2, 1):
            if t & level:
                if (level, start) not in nodes:
                    nodes[level, start] = rng.normal(scale=2.0, size=2)
                noise += nodes[level, start]
                start += level
        released.append(data[:t].sum(0) + noise)
    return released


def test_a_tree_is_understood_from_the_first_pair_on():
    pair = Pair(MOVED[:4], MOVED[:4] * [[1], [0], [1], [1]])
    look = looked_by_trace(by_tree, GaussianDP(9.0), [pair], None, calls=400, seed=0)
    assert look.share == pytest.approx(5 * math.sqrt(2) / 2 / 9)
    assert look.covers


def in_two_terms(v, noise, other):
    return v + (noise + 0.5 * noise[[2, 0, 1]])


def with_one_for_all(v, noise, other):
    return v + (noise + other)


def joined_from_one(v, noise, other):
    return v + np.concatenate([noise[:1], noise[1:] + noise[:2]])


def in_two_releases(v, noise, other):
    return v[:2] + (noise[:2] + noise[1:]), v[2] + noise[2]


@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (in_two_terms, np.eye(3) + 0.5 * np.eye(3)[[2, 0, 1]]),
        (with_one_for_all, np.hstack([np.eye(3), np.ones((3, 1))])),
        (joined_from_one, np.eye(3) + np.eye(3, k=-1)),
        (in_two_releases, np.eye(3) + np.eye(3, k=1)),
    ],
)
def test_entries_that_share_draws_lose_by_their_covariance(function, matrix):
    def code(v, rng):
        return function(v, rng.normal(0, 2.0, 3), rng.normal(0, 2.0))

    moved = np.array([1.0, -0.5, 2.0])
    pair = pair_of(code, 0 * moved, moved, GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.is_bound
    squared = moved @ np.linalg.solve(4 * matrix @ matrix.T, moved)
    assert pair.level == pytest.approx(math.sqrt(squared))


def test_noise_of_too_many_entries_that_share_it_is_opaque():
    pair = pair_of(
        lambda v, rng: v + (rng.normal(size=2_000) + rng.normal()),
        np.zeros(2_000),
        np.ones(2_000),
        GaussianDP(9.0),
    )
    assert pair.extent == "part"
    assert not pair.is_bound
    assert not pair.proposes


def twice_in_other_orders(v, rng):
    noise = rng.laplace(size=2)
    return v + noise, v + noise[::-1]


def one_draw_at_two_entries(v, rng):
    return v + rng.laplace(0, 2.0, 2)[[1, 1]]


@pytest.mark.parametrize("function", [twice_in_other_orders, one_draw_at_two_entries])
def test_laplace_noise_that_is_used_twice_is_reuse(function):
    assert kinds(pair_of(function, np.zeros(2), np.array([0.0, 1.0]))) == ["reuse"]


def test_entries_that_share_a_draw_and_move_alike_lose_as_one_of_them():
    def code(v, rng):
        return np.array([v, 2 * v]) + np.array([1.0, 2.0]) * rng.laplace(0, 2.0, 1)

    pair = pair_of(code, claim=PureDP(1.0))
    assert pair.level == pytest.approx(0.5)
    assert not pair.findings


@pytest.mark.parametrize(
    ("moved", "level"), [([1.5, 0.0], 0.75), ([0.0, 1.5], math.inf)]
)
def test_an_entry_without_noise_loses_nothing_unless_it_moves(moved, level):
    def code(v, rng):
        return v + np.array([2.0, 0.0]) * rng.standard_normal(2)

    pair = pair_of(code, np.zeros(2), np.array(moved), GaussianDP(1.0))
    assert pair.level == pytest.approx(level)
    assert pair.proposes == math.isinf(level)
