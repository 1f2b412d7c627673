"""Collections of rows: which are neighbours, what is listed and generated, in every container."""

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import Pair, Rows
from auditdp.errors import AdjacencyError

PERSON = st.fixed_dictionaries(
    {
        "age": st.integers(0, 120),
        "city": st.sampled_from("ABC"),
        "pay": st.floats(0, 1e5),
    }
)
NUMBER = st.integers(0, 1000)


def both(pair):
    return pair.data, pair.neighbour


def test_the_listed_pairs_change_the_only_row_a_duplicate_and_the_last_first_and_middle_one():
    only, duplicates, unlike, last, first, middle = map(
        both, Rows(NUMBER, "add/remove").pairs()
    )
    assert only == ([1000], [])
    assert duplicates == ([1000] * 3, [1000] * 2)
    assert unlike == ([0, 0, 1000], [0, 0])
    assert (last[0][:-1], first[0][1:]) == (last[1], first[1])
    assert (last[0][-1], first[0][0], middle[0][3]) == (1000,) * 3
    assert middle[0][:3] + middle[0][4:] == middle[1]
    only, duplicates, *_ = map(both, Rows(NUMBER, "replace").pairs())
    assert only == ([1000], [0])
    assert duplicates == ([1000, 1000, 0], [1000] * 3)


@pytest.mark.parametrize("change", ["add/remove", "replace"])
@pytest.mark.parametrize("limit", [2**8, 2**15, 2**16])
def test_a_corner_case_takes_the_sum_across_a_limit(change, limit):
    sums = [
        [sum(side) for side in both(pair)]
        for pair in Rows(NUMBER, change, most=100).corner_cases()
    ]
    assert any(min(two) < limit <= max(two) for two in sums)


def test_corner_cases_have_the_extremes_the_ends_the_limits_and_bytes_full_of_rows():
    pairs = [both(pair) for pair in Rows(NUMBER, "add/remove", most=300).corner_cases()]
    for value in (0, 1, 127, 128, 255, 256, 999, 1000):
        assert ([value], []) in pairs
    lengths = {len(data) for data, _ in pairs}
    assert {1, 2, 128, 129, 256, 257, 299, 300} <= lengths
    odd = [
        data[0]
        for data, _ in map(both, Rows(st.floats(), "add/remove", most=1).corner_cases())
    ]
    assert any(np.isnan(odd))
    assert {np.inf, -np.inf, 5e-324, 2.0**31} <= set(odd)
    assert any(x == 0 and np.signbit(x) for x in odd)


TICKS = st.fixed_dictionaries(
    {"user": st.sampled_from("ab"), "page": st.sampled_from("xy")}
)
BLIND_SPOTS = {
    "fields of the changed row that are equal": (
        Rows(TICKS, "replace"),
        lambda a, b: {"user": "b", "page": "x"} in (a[0], b[0]),
    ),
    "no number": (
        Rows(st.floats(), "add/remove", most=3),
        lambda a, b: any(map(np.isnan, a)) and not any(map(np.isnan, b)),
    ),
    "infinity": (
        Rows(st.floats(), "add/remove", most=3),
        lambda a, b: np.inf in a and np.inf not in b,
    ),
    "a list of many elements": (
        Rows(st.lists(NUMBER), "add/remove"),
        lambda a, b: len(a[0]) >= 10 and len(b) == 0,
    ),
    "a set of all elements": (
        Rows(st.frozensets(st.sampled_from("abc")), "add/remove"),
        lambda a, b: len(b) == 3 and max(map(len, b)) == 1 and frozenset("abc") in a,
    ),
    "copies from one to two": (
        Rows(NUMBER, "add/remove"),
        lambda a, b: len(b) == 1 and a == b * 2,
    ),
    "a tie that is broken": (
        Rows(NUMBER, "add/remove"),
        lambda a, b: (
            len(set(b)) == 2 and b.count(b[0]) == b.count(b[-1]) == len(b) // 2
        ),
    ),
    "a row that has nothing, first": (
        Rows(st.lists(NUMBER), "add/remove"),
        lambda a, b: a[0] == [] and len(a) > len(b) > 0,
    ),
}


@pytest.mark.parametrize(("rows", "shown"), BLIND_SPOTS.values(), ids=BLIND_SPOTS)
def test_what_code_often_gets_wrong_is_among_the_first_corner_cases(rows, shown):
    """A search that affords few pairs looks at these."""
    assert any(shown(pair.data, pair.neighbour) for pair in rows.corner_cases()[:40])


def test_the_convention_is_in_the_name():
    assert Rows(NUMBER, "add/remove").name == (
        "one row added or removed (0 to 20 rows of integers(min_value=0, max_value=1000), list)"
    )
    assert Rows(
        st.text(), "replace", least=3, most=3, into=tuple, called="word"
    ).name == ("one word replaced (3 words of text(), tuple)")
    assert Rows(PERSON, "replace", into="pandas").name.startswith(
        "one row replaced (1 to 20 rows of fixed_dict"
    )
    assert len(Rows(PERSON, "replace").name) < 120


LISTS = Rows(NUMBER, "add/remove", most=4), Rows(NUMBER, "replace", most=4)
NOT_NEIGHBOURS = [
    (LISTS[0], [1, 2], [1, 2], "2 and 2 rows, expected one more or less"),
    (LISTS[0], [1, 2, 3], [1, 4], "differ in 2 rows"),
    (LISTS[0], [1, 2, 3], [2, 1], "differ in 2 rows"),
    (LISTS[0], [1], (), "neighbour is not such a list"),
    (LISTS[0], [1] * 5, [1] * 4, "data is not such a list"),
    (LISTS[1], [1], [], "1 and 0 rows, expected equally many"),
    (LISTS[1], [1, 2], [1, 2], "differ in 0 rows"),
    (LISTS[1], [1, 2], [2, 1], "differ in 2 rows"),
    (Rows(NUMBER, "replace", into=dict), {0: 1}, {1: 1}, "differ in 2 rows"),
    (Rows(NUMBER, "add/remove", into=dict), {0: 1}, {0: 2, 1: 1}, "differ in 2 rows"),
    (
        Rows(PERSON, "replace", into="table"),
        np.zeros(2),
        np.ones(2),
        "data is not such a table",
    ),
    (
        Rows(NUMBER, "replace", into=np.ndarray),
        np.array(3),
        np.array(4),
        "not such a ndarray",
    ),
    (Rows(PERSON, "replace", into="pandas"), [1], [2], "not such a pandas"),
]


@pytest.mark.parametrize(("rows", "data", "neighbour", "shown"), NOT_NEIGHBOURS)
def test_what_are_no_neighbours_is_refused(rows, data, neighbour, shown):
    with pytest.raises(AdjacencyError, match=shown):
        rows.check(Pair(data, neighbour))


def test_rows_that_look_alike_are_told_apart():
    nan = float("nan")
    LISTS[1].check(Pair([nan, 1], [nan, 2]))
    LISTS[1].check(Pair([0.0], [-0.0]))
    Rows(NUMBER, "add/remove", into=dict).check(Pair({"a": 1, "b": 2}, {"b": 2}))
    Rows(NUMBER, "replace", into=dict).check(Pair({"a": 1, "b": 2}, {"b": 3, "a": 1}))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((3, "replace"), "a Hypothesis strategy such as .* got 3"),
        ((NUMBER, "remove"), "change='add/remove' or 'replace', got 'remove'"),
        ((NUMBER, "replace", 3, 2), "least <= most"),
        ((NUMBER, "replace", 0, 0), "room for a change"),
        ((NUMBER, "add/remove", 2, 2), "room for a change"),
        ((NUMBER, "replace", -1), "least <= most"),
        (
            (NUMBER, "replace", 0, 3, set),
            "one of list, tuple, str, dict, ndarray, table, pandas, polars, got <class 'set'>",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Rows(*arguments)


def test_the_convention_has_to_be_stated():
    with pytest.raises(TypeError, match="change"):
        Rows(NUMBER)


def test_rows_that_make_no_table_are_refused():
    with pytest.raises(
        AdjacencyError, match=r"cannot make a table|no dicts of the same keys"
    ):
        Rows(NUMBER, "replace", into="table").pairs()
    with pytest.raises(AdjacencyError, match="generates something"):
        Rows(st.nothing(), "replace").pairs()


def test_tables_have_the_types_of_their_columns_and_lose_no_text():
    data, neighbour = both(Rows(PERSON, "add/remove", into="table").pairs()[0])
    assert (
        data.dtype == neighbour.dtype == [("age", "i8"), ("city", "O"), ("pay", "f8")]
    )
    assert (len(data), len(neighbour)) == (1, 0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_libraries(library):
    pytest.importorskip(library)
    rows = Rows(PERSON, "add/remove", into=library)
    assert len(rows.corner_cases()) > 10
    for pair in [*rows.pairs(), *rows.corner_cases()[:5]]:
        rows.check(pair)
        assert (
            list(pair.data.columns)
            == list(pair.neighbour.columns)
            == ["age", "city", "pay"]
        )
        assert list(pair.data.dtypes) == list(pair.neighbour.dtypes)
    assert str(rows.pairs()[0]).startswith(
        "fewest: 1 row {'age': [120], 'city': ['C'], 'pay'"
    )


def test_long_rows_are_shown_by_how_often_they_follow_each_other_and_where_they_differ():
    pair = Pair([1000] * 33, [1000] * 32)
    assert str(pair) == "33 items: 33 × 1000 | 32 items: 32 × 1000"
    long = list(range(100, 150))
    assert str(Pair([*long, 7], [*long, 8])).endswith("… ([50] is 7 | 8)")
    assert len(str(Pair([*long, 7], [*long, 8]))) < 150
