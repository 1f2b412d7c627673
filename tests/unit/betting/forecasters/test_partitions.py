"""Partitions: how a line is cut, and where every value falls."""

from math import inf, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.stats import norm

from auditdp.betting.forecasters.partitions import MAX_ATOMS, Names, Partition
from auditdp.betting.limits import LIMITS

numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.0, nan, inf, -inf])


@pytest.mark.parametrize(
    ("of", "values", "counts"),
    [
        ([7.0, 5.0, 7.0, 9.0], [5.0, 7.0, 7.0, 9.0], [1, 2, 1]),
        # A new value joins the next one above, or the last.
        ([7.0, 5.0, 7.0, 9.0], [-1.0, 6.0, 99.0], [1, 1, 1]),
        ([0.0, -0.0, 1.0], [-0.0, 0.0], [2, 0]),
        ([1.0, nan, inf, -inf, 2.0], [nan, inf, nan, inf, 1.0], [0, 1, 0, 2, 2]),
        ([nan, nan], [nan, 3.0, nan], [1, 2]),
    ],
)
def test_distinct_values_are_each_a_cell(of, values, counts):
    assert Partition(np.array(of)).count(np.array(values)).tolist() == counts


def test_one_value_more_than_the_most_atoms_is_cut_at_quantiles():
    assert Partition(np.arange(float(MAX_ATOMS))).size == MAX_ATOMS
    assert Partition(np.arange(float(MAX_ATOMS + 1))).size < MAX_ATOMS


def test_a_repeated_value_among_single_ones_has_a_cell_of_its_own():
    noise = default_rng(5).normal(size=2_000)
    partition = Partition(np.append(noise, [0.25, 0.25, -3.0, -3.0, -3.0]))
    for value in (0.25, -3.0):
        near = np.nextafter(value, [-inf, value, inf])
        below, cell, above = partition.index(near)
        assert below == cell - 1
        assert above == cell + 1
    plain = Partition(noise).size
    assert plain == partition.size - 4
    # Where repeats are everywhere, none is cut out.
    assert Partition(np.round(noise, 2)).size < 2 * plain


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_cells_get_finer_with_more_values_and_towards_both_ends(n):
    values = default_rng(0).normal(size=n)
    partition = Partition(values)
    counts = partition.count(values)
    assert counts.sum() == n
    assert counts.min() >= 1
    assert partition.size > Partition(values[: n // 10]).size
    middle = counts[len(counts) // 2]
    assert max(counts[0], counts[-1]) < middle / 4, "rare events have own cells"


@given(st.lists(numbers, min_size=1, max_size=300), st.lists(numbers, max_size=50))
def test_every_value_is_in_one_interval_and_counts_agree_with_indices(known, new):
    partition = Partition(np.array(known))
    assert partition.quarters.shape == (partition.size,)
    assert (np.diff(partition.quarters) >= 0).all(), "quarters are neighbouring cells"
    for values in (np.array(known), np.array(new, dtype=float)):
        index = partition.index(values)
        counts = np.bincount(index, minlength=partition.size)
        assert partition.count(values).tolist() == counts.tolist()
        assert (np.diff(index[np.argsort(values, kind="stable")]) >= 0).all()


def test_coarse_cells_are_about_quarters():
    values = default_rng(0).normal(size=4_000)
    partition = Partition(values)
    sizes = np.bincount(partition.quarters, partition.count(values))
    assert sizes.tolist() == pytest.approx([1_000] * 4, abs=200)


@pytest.mark.parametrize("values", [[1.0, 2.0, 2.0, 5.0], [3.0], [7.0, nan, 1.0, 1.0]])
def test_shapes_are_functions_of_the_share_below_the_middle_of_a_cell(values):
    """By brute force: half of the values in a cell lie below its middle."""
    partition = Partition(np.array(values))
    cells = partition.index(np.array(values))
    for cell in set(cells.tolist()):
        u = np.mean((cells < cell) + 0.5 * (cells == cell))
        line = 2 * u - 1
        clipped = np.clip(5 * u - 2.5, -1, 1)
        expected = [line, 1 + log(u), 1 + log(1 - u), norm.ppf(u), clipped]
        assert partition.shapes[:, cell] == pytest.approx(expected, abs=1e-12)


def test_shapes_are_finite_with_an_empty_last_cell():
    """The value 5 is so frequent that the last quantiles and the last edge are 5."""
    values = np.append(np.arange(1000) / 1000, np.full(1000, 5.0))
    partition = Partition(values)
    assert partition.count(values)[-1] == 0
    assert np.isfinite(partition.shapes).all()


def test_names_are_counted_exactly_and_unknown_ones_last():
    names = Names(np.array([3.0, 1.0, 3.0, 8.0]))
    values = np.array([8.0, 3.0, 2.0, 3.0, 9.0, 0.0])
    assert names.count(values).tolist() == [0, 2, 1, 3]
    assert names.index(values).tolist() == [2, 1, 3, 1, 3, 3]
    assert names.unnamed == 3


def test_the_most_frequent_names_have_cells():
    frequent = np.repeat([7.5, 9.5], 3)
    names = Names(np.append(np.arange(LIMITS.names + 50.0), frequent))
    assert names.size == LIMITS.names + 1
    assert names.count(frequent)[-1] == 0
