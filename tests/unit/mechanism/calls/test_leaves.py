"""Leaves.

Any output as numbers in order, without loss, and the path to each of them.
"""

import datetime
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.leaves import Raised, kind, leaves, paths

NAN = math.nan


def torch_tensor(*arguments, **options):
    return pytest.importorskip("torch").tensor(*arguments, **options)


class Table:
    """The common part of tables of two libraries."""

    dtypes = ("int64",)

    def __init__(self, **columns):
        self.columns = list(columns)
        self._columns = columns

    def __repr__(self):
        """The same text in every process: it is part of the name of a test."""
        return f"Table({self.columns})"

    def __getitem__(self, name):
        return self._columns[name]

    def to_dict(self):
        return dict(self._columns)


@pytest.mark.parametrize(
    ("output", "skipped", "expected"),
    [
        (3, 0, [3.0]),
        (np.zeros((0, 3)), 0, []),
        ([1, (2, [3, None])], 0, [1.0, 2.0, 3.0, NAN]),
        (np.array([1, None], object), 0, [1.0, NAN]),
        # The digest of a text, its length, its lines, and its numbers.
        ("a mean of 3.5\nof 12, -1e3", 1, [25.0, 2.0, 3.5, 12.0, -1000.0]),
        (b"\x00\xff", 1, [2.0, 0.0, 255.0]),
        (Table(a=[1, 2]), 1, [1.0, 2.0]),
    ],
    ids=str,
)
def test_leaves_in_order(output, skipped, expected):
    found = list(leaves(output))[skipped:]
    assert np.array_equal(found, expected, equal_nan=True)


def test_leaves_of_tensors():
    assert list(leaves(torch_tensor([1, 2]))) == [1.0, 2.0]
    assert list(leaves({"a": torch_tensor(3.0, requires_grad=True)}))[1] == 3.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        ((1,), [1]),
        ("a", b"a"),
        (np.int8(1), 1),
        ([1, 2.0], [2.0, 1]),
        ([1, 2], [1, 2.0, 3]),
    ],
    ids=repr,
)
def test_kinds_of_outputs_differ(one, other):
    assert kind(one) != kind(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(1), 1.5),
        (np.int64(1), 1),
        ([1, 2], [1, 2, 3]),
    ],
)
def test_numbers_of_one_kind(one, other):
    assert kind(one) == kind(other)


@pytest.mark.parametrize(
    ("attributes", "is_labelled"),
    [
        ({"dtypes": ["int8"]}, False),
        ({"dtypes": ["int64", "int64"]}, False),
        ({"iloc": None, "index": ["x", "y"]}, True),
    ],
)
def test_tables_differ_by_types_of_columns_and_labels_of_rows(attributes, is_labelled):
    one = Table(a=[1, 2])
    other = Table(a=[1, 2])
    vars(other).update(attributes)
    assert kind(one) != kind(other)
    labelled = ["with labels" in kind(table) for table in (one, other)]
    assert labelled == [False, is_labelled]


@pytest.mark.parametrize("output", [object(), print, iter([1])])
def test_other_types_are_refused_by_name(output):
    with pytest.raises(MechanismError, match=f"of type {type(output).__name__}"):
        list(leaves([1, output]))


@given(
    st.lists(st.integers(), min_size=1, max_size=6, unique=True)
    | st.lists(st.integers(2**53 - 2, 2**53 + 2), unique=True)
)
def test_integers_of_any_size_differ_and_their_leaves_add_up(numbers):
    found = [tuple(leaves(number)) for number in numbers]
    assert len(set(found)) == len(numbers)
    for parts, number in zip(found, numbers, strict=True):
        assert sum(map(int, parts)) == number
        assert len(parts) == 1 or abs(number) > 2**53


Point = namedtuple("Point", "x y")


@dataclass
class Report:
    age: int
    note: str = ""


@dataclass
class Other(Report):
    pass


NEW_YEAR = datetime.datetime(2020, 1, 1)
DIFFERENT = {
    "texts": ("", "yes", "no", "No", "yes ", b"bytes", "caf\udce9", "é"),
    "decimals": (Decimal("1.0"), Decimal("1.00"), Decimal("1.00000000000000000001")),
    "beyond doubles": (10**400, 10**400 + 1),
    "complex": (1 + 2j, 1 - 2j, np.complex128(2 + 1j)),
    "sets": ({1, 2}, {1}, frozenset()),
    "objects": (Report(1), Report(2), Report(1, "x"), Other(1)),
    "bytes": (b"a", bytearray(b"b"), b""),
    "times": (
        NEW_YEAR,
        NEW_YEAR.replace(microsecond=1),
        NEW_YEAR.replace(tzinfo=datetime.UTC),
    ),
    "spans": (datetime.timedelta(1), datetime.timedelta(1, microseconds=1)),
    "long doubles": (np.longdouble(1), np.longdouble(1) + np.finfo(np.longdouble).eps),
    "large integers of arrays": (
        np.array([2**60]),
        np.array([2**60 + 1]),
        np.array([2**63 + 1], np.uint64),
    ),
    "records": (np.array([(1, 2.0)], "i4,f8")[0], np.array([(1, 3.0)], "i4,f8")[0]),
    "sparse": (sparse.eye(2).tocsr(), 2 * sparse.eye(2).tocsr()),
    "exceptions": (Raised.of(KeyError()), Raised.of(ValueError())),
}


@pytest.mark.parametrize("outputs", DIFFERENT.values(), ids=DIFFERENT)
def test_different_outputs_have_different_leaves(outputs):
    found = [tuple(leaves(output)) for output in outputs]
    assert len(set(found)) == len(outputs)
    for output, numbers in zip(outputs, found, strict=True):
        assert tuple(leaves(output)) == numbers
        assert len(list(paths(output))) == len(numbers)


def test_dictionaries_have_the_order_of_their_keys():
    assert list(leaves({"b": 1, "a": 2})) == list(leaves(OrderedDict(a=2, b=1)))


def test_the_leaves_of_long_texts_and_bytes_are_limited():
    assert len(list(leaves(" ".join(map(str, range(99)))))) == 3 + 16
    assert len(list(leaves(bytearray(10**6)))) == len(list(paths(bytes(10**6)))) < 100


OUTPUT = {"age": np.array([3, 4]), "who": Point(1, {2}), "n": 2**60 + 1}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (5, ["output"]),
        (
            OUTPUT,
            [
                "a key of output",
                "output['age'][0]",
                "output['age'][1]",
                "a key of output",
                "output['n']",
                "the last digits of output['n']",
                "a key of output",
                "output['who'].x",
                "an element of output['who'].y",
            ],
        ),
        (Table(a=[1, 2]), [None, "output['a'][1][0]", "output['a'][1][1]"]),
        (
            "3 of 4",
            [
                None,
                "the length of output",
                "the number of lines of output",
                "number 1 in output",
                "number 2 in output",
            ],
        ),
        (b"a", ["output", "the length of output", "byte 1 of output"]),
        (Report(1), ["the class of output", None, None, None, None]),
    ],
    ids=["number", "nested", "table", "text", "bytes", "object"],
)
def test_paths_to_leaves(output, expected):
    found = list(paths(output))
    assert len(found) == len(expected)
    for path, one in zip(found, expected, strict=True):
        assert one in (None, path)
