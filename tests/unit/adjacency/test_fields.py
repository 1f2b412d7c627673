"""Records of named fields: which are neighbours, what is listed and generated."""

import dataclasses

import pytest
from hypothesis import strategies as st

from auditdp import Fields, Pair
from auditdp.errors import AdjacencyError

PERSON = {"age": st.integers(0, 1000), "city": st.text(max_size=3), "ok": st.booleans()}


@dataclasses.dataclass
class Person:
    age: int
    city: str
    ok: bool


def test_every_field_is_changed_from_end_to_end():
    low = {"age": 0, "city": "", "ok": False}
    one = Fields(PERSON, "one").pairs()
    assert [pair.neighbour for pair in one] == [low] * 3
    assert [pair.data for pair in one] == [
        {**low, "age": 1000},
        {**low, "city": "0 0"},
        {**low, "ok": True},
    ]
    assert [pair.data for pair in Fields(PERSON, "any").pairs()] == [
        {"age": 1000, "city": "0 0", "ok": True},
        {**low, "age": 1000},
    ]


def test_corner_cases_cross_the_limits_with_other_fields_at_both_ends():
    found = [
        (pair.data, pair.neighbour) for pair in Fields(PERSON, "one").corner_cases()
    ]
    for city, ok in (("", False), ("0 0", True)):
        assert (
            {"age": 128, "city": city, "ok": ok},
            {"age": 127, "city": city, "ok": ok},
        ) in found


@pytest.mark.parametrize(
    ("data", "neighbour", "shown"),
    [
        (
            {"age": 1, "city": "", "ok": True},
            {"age": 1, "city": "", "ok": True},
            "differ in 0 fields",
        ),
        (
            {"age": 1, "city": "", "ok": True},
            {"age": 2, "city": "a", "ok": True},
            "differ in 2 fields",
        ),
        ({"age": 1}, {"age": 2}, "data is not such a record"),
        (3, 4, "data is not such a record"),
    ],
)
def test_what_are_no_neighbours_is_refused(data, neighbour, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Fields(PERSON, "one").check(Pair(data, neighbour))


def test_objects_without_the_fields_are_refused():
    with pytest.raises(AdjacencyError, match="not such a record"):
        Fields({"missing": st.integers()}, "one", Person).check(
            Pair(Person(1, "", True), Person(2, "", True))
        )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (({}, "one"), "a Hypothesis strategy by name"),
        (({"age": 3}, "one"), "a Hypothesis strategy by name"),
        ((PERSON, "two"), "'one' or 'any', got 'two'"),
        ((PERSON, "one", 3), "expected into"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Fields(*arguments)


def test_the_convention_is_in_the_name():
    assert (
        Fields(PERSON, "one").name
        == "one field of a record changes, dict of age, city, ok"
    )
    assert (
        Fields(PERSON, "any", Person).name
        == "value LDP (any fields of a record change), Person of age, city, ok"
    )
