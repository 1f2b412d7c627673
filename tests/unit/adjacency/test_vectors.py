"""Neighbours among vectors of query answers."""

import numpy as np
import pytest
from hypothesis import find

from auditdp import Pair, QueryAnswers
from auditdp.errors import AdjacencyError


def pair(a, b):
    return Pair(np.array(a, float), np.array(b, float))


def test_patterns_are_those_of_statdp():
    """Ding et al. (2018), in units of the sensitivity."""
    found = {
        p.name: (p.data.tolist(), p.neighbour.tolist())
        for p in QueryAnswers(5, "all").pairs()
    }
    assert found == {
        "one below": ([1, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
        "one above": ([1, 1, 1, 1, 1], [2, 1, 1, 1, 1]),
        "one above, rest below": ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0]),
        "one below, rest above": ([1, 1, 1, 1, 1], [0, 2, 2, 2, 2]),
        "half above, half below": ([1, 1, 1, 1, 1], [2, 2, 0, 0, 0]),
        "all above": ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        "all below": ([1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        "halves swapped": ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
    }
    assert [p.name for p in QueryAnswers(5).pairs()] == ["one below", "one above"]
    assert [
        (p.data.tolist(), p.neighbour.tolist()) for p in QueryAnswers(1, "all").pairs()
    ] == [
        ([1], [0]),
        ([1], [2]),
    ]


def test_patterns_scale_with_the_sensitivity_and_stay_in_the_domain():
    assert QueryAnswers(2, sensitivity=3).pairs()[0].data.tolist() == [3, 3]
    assert [p.name for p in QueryAnswers(2, largest=1).pairs()] == ["one below"]


@pytest.mark.dear
@pytest.mark.parametrize(
    ("adjacency", "simplest"),
    [
        (QueryAnswers(4), ([1, 0, 0, 0], [0, 0, 0, 0])),
        (QueryAnswers(4, "all"), ([1, 0, 0, 0], [0, 0, 0, 0])),
        (QueryAnswers(6, "all", shortest=2), ([1, 0], [0, 0])),
        (QueryAnswers(2, largest=1), ([1, 0], [0, 0])),
    ],
)
def test_the_simplest_pair_has_zeros_and_one_change(adjacency, simplest):
    found = find(adjacency.strategy(), lambda _: True)
    assert (found.data.tolist(), found.neighbour.tolist()) == simplest


def test_shrinking_finds_the_fewest_answers_that_matter():
    found = find(
        QueryAnswers(8, "all", shortest=1).strategy(),
        lambda p: (p.data != p.neighbour).sum() >= 3,
    )
    assert (np.abs(found.data).tolist(), found.neighbour.tolist()) == (
        [1, 1, 1],
        [0, 0, 0],
    )


@pytest.mark.parametrize(
    ("adjacency", "bad", "message"),
    [
        (QueryAnswers(2), pair([1, 1], [1, 1]), "differ in 0 answers"),
        (
            QueryAnswers(2),
            pair([1, 1], [0, 0]),
            "differ in 2 answers, expected exactly one",
        ),
        (QueryAnswers(2), pair([1, 1], [3, 1]), "changes by 2"),
        (QueryAnswers(2, "all"), pair([1, 1], [1, 1]), "at least one"),
        (QueryAnswers(2, "all"), pair([1, 1], [2, 2.5]), "changes by 1.5"),
        (QueryAnswers(2), pair([1, 1, 1], [1, 1, 0]), "not such a vector"),
        (QueryAnswers(3, shortest=2), pair([1, 1, 1], [1, 0]), "3 and 2 answers"),
        (QueryAnswers(2), pair([1, np.nan], [1, 1]), "not finite"),
        (QueryAnswers(2), pair([[1, 1]], [[0, 1]]), "not such a vector"),
        (QueryAnswers(2), Pair(["a", "b"], ["a", "c"]), "not such a vector"),
        (QueryAnswers(2, largest=1), pair([2, 1], [1, 1]), "other than these counts"),
        (QueryAnswers(2, largest=1), pair([0.5, 1], [1, 1]), "other than these counts"),
    ],
)
def test_pairs_that_are_not_neighbours_are_refused(adjacency, bad, message):
    with pytest.raises(AdjacencyError, match=message):
        adjacency.check(bad)


@pytest.mark.parametrize(
    "arguments",
    [
        {"length": 0},
        {"length": 2.5},
        {"length": 2, "change": "some"},
        {"length": 2, "sensitivity": 0.0},
        {"length": 2, "sensitivity": np.inf},
        {"length": 2, "shortest": 3},
        {"length": 2, "largest": 0},
    ],
)
def test_arguments_are_checked(arguments):
    with pytest.raises(AdjacencyError, match="QueryAnswers: expected"):
        QueryAnswers(**arguments)


def test_the_name_says_what_may_change():
    assert QueryAnswers(1).name == "1 query answer, one answer changes by at most 1"
    assert QueryAnswers(5, "all", largest=2).name == (
        "5 query answers, all answers may change by at most 1, counts 0..2"
    )
