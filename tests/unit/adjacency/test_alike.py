"""Neighbours like a pair that is given."""

from collections import namedtuple

import numpy as np
import pytest

from auditdp.adjacency import Alike, Pair
from auditdp.adjacency.pair_search import first_values
from auditdp.adjacency.tabular import tabular
from auditdp.errors import AdjacencyError

FEATURES = np.array([[1.0, 0.2], [0.3, -0.8], [-0.5, 0.5], [0.1, 0.1]])
LABELS = np.array([1, 0, 1, 0])
ROWS = [(0.5, 3), (-1.0, 1), (0.25, 2)]


def made(adjacency):
    return [*adjacency.corner_cases(), *first_values(adjacency.strategy(), 30)]


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
def test_data_is_made_of_its_rows_again(data):
    read = tabular(data)
    again = read.build(read.rows)
    assert type(again) is type(data)
    assert repr(again) == repr(data)


@pytest.mark.parametrize(
    "data", ["text", 3.0, [], [object()], (FEATURES, LABELS[1:]), [[1.0], [1.0, 2.0]]]
)
def test_what_has_no_records_of_numbers_is_refused(data):
    with pytest.raises(AdjacencyError, match="records of numbers"):
        tabular(data)


def test_neighbours_stay_within_what_the_data_shows():
    pair = Pair((FEATURES, LABELS), (FEATURES[1:], LABELS[1:]))
    longest = np.linalg.norm(FEATURES, axis=1).max()
    for each in made(Alike([pair])):
        features, labels = each.data
        assert (len(labels), len(each.neighbour[1]), labels.dtype) == (
            4,
            3,
            LABELS.dtype,
        )
        assert set(labels) <= {0, 1}
        assert (features >= FEATURES.min(0) - 1e-9).all()
        assert (features <= FEATURES.max(0) + 1e-9).all()
        assert np.linalg.norm(features, axis=1).max() <= longest * (1 + 1e-9)


def test_a_user_may_have_them_wider():
    pair = Pair((FEATURES, LABELS), (FEATURES[1:], LABELS[1:]))
    lengths = [
        np.linalg.norm(each.data[0], axis=1).max()
        for each in made(Alike([pair], wider=10.0))
    ]
    assert max(lengths) > 2 * np.linalg.norm(FEATURES, axis=1).max()
    with pytest.raises(AdjacencyError, match="wider=0"):
        Alike([pair], wider=0.5)


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (Pair(ROWS, ROWS[1:]), "added or removed"),
        (Pair([(1.0, 1)], []), "added or removed"),
        (Pair(ROWS, [*ROWS[:2], (-0.5, 3)]), "one record replaced"),
        (Pair([1.0, 2.0, 3.0], [1.0, 0.0, 3.0]), "put to 0"),
        (Pair([1.0, 2.0, 3.0], [1.0, float("nan"), 3.0]), "put to nan"),
    ],
)
def test_how_neighbours_differ_is_read_off_the_pair(pair, name):
    adjacency = Alike([pair])
    assert name in adjacency.name
    for each in made(adjacency):
        adjacency.check(each)
        assert name in Alike([each]).name


@pytest.mark.parametrize(
    "pair",
    [Pair(ROWS, ROWS[2:]), Pair(ROWS, [(0.0, 0), (0.0, 1), ROWS[2]]), Pair([], [])],
)
def test_inputs_that_do_not_differ_in_one_record_are_refused(pair):
    with pytest.raises(AdjacencyError, match="Alike: "):
        Alike([pair])


def edited(data, place, record):
    return [*data[:place], record, *data[place + 1 :]]


FLIPPED = np.array([1, 1, 1, 0])
PARTS = "1 of 3 parts of one record replaced, the others unchanged"
PEOPLE = [(k + np.arange(2.0 * k).reshape(k, 2), np.ones(k)) for k in (3, 1, 2)]
MOVED = np.array(edited(FEATURES.tolist(), 1, [0.4, 0.5]))
FORMS = [
    {"text": "good film", "topic": 1},
    {"text": "bad plot", "topic": 0},
    {"text": "a slow cast", "topic": 1},
]


@pytest.mark.parametrize(
    ("pair", "reading", "stays"),
    [
        (Pair((FEATURES, LABELS), (FEATURES, FLIPPED)), PARTS, lambda data: data[0]),
        (
            Pair({"x": FEATURES, "y": LABELS}, {"x": FEATURES, "y": FLIPPED}),
            PARTS,
            lambda data: data["x"],
        ),
        (
            Pair((FEATURES, LABELS), (MOVED, LABELS)),
            "2 of 3",
            lambda data: data[1],
        ),
        (
            Pair(ROWS, edited(ROWS, 2, (0.25, 1))),
            "1 of 2 parts",
            lambda data: [row[0] for row in data],
        ),
        (
            Pair(FORMS, edited(FORMS, 0, {"text": "new film", "topic": 1})),
            "1 of 3",
            lambda data: [each["topic"] for each in data],
        ),
        (
            Pair(PEOPLE, edited(PEOPLE, 0, (PEOPLE[0][0][:2], PEOPLE[0][1][:2]))),
            "2 of 6",
            lambda data: [each[0][0, 1] for each in data],
        ),
        (
            Pair(["a b c", "d e", "f"], ["a b c", "d", "f"]),
            "1 of 2",
            lambda data: [text[0] for text in data],
        ),
    ],
)
def test_parts_of_a_record_that_the_given_pair_leaves_stay_in_all_pairs(
    pair, reading, stays
):
    adjacency = Alike([pair])
    assert f"neighbours searched: {reading}" in adjacency.name
    assert [*adjacency.readings][1:] == ["one record replaced"]
    pairs = made(adjacency)
    assert len(pairs) > 1
    for each in pairs:
        assert np.array_equal(stays(each.data), stays(each.neighbour))
    wide = Alike([pair], "one record replaced")
    assert any(
        not np.array_equal(stays(each.data), stays(each.neighbour))
        for each in wide.corner_cases()
    )


def test_a_change_that_the_pair_does_not_show_cannot_be_named():
    with pytest.raises(
        AdjacencyError,
        match="'one record added or removed', got change='one record replaced'",
    ):
        Alike([Pair(ROWS, ROWS[1:])], "one record replaced")


@pytest.mark.parametrize("part", [0, 1])
def test_where_a_record_is_put_to_zero_its_zeros_say_nothing_of_what_else_may_differ(
    part,
):
    """The record may be absent, or one feature or the label be changed: what is searched is within all of these."""
    features, labels = (
        np.array([[1, 0], [0, 1], [0, 0], [1, 1]]),
        np.array([1, 0, 0, 1]),
    )
    other = [features.copy(), labels.copy()]
    other[part].flat[-2 if part else 4] = 1
    adjacency = Alike([Pair((features, labels), tuple(other))])
    assert (
        "searched: 1 of 3 parts of one record put to 0, the others unchanged"
        in adjacency.name
    )
    for each in made(adjacency):
        assert np.array_equal(each.data[1 - part], each.neighbour[1 - part])
        rows = [np.column_stack(data) for data in (each.data, each.neighbour)]
        assert (rows[0] != rows[1]).sum() == 1


def test_other_data_is_made_in_the_form_of_a_named_tuple():
    data, record = namedtuple("Data", ["x", "y"]), namedtuple("Record", ["a", "b"])
    for each in made(
        Alike([Pair(data(FEATURES, LABELS), data(FEATURES[1:], LABELS[1:]))])
    ):
        assert len(each.data.x) == len(each.data.y) == 4
    rows = [record(*row) for row in ROWS]
    assert all(
        isinstance(row, record)
        for each in made(Alike([Pair(rows, rows[1:])]))
        for row in each.data
    )


def test_features_and_edges_are_no_two_records():
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    with pytest.raises(AdjacencyError, match="expected"):
        Alike([Pair((FEATURES, edges), (FEATURES, edges[1:]))])


def test_one_kind_of_neighbours_turns_majorities_round():
    """Records by turns: one that is replaced decides each group of every fifth."""
    rows = [float(k) for k in range(-12, 13)]
    pairs = Alike([Pair(rows, [*rows[:7], 12.0, *rows[8:]])]).corner_cases()
    votes = [
        [
            sum(np.median(data[k::5]) > 0 for k in range(5))
            for data in (p.data, p.neighbour)
        ]
        for p in pairs
    ]
    assert {2, 3} in map(set, votes)


USERS = [(np.arange(2.0 * k).reshape(k, 2), np.ones(k)) for k in (3, 1, 2)]


def test_records_of_any_kind_are_others_of_the_data():
    adjacency = Alike([Pair(USERS, USERS[:1] + USERS[2:])])
    assert adjacency.name.endswith(
        "one record added or removed, within the data's ranges"
    )
    cases = adjacency.corner_cases()
    largest, smallest = USERS[0], USERS[1]
    assert [len(case.data) for case in cases] == [3] * len(cases)
    assert all(
        any(record is user for user in USERS) for case in cases for record in case.data
    )
    assert any(
        case.data[1] is largest and case.data[0] is case.data[2] is smallest
        for case in cases
    )
    assert all(len(each.neighbour) == 2 for each in made(adjacency))


TEXTS, TOPICS = ["good film", "bad plot", "loved zanzibar", "slow cast"], [1, 0, 1, 1]
BOTH = list(zip(TEXTS, TOPICS, strict=True))


@pytest.mark.parametrize(
    ("whole", "shown"),
    [
        (TEXTS, lambda data: data),
        (np.array(TEXTS), list),
        (BOTH, lambda data: [text for text, _ in data]),
        (
            [{"text": text, "topic": topic} for text, topic in BOTH],
            lambda data: [each["text"] for each in data],
        ),
        ((TEXTS, TOPICS), lambda data: data[0]),
        ((np.array(TEXTS), np.eye(4)), lambda data: list(data[0])),
        ({"text": TEXTS, "topic": np.array(TOPICS)}, lambda data: data["text"]),
    ],
)
def test_each_text_of_the_data_is_in_or_out_among_the_others(whole, shown):
    def without(data, place):
        if isinstance(data, np.ndarray):
            return np.delete(data, place, axis=0)
        return data[:place] + data[place + 1 :]

    if isinstance(whole, dict):
        rest = {key: without(value, 1) for key, value in whole.items()}
    else:
        rest = (
            tuple(without(part, 1) for part in whole)
            if isinstance(whole, tuple)
            else without(whole, 1)
        )
    adjacency = Alike([Pair(whole, rest)])
    assert adjacency.name.endswith(
        "one record added or removed, within the data's ranges"
    )
    cases = adjacency.corner_cases()
    others = [TEXTS[0], *TEXTS[2:]]
    assert {
        shown(each.data)[1] for each in cases if shown(each.neighbour) == others
    } == set(TEXTS)
    assert all(type(each.data) is type(whole) for each in made(adjacency))
    if isinstance(whole, tuple):  # what belongs to a text stays with it
        known = {text: repr(other) for text, other in zip(*whole, strict=True)}
        assert all(
            known[text] == repr(other)
            for each in cases
            for text, other in zip(*each.data, strict=True)
        )


def test_only_an_empty_text_stands_for_one_that_is_absent():
    assert (
        "one record replaced"
        in Alike([Pair(["ab", "abc", "abcd"], ["ab", "abc", "ab"])]).name
    )
    assert "put to 0" in Alike([Pair(["ab", "abc", "abcd"], ["ab", "abc", ""])]).name


def test_features_that_are_put_to_zero_keep_their_label():
    features, labels = (
        np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 1.0]]),
        np.array([0, 1, 1]),
    )
    adjacency = Alike([Pair((features, labels), (features * [[1], [0], [1]], labels))])
    assert "one record put to 0" in adjacency.name
    for each in made(adjacency):
        assert np.array_equal(each.data[1], each.neighbour[1])
        assert not each.neighbour[0][
            (each.data[0] != each.neighbour[0]).any(axis=1)
        ].any()


def test_no_record_that_changes_is_shorter_than_the_shortest_and_others_may_be_quiet():
    """Code that divides a record by its length is right where no record of the data is 0."""
    features, labels = (
        np.array([[1.0, 2.5], [-3.0, -4.0], [0.5, 1.0]]),
        np.array([0.5, -2.0, 1.0]),
    )
    pairs = made(Alike([Pair((features, labels), (features[1:], labels[1:]))]))
    rows = [np.column_stack(each.data) for each in pairs]
    changed = [
        row
        for all_, each in zip(rows, pairs, strict=True)
        for row in all_
        if row[2] not in each.neighbour[1]
    ]
    assert len(changed) > 20
    assert min(np.linalg.norm(row[:2]) for row in changed) >= 1.25**0.5 - 1e-9
    assert min(abs(row[2]) for row in changed) >= 0.5 - 1e-9
    assert any(
        not np.any(each.neighbour[0]) and not np.any(each.neighbour[1])
        for each in pairs
    )
