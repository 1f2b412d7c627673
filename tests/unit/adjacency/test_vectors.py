"""Query answers and boxes: which patterns are listed, and to what a search shrinks."""

import pytest
from hypothesis import find

from auditdp import Box, QueryAnswers
from tests.unit.adjacency.toys import lists, vectors

STATDP = {
    "one below": "1 1 1 1 1 | 0 1 1 1 1",
    "one above": "1 1 1 1 1 | 2 1 1 1 1",
    "one above, rest below": "1 1 1 1 1 | 2 0 0 0 0",
    "one below, rest above": "1 1 1 1 1 | 0 2 2 2 2",
    "half above, half below": "1 1 1 1 1 | 2 2 0 0 0",
    "all above": "1 1 1 1 1 | 2 2 2 2 2",
    "all below": "1 1 1 1 1 | 0 0 0 0 0",
    "halves swapped": "1 1 0 0 0 | 0 0 1 1 1",
}


def listed(adjacency):
    return {pair.name: lists(pair) for pair in adjacency.pairs()}


def test_patterns_are_those_of_statdp():
    """Ding et al. (2018), in units of the sensitivity."""
    expected = {name: lists(vectors(text)) for name, text in STATDP.items()}
    assert listed(QueryAnswers(5, "all")) == expected
    assert list(listed(QueryAnswers(5))) == ["one below", "one above"]
    one_answer = list(listed(QueryAnswers(1, "all")).values())
    assert one_answer == [([1], [0]), ([1], [2])]


def test_patterns_scale_with_the_sensitivity_and_stay_in_the_domain():
    assert listed(QueryAnswers(2, sensitivity=3))["one below"] == ([3, 3], [0, 3])
    assert list(listed(QueryAnswers(2, largest=1))) == ["one below"]
    box = listed(Box(0, 2, 3))
    assert next(iter(box.values())) == ([2, 2, 2], [0, 0, 0])
    assert [*box][-1].startswith("half up")


@pytest.mark.dear
@pytest.mark.parametrize(
    ("adjacency", "simplest"),
    [
        (QueryAnswers(6, "all", shortest=2), "1 0 | 0 0"),
        (QueryAnswers(4), "1 0 0 0 | 0 0 0 0"),
    ],
)
def test_the_simplest_pair_has_zeros_and_one_change(adjacency, simplest):
    found = find(adjacency.strategy(), lambda pair: True)
    assert lists(found) == lists(vectors(simplest))
