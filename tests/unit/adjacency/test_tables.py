"""Populations and records of named fields: which pairs are listed."""

from auditdp import Fields, Records
from tests.unit.adjacency.toys import FIELDS, both, lists

LOW = {"age": 0, "city": "", "ok": False}
HIGH = {"age": 1000, "city": "0 0", "ok": True}


def test_every_field_is_changed_from_end_to_end():
    one = Fields(FIELDS, "one").pairs()
    changed = [LOW | {name: value} for name, value in HIGH.items()]
    assert list(map(both, one)) == [(data, LOW) for data in changed]
    any_fields = Fields(FIELDS, "any").pairs()
    assert [pair.data for pair in any_fields] == [HIGH, changed[0]]


def test_corner_cases_cross_the_limits_with_other_fields_at_both_ends():
    found = list(map(both, Fields(FIELDS, "one").corner_cases()))
    for base in (LOW, HIGH):
        assert (base | {"age": 128}, base | {"age": 127}) in found


def test_a_population_of_one_text_is_listed_first_and_loses_no_letter():
    first = Records(2, ("a", "bc")).pairs()[0]
    assert lists(first) == ([["bc"], ["bc"]], [["bc"], ["a"]])


def test_a_corner_case_of_texts_differs_in_the_ends():
    records = Records(2, ("a", "b", "c"))
    found = list(map(lists, records.corner_cases()))
    assert ([["a"], ["c"]], [["c"], ["c"]]) in found
