"""Views: what is looked at in an output, and fingerprints that tell different outputs apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.views import (
    as_rows,
    by_inputs,
    fingerprint,
    signed,
    views_of,
)
from auditdp.betting.limits import LIMITS

NAN, INF = math.nan, math.inf


NAMES = Pair("one", "other")


def numbers_of(rows, pair, **options):
    """The views but for the last one, whose numbers are names of whole outputs."""
    *views, whole = views_of(rows, pair, **options)
    assert (whole.name, whole.names) == ("fingerprint", True)
    assert not any(view.names for view in views)
    return views


def seen(rows, pair=NAMES):
    """What every view makes of the rows, by its name."""
    return {
        view.name: view.values(rows)
        for view in numbers_of(rows, pair, with_inputs=by_inputs(pair, rows.shape[1]))
    }


def test_rows_are_flattened_outputs():
    assert as_rows(np.zeros(5)).shape == (5, 1)
    assert as_rows(np.arange(24).reshape(2, 3, 4))[1].tolist() == list(range(12, 24))
    assert as_rows(np.zeros((0, 3, 4))).shape == (0, 12)
    assert as_rows(np.zeros((7, 0))).shape == (7, 0)


@pytest.mark.parametrize(
    "kind",
    [bool, np.int8, np.uint8, np.int64, np.float32, np.float64],
    ids=lambda k: k.__name__,
)
def test_a_vector_is_looked_at_in_every_way_there_is(kind):
    rows = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]], kind)
    views = seen(rows)
    assert {name: values.tolist() for name, values in views.items()} == {
        "[0]": [0, 1, 0],
        "[1]": [1, 0, 0],
        "[2]": [1, 0, 1],
        "[1] - [0]": [1, -1, 0],
        "[2] - [1]": [0, 0, 1],
        "sum": [2, 1, 1],
        "largest": [1, 1, 1],
        "smallest": [0, 0, 0],
        "place of the largest": [1, 0, 2],
        "place of the smallest": [0, 1, 0],
    }
    assert all(values.dtype == np.float64 for values in views.values())


def test_small_integers_do_not_wrap_around():
    views = seen(np.array([[255, 1]], np.uint8))
    assert (views["sum"][0], views["[1] - [0]"][0]) == (256, -254)
    views = seen(np.array([[127, -128]], np.int8))
    assert (views["sum"][0], views["[1] - [0]"][0]) == (-1, -255)


def test_one_number_is_looked_at_as_it_is_and_none_not_at_all():
    assert seen(np.array([[3], [4]]))["value"].tolist() == [3.0, 4.0]
    assert list(seen(np.array([[3], [4]]))) == ["value"]
    assert numbers_of(np.zeros((4, 0)), NAMES, with_inputs=False) == []


def test_what_is_no_number_is_passed_on():
    rows = np.array([[1.0, NAN, 2.0], [NAN, NAN, NAN]])
    views = seen(rows)
    assert np.isnan(views["[1]"]).all()
    assert views["[0]"][0] == 1.0


def test_of_long_outputs_the_first_coordinates_are_looked_at():
    names = [
        view.name for view in numbers_of(np.zeros((2, 500)), NAMES, with_inputs=False)
    ]
    assert [name for name in names if name.startswith("[")] == [
        f"[{j}]" for j in range(LIMITS.coordinates)
    ]
    assert len(names) == LIMITS.coordinates + 5


def test_inputs_of_the_shape_of_outputs_are_what_an_output_may_be_nearer_to():
    pair = Pair(np.array([1, 0, 0]), [0, 0, 2])
    rows = np.array([[1, 5, 0], [0, 5, 2], [0.5, 5, 1], [NAN, 5, 0], [-INF, 5, 0]])
    assert seen(rows, pair)["nearer input"].tolist() == [3, -3, 0, 2, 2]
    assert seen(rows, pair)["steps nearer to input"].tolist() == [3, 1, 2, 2, 2]
    assert seen(rows, pair)["along the change"].tolist() == [1, -4, -1.5, 0, -INF]
    assert seen(np.array([[0, 1], [1, 1]], np.uint8), Pair([0, 1], [0, 0]))[
        "nearer input"
    ].tolist() == [1, 1]
    matrices = Pair(np.eye(2), np.zeros((2, 2)))
    assert seen(as_rows(np.eye(2)[None]), matrices)["nearer input"].tolist() == [2]


@pytest.mark.parametrize(
    "data",
    [[1.0], np.zeros((2, 2)), ["a", "b", "c"], {"a": 1}, None, [[1], [1, 2], [3]]],
    ids=str,
)
def test_other_inputs_are_not_compared_with_outputs(data):
    assert not {"nearer input", "steps nearer to input", "along the change"} & set(
        seen(np.zeros((2, 3)), Pair(data, data))
    )
    assert "nearer input" not in seen(
        np.zeros((2, 1)), Pair([1.0], [0.0])
    )  # the value says the same


def test_laplace_noise_and_running_sums_of_it_are_told_apart_by_their_likelihood_ratio():
    data, neighbour, scale = np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.5, 3.0]), 2.0
    rows, pair = (
        data + np.random.default_rng(0).laplace(scale=scale, size=(100, 3)),
        Pair(data, neighbour),
    )
    ratio = (np.abs(rows - neighbour) - np.abs(rows - data)).sum(axis=1) / scale
    np.testing.assert_allclose(seen(rows, pair)["nearer input"] / scale, ratio)
    found = seen(rows.cumsum(axis=1), pair)["steps nearer to input"] / scale
    np.testing.assert_allclose(found, ratio, rtol=1e-5, atol=1e-6)


def test_normal_noise_is_told_apart_by_its_likelihood_ratio_but_for_a_constant():
    data, neighbour, sigma = np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.5, 3.0]), 2.0
    rows = data + np.random.default_rng(0).normal(scale=sigma, size=(100, 3))
    ratio = (np.square(rows - neighbour) - np.square(rows - data)).sum(axis=1) / (
        2 * sigma**2
    )
    rest = ratio - seen(rows, Pair(data, neighbour))["along the change"] / sigma**2
    np.testing.assert_allclose(rest, rest[0], atol=1e-6)


def test_nearness_does_not_show_the_last_bits_of_floating_point_noise():
    """Beyond both inputs it is one number, whichever of them the noise was added to."""
    pair = Pair(np.array([0.1, 0.7, 2.3]), np.array([0.4, 1.1, 3.0]))
    noise = np.random.default_rng(0).uniform(5, 50, size=(1000, 3))
    for start in (pair.data, pair.neighbour):
        assert len(np.unique(seen(start + noise, pair)["nearer input"])) == 1


@pytest.mark.parametrize("width", [1, 2, 5, 40])
def test_views_of_no_rows_are_empty(width):
    rows = np.zeros((0, width))
    for view in views_of(np.ones((3, width)), NAMES, with_inputs=False):
        assert view.values(rows).shape == (0,)
    assert fingerprint(rows).shape == (0,)


@pytest.mark.parametrize("kind", ["b", "B", "?", "h", "i", "q", "Q", "e", "f", "d"])
@pytest.mark.parametrize("width", [1, 2, 33, 2_000])
def test_equal_rows_share_a_fingerprint_wherever_they_stand_and_others_do_not(
    kind, width
):
    random = np.random.default_rng(0)
    rows = random.integers(0, 2, (200, width)).astype(kind)
    prints = fingerprint(rows)
    assert prints.shape == (200,)
    assert not np.isnan(prints).any()
    assert fingerprint(rows[::-1]).tolist() == prints[::-1].tolist()
    assert (
        np.concatenate([fingerprint(rows[k : k + 1]) for k in range(200)]).tolist()
        == prints.tolist()
    )
    assert len(np.unique(prints)) == len(np.unique(rows, axis=0))


def test_fingerprints_of_outputs_that_differ_in_order_only_differ():
    assert len(np.unique(fingerprint(np.array([[1, 2, 3], [3, 2, 1], [2, 1, 3]])))) == 3
    assert (
        len(
            np.unique(
                fingerprint(np.array([[1, 2, 3], [3, 2, 1], [2, 1, 3]], np.uint8))
            )
        )
        == 3
    )


def test_no_width_is_one_fingerprint():
    assert fingerprint(np.zeros((3, 0))).tolist() == [0.0] * 3
    assert fingerprint(np.zeros((3, 0), np.int8)).tolist() == [0.0] * 3


def test_zeros_of_either_sign_are_told_apart():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert len(np.unique(fingerprint(rows))) == 2
    assert np.sign(signed(rows[:, 0])).tolist() == [0, -1]
    assert signed(rows[:, 1]).tolist() == [1, 1]


def test_infinities_and_what_is_no_number_have_fingerprints_of_their_own():
    assert (
        len(np.unique(fingerprint(np.array([[NAN], [INF], [-INF], [0.0], [1.0]])))) == 5
    )
    assert len(np.unique(fingerprint(np.array([[NAN, 1.0], [NAN, 1.0]])))) == 1


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2, unique=True),
    st.integers(1, 3),
)
def test_large_integers_are_told_apart_where_doubles_round_them(values, width):
    rows = np.zeros((2, width), np.int64)
    rows[:, -1] = values
    assert len(np.unique(fingerprint(rows))) == 2


def test_unsigned_integers_beyond_the_signed_ones_are_told_apart():
    rows = np.array([[2**64 - 1], [2**64 - 2], [2**63], [2**63 + 1]], np.uint64)
    assert len(np.unique(fingerprint(rows))) == 4


@pytest.mark.parametrize("change", [1.0, 0.1, 1 / 3])
def test_nearness_does_not_show_the_last_bits_where_distances_cancel(change):
    """Of two numbers one lies beyond the data, the other beyond the neighbour: the distances add up to nothing."""
    pair = Pair(np.array([change, change]), np.zeros(2))
    far = np.random.default_rng(1).uniform(1, 9, size=(1000, 2))
    for rows in (far * [1, -1], np.array([change, change]) + far * [1, -1]):
        assert seen(rows, pair)["nearer input"].tolist() == [0.0] * 1000
