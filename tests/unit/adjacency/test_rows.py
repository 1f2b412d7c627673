"""Collections of rows: the listed pairs, the first corner cases, the container."""

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import Pair, Rows
from tests.unit.adjacency.toys import NUMBER, PERSON, both


def test_the_listed_pairs_change_the_only_row_a_duplicate_and_the_last_first_and_middle_one():
    pairs = list(map(both, Rows(NUMBER, "add/remove").pairs()))
    assert pairs[0] == ([1000], [])
    assert pairs[1] == ([1000] * 3, [1000] * 2)
    assert pairs[2] == ([0, 0, 1000], [0, 0])
    for (longer, shorter), place in zip(pairs[3:], (-1, 0, 3), strict=True):
        assert longer.pop(place) == 1000
        assert longer == shorter
    replaced = list(map(both, Rows(NUMBER, "replace").pairs()))
    assert replaced[:2] == [([1000], [0]), ([1000, 1000, 0], [1000] * 3)]


@pytest.mark.parametrize("change", ["add/remove", "replace"])
@pytest.mark.parametrize("limit", [2**8, 2**15, 2**16])
def test_a_corner_case_takes_the_sum_across_a_limit(change, limit):
    pairs = Rows(NUMBER, change, most=100).corner_cases()
    sums = [sorted((sum(pair.data), sum(pair.neighbour))) for pair in pairs]
    assert any(low < limit <= high for low, high in sums)


def test_corner_cases_have_the_ends_the_limits_and_bytes_full_of_rows():
    pairs = [both(pair) for pair in Rows(NUMBER, "add/remove", most=300).corner_cases()]
    for value in (0, 1, 127, 128, 255, 256, 999, 1000):
        assert ([value], []) in pairs
    lengths = {len(data) for data, _ in pairs}
    assert {1, 2, 128, 129, 256, 257, 299, 300} <= lengths


TICKS = st.fixed_dictionaries(
    {"user": st.sampled_from("ab"), "page": st.sampled_from("xy")}
)
THREE_FLOATS = Rows(st.floats(), "add/remove", most=3)
NUMBERS, ITEMS = (Rows(each, "add/remove") for each in (NUMBER, st.lists(NUMBER)))


def breaks_a_tie(a, b):
    half = len(b) // 2
    return len(set(b)) == 2 and b.count(b[0]) == b.count(b[-1]) == half


BLIND_SPOTS = {
    "fields of the changed row that are equal": (
        Rows(TICKS, "replace"),
        lambda a, b: {"user": "b", "page": "x"} in (a[0], b[0]),
    ),
    "no number": (
        THREE_FLOATS,
        lambda a, b: np.isnan(a).any() and not np.isnan(b).any(),
    ),
    "a list of many elements": (ITEMS, lambda a, b: len(a[0]) >= 10 and not b),
    "copies from one to two": (NUMBERS, lambda a, b: len(b) == 1 and a == b * 2),
    "a tie that is broken": (NUMBERS, breaks_a_tie),
    "a row that has nothing, first": (
        ITEMS,
        lambda a, b: a[0] == [] and len(a) > len(b) > 0,
    ),
}


@pytest.mark.parametrize(("rows", "shown"), BLIND_SPOTS.values(), ids=BLIND_SPOTS)
def test_frequent_mistakes_of_code_are_among_the_first_corner_cases(rows, shown):
    """A search that affords few pairs looks at these."""
    assert any(shown(*both(pair)) for pair in rows.corner_cases()[:40])


def test_rows_that_look_alike_are_distinguished():
    nan = float("nan")
    replaced = Rows(NUMBER, "replace")
    replaced.check(Pair([nan, 1], [nan, 2]))
    replaced.check(Pair([0.0], [-0.0]))
    Rows(NUMBER, "add/remove", into=dict).check(Pair({"a": 1, "b": 2}, {"b": 2}))
    Rows(NUMBER, "replace", into=dict).check(Pair({"a": 1, "b": 2}, {"b": 3, "a": 1}))


def test_tables_have_the_types_of_their_columns_and_lose_no_text():
    data, neighbour = both(Rows(PERSON, "add/remove", into="table").pairs()[0])
    columns = [("age", "i8"), ("city", "O"), ("pay", "f8")]
    assert data.dtype == neighbour.dtype == columns
    assert (len(data), len(neighbour)) == (1, 0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_libraries(library):
    pytest.importorskip(library)
    rows = Rows(PERSON, "add/remove", into=library)
    assert len(rows.corner_cases()) > 10
    for pair in [*rows.pairs(), *rows.corner_cases()[:5]]:
        rows.check(pair)
        for table in both(pair):
            assert list(table.columns) == ["age", "city", "pay"]
            assert list(table.dtypes) == list(pair.data.dtypes)
    first = "fewest: 1 row {'age': [120], 'city': ['C'], 'pay'"
    assert str(rows.pairs()[0]).startswith(first)
