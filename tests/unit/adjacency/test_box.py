"""Neighbours among records of numbers."""

import numpy as np
import pytest

from auditdp import Box, Pair
from auditdp.adjacency.pair_search import smallest
from auditdp.errors import AdjacencyError


def test_the_corners_come_first():
    first = Box(0, 2, 3).pairs()[0]
    assert (first.data.tolist(), first.neighbour.tolist()) == ([2, 2, 2], [0, 0, 0])
    assert [pair.name for pair in Box(0, 2, 3).pairs()][-1].startswith("half up")


@pytest.mark.parametrize(
    ("pair", "shown"),
    [
        (Pair(np.array([0.5]), np.array([0.5])), "equal"),
        (Pair(np.array([0.5]), np.array([1.5])), "outside the box"),
        (Pair(np.array([0.5]), np.array([np.nan])), "outside the box"),
        (Pair(np.array([0.5, 0.5]), np.array([0.1])), "not such a vector"),
        (Pair(0.5, np.array([0.1])), "not such a vector"),
        (Pair(np.array(["a"]), np.array([0.1])), "not such a vector"),
    ],
    ids=str,
)
def test_what_is_no_pair_of_the_box_is_refused(pair, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Box(-1, 1).check(pair)


def test_both_vectors_have_one_length():
    with pytest.raises(AdjacencyError, match="equally many"):
        Box(0, 1, 2, shortest=1).check(Pair(np.zeros(1), np.ones(2)))


@pytest.mark.parametrize(
    "arguments",
    [(1, 1), (2, 1), (0, np.inf), (0, 1, 0), (0, 1, 2, 3), (0, 1, 2, 0)],
    ids=str,
)
def test_what_is_no_box_is_refused(arguments):
    with pytest.raises(AdjacencyError):
        Box(*arguments)


def test_a_search_shrinks_to_the_fewest_coordinates():
    found = smallest(
        Box(-1, 1, 4, shortest=1).strategy(),
        lambda pair: np.abs(pair.data - pair.neighbour).max() > 1,
        examples=200,
        seed=1,
    )
    assert found is not None
    assert len(found.data) == 1
