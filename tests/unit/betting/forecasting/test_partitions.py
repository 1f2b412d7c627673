"""Partitions: how a line is cut, and where every value falls."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from auditdp.betting.forecasters.partitions import (
    MAX_ATOMS,
    Names,
    Partition,
)
from auditdp.betting.limits import LIMITS

NAN, INF = math.nan, math.inf
numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.0, NAN, INF, -INF])


def test_few_distinct_values_are_each_a_cell():
    partition = Partition(np.array([7.0, 5.0, 7.0, 9.0]))
    assert partition.count(np.array([5.0, 7.0, 7.0, 9.0])).tolist() == [1, 2, 1]
    assert partition.count(np.array([-1.0, 6.0, 99.0])).tolist() == [1, 1, 1], (
        "what is new joins the next value above"
    )


def test_so_many_distinct_values_are_atoms_and_one_more_is_cut_at_quantiles():
    assert Partition(np.arange(float(MAX_ATOMS))).size == MAX_ATOMS
    assert Partition(np.arange(float(MAX_ATOMS + 1))).size < MAX_ATOMS


def test_a_value_that_occurs_several_times_where_others_occur_once_has_a_cell_of_its_own():
    rng = np.random.default_rng(5)
    noise = rng.normal(size=2_000)
    partition = Partition(np.concatenate([noise, [0.25, 0.25, -3.0, -3.0, -3.0]]))
    for value in (0.25, -3.0):
        below, cell, above = partition.index(
            np.array([np.nextafter(value, -INF), value, np.nextafter(value, INF)])
        )
        assert (below, above) == (cell - 1, cell + 1)
    assert Partition(noise).size == partition.size - 4
    often = np.round(noise, 2)  # repeats are everywhere: none is cut out
    assert Partition(often).size < 2 * Partition(noise).size


def test_zeros_of_either_sign_are_one_value():
    partition = Partition(np.array([0.0, -0.0, 1.0]))
    assert partition.size == 2
    assert partition.count(np.array([-0.0, 0.0])).tolist() == [2, 0]


@pytest.mark.parametrize("n", [100, 1_000, 10_000, 100_000])
def test_cells_get_finer_with_more_values_and_towards_both_ends(n):
    values = np.random.default_rng(0).normal(size=n)
    partition = Partition(values)
    counts = partition.count(values)
    assert counts.sum() == n
    assert counts.min() >= 1
    if n >= 1_000:
        assert partition.size > Partition(values[: n // 10]).size
        assert max(counts[0], counts[-1]) < counts[len(counts) // 2] / 4, (
            "rare events have cells of their own"
        )


def test_what_is_no_number_has_a_cell_of_its_own_beyond_infinity():
    values = np.array([1.0, NAN, INF, -INF, 2.0, NAN, INF])
    assert Partition(values).count(values).tolist() == [1, 1, 1, 2, 2]
    assert Partition(np.array([NAN, NAN])).count(
        np.array([NAN, 3.0, NAN])
    ).tolist() == [1, 2]
    assert Partition(np.array([1.0, 2.0])).count(np.array([NAN, 1.0])).tolist() == [
        1,
        1,
    ], "never seen: the last cell"


@given(st.lists(numbers, min_size=1, max_size=300), st.lists(numbers, max_size=50))
def test_every_value_lies_in_one_cell_and_counting_agrees_with_looking_up(seen, new):
    partition = Partition(np.array(seen))
    assert partition.quarters.shape == (partition.size,)
    assert (np.diff(partition.quarters) >= 0).all(), "quarters are neighbouring cells"
    for values in (np.array(seen), np.array(new, dtype=float)):
        index = partition.index(values)
        assert (
            partition.count(values).tolist()
            == np.bincount(index, minlength=partition.size).tolist()
        )
        order = np.argsort(values, kind="stable")
        assert (np.diff(index[order]) >= 0).all(), (
            "cells are intervals, and what is no number lies last"
        )


def test_coarse_cells_are_about_quarters():
    values = np.random.default_rng(0).normal(size=4_000)
    partition = Partition(values)
    shares = np.bincount(partition.quarters, weights=partition.count(values)) / 4_000
    assert shares.tolist() == pytest.approx([1 / 4] * 4, abs=0.05)


@pytest.mark.parametrize(
    "values", [[1.0, 2.0, 2.0, 5.0], [3.0], [7.0, NAN, 1.0, 1.0]], ids=str
)
def test_shapes_are_functions_of_the_share_below_the_middle_of_a_cell(values):
    """By brute force: half of the calls in the cell of a value lie below its middle."""
    values = np.array(values)
    partition = Partition(values)
    cells = partition.index(values)
    for cell in set(cells.tolist()):
        u = np.mean((cells < cell) + 0.5 * (cells == cell))
        expected = [
            2 * u - 1,
            1 + math.log(u),
            1 + math.log(1 - u),
            norm.ppf(u),
            np.clip(5 * u - 2.5, -1, 1),
        ]
        assert partition.shapes[:, cell] == pytest.approx(expected, abs=1e-12)


def test_shapes_are_finite_where_the_last_cell_is_empty():
    """The value 5 is so frequent that the last quantiles, and with them the last edge, are 5 itself."""
    values = np.r_[np.arange(1000) / 1000, np.full(1000, 5.0)]
    partition = Partition(values)
    assert partition.count(values)[-1] == 0
    assert np.isfinite(partition.shapes).all()


def test_names_are_counted_exactly_and_what_has_no_name_last():
    names = Names(np.array([3.0, 1.0, 3.0, 8.0]))
    assert names.count(np.array([8.0, 3.0, 2.0, 3.0, 9.0, 0.0])).tolist() == [
        0,
        2,
        1,
        3,
    ]
    assert names.index(np.array([8.0, 3.0, 2.0, 9.0])).tolist() == [2, 1, 3, 3]
    assert names.count(np.zeros(0)).tolist() == [0, 0, 0, 0]
    assert names.unnamed == 3


def test_the_most_frequent_names_are_kept():
    rare, frequent = np.arange(LIMITS.names + 50.0), np.repeat([7.5, 9.5], 3)
    names = Names(np.concatenate([rare, frequent]))
    assert names.size == LIMITS.names + 1
    assert names.count(frequent)[-1] == 0
