"""Views of an output: its numbers, the nearer input, residues and fingerprints."""

from math import inf, nan

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import mode

from auditdp import Pair
from auditdp.betting.forecasters.views import (
    as_rows,
    by_inputs,
    fingerprint,
    residue_of,
    signed,
    views_of,
)
from auditdp.betting.limits import LIMITS

NAMES = Pair("one", "other")
NEAR = {"nearer input", "steps nearer to input", "along the change"}


def values_of(rows, pair=NAMES):
    """Return the values of every view by its name, but for the fingerprint."""
    rows = np.asarray(rows)
    views = views_of(rows, pair, with_inputs=by_inputs(pair, rows.shape[1]))
    assert [view.name for view in views if view.names] == ["fingerprint"]
    return {view.name: view.values(rows) for view in views if not view.names}


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32])
def test_a_vector_has_a_view_of_each_kind(kind):
    rows = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]], kind)
    views = values_of(rows)
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


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_small_integers_do_not_wrap_around(kind):
    limits = np.iinfo(kind)
    views = values_of(np.array([[limits.max, limits.min, limits.max]], kind))
    assert views["sum"][0] == 2 * limits.max + limits.min
    assert views["[1] - [0]"][0] == limits.min - limits.max


def test_long_outputs_have_views_of_their_first_coordinates():
    names = list(values_of(np.zeros((2, 500))))
    coordinates = [f"[{j}]" for j in range(LIMITS.coordinates)]
    assert names[: LIMITS.coordinates] == coordinates
    assert len(names) == LIMITS.coordinates + 5


def test_an_output_of_the_shape_of_the_inputs_is_nearer_to_one_of_them():
    pair = Pair(np.array([1, 0, 0]), [0, 0, 2])
    rows = [[1, 5, 0], [0, 5, 2], [0.5, 5, 1], [nan, 5, 0], [-inf, 5, 0]]
    views = values_of(rows, pair)
    assert views["nearer input"].tolist() == [3, -3, 0, 2, 2]
    assert views["steps nearer to input"].tolist() == [3, 1, 2, 2, 2]
    assert views["along the change"].tolist() == [1, -4, -1.5, 0, -inf]
    matrices = Pair(np.eye(2), np.zeros((2, 2)))
    rows = as_rows(np.eye(2, dtype=np.uint8)[None])
    assert values_of(rows, matrices)["nearer input"].tolist() == [2]


@pytest.mark.parametrize(
    ("width", "data"),
    [
        (3, [1.0]),
        (3, np.zeros((2, 2))),
        (3, ["a", "b", "c"]),
        (3, None),
        (3, [[1], [1, 2], [3]]),
        (1, [1.0]),  # the value itself is as informative
    ],
)
def test_inputs_of_another_shape_are_not_compared_with_outputs(width, data):
    views = values_of(np.zeros((2, width)), Pair(data, data))
    assert not NEAR & set(views)


@pytest.mark.parametrize(
    ("data", "neighbour", "direction"),
    [
        ([0.1, 0.7, 2.3], [0.4, 1.1, 3.0], [1, 1, 1]),
        # One number lies beyond the data and the other beyond the neighbour.
        ([1 / 3, 1 / 3], [0.0, 0.0], [1, -1]),
    ],
)
def test_nearness_does_not_show_the_last_bits_of_floating_point_noise(
    data, neighbour, direction
):
    pair = Pair(np.array(data), np.array(neighbour))
    far = default_rng(0).uniform(5, 50, size=(1000, len(data))) * direction
    for start in (pair.data, pair.neighbour):
        values = values_of(start + far, pair)["nearer input"]
        assert len(set(values)) == 1


@pytest.mark.parametrize("kind", "bB?hqQefd")
@pytest.mark.parametrize("width", [1, 2, 33, 2_000])
def test_equal_rows_share_a_fingerprint_and_others_do_not(kind, width):
    rows = default_rng(0).integers(0, 2, (100, width)).astype(kind)
    prints = fingerprint(rows)
    assert fingerprint(rows[::-1]).tolist() == prints[::-1].tolist()
    assert fingerprint(rows[7:8]).tolist() == [prints[7]]
    assert len(set(prints)) == len(np.unique(rows, axis=0))


BEYOND_SIGNED = [[2**64 - 1], [2**64 - 2], [2**63], [2**63 + 1]]


@pytest.mark.parametrize(
    ("rows", "distinct"),
    [
        (np.array([[1, 2, 3], [3, 2, 1], [2, 1, 3]], np.uint8), 3),
        (np.array([[0.0, 1.0], [-0.0, 1.0]]), 2),
        (np.array([[nan], [inf], [-inf], [0.0], [1.0]]), 5),
        (np.array([[nan, 1.0], [nan, 1.0]]), 1),
        (np.array(BEYOND_SIGNED, np.uint64), 4),
        (np.array([[7, 2**62], [7, 2**62 + 1], [7, -(2**63)]]), 3),
        (np.zeros((3, 0)), 1),
    ],
)
def test_different_outputs_have_different_fingerprints(rows, distinct):
    prints = fingerprint(rows)
    assert not np.isnan(prints).any()
    assert len(set(prints)) == distinct


def test_signed_numbers_distinguish_the_zeros():
    assert np.sign(signed(np.array([0.0, -0.0, 1.0]))).tolist() == [0, -1, 1]


READINGS = 0.123456789, 0.7654321
STEPPED = {
    "single precision": lambda rng, n: rng.laplace(size=n).astype(np.float32),
    "half precision": lambda rng, n: rng.laplace(size=n).astype(np.float16),
    "thousandths": lambda rng, n: rng.laplace(size=n).round(3),
    "whole numbers": lambda rng, n: rng.geometric(1e-4, n) - rng.geometric(1e-4, n),
}


def laplace(rng, n):
    return rng.laplace(size=n)


def outputs(noise, of=READINGS, count=8, seed=1):
    """Return noisy values of either of two readings."""
    rng = default_rng(seed)
    return np.concatenate([np.float64(reading) + noise(rng, count) for reading in of])


@pytest.mark.parametrize("kind", STEPPED)
def test_residues_show_the_value_that_noise_was_added_to(kind):
    residue = residue_of(outputs(STEPPED[kind]))
    new = outputs(STEPPED[kind], count=1_000, seed=2)
    one, other = np.split(residue(new), 2)
    common = mode(one).mode
    assert (one == common).mean() > 0.9
    assert (other == common).mean() < 0.01


@pytest.mark.parametrize(
    "column",
    [
        outputs(laplace),
        outputs(lambda rng, n: 1e3 * rng.normal(size=n), of=(41.0, 42.0)),
        outputs(STEPPED["single precision"], of=(41.0, 42.0)),  # nothing is left
        outputs(lambda rng, n: rng.integers(0, 3, n), of=(0, 1)),  # numbers repeat
        outputs(laplace).round(2),  # rounded after the noise
        np.full(16, nan),
        np.array([1.5, 2.5]),
    ],
)
def test_numbers_without_steps_have_no_residues(column):
    assert residue_of(column) is None


def test_residues_of_missing_and_huge_numbers_are_numbers():
    residue = residue_of(outputs(STEPPED["single precision"]))
    assert np.isnan(residue(np.array([nan, inf, -inf]))).all()
    assert np.isfinite(residue(np.array([1e200, -1e200, 0.0]))).all()


def test_each_number_with_steps_has_a_view_of_its_residue():
    rows = np.column_stack([outputs(laplace), outputs(STEPPED["thousandths"])])
    names = [name for name in values_of(rows) if "steps" in name]
    assert names == ["[1] beyond the steps of its noise"]
    assert list(values_of(rows[:, :1])) == ["value"]
