"""Numbering of cells against numpy's own orders, and the edges of the set samplers."""

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.cells import (
    arc_cells,
    arcs_at,
    bernoulli_cells,
    contains,
    distinct_cells,
    pair_cells,
    pair_count,
    pairs_at,
)


@pytest.mark.parametrize("nodes", [2, 3, 7, 20])
def test_pairs_are_numbered_as_triu_indices_and_arcs_row_by_row_without_the_diagonal(
    nodes,
):
    edges, arcs = (
        np.array(np.triu_indices(nodes, 1)),
        np.array(np.nonzero(~np.eye(nodes, dtype=bool))),
    )
    assert edges.shape[1] == pair_count(nodes)
    for at, numbered, ends in (
        (pairs_at, pair_cells, edges),
        (arcs_at, arc_cells, arcs),
    ):
        cells = np.arange(ends.shape[1])
        np.testing.assert_array_equal(at(cells, nodes), ends)
        np.testing.assert_array_equal(numbered(ends, nodes), cells)


def test_the_last_pair_of_a_large_graph_has_no_rounding():
    nodes = 3_000_000
    last = pair_count(nodes) - 1
    np.testing.assert_array_equal(
        pairs_at(np.array([0, last]), nodes), [[0, nodes - 2], [1, nodes - 1]]
    )


def test_contains():
    np.testing.assert_array_equal(
        contains(np.array([1, 4]), np.array([0, 1, 4, 9])), [False, True, True, False]
    )
    assert not contains(np.array([], int), np.array([3])).any()


@pytest.mark.parametrize(
    ("count", "p", "expected"), [(5, 0.0, []), (4, 1.0, [0, 1, 2, 3]), (0, 0.5, [])]
)
def test_bernoulli_cells_at_the_ends(count, p, expected):
    assert bernoulli_cells(count, p, np.random.default_rng(0)).tolist() == expected


def test_bernoulli_cells_of_a_tiny_probability_do_not_overflow():
    assert len(bernoulli_cells(10**10, 2**-53, np.random.default_rng(0))) == 0


def test_distinct_cells_sizes_and_exclusions():
    sizes, taken = np.array([3, 0, 7, 1]), np.array([0, 1, 15, 16, 39])
    keys = distinct_cells(sizes, 10, np.random.default_rng(0), taken=taken)
    np.testing.assert_array_equal(np.bincount(keys // 10, minlength=4), sizes)
    assert (np.diff(keys) > 0).all()
    assert not np.isin(keys, taken).any()


def test_distinct_cells_can_fill_a_row_and_no_more():
    taken = np.array([2])
    assert distinct_cells(
        np.array([3]), 4, np.random.default_rng(0), taken=taken
    ).tolist() == [0, 1, 3]
    with pytest.raises(MechanismError, match="row 0 has 3 free cells, asked for 4"):
        distinct_cells(np.array([4]), 4, np.random.default_rng(0), taken=taken)
