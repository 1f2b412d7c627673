"""Leaves: whatever is returned as numbers in order, without loss, and the way to each."""

import datetime
import enum
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.leaves import Raised, kind, leaves, paths


def equal(one, other):
    return np.array_equal(np.array(one, float), np.array(other, float), equal_nan=True)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (3, [3.0]),
        (True, [1.0]),
        (np.float32(0.5), [0.5]),
        (np.bool_(False), [0.0]),
        (np.array(2.5), [2.5]),
        (np.array([[1, 2], [3, 4]]), [1.0, 2.0, 3.0, 4.0]),
        (np.zeros((0, 3)), []),
        (None, [math.nan]),
        ([], []),
        ([1, (2, [3, None])], [1.0, 2.0, 3.0, math.nan]),
        (np.array([1, None], object), [1.0, math.nan]),
    ],
    ids=repr,
)
def test_leaves_in_order(output, expected):
    assert equal(list(leaves(output)), expected)


def test_a_text_is_followed_by_its_length_its_lines_and_its_numbers():
    assert list(leaves("a mean of 3.5\nof 12, -1e3"))[1:] == [
        25.0,
        2.0,
        3.5,
        12.0,
        -1000.0,
    ]
    assert list(paths("3 of 4"))[1:] == [
        "the length of output",
        "the number of lines of output",
        "number 1 in output",
        "number 2 in output",
    ]
    assert len(list(leaves(" ".join(map(str, range(99)))))) == 3 + 16


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, 5.0),
        (True, 1),
        ([1], [1.0]),
        ((1,), [1]),
        (np.zeros(1), [0.0]),
        ("a", b"a"),
        (np.int8(1), 1.0),
    ],
    ids=repr,
)
def test_kinds_of_outputs_are_told_apart(one, other):
    assert kind(one) != kind(other)


def test_numbers_that_hold_the_same_are_of_one_kind():
    assert kind(np.float64(1)) == kind(1.5) != kind(np.float32(1))
    assert kind(np.int64(1)) == kind(1) != kind(np.int8(1))
    assert kind(np.bool_(True)) == kind(True)
    assert kind([1, 2.0]) != kind([2.0, 1])
    assert kind([1, 2]) == kind([1, 2, 3]) != kind([1, 2.0, 3])


def test_texts_are_numbers_of_their_own():
    words = ["", "yes", "no", "No", "yes ", b"bytes", "caf\udce9", "é"]
    numbers = [next(leaves(word)) for word in words]
    assert len(set(numbers)) == len(words)
    assert all(number == int(number) for number in numbers)
    assert next(leaves("yes")) == next(leaves("yes"))


def test_bytes_are_read_one_by_one_to_a_limit():
    assert list(leaves(b"\x00\xff"))[1:] == [2.0, 0.0, 255.0]
    assert list(paths(b"ab")) == [
        "output",
        "the length of output",
        "byte 1 of output",
        "byte 2 of output",
    ]
    assert len(list(leaves(bytearray(10**6)))) == len(list(paths(bytes(10**6)))) < 100


def test_dictionaries_are_read_in_the_order_of_their_keys():
    assert list(leaves({"b": 1, "a": 2})) == list(leaves(OrderedDict(a=2, b=1)))
    assert list(leaves({"a": 1})) != list(leaves({"b": 1}))


@pytest.mark.parametrize(
    "output", [object(), print, iter([1])], ids=lambda output: type(output).__name__
)
def test_what_cannot_be_read_is_named(output):
    with pytest.raises(MechanismError, match=f"of type {type(output).__name__}"):
        list(leaves([1, output]))


@given(
    st.lists(st.integers(), min_size=1, max_size=6, unique=True)
    | st.lists(st.integers(2**53 - 2, 2**53 + 2), unique=True)
)
def test_integers_of_any_size_are_told_apart_and_add_up(numbers):
    seen = [tuple(leaves(number)) for number in numbers]
    assert len(set(seen)) == len(numbers)
    assert all(
        sum(map(int, parts)) == number
        for parts, number in zip(seen, numbers, strict=True)
    )
    assert all(
        len(parts) == 1
        for parts, number in zip(seen, numbers, strict=True)
        if abs(number) <= 2**53
    )


def test_an_integer_beyond_all_doubles_is_told_apart():
    assert tuple(leaves(10**400)) != tuple(leaves(10**400 + 1))
    assert next(leaves(10**400)) == math.inf


Point = namedtuple("Point", "x y")
Colour = enum.Enum("Colour", "RED GREEN")


@dataclass
class Report:
    age: int
    note: str = ""


@dataclass
class Other:
    age: int
    note: str = ""


NEW_YEAR = datetime.datetime(2020, 1, 1)
DIFFERENT = {
    "decimals": (Decimal("1.0"), Decimal("1.00"), Decimal("1.00000000000000000001")),
    "fractions": (Fraction(1, 3), Fraction(10**20, 3 * 10**20 + 1)),
    "complex": (1 + 2j, 1 - 2j, np.complex128(2 + 1j)),
    "sets": ({1, 2}, {1}, frozenset()),
    "colours": (Colour.RED, Colour.GREEN),
    "objects": (Report(1), Report(2), Report(1, "x"), Other(1)),
    "bytes": (b"a", bytearray(b"b"), b""),
    "times": (
        NEW_YEAR,
        NEW_YEAR.replace(microsecond=1),
        NEW_YEAR.replace(tzinfo=datetime.UTC),
    ),
    "days": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "spans": (datetime.timedelta(1), datetime.timedelta(1, microseconds=1)),
    "long doubles": (np.longdouble(1), np.longdouble(1) + np.finfo(np.longdouble).eps),
    "large integers of arrays": (
        np.array([2**60], np.int64),
        np.array([2**60 + 1], np.int64),
        np.array([2**63 + 1], np.uint64),
    ),
    "records": (np.array([(1, 2.0)], "i4,f8")[0], np.array([(1, 3.0)], "i4,f8")[0]),
    "sparse": (sparse.eye(2).tocsr(), 2 * sparse.eye(2).tocsr()),
    "exceptions": (Raised.of(KeyError()), Raised.of(ValueError())),
}


@pytest.mark.parametrize("outputs", DIFFERENT.values(), ids=DIFFERENT)
def test_different_outputs_have_different_leaves(outputs):
    seen = [tuple(leaves(output)) for output in outputs]
    assert len(set(seen)) == len(outputs)
    assert seen == [tuple(leaves(output)) for output in outputs]
    assert all(
        len(list(paths(output))) == len(found)
        for output, found in zip(outputs, seen, strict=True)
    )


def test_tables_and_tensors_are_read_where_their_libraries_are_there():
    torch = pytest.importorskip("torch")
    assert list(leaves(torch.tensor([1, 2]))) == [1.0, 2.0]
    assert list(leaves({"a": torch.tensor(3.0, requires_grad=True)}))[1] == 3.0


class Table:
    """What tables of two libraries have in common."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name):
        return self._columns[name]

    def to_dict(self):
        return dict(self._columns)


@pytest.mark.parametrize(
    "more",
    [
        {"dtypes": ["int8"]},
        {"dtypes": ["int64", "int64"]},
        {"iloc": None, "index": ["x", "y"]},
    ],
    ids=str,
)
def test_tables_differ_by_the_types_of_columns_and_by_labels_of_rows(more):
    one, other = Table(a=[1, 2]), Table(a=[1, 2])
    vars(one).update({"dtypes": ["int64"]})
    vars(other).update({"dtypes": ["int64"]} | more)
    assert kind(one) != kind(other)
    assert ("with labels" in kind(other)) is ("index" in more)
    assert "with labels" not in kind(one)


def test_a_table_is_read_by_columns():
    assert list(leaves(Table(a=[1, 2], b=[3, None])))[1:3] == [1.0, 2.0]
    assert list(paths(Table(a=[1, 2])))[1:] == [
        "output['a'][1][0]",
        "output['a'][1][1]",
    ]


def test_the_way_to_a_leaf_is_what_one_writes():
    output = {"age": np.array([3, 4]), "who": Point(1, {2}), "n": 2**60 + 1}
    assert list(paths(output, "report")) == [
        "a key of report",
        "report['age'][0]",
        "report['age'][1]",
        "a key of report",
        "report['n']",
        "the last digits of report['n']",
        "a key of report",
        "report['who'].x",
        "an element of report['who'].y",
    ]
    assert list(paths(5)) == ["output"]
    assert next(paths(Report(1))) == "the class of output"
