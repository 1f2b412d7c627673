"""Traces: rows of numbers for answers mixed with flags, text, and lists of different lengths."""

import math
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import AnyValues
from auditdp.assertion import assert_private
from auditdp.claims import PureDP
from auditdp.errors import MechanismError, PrivacyViolation
from auditdp.mechanism import as_mechanism, call
from auditdp.traces import Traces, leaves

PLAIN = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=5)
TREES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=12)


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


def test_texts_are_numbers_of_their_own():
    words = ["", "yes", "no", "No", "yes ", b"bytes", "caf\udce9", "é"]
    numbers = [next(leaves(word)) for word in words]
    assert len(set(numbers)) == len(words)
    assert all(number == int(number) for number in numbers)
    assert next(leaves("yes")) == next(leaves("yes"))


def test_dictionaries_are_read_in_the_order_of_their_keys():
    assert list(leaves({"b": 1, "a": 2})) == list(leaves(OrderedDict(a=2, b=1)))
    assert list(leaves({"a": 1})) != list(leaves({"b": 1}))


@pytest.mark.parametrize(
    "output", [object(), 1j, {1, 2}, print, np.complex128(1)], ids=lambda output: type(output).__name__
)
def test_what_cannot_be_read_is_named(output):
    with pytest.raises(MechanismError, match=f"of type {type(output).__name__}"):
        list(leaves([1, output]))


@given(st.lists(TREES, min_size=1, max_size=12), st.lists(TREES, max_size=6))
def test_rows_hold_the_number_of_leaves_the_leaves_and_what_is_too_long(first, later):
    traces = Traces()
    rows = traces.rows(first)
    assert traces.width == max(1, 2 * max(len(list(leaves(output))) for output in first))
    for output, row in zip([*first, *later], [*rows, *traces.rows(later)], strict=True):
        numbers = list(leaves(output))
        assert row.shape == (traces.width + 2,)
        assert row[0] == len(numbers)
        kept = numbers[: traces.width]
        assert equal(row[1 : 1 + len(kept)], kept)
        assert np.isnan(row[1 + len(kept) : -1]).all()
        assert np.isnan(row[-1]) == (len(numbers) <= traces.width)


def test_long_tails_that_differ_are_told_apart():
    traces = Traces()
    traces.rows([[1]])
    tails = traces.rows([[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 4]])[:, -1]
    assert tails[0] == tails[2] != tails[1]


def test_what_begins_empty_may_become_longer():
    traces = Traces()
    assert traces.rows([[], []]).shape == traces.rows([[1, 2], []]).shape == (2, 3)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_outputs_of_one_shape_stay_what_they_are():
    outputs = as_mechanism(lambda data, rng: rng.integers(0, 2, 3))(0, 5, rng=rng())
    assert (outputs.shape, outputs.dtype) == ((5, 3), np.int64)
    assert as_mechanism(lambda data, rng: bool(rng.random() < 0.5))(0, 5, rng=rng()).dtype == bool


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: ["above"] * int(rng.integers(0, 4)) + ["below"],
        lambda data, rng: None if rng.random() < 0.5 else 1.5,
        lambda data, rng: "heads" if rng.random() < 0.5 else "tails",
        lambda data, rng: np.zeros(rng.integers(1, 9)),
        lambda data, rng: (int(rng.integers(9)), rng.random()) if rng.random() < 0.5 else 7,
        lambda data, rng: {"answer": rng.random(), "kept": [True] * int(rng.integers(3))},
    ],
    ids=["words", "none", "text", "ragged arrays", "mixed", "dictionary"],
)
def test_anything_with_leaves_is_a_mechanism_of_one_width(function):
    adapted = as_mechanism(function)
    first = call(adapted, 0, 64, rng())
    assert first.dtype == np.float64
    for size in (1, 5, 64):
        assert call(adapted, 1, size, rng(size), like=first).shape == (size, first.shape[1])


def test_a_word_that_tells_is_found_and_a_fair_one_is_not():
    def telling(data, rng):
        return ["kept"] * int(rng.geometric(0.5)) + (["secret"] if data and rng.random() < 0.7 else [])

    def fair(data, rng):
        return ["kept"] * int(rng.geometric(0.5)) + (["secret"] if rng.random() < 0.7 else [])

    with pytest.raises(PrivacyViolation):
        assert_private(telling, PureDP(0.5), AnyValues((0, 1)), calls=3_000)
    assert assert_private(fair, PureDP(0.5), AnyValues((0, 1)), calls=500).counterexample is None
