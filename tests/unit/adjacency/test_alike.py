"""Neighbours like a given pair have other records within the ranges of its data."""

from collections import defaultdict, namedtuple

import numpy as np
import pytest

from auditdp import Alike, Pair
from auditdp.adjacency.pair_search import first_values
from auditdp.adjacency.tabular import tabular
from auditdp.errors import AdjacencyError
from tests.unit.adjacency.toys import both, generated

FEATURES = np.array([[1.0, 0.2], [0.3, -0.8], [-0.5, 0.5], [0.1, 0.1]])
LABELS = np.array([1, 0, 1, 0])
WITHOUT_FIRST = Pair((FEATURES, LABELS), (FEATURES[1:], LABELS[1:]))
ROWS = [(0.5, 3), (-1.0, 1), (0.25, 2)]
REPLACED, ADDED = "one record replaced", "one record added or removed"


def replaced(data, place, record):
    return [*data[:place], record, *data[place + 1 :]]


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        (1.0, 2.0),
        FEATURES,
        (FEATURES, LABELS),
        {"x": FEATURES, "y": LABELS},
        [1, 2, 3],
        FEATURES.reshape(2, 2, 2),
    ],
)
def test_data_is_rebuilt_from_its_rows(data):
    read = tabular(data)
    assert repr(read.build(read.rows)) == repr(data)


@pytest.mark.parametrize(
    "data", ["text", 3.0, [], [object()], (FEATURES, LABELS[1:]), [[1.0], [1.0, 2.0]]]
)
def test_data_without_records_of_numbers_is_refused(data):
    with pytest.raises(AdjacencyError, match="records of numbers"):
        tabular(data)


def lengths(features):
    return np.linalg.norm(features, axis=1)


def test_neighbours_stay_within_the_ranges_of_the_data():
    for each in generated(Alike([WITHOUT_FIRST])):
        features, labels = each.data
        assert (len(labels), len(each.neighbour[1])) == (4, 3)
        assert labels.dtype == LABELS.dtype
        assert set(labels) <= {0, 1}
        assert (features >= FEATURES.min(0) - 1e-9).all()
        assert (features <= FEATURES.max(0) + 1e-9).all()
        assert lengths(features).max() <= lengths(FEATURES).max() * (1 + 1e-9)


def test_a_user_may_widen_the_ranges():
    pairs = generated(Alike([WITHOUT_FIRST], wider=10.0))
    longest = max(lengths(each.data[0]).max() for each in pairs)
    assert longest > 2 * lengths(FEATURES).max()
    with pytest.raises(AdjacencyError, match="wider=0"):
        Alike([WITHOUT_FIRST], wider=0.5)


@pytest.mark.parametrize(
    ("data", "neighbour", "name"),
    [
        (ROWS, ROWS[1:], ADDED),
        ([(1.0, 1)], [], ADDED),
        (ROWS, [*ROWS[:2], (-0.5, 3)], REPLACED),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], "put to 0"),
        ([1.0, 2.0, 3.0], [1.0, float("nan"), 3.0], "put to nan"),
        (["ab", "abc", "abcd"], ["ab", "abc", "ab"], REPLACED),
    ],
)
def test_the_change_is_derived_from_the_pair_and_kept_by_all_others(
    data, neighbour, name
):
    adjacency = Alike([Pair(data, neighbour)])
    assert name in adjacency.name
    for each in generated(adjacency):
        adjacency.check(each)
        assert name in Alike([each]).name


ARCS = np.array([[0, 1], [1, 2], [2, 3]])


@pytest.mark.parametrize(
    "pair",
    [
        Pair(ROWS, ROWS[2:]),
        Pair(ROWS, [(0.0, 0), (0.0, 1), ROWS[2]]),
        Pair([], []),
        Pair((FEATURES, ARCS), (FEATURES, ARCS[1:])),
    ],
)
def test_inputs_that_do_not_differ_in_one_record_are_refused(pair):
    with pytest.raises(AdjacencyError, match=r"Alike: |parts have"):
        Alike([pair])


def test_a_change_that_the_pair_does_not_show_cannot_be_named():
    with pytest.raises(AdjacencyError, match=f"'{ADDED}', got change='{REPLACED}'"):
        Alike([Pair(ROWS, ROWS[1:])], REPLACED)


FLIPPED = np.array([1, 1, 1, 0])
MOVED = np.array(replaced(FEATURES.tolist(), 1, [0.4, 0.5]))
USERS = [(k + np.arange(2.0 * k).reshape(k, 2), np.ones(k)) for k in (3, 1, 2)]
SHORTER = tuple(part[:2] for part in USERS[0])
# The two inputs, the parts of a record in which they differ, and a part in which they
# do not.
PARTIAL = [
    ((FEATURES, LABELS), (FEATURES, FLIPPED), "1 of 3 parts", lambda data: data[0]),
    ((FEATURES, LABELS), (MOVED, LABELS), "2 of 3 parts", lambda data: data[1]),
    (
        ROWS,
        replaced(ROWS, 2, (0.25, 1)),
        "1 of 2 parts",
        lambda data: [row[0] for row in data],
    ),
    (
        USERS,
        replaced(USERS, 0, SHORTER),
        "2 of 6 parts",
        lambda data: [each[0][0, 1] for each in data],
    ),
    (
        ["a b c", "d e", "f"],
        ["a b c", "d", "f"],
        "1 of 2 parts",
        lambda data: [text[0] for text in data],
    ),
]


@pytest.mark.parametrize(("data", "neighbour", "changed", "unchanged"), PARTIAL)
def test_parts_that_the_given_pair_leaves_alone_are_equal_in_all_pairs(
    data, neighbour, changed, unchanged
):
    def keeps(pair):
        return np.array_equal(*map(unchanged, both(pair)))

    adjacency = Alike([Pair(data, neighbour)])
    reading = f"neighbours searched: {changed} of {REPLACED}, the others unchanged"
    assert reading in adjacency.name
    assert [*adjacency.readings][1:] == [REPLACED]
    pairs = generated(adjacency)
    assert len(pairs) > 1
    assert all(map(keeps, pairs))
    wide = Alike([Pair(data, neighbour)], REPLACED)
    assert not all(map(keeps, wide.corner_cases()))


@pytest.mark.parametrize("part", [0, 1])
def test_a_record_of_zeros_may_be_absent_or_have_one_part_changed(part):
    """What is searched is within each of these readings."""
    features = np.array([[1, 0], [0, 1], [0, 0], [1, 1]])
    given = (features, np.array([1, 0, 0, 1]))
    other = [side.copy() for side in given]
    other[part].flat[-2 if part else 4] = 1
    adjacency = Alike([Pair(given, tuple(other))])
    reading = "1 of 3 parts of one record put to 0, the others unchanged"
    assert f"searched: {reading}" in adjacency.name
    for each in generated(adjacency):
        assert np.array_equal(each.data[1 - part], each.neighbour[1 - part])
        first, second = map(np.column_stack, both(each))
        assert (first != second).sum() == 1


Parts = namedtuple("Parts", ["x", "y"])
CONTAINERS = {
    "named tuple": Parts,
    "default dict": lambda x, y: defaultdict(list, x=x, y=y),
    "rows": lambda x, y: [Parts(*row) for row in zip(x[:, 0], y, strict=True)],
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_other_data_is_in_the_container_of_the_given_data(container):
    given = container(FEATURES, LABELS)
    pairs = generated(Alike([Pair(given, container(FEATURES[1:], LABELS[1:]))]), 3)
    for data, neighbour in map(both, pairs):
        assert type(data) is type(neighbour) is type(given)
        if isinstance(given, list):
            assert {Parts} == set(map(type, data))
        elif isinstance(given, dict):
            assert list(data) == ["x", "y"]
        else:
            assert len(data.x) == len(data.y) == 4


def test_one_kind_of_neighbours_changes_majorities():
    """Records by turns: one that is replaced decides each group of every fifth."""
    rows = [float(k) for k in range(-12, 13)]

    def votes(data):
        return sum(np.median(data[k::5]) > 0 for k in range(5))

    pairs = Alike([Pair(rows, replaced(rows, 7, 12.0))]).corner_cases()
    assert {2, 3} in [set(map(votes, both(pair))) for pair in pairs]


def test_records_of_any_kind_are_others_of_the_data():
    adjacency = Alike([Pair(USERS, USERS[:1] + USERS[2:])])
    assert adjacency.name.endswith(f"{ADDED}, within the data's ranges")
    largest, smallest, _ = USERS
    cases = [case.data for case in adjacency.corner_cases()]
    for case in cases:
        assert len(case) == 3
        assert {id(record) for record in case} <= {id(user) for user in USERS}
    assert any(case[1] is largest and case[0] is case[2] is smallest for case in cases)
    assert all(len(each.neighbour) == 2 for each in generated(adjacency))


TEXTS, TOPICS = ["good film", "bad plot", "loved zanzibar", "slow cast"], [1, 0, 1, 1]
# How texts and topics make the data, and how the data shows its texts.
OF_TEXTS = {
    "list": (lambda texts, topics: texts, list),
    "rows": (
        lambda texts, topics: list(zip(texts, topics, strict=True)),
        lambda data: [text for text, _ in data],
    ),
    "parts": (
        lambda texts, topics: (np.array(texts), np.eye(4)[topics]),
        lambda data: list(data[0]),
    ),
    "columns": (
        lambda texts, topics: {"text": texts, "topic": np.array(topics)},
        lambda data: data["text"],
    ),
}


@pytest.mark.parametrize(("make", "texts_of"), OF_TEXTS.values(), ids=OF_TEXTS)
def test_each_text_of_the_data_is_in_or_out_among_the_others(make, texts_of):
    whole = make(TEXTS, TOPICS)
    others = [TEXTS[0], *TEXTS[2:]]
    adjacency = Alike([Pair(whole, make(others, [TOPICS[0], *TOPICS[2:]]))])
    assert adjacency.name.endswith(f"{ADDED}, within the data's ranges")
    added = set()
    for pair in adjacency.corner_cases():
        if texts_of(pair.neighbour) == others:
            added.add(texts_of(pair.data)[1])
        if isinstance(whole, tuple):
            # A label belongs to its text.
            topics = [TOPICS[TEXTS.index(text)] for text in texts_of(pair.data)]
            assert np.array_equal(pair.data[1], np.eye(4)[topics])
    assert added == set(TEXTS)
    drawn = first_values(adjacency.strategy(), 30)
    assert all(type(pair.data) is type(whole) for pair in drawn)


def test_a_changed_record_is_not_shorter_than_the_shortest_and_all_others_may_be_zero():
    """Code that divides a record by its length is right if no record of the data is 0."""
    features = np.array([[1.0, 2.5], [-3.0, -4.0], [0.5, 1.0]])
    labels = np.array([0.5, -2.0, 1.0])
    given = Pair((features, labels), (features[1:], labels[1:]))
    pairs = generated(Alike([given]))
    changed = []
    for data, neighbour in map(both, pairs):
        new = ~np.isin(data[1], neighbour[1])
        changed += np.column_stack(data)[new].tolist()
    assert len(changed) > 20
    assert min(np.linalg.norm(row[:2]) for row in changed) >= 1.25**0.5 - 1e-9
    assert min(abs(row[2]) for row in changed) >= 0.5 - 1e-9
    assert any(not np.any(each.neighbour[0]) for each in pairs)
