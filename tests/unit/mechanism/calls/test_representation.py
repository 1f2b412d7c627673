"""Rows of numbers for whatever a mechanism returns: numbers as they are, anything else by its leaves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import AnyValues
from auditdp.auditing.check import assert_private
from auditdp.claims.statements import PureDP
from auditdp.errors import MechanismError, PrivacyViolation
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.leaves import digest, kind, leaves
from auditdp.mechanism.calls.representation import Representation, stacked
from auditdp.mechanism.protocol import as_mechanism

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


def equal(one, other):
    return np.array_equal(np.array(one, float), np.array(other, float), equal_nan=True)


def mixed(*outputs):
    """Outputs whose rows hold leaves, since a text is among them."""
    return ["text", *outputs]


@given(st.lists(TREES, max_size=12), st.lists(TREES, max_size=6))
def test_rows_hold_the_number_of_leaves_the_leaves_and_what_is_too_long(first, later):
    first = mixed(*first)
    form = Representation.of([first])
    width = 2 * (max(len(list(leaves(output))) for output in first) + form.typed)
    for output, row in zip(
        [*first, *later], [*form.rows(first), *form.rows(later)], strict=True
    ):
        numbers = [*([digest(kind(output))] if form.typed else []), *leaves(output)]
        assert row.shape == form.shape == (width + 2,)
        assert row[0] == len(numbers)
        kept = numbers[:width]
        assert equal(row[1 : 1 + len(kept)], kept)
        assert np.isnan(row[1 + len(kept) : -1]).all()
        assert np.isnan(row[-1]) == (
            len(numbers) <= width and form.kind in ("", kind(output))
        )


def test_long_tails_that_differ_are_told_apart():
    tails = Representation.of([mixed()]).rows(
        [[*range(7), 4], [*range(7), 5], [*range(7), 4]]
    )[:, -1]
    assert tails[0] == tails[2] != tails[1]


def test_what_begins_empty_may_become_longer():
    form = Representation.of([[[], []]])
    assert form.rows([[], []]).shape == form.rows([[1, 2], []]).shape == (2, 3)


NUMBERS = st.floats(allow_nan=False)


@given(st.lists(NUMBERS, min_size=1), st.lists(TREES, max_size=6))
def test_numbers_are_themselves_and_what_is_none_has_a_name(first, later):
    """An output that is no number, or another array, is not a number in its row, told apart by its bits."""
    form = Representation.of([first])
    assert (form.shape, form.dtype) == ((), np.float64)
    assert equal(form.rows(first), first)
    rows = form.rows(later)
    names = {}
    for output, row in zip(later, rows, strict=True):
        plain = isinstance(output, float)
        assert equal(row, output) if plain else np.isnan(row)
        if not plain and output is not None:
            names.setdefault(row.tobytes(), set()).add(
                f"{kind(output)} {list(leaves(output))}"
            )
    assert all(len(same) == 1 for same in names.values())


def test_an_integer_among_doubles_and_a_double_among_integers_are_told_apart():
    for first, other in ((0.5, 5), (1, 5.0), (True, 1)):
        row, same = Representation.of([[first]]).rows([other, type(first)(other)])
        assert row.tobytes() != same.tobytes()
    both = Representation.of([[0, 0.5]]).rows([5, 5.0, 5])
    assert both[0].tobytes() == both[2].tobytes() != both[1].tobytes()


def test_a_vector_of_other_types_keeps_its_numbers_but_the_first():
    form = Representation.of([[[0.5, 1.5]]])
    rows = form.rows([[0, 1.5], [0.1, 1], [0.0, 1.5]])
    assert np.isnan(rows[:, 0]).tolist() == [True, True, False]
    assert rows[:, 1].tolist() == [1.5, 1, 1.5]
    assert form.numbers(rows)[:, 0].tolist() == pytest.approx([0, 0.1, 0], rel=1e-7)


def test_arrays_of_many_outputs_keep_their_type():
    for dtype in (bool, np.int8, np.int64, np.float32):
        rows = np.ones((3, 2), dtype)
        form = Representation.of([rows, rows])
        assert form.rows(rows) is rows
    assert Representation.of([np.ones(3, np.int64)]).rows(
        np.array([2.0, 4.0])
    ).tolist() == [2, 4]
    with pytest.raises(
        MechanismError, match=r"float64 outputs of shape \(\) after int64"
    ):
        Representation.of([np.ones(3, np.int64)]).rows(np.array([0.5]))
    with pytest.raises(
        MechanismError, match=r"shape \(3,\) after int8 of shape \(2,\)"
    ):
        Representation.of([np.ones((3, 2), np.int8)]).rows(np.ones((1, 3), np.int8))


def test_arrays_of_several_shapes_become_rows_of_their_leaves():
    form = Representation.of([np.ones((2, 3)), np.ones((2, 1, 2))])
    assert form.shape == (5,)
    assert equal(form.rows(np.full((1, 1, 2), 7.0)), [[2, 7, 7, math.nan, math.nan]])


def test_the_type_of_an_array_is_a_leaf_where_there_are_several():
    form = Representation.of([np.ones((2, 1), np.int8), np.ones((2, 1))])
    integer, double = (
        form.rows(np.ones((1, 1), np.int8))[0],
        form.rows(np.ones((1, 1)))[0],
    )
    assert form.shape == (4,)
    assert integer[0] == double[0] == 2
    assert integer[1] != double[1]
    assert integer[2] == double[2] == 1


def test_an_array_of_another_shape_among_doubles_has_a_name():
    form = Representation.of([np.ones((4, 2))])
    rows = form.rows(np.ones((2, 3)))
    assert np.isnan(rows).all()
    assert (
        rows[0].tobytes()
        == rows[1].tobytes()
        != form.rows(np.zeros((1, 3)))[0].tobytes()
    )


def test_several_calls_are_stacked():
    assert stacked([np.ones((2, 3)), np.zeros((1, 3))]).tolist() == [
        [1, 1, 1],
        [1, 1, 1],
        [0, 0, 0],
    ]
    assert stacked([[1], ["a"]]) == [1, "a"]
    assert stacked([np.ones(1, int), np.ones(1)]) == [1, 1.0]


def rng(seed=0):
    return np.random.default_rng(seed)


def test_outputs_of_one_shape_stay_what_they_are():
    outputs = Calls(as_mechanism(lambda data, rng: rng.integers(0, 2, 3)))(0, 5, rng())
    assert outputs.shape == (5, 3)
    assert set(
        Calls(as_mechanism(lambda data, rng: bool(rng.random() < 0.5)))(0, 50, rng())
    ) == {0, 1}


def test_a_word_that_tells_is_found_and_a_fair_one_is_not():
    def telling(data, rng):
        return ["kept"] * int(rng.geometric(0.5)) + (
            ["secret"] if data and rng.random() < 0.7 else []
        )

    def fair(data, rng):
        return ["kept"] * int(rng.geometric(0.5)) + (
            ["secret"] if rng.random() < 0.7 else []
        )

    with pytest.raises(PrivacyViolation):
        assert_private(telling, PureDP(0.5), AnyValues((0, 1)), calls=3_000)
    assert (
        assert_private(fair, PureDP(0.5), AnyValues((0, 1)), calls=500).counterexample
        is None
    )


def test_outputs_that_come_again_have_the_same_row_and_none_has_that_of_another_type():
    first = ["yes", "no", None, [1, True], (1, True), ["a", 1]]
    representation = Representation.of([first])
    rows = representation.rows(first)
    assert representation.rows(first[::-1])[::-1].tobytes() == rows.tobytes()
    later = [1, True, 1.0, [1, 1], [True, True], (1, 1), 0.0, -0.0, "1"]
    fresh = Representation.of([first]).rows(later)
    assert (
        representation.rows(later * 2).tobytes()
        == np.concatenate([fresh, fresh]).tobytes()
    )
