"""Neighbours among populations of records."""

import numpy as np
import pytest

from auditdp import Pair, Records
from auditdp.adjacency.adjacency import offers
from auditdp.errors import AdjacencyError


@pytest.mark.parametrize(
    ("data", "neighbour", "shown"),
    [
        (np.zeros((2, 1)), np.zeros((2, 1)), "0 records"),
        (np.zeros((2, 1)), np.ones((2, 1)), "2 records"),
        (np.zeros((2, 1)), np.full((2, 1), 0.5), "not such a population"),
        (np.zeros((1, 1)), np.ones((1, 1)), "not such a population"),
    ],
)
def test_what_is_no_pair_is_refused(data, neighbour, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Records(2, (0.0, 1.0)).check(Pair(data, neighbour))


def test_records_of_texts_are_named_listed_and_enumerated():
    records = Records(2, ("a", "bc"))
    assert records.name == "one of 2 records replaced (1 feature of a, bc)"
    first = records.pairs()[0]
    assert (first.data.tolist(), first.neighbour.tolist()) == (
        [["bc"], ["bc"]],
        [["bc"], ["a"]],
    )
    with pytest.raises(AdjacencyError, match="not such a population"):
        records.check(Pair(np.array([["a"], ["b"]]), np.array([["a"], ["a"]])))


@pytest.mark.parametrize(
    "values", [(None, "b"), (0, "b"), ((0, 1), (1, 0)), ("b", 1.0)], ids=str
)
def test_records_of_anything_else_are_refused_with_the_remedy(values):
    with pytest.raises(
        AdjacencyError, match=r"all numbers or all texts, got .*Rows\(strategy"
    ):
        Records(2, values)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, (0.0, 1.0)),
        (1, (0.0,)),
        (1, (1.0, 0.0)),
        (1, (0.0, 0.0)),
        (1, (0.0, 1.0), 0),
    ],
)
def test_what_is_no_population_is_refused(arguments):
    with pytest.raises(AdjacencyError, match="expected"):
        Records(*arguments)


def test_records_have_corner_cases_and_nothing_wide():
    records = Records(3, (0.0, 1.0), 2)
    assert offers(records).wide is None
    assert len(offers(records).corner_cases) > 3
