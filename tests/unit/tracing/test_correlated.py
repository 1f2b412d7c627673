"""Gaussian noise that releases share in part loses what its matrix says, and is no noise that is used twice."""

import math

import numpy as np
import pytest

from auditdp import GaussianDP
from auditdp.adjacency import Pair
from auditdp.betting.pairs.traced_search import looked_by_trace
from auditdp.tracing import Trace, compare

STEPS = 5
MOVED = np.zeros((STEPS, 2))
MOVED[1], MOVED[2] = (3.0, 4.0), (-1.0, 2.0)


def by_matrix(matrix):
    def code(data, rng):
        noise = [rng.normal(scale=2.0, size=2) for _ in matrix]
        return [
            data[t] + sum(row[k] * noise[k] for k in range(len(row)) if row[k])
            for t, row in enumerate(np.array(matrix))
        ]

    return code


def of(matrix, moved=MOVED):
    return compare(
        Trace(by_matrix(matrix)),
        0 * moved,
        moved,
        np.random.default_rng(0),
        claim=GaussianDP(1.0),
    )


BAND = np.eye(STEPS) + 0.5 * np.eye(STEPS, k=-1) + 0.25 * np.eye(STEPS, k=-2)


@pytest.mark.parametrize(
    "matrix", [BAND, np.tri(STEPS), np.tri(STEPS) + np.eye(STEPS), np.eye(STEPS)]
)
def test_shared_noise_loses_what_is_left_after_its_matrix_is_inverted(matrix):
    trace = of(matrix)
    expected = np.linalg.norm(np.linalg.solve(2 * matrix, MOVED))
    assert trace.level == pytest.approx(expected)
    assert [finding.kind for finding in trace.findings] == ["loss"]


def test_noise_of_which_nothing_is_left_is_used_again_where_the_value_moves_otherwise():
    twice = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    alike, apart = (
        np.array([[1.0, 0.0], [0.0, 3.0], [1.0, 3.0]]),
        np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 3.0]]),
    )
    assert of(twice, alike).level < math.inf
    assert [
        finding.kind for finding in of(twice, apart).findings if finding.kind == "reuse"
    ] == ["reuse"]


def test_what_shares_draws_with_what_shares_them_counts():
    chain = np.array(
        [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    )  # the first two show what the third has
    moved = np.array([[0.0, 1.0], [0.0, 0.5], [0.0, 0.5]])
    assert of(chain, moved).level == pytest.approx(
        np.linalg.norm(np.linalg.solve(2 * chain[:2], moved[:2]))
    )
    assert "reuse" in [
        finding.kind
        for finding in of(chain, 2 * moved - [[0, 1], [0, 0], [0, 0]]).findings
    ]


def by_tree(data, rng):
    """Prefix sums with noise of a tree, which is filled into zeros."""
    nodes, released = {}, []
    for t in range(1, 5):
        noise, start = np.zeros(2), 0
        for level in (4, 2, 1):
            if t & level:
                if (level, start) not in nodes:
                    nodes[level, start] = rng.normal(scale=2.0, size=2)
                noise += nodes[level, start]
                start += level
        released.append(data[:t].sum(0) + noise)
    return released


def test_noise_of_a_tree_that_is_filled_into_zeros_is_known_from_the_first_pair_on():
    pair = Pair(MOVED[:4], MOVED[:4] * [[1], [0], [1], [1]])
    look = looked_by_trace(by_tree, GaussianDP(9.0), [pair], None, calls=400, seed=0)
    assert look.share == pytest.approx(5 * math.sqrt(2) / 2 / 9)
    assert look.covers


MATRIX = np.array([[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
"""The covariance of the noise below is 4 A Aᵀ."""


def in_two_terms(v, rng):
    noise = rng.normal(0, 2.0, 3)
    return v + (noise + 0.5 * noise[[2, 0, 1]])


def with_one_for_all(v, rng):
    return v + (rng.normal(0, 2.0, 3) + rng.normal(0, 2.0))


def joined_from_one(v, rng):
    noise = rng.normal(0, 2.0, 3)
    return v + np.concatenate([noise[:1], noise[1:] + noise[:2]])


def in_two_releases(v, rng):
    noise = rng.normal(0, 2.0, 3)
    return v[:2] + (noise[:2] + noise[1:]), v[2] + noise[2]


SHARED = {
    in_two_terms: np.eye(3) + 0.5 * np.eye(3)[[2, 0, 1]],
    with_one_for_all: np.hstack([np.eye(3), np.ones((3, 1))]),
    joined_from_one: np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]]),
    in_two_releases: np.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 1]]),
}


@pytest.mark.parametrize("function", SHARED, ids=lambda function: function.__name__)
def test_noise_that_entries_share_loses_what_its_covariance_says(function):
    moved = np.array([1.0, -0.5, 2.0])
    pair = compare(
        Trace(function),
        0 * moved,
        moved,
        np.random.default_rng(0),
        claim=GaussianDP(9.0),
    )
    covariance = 4 * SHARED[function] @ SHARED[function].T
    assert (pair.extent, pair.is_bound) == ("full", True)
    assert pair.level == pytest.approx(
        math.sqrt(moved @ np.linalg.solve(covariance, moved))
    )


def test_noise_of_too_many_entries_that_share_it_is_opaque():
    def code(v, rng):
        return v + (rng.normal(size=2_000) + rng.normal())

    pair = compare(
        Trace(code),
        np.zeros(2_000),
        np.ones(2_000),
        np.random.default_rng(0),
        claim=GaussianDP(9.0),
    )
    assert (pair.extent, pair.is_bound, pair.proposes) == ("part", False, False)


def test_noise_that_is_used_again_at_other_entries_does_not_hide_the_same_move():
    def code(v, rng):
        noise = rng.laplace(size=2)
        return v + noise, v + noise[::-1]

    pair = compare(
        Trace(code), np.zeros(2), np.array([0.0, 1.0]), np.random.default_rng(0)
    )
    assert [finding.kind for finding in pair.findings] == ["reuse"]
