"""Rows of numbers for any outputs: numbers as they are, others by their leaves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.leaves import digest, kind, leaves
from auditdp.mechanism.calls.representation import Representation, stacked

NUMBERS = st.floats(allow_nan=False)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | NUMBERS
    | st.text(max_size=5)
)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=8,
)


def equal(one, other):
    return np.array_equal(np.array(one, float), np.array(other, float), equal_nan=True)


@given(st.lists(TREES, max_size=8), st.lists(TREES, max_size=4))
def test_a_row_has_the_number_of_leaves_the_leaves_and_a_digest_of_the_rest(
    first, later
):
    # A text among the outputs makes rows of leaves.
    first = ["text", *first]
    form = Representation.of([first])
    longest = max(len(list(leaves(output))) for output in first)
    width = 2 * (longest + form.typed)
    outputs = [*first, *later]
    rows = [*form.rows(first), *form.rows(later)]
    for output, row in zip(outputs, rows, strict=True):
        numbers = list(leaves(output))
        if form.typed:
            numbers.insert(0, digest(kind(output)))
        assert row.shape == form.shape == (width + 2,)
        assert row[0] == len(numbers)
        kept = numbers[:width]
        assert equal(row[1 : 1 + len(kept)], kept)
        assert np.isnan(row[1 + len(kept) : -1]).all()
        is_whole = len(numbers) <= width and form.kind in ("", kind(output))
        assert np.isnan(row[-1]) == is_whole


def test_long_tails_that_differ_have_different_digests():
    form = Representation.of([["text"]])
    rows = form.rows([[*range(7), last] for last in (4, 5, 4)])
    assert rows[0, -1] == rows[2, -1] != rows[1, -1]


def test_empty_lists_may_become_longer():
    form = Representation.of([[[], []]])
    assert form.rows([[], []]).shape == form.rows([[1, 2], []]).shape == (2, 3)


@given(st.lists(NUMBERS, min_size=1), st.lists(TREES, max_size=6))
def test_numbers_are_themselves_and_other_outputs_are_named_by_bits_of_nan(
    first, later
):
    form = Representation.of([first])
    assert form.shape == ()
    assert form.dtype == np.float64
    assert equal(form.rows(first), first)
    names = {}
    for output, row in zip(later, form.rows(later), strict=True):
        if isinstance(output, float):
            assert row == output
            continue
        assert np.isnan(row)
        if output is not None:
            described = f"{kind(output)} {list(leaves(output))}"
            assert names.setdefault(row.tobytes(), described) == described


@pytest.mark.parametrize(("first", "other"), [(0.5, 5), (1, 5.0), (True, 1)])
def test_equal_numbers_of_another_type_have_another_row(first, other):
    rows = Representation.of([[first]]).rows([other, type(first)(other)])
    assert rows[0].tobytes() != rows[1].tobytes()


def test_a_vector_of_other_types_keeps_its_numbers_but_the_first():
    form = Representation.of([[[0.5, 1.5]]])
    rows = form.rows([[0, 1.5], [0.1, 1], [0.0, 1.5]])
    assert np.isnan(rows[:, 0]).tolist() == [True, True, False]
    assert rows[:, 1].tolist() == [1.5, 1, 1.5]
    assert form.numbers(rows)[:, 0].tolist() == pytest.approx([0, 0.1, 0], rel=1e-7)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_arrays_of_many_outputs_keep_their_type(dtype):
    rows = np.ones((3, 2), dtype)
    assert Representation.of([rows, rows]).rows(rows) is rows


def test_arrays_of_another_type_are_refused_unless_they_hold_integers():
    integers = Representation.of([np.ones(3, np.int64)])
    assert integers.rows(np.array([2.0, 4.0])).tolist() == [2, 4]
    message = r"float64 outputs of shape \(\) after int64"
    with pytest.raises(MechanismError, match=message):
        integers.rows(np.array([0.5]))
    message = r"shape \(3,\) after int8 of shape \(2,\)"
    with pytest.raises(MechanismError, match=message):
        Representation.of([np.ones((3, 2), np.int8)]).rows(np.ones((1, 3), np.int8))


def test_arrays_of_several_shapes_and_types_become_rows_of_their_leaves():
    form = Representation.of([np.ones((2, 3)), np.ones((2, 1, 2))])
    expected = [[2, 7, 7, math.nan, math.nan]]
    assert equal(form.rows(np.full((1, 1, 2), 7.0)), expected)
    form = Representation.of([np.ones((2, 1), np.int8), np.ones((2, 1))])
    integer, double = (
        form.rows(np.ones((1, 1), dtype))[0] for dtype in (np.int8, float)
    )
    assert form.shape == (4,)
    # The second number is the digest of the type.
    assert (integer == double).tolist() == [True, False, True, False]


def test_an_array_of_another_shape_among_doubles_has_a_name():
    form = Representation.of([np.ones((4, 2))])
    rows = form.rows(np.ones((2, 3)))
    other = form.rows(np.zeros((1, 3)))
    assert np.isnan(rows).all()
    assert rows[0].tobytes() == rows[1].tobytes() != other[0].tobytes()


def test_several_calls_are_stacked():
    rows = stacked([np.ones((2, 3)), np.zeros((1, 3))])
    assert rows.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]
    assert stacked([[1], ["a"]]) == [1, "a"]
    assert stacked([np.ones(1, int), np.ones(1)]) == [1, 1.0]


def test_a_row_depends_on_the_output_alone():
    first = ["yes", "no", None, [1, True], (1, True), ["a", 1]]
    form = Representation.of([first])
    rows = form.rows(first)
    assert form.rows(first[::-1])[::-1].tobytes() == rows.tobytes()
    later = [1, True, 1.0, [1, 1], [True, True], (1, 1), 0.0, -0.0, "1"]
    fresh = Representation.of([first]).rows(later)
    assert form.rows(later * 2).tobytes() == np.concatenate([fresh, fresh]).tobytes()
